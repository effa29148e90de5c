"""Draws in blocks, made ahead of their steps: each step divides by the p of its own draw."""

from typing import NamedTuple

import numpy as np
import pytest

import banditgrad as bg
import reference
from banditgrad.solvers.parts.minibatch import BLOCK_SIZE, BLOCKS_PER_PASS
from iterates import last_iterate

N, D, STEP, SEED = BLOCK_SIZE * BLOCKS_PER_PASS, 4, 0.05, 3


class MovingState(NamedTuple):
    draws: np.ndarray
    made: np.ndarray
    p: np.ndarray  # those of every other block

    def draw(self):
        self.made[0] += 1
        return self.draws[(self.made[0] - 1) % self.draws.size]

    def probability(self, i):
        return self.p[(self.made[0] - 1) // BLOCK_SIZE % 2, i]

    def update(self, i, p_i, a_i):
        pass


class Moving(bg.Sampler):
    """The given draws, from a p that changes with every block."""

    def __init__(self, draws, p):
        self.draws, self.p = draws, p

    def state(self, setup):
        return MovingState(self.draws, np.zeros(1, np.int64), self.p)


@pytest.mark.parametrize(
    "name",
    ["Sgd", "Sgd(batch)", "ProxSgd", "Saga", "ProxSvrg"]
    + [pytest.param(name, marks=pytest.mark.slow) for name in ("Sqn", "S2gd", "LSvrg")],  # each compiles for long
)
def test_a_step_divides_by_the_p_of_its_draw(rng, name):
    """No row is drawn twice, so that the p of its draw is one number for each."""
    X = rng.standard_normal((N, D))
    y = np.where(X @ np.ones(D) + rng.standard_normal(N) > 0.0, 1.0, -1.0)
    draws = rng.permutation(N)[: 5 * BLOCK_SIZE]
    p = rng.dirichlet(np.full(N, 5.0), size=2) + 0.1 / N
    then = np.ones(N)
    then[draws] = p[np.arange(draws.size) // BLOCK_SIZE % 2, draws]
    problem = bg.Problem(X, y)
    arguments = (X, y, "Logistic", 0.0, 0.0)
    rest = (draws, then, D)

    def step(t):
        return STEP

    solver, expected = {
        "Sgd": lambda: (bg.Sgd(STEP), reference.sgd(*arguments, step, *rest)[0]),
        "Sgd(batch)": lambda: (bg.Sgd(STEP, batch_size=4), reference.sgd(*arguments, step, *rest, batch=4)[0]),
        "ProxSgd": lambda: (bg.ProxSgd(STEP), reference.prox_sgd(*arguments, step, *rest)),
        # too few steps for a pair: H is the identity
        "Sqn": lambda: (
            bg.Sqn(STEP, batch_size=4, every=1000),
            reference.sgd(*arguments, step, *rest, batch=4)[0],
        ),
        "Saga": lambda: (bg.Saga(STEP), reference.saga(*arguments, STEP, *rest)),
        "ProxSvrg": lambda: (bg.ProxSvrg(STEP), reference.svrg(*arguments, STEP, *rest, [N], True)),
        "S2gd": lambda: (bg.S2gd(STEP, inner=1), reference.svrg(*arguments, STEP, *rest, [1] * N, False)),
        "LSvrg": lambda: (bg.LSvrg(STEP), None),
    }[name]()
    if expected is None:
        expected = reference.svrg(*arguments, STEP, *rest, _lengths(solver, problem), False)
    got = last_iterate(problem, solver, Moving(draws, p), passes=draws.size / N, seed=SEED)
    np.testing.assert_allclose(got, expected, atol=1e-10)


def _lengths(solver, problem):
    from banditgrad._random import new_stream
    from banditgrad.minimise import _two_seeds
    from solvers.test_variance_reduced import lengths_of

    return lengths_of(solver.bins(problem, STEP), new_stream(_two_seeds(SEED)[1]), 10)
