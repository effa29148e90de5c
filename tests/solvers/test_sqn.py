"""Stochastic quasi-Newton beside a plain loop with explicit matrices, and beside SGD."""

import numpy as np
import pytest
import scipy.sparse as sp

import banditgrad as bg
import reference
from banditgrad._random import new_stream
from banditgrad.minimise import _two_seeds
from iterates import last_iterate
from tables import LOSSES, PENALTIES


def hessian_draws(n, seed, pairs, size):
    """The rows that the solver's own stream will choose for its Hessians."""
    sampling = bg.Uniform().start(n)
    sampling.state.stream[:] = new_stream(_two_seeds(seed)[1])
    return sampling.draw(pairs * size)[0].reshape(pairs, size)


@pytest.mark.parametrize(
    ("loss", "penalty", "fit_intercept", "rows"),
    [
        ("Logistic", "L1", False, "dense"),
        ("Logistic", "SquaredL2", True, "sparse"),
        ("SquaredHinge", "ElasticNet", True, "dense"),
        ("Squared", "Zero", False, "dense"),
    ],
)
def test_equal_to_the_plain_loop_index_for_index(small_data, rng, loss, penalty, fit_intercept, rows):
    X, y = small_data
    n, batch, every, memory, size, seed, steps = len(y), 4, 5, 3, 40, 1, 60
    draws, p = rng.integers(0, n, steps * batch), rng.dirichlet(np.full(n, 5.0))
    problem = bg.Problem(
        X if rows == "dense" else sp.csr_array(X), y, LOSSES[loss], PENALTIES[penalty], fit_intercept=fit_intercept
    )
    expected = reference.sqn(
        reference.with_intercept(X, fit_intercept),
        y,
        loss,
        *PENALTIES[penalty].shrinkage(),
        lambda t: 1.0 / (5.0 + t),
        draws,
        p,
        X.shape[1],
        batch,
        hessian_draws(n, seed, steps // every - 1, size),
        every,
        memory,
    )
    solver = bg.Sqn(bg.ShiftedInverseTime(5.0, 1.0), batch, size, every, memory)
    got = last_iterate(problem, solver, bg.Replay(draws, p), passes=len(draws) / n, seed=seed, record_every=0.37)
    np.testing.assert_allclose(got, expected, atol=1e-9, rtol=1e-9)


def test_curvature_helps_where_columns_differ_in_scale(rng):
    X = rng.standard_normal((500, 8)) * 10.0 ** np.linspace(-1.5, 0, 8)
    y = X @ 10.0 ** np.linspace(1.5, 0, 8) + 0.1 * rng.standard_normal(500)
    problem = bg.Problem(X, y, bg.Squared(), bg.SquaredL2(1e-6))
    values = [
        bg.minimise(problem, solver, bg.Mabs(), passes=60, seed=0).value
        for solver in (bg.Sqn(0.1, 20, 100), bg.Sgd(0.1, batch_size=20))
    ]
    assert values[0] < 0.3 * values[1]


def test_a_flat_loss_leaves_no_pairs():
    """All margins far beyond the hinge: no curvature, and nothing to divide by."""
    problem = bg.Problem(np.eye(3), np.ones(3), bg.SquaredHinge())
    result = bg.minimise(problem, bg.Sqn(0.1, 1, 3, 2, 2), passes=20, seed=0, w0=[2.0, 2.0, 2.0])
    np.testing.assert_array_equal(result.w, [2.0, 2.0, 2.0])


@pytest.mark.parametrize("name", ["hessian_batch_size", "every", "memory", "batch_size"])
def test_counts_are_checked(name):
    for wrong in (0, 1.5, True, "many"):
        with pytest.raises(ValueError, match=name):
            bg.Sqn(**{name: wrong})
