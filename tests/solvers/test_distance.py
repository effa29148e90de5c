"""The automatic step of SGD and its kin."""

import numpy as np
import pytest
import scipy.sparse as sp

import banditgrad as bg
from hard import hard_problems
from iterates import last_iterate
from reference import loss_derivative


@pytest.mark.parametrize("longest", [1.0, 30.0])
def test_steps_are_distance_over_gradients(small_data, rng, longest):
    """γ_t = max ‖w_s - w_0‖ / √Σ ‖ĝ_s‖², the distance taken at the ends of blocks of 16 steps; γ L_i / (n p_i) of a
    long row is limited, with the γ before, and ĝ is what is left."""
    X, y = small_data
    n, batch = len(y), 3
    X = X * np.where(np.arange(n) == 7, longest, 1.0)[:, None]
    draws = rng.integers(0, n, 220 * batch)
    draws[draws == 7] = 8
    draws[200 * batch] = 7  # late, when w has come far
    problem = bg.Problem(sp.csr_array(X), y, bg.Logistic(), fit_intercept=True)
    A = np.hstack([X, np.ones((n, 1))])
    w, squares, gamma, limited = np.zeros(13), 0.0, 0.0, 0
    typical = np.sqrt(np.mean(problem.gradient_norms(w) ** 2))
    reach = 0.5 / problem.smoothness.max() * typical
    for t in range(220):
        i = draws[batch * t : batch * (t + 1)]
        too_far = gamma * problem.smoothness[i] / batch
        limited += int(np.sum(too_far[i == 7] > 2.0))
        parts = loss_derivative("Logistic", A[i] @ w, y[i])[:, None] * A[i] / batch
        g = (parts / np.maximum(too_far / 2.0, 1.0)[:, None]).sum(axis=0)
        squares += g @ g
        gamma = reach / np.sqrt(squares)
        w = w - gamma * g
        if (t + 1) % 16 == 0:
            reach = max(reach, np.linalg.norm(w))
            gamma = reach / np.sqrt(squares)
    assert (limited == 1) == (longest > 1.0)
    for solver in (bg.Sgd(batch_size=batch), bg.ProxSgd(batch_size=batch)):
        replay = bg.Replay(draws, np.full(n, 1 / n))
        got = last_iterate(problem, solver, replay, passes=len(draws) / n, record_every=0.21)
        np.testing.assert_allclose(got, w, atol=1e-12)


@pytest.mark.parametrize("solver", [bg.Sgd(), bg.ProxSgd(), bg.Sqn(batch_size=10)], ids=lambda s: type(s).__name__)
def test_auto_does_no_harm_and_mostly_good_on_hard_data(solver):
    gains = []
    for case, problem in hard_problems().items():
        start = problem.value(np.zeros(problem.dimension))
        results = [bg.minimise(problem, solver, bg.Mabs(), passes=200, seed=seed) for seed in range(3)]
        assert all(result.history.value[-1] <= 1.001 * start for result in results), case
        gains.append(np.median([result.value for result in results]) < 0.97 * start)
    assert sum(gains) >= 10


def test_no_draw_makes_its_rows_own_term_grow():
    """An entry alone in its column: where a step overshoots it twice and more, each draw multiplies the term."""
    rng = np.random.default_rng(0)
    X = np.hstack([rng.standard_normal((4000, 10)), np.zeros((4000, 1))])
    X[5, 10] = 1e3
    problem = bg.Problem(X, np.sign(X[:, :10].sum(axis=1)), bg.Squared(), bg.SquaredL2(1e-4))
    for seed in range(3):
        F = bg.minimise(problem, bg.Sgd(), bg.Uniform(), passes=20, seed=seed, record_every=0.5).history.value
        assert (1.1 * np.minimum.accumulate(F) >= F).all()


def test_a_huge_row_that_is_not_drawn_yet_is_not_thrown_away():
    """Half a pass or more goes by before its first draw; until then, steps along other rows move its margin."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 10))
    y = np.sign(X.sum(axis=1) + rng.standard_normal(4000))
    X[7] *= 1e4
    problem = bg.Problem(X, y, bg.Squared(), bg.SquaredL2(1e-4))
    for seed in range(3):
        F = bg.minimise(problem, bg.Sgd(), bg.Uniform(), passes=5, seed=seed, record_every=0.1).history.value
        assert F.max() <= 1.5 * F[0]


def test_less_variance_gives_longer_steps(rng):
    """A better sampler is taken advantage of without being told."""
    X = rng.standard_normal((2000, 10)) * np.exp(1.5 * rng.standard_normal(2000))[:, None]
    problem = bg.Problem(X, np.sign(X @ rng.standard_normal(10) + rng.standard_normal(2000)), penalty=bg.L1(1e-3))
    values = [bg.minimise(problem, bg.ProxSgd(), s, passes=30, seed=0).value for s in (bg.Mabs(), bg.Uniform())]
    assert values[0] < values[1]


def test_words_other_than_auto_are_refused():
    for kind in (bg.Sgd, bg.ProxSgd, bg.Sqn):
        with pytest.raises(TypeError, match='"auto"'):
            kind("fast")
