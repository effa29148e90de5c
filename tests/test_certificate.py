"""The duality gap bounds F - F* and closes at the minimiser; optimality does not depend on the columns' units."""

import math
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import banditgrad as bg
from hard import minimiser
from tables import LOSSES

PENALTIES = {"L1": bg.L1(0.02), "SquaredL2": bg.SquaredL2(0.05), "ElasticNet": bg.ElasticNet(0.05, 0.4)}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((80, 6))
    y = np.where(X @ rng.standard_normal(6) + rng.standard_normal(80) > 0.3, 1.0, -1.0)
    return X, y, rng.uniform(0.1, 5.0, 80)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_gap_bounds_the_distance_and_closes_at_the_minimiser(loss, penalty, intercept, data, rng):
    X, y, weights = data
    problem = bg.Problem(X, y, LOSSES[loss], PENALTIES[penalty], weights, intercept)
    best = minimiser(problem)
    least = problem.value(best)
    assert problem.gap(best) < 1e-6 * least
    for size in (0.0, 1e-4, 1e-2, 1.0, 30.0):
        w = best + size * rng.standard_normal(problem.dimension)
        assert problem.value(w) - least <= problem.gap(w) * (1.0 + 1e-12) + 1e-14
    zero = np.zeros(problem.dimension)
    assert problem.value(zero) - least <= problem.gap(zero)


def test_a_smooth_penalty_has_the_gap_of_the_textbook(data, rng):
    """‖∇f(w) + λ w‖² / (2 λ): the conjugates cancel."""
    X, y, _ = data
    problem, w = bg.Problem(sp.csr_array(X), y, penalty=bg.SquaredL2(0.1)), rng.standard_normal(6)
    slope = problem.gradient(w) + 0.1 * w
    assert problem.gap(w) == pytest.approx(slope @ slope / 0.2, rel=1e-10)


def test_there_is_no_gap_without_a_penalty_that_has_one(data):
    X, y, _ = data

    class Own(bg.L1):
        def prox(self, w, step, j):
            return w / (1.0 + step)

    for penalty in (bg.Zero(), bg.SquaredL2(0.0), Own(0.1)):
        assert bg.Problem(X, y, penalty=penalty).gap(np.zeros(6)) == math.inf


@pytest.mark.parametrize("intercept", [False, True])
def test_optimality_does_not_depend_on_the_units_of_columns(intercept, data, rng):
    X, y, weights = data
    scale = 10.0 ** np.arange(-3, 3)
    w = rng.standard_normal(6 + intercept)
    scaled = w / np.append(scale, 1.0)[: w.size]
    plain = bg.Problem(X, y, sample_weight=weights, fit_intercept=intercept)
    other = bg.Problem(X * scale, y, sample_weight=weights, fit_intercept=intercept)
    assert other.optimality(scaled) == pytest.approx(plain.optimality(w), rel=1e-10)


def test_optimality_is_zero_at_the_minimiser_only(data):
    X, y, _ = data
    X = np.hstack([X, np.zeros((80, 1))])  # a column without entries
    problem = bg.Problem(X, y, penalty=bg.L1(0.05))
    best = minimiser(problem)
    assert problem.optimality(best) < 1e-12
    assert problem.optimality(best + 0.01) > 1e-4


def test_a_result_tells_its_gap_and_a_pickled_one_where_to_ask(data):
    X, y, _ = data
    problem = bg.Problem(X, y, penalty=bg.SquaredL2(0.1))
    result = bg.minimise(problem, bg.Saga(), passes=3, seed=0)
    assert result.gap == problem.gap(result.w) > 0.0
    copied = pickle.loads(pickle.dumps(bg.minimise(problem, bg.Saga(), passes=3, seed=0)))
    np.testing.assert_array_equal(copied.w, result.w)
    with pytest.raises(AttributeError, match=r"problem\.gap\(result\.w\)"):
        _ = copied.gap
