"""A draw is weighted by p as it was when it was made, though it waits in a block while p moves on: else ĝ is biased."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import banditgrad as bg
import reference
from banditgrad._random import new_stream
from banditgrad.minimise import _two_seeds
from banditgrad.solvers.parts.bins import GeometricBins, TruncatedBins
from banditgrad.solvers.parts.minibatch import BLOCK_SIZE, new_minibatch
from iterates import last_iterate
from solvers.test_sqn import hessian_draws
from solvers.test_variance_reduced import lengths_of

N, STEPS, SEED, GAMMA = 64 * BLOCK_SIZE, 700, 3, 0.05


class MovingState(NamedTuple):
    """Draws as given, from a p that is another one after every block that was learnt from."""

    draws: np.ndarray
    p: np.ndarray  # one row for each block
    made: np.ndarray  # draws, updates
    block_size: int

    def draw(self):
        self.made[0] += 1
        return self.draws[(self.made[0] - 1) % self.draws.size]

    def probability(self, i):
        return self.p[self.made[1] // self.block_size, i]

    def update(self, i, p_i, a_i):
        self.made[1] += 1


@dataclass(frozen=True, eq=False)
class Moving(bg.Sampler):
    draws: np.ndarray
    p: np.ndarray
    block_size: int

    def state(self, setup):
        return MovingState(self.draws, self.p, np.zeros(2, np.int64), self.block_size)


class InOrder:
    """p[i] is the next number of a list, whatever i is: a plain loop asks once for each draw."""

    def __init__(self, numbers):
        self.numbers = iter(numbers)

    def __getitem__(self, i):
        return next(self.numbers)


def svrg(bins, mean=False):
    def loop(*arguments):
        lengths = [N] if bins is None else lengths_of(bins, new_stream(_two_seeds(SEED)[1]), 10)
        return reference.svrg(*arguments, lengths, mean)

    return loop


def schedule(loop):
    """A plain loop of those that take γ_t."""
    return lambda X, y, loss, l1, l2, gamma, *others: loop(X, y, loss, l1, l2, lambda t: gamma, *others)


def sqn(*arguments):
    return reference.sqn(*arguments, 4, hessian_draws(N, SEED, STEPS // 20, 40), 5, 3)


CASES = {
    "Sgd": (bg.Sgd(GAMMA), schedule(lambda *a: reference.sgd(*a)[0])),
    "Sgd in batches": (bg.Sgd(GAMMA, batch_size=7), schedule(lambda *a: reference.sgd(*a, 7)[0])),
    "ProxSgd": (bg.ProxSgd(GAMMA), schedule(reference.prox_sgd)),
    "Sqn": (bg.Sqn(GAMMA, 4, 40, 5, 3), schedule(sqn)),
    "Saga": (bg.Saga(GAMMA), reference.saga),
    "ProxSvrg": (bg.ProxSvrg(GAMMA), svrg(None, mean=True)),
    "S2gd": (bg.S2gd(GAMMA), svrg(TruncatedBins(float(N), 1.0))),
    "LSvrg": (bg.LSvrg(GAMMA), svrg(GeometricBins(float(N)))),
}


@pytest.mark.parametrize("name", CASES)
def test_every_solver_weights_a_draw_by_p_as_it_was_then(rng, name):
    solver, loop = CASES[name]
    X = rng.standard_normal((N, 3))
    y = np.where(X @ [1.0, -2.0, 0.5] + rng.standard_normal(N) > 0.0, 1.0, -1.0)
    draws = rng.integers(0, N, STEPS)
    problem = bg.Problem(X, y, penalty=bg.L1(0.01))
    block_size = new_minibatch(problem, solver.batch_size).buffer.i.size // 2
    assert block_size > BLOCK_SIZE - solver.batch_size
    p = rng.uniform(0.5, 2.0, (STEPS // block_size + 2, N)) / N
    learnt = np.maximum(np.arange(STEPS) // block_size - 1, 0)  # blocks, when these draws were made: one waits
    expected = loop(X, y, "Logistic", 0.01, 0.0, GAMMA, draws, InOrder(p[learnt, draws]), 3)
    got = last_iterate(
        problem, solver, Moving(draws, p, block_size), passes=STEPS / N, seed=SEED, record_every=STEPS / N
    )
    np.testing.assert_allclose(got, expected, atol=1e-10)
