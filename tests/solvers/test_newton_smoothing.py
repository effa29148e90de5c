"""Losses that are straight where most residuals are."""

from typing import NamedTuple

import numpy as np
import pytest

import banditgrad as bg


@pytest.fixture
def dear(rng):
    """Targets a million times Huber's delta."""
    X = rng.standard_normal((600, 8))
    return X, 1e6 * (1.0 + 0.5 * X @ rng.standard_normal(8) + rng.standard_normal(600))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("penalty", [bg.L1(1e-4), bg.SquaredL2(1e-6)], ids=repr)
def test_huge_targets_are_fitted(dear, penalty, fit_intercept, seed):
    problem = bg.Problem(*dear, bg.Huber(), penalty, fit_intercept=fit_intercept)
    result = bg.minimise(problem, passes=300, seed=seed)
    assert result.converged
    assert result.gap <= 1e-6 * result.value
    early = bg.minimise(problem, passes=3, seed=seed)  # on the way
    assert early.value == problem.value(early.w) < problem.value(np.zeros(problem.dimension))
    assert not early.converged


def test_without_a_penalty_they_are_fitted_by_least_absolute_deviations(dear):
    from scipy.optimize import linprog

    X, y = dear
    (n, d), delta = X.shape, 1.35
    rest = np.eye(n)  # min Σ (u + v)  subject to  X w + u - v = y,  u, v >= 0
    bounds = [(None, None)] * d + [(0.0, None)] * (2 * n)
    least = linprog(np.r_[np.zeros(d), np.ones(2 * n)], A_eq=np.hstack([X, rest, -rest]), b_eq=y, bounds=bounds).fun
    result = bg.minimise(bg.Problem(X, y, bg.Huber(delta)), passes=300, seed=0)
    assert result.converged
    assert delta * (least / n - 0.5 * delta) <= result.value <= delta * least / n  # Huber's is below |r| by so much


class Straight(NamedTuple):
    """Huber's loss by somebody who did not think of huge targets."""

    delta: float = 1.35

    def value(self, z, y):
        r = abs(z - y)
        return 0.5 * r * r if r <= self.delta else self.delta * (r - 0.5 * self.delta)

    def derivative(self, z, y):
        return min(max(z - y, -self.delta), self.delta)

    def second_derivative(self, z, y):
        return 1.0 if abs(z - y) <= self.delta else 0.0

    def curvature(self):
        return 1.0

    def slope_bound(self):
        return self.delta


@pytest.mark.parametrize("penalty", [bg.L1(1e-4), bg.SquaredL2(1e-6), bg.Zero()], ids=repr)
def test_an_own_loss_without_a_smoother_one_is_not_said_to_have_converged(dear, penalty):
    problem, own = (bg.Problem(*dear, loss, penalty) for loss in (bg.Huber(), Straight()))
    best, result = bg.minimise(problem, passes=300, seed=0).value, bg.minimise(own, passes=60, seed=0)
    assert result.value <= best + 0.05 * (problem.value(np.zeros(8)) - best)
    assert not result.converged or result.value <= (1.0 + 1e-9) * best


def test_usual_residuals_need_no_smoother_problem(rng):
    X = rng.standard_normal((600, 8))
    y = X @ rng.standard_normal(8) + rng.standard_normal(600)
    huber, straight = (
        bg.minimise(bg.Problem(X, y, loss, bg.L1(1e-3)), passes=20, seed=0) for loss in (bg.Huber(), Straight())
    )
    np.testing.assert_array_equal(huber.history.value, straight.history.value)


@pytest.mark.parametrize("seed", range(3))
def test_by_default_hinges_on_raw_columns_are_minimised_as_a_linear_programme_is(seed):
    from scipy.optimize import linprog
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    signs, alpha = 2.0 * y - 1.0, 1e-2
    (n, d), rows = X.shape, signs[:, None] * np.c_[X, np.ones(len(X))]
    # w = u - v: min Σ ξ / n + α Σ (u + v)  subject to  ξ >= 1 - y (X w + c),  u, v, ξ >= 0
    costs = np.r_[np.full(2 * d, alpha), 0.0, np.full(n, 1.0 / n)]
    sides = np.hstack([-rows[:, :d], rows[:, :d], -rows[:, d:], -np.eye(n)])
    bounds = [(0.0, None)] * (2 * d) + [(None, None)] + [(0.0, None)] * n
    least = linprog(costs, A_ub=sides, b_ub=np.full(n, -1.0), bounds=bounds).fun
    problem = bg.Problem(X, signs, bg.Hinge(), bg.L1(alpha), fit_intercept=True)
    assert bg.minimise(problem, passes=300, seed=seed).value <= least * (1.0 + 1e-6)


def test_kinks_that_nothing_smooths_are_left_to_sgd():
    from banditgrad.solvers import automatic_solver

    class Absolute(NamedTuple):
        """|z - y|"""

        scale: float = 1.0

        def value(self, z, y):
            return self.scale * abs(z - y)

        def derivative(self, z, y):
            return self.scale if z > y else -self.scale

        def curvature(self):
            return np.inf

        def slope_bound(self):
            return self.scale

    X, y = np.eye(3), np.ones(3)
    assert isinstance(automatic_solver(bg.Problem(X, y, Absolute())), bg.ProxSgd)
    assert isinstance(automatic_solver(bg.Problem(X, y, bg.Hinge())), bg.SampledNewton)
    assert isinstance(automatic_solver(bg.Problem(X, y, bg.Quantile())), bg.SampledNewton)
