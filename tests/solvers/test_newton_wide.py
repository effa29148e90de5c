"""Newton's method on many features, where no matrix is made: sampled rows, sampled columns, and pairs of L-BFGS."""

import numpy as np
import pytest
import scipy.sparse as sp

import banditgrad as bg
from banditgrad._random import new_stream
from banditgrad.solvers.newton.columns import HessianColumns
from banditgrad.solvers.newton.lbfgs import LBFGS, PAIRS
from banditgrad.solvers.newton.matrix_free import HessianRows, _overlaps
from banditgrad.solvers.newton.subset import RowSubset
from banditgrad.solvers.newton.trust import Trust
from hard import minimiser
from newton_problems import hessian, problem_of, with_ones


@pytest.fixture(scope="module")
def wide_data():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 700)) * np.exp(0.5 * rng.standard_normal(700)) * (rng.random((300, 700)) < 0.3)
    return X, np.where(X @ rng.standard_normal(700) + rng.standard_normal(300) > 0.0, 1.0, -1.0)


@pytest.mark.parametrize("rows", ["dense", "sparse"])
def test_conjugate_gradients_minimise_the_model(wide_data, rng, rows):
    X, _ = wide_data
    problem = problem_of(wide_data, rows, penalty="SquaredL2")
    subset, w = RowSubset(problem), rng.standard_normal(701)
    estimate = HessianRows(subset, new_stream(0))
    subset.evaluate(0.01 * w)
    assert estimate.move(subset.second_derivatives, 1.0) == 300
    l1, l2 = np.zeros(701), np.where(np.arange(701) < 700, 0.5, 0.0)
    v, vMv = estimate.minimise(subset.gradient, w, l1, l2, 1e-20)
    H = hessian(problem, X, subset.second_derivatives)
    np.testing.assert_allclose(v, -np.linalg.solve(H + np.diag(l2), subset.gradient + l2 * w), rtol=1e-5, atol=1e-7)
    assert vMv == pytest.approx(v @ H @ v, rel=1e-9)
    assert 30 < estimate.move(subset.second_derivatives, 0.3) < 150


@pytest.mark.parametrize("rows", ["dense", "sparse"])
def test_coordinate_descent_minimises_the_model(wide_data, rng, rows):
    X, _ = wide_data
    problem = problem_of(wide_data, rows, penalty="ElasticNet")
    subset, w = RowSubset(problem), rng.standard_normal(701) * (rng.random(701) < 0.1)
    estimate = HessianColumns(subset, new_stream(0))
    subset.evaluate(0.01 * w)
    assert estimate.move(subset.second_derivatives, 1.0) == 300
    penalised = np.arange(701) < 700
    l1, l2 = np.where(penalised, 0.05, 0.0), np.where(penalised, 0.5, 0.0)
    v, vMv = estimate.minimise(subset.gradient, w, l1, l2, 1e-20)
    H = hessian(problem, X, subset.second_derivatives)
    moved = np.flatnonzero(v)
    assert 20 < moved.size < 600
    r, u = subset.gradient + H @ v + l2 * (w + v), w + v
    asked = (w != 0.0) | (np.abs(subset.gradient) > l1)  # the others wait for the next gradient
    np.testing.assert_allclose(r[u != 0.0], -(l1 * np.sign(u))[u != 0.0], atol=1e-6)
    assert np.all(np.abs(r[asked & (u == 0.0)]) <= 0.05 + 1e-6)
    assert not v[~asked].any()
    assert vMv == pytest.approx(v @ H @ v, rel=1e-9)
    assert 30 < estimate.move(subset.second_derivatives, 0.3) < 150


def bfgs(B, pairs):
    for s, y in pairs:
        B = B - np.outer(B @ s, B @ s) / (s @ B @ s) + np.outer(y, y) / (s @ y)
    return B


def remembered(rng, H, count):
    memory, pairs = LBFGS(), []
    for step in rng.standard_normal((count, len(H))):
        memory.remember(step, H @ step)
        pairs.append((step, H @ step))
    return memory, pairs[-PAIRS:]


@pytest.mark.parametrize("count", [0, 1, 4, PAIRS + 3])
def test_the_memory_is_that_of_bfgs(rng, count):
    A = rng.standard_normal((60, 40))
    H, M, slope = A.T @ A / 60 + 0.1 * np.eye(40), np.diag(rng.uniform(0.5, 2.0, 40)), rng.standard_normal(40)
    memory, pairs = remembered(rng, H, count)
    scale = 1.0
    if pairs:
        s, y = pairs[-1]
        scale = y @ np.linalg.solve(M, y) / (s @ y)
    B = bfgs(scale * M, pairs)
    v, vMv = memory.minimise(np.diag(M), slope, np.ones(40), np.zeros(40), 1.0)
    np.testing.assert_allclose(v, -np.linalg.solve(B, slope), rtol=1e-7, atol=1e-9)
    assert vMv == pytest.approx(v @ B @ v, rel=1e-8)

    B, w, l1 = bfgs(M, pairs), rng.standard_normal(40) * (rng.random(40) < 0.5), np.where(np.arange(40) < 39, 0.3, 0.0)
    v, vMv = memory.minimise(np.diag(M), slope, w, l1, 1e-12)
    r, u = slope + B @ v, w + v
    assert 0 < np.count_nonzero(u) < 40
    np.testing.assert_allclose(r[u != 0.0], -(l1 * np.sign(u))[u != 0.0], atol=1e-8)
    assert np.all(np.abs(r[u == 0.0]) <= 0.3 + 1e-8)
    assert vMv == pytest.approx(v @ B @ v, rel=1e-8)


def test_pairs_that_have_no_compact_form_are_forgotten(rng):
    """The step went where the diagonal is zero by now."""
    memory, slope, l1, diagonal = LBFGS(), rng.standard_normal(5), np.full(5, 0.1), np.array([0.0, 1.0, 1.0, 1.0, 1.0])
    slope[0] = 1.0
    memory.remember(np.eye(5)[0], np.eye(5)[0])
    v, vMv = memory.minimise(diagonal, slope, np.zeros(5), l1, 1e-12)
    np.testing.assert_allclose(v, -diagonal * np.sign(slope) * np.maximum(np.abs(slope) - 0.1, 0.0), atol=1e-12)
    assert vMv == pytest.approx(v @ v)


def test_a_step_without_curvature_is_not_remembered(rng):
    memory, slope = LBFGS(), rng.standard_normal(5)
    memory.remember(np.ones(5), np.zeros(5))
    memory.remember(np.ones(5), np.array([1.0, -1.0, 0.0, 0.0, 0.0]))
    v, _ = memory.minimise(np.ones(5), slope, np.zeros(5), np.zeros(5), 1.0)
    np.testing.assert_array_equal(v, -slope)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("rows", ["dense", "sparse"])
def test_what_rows_have_in_common_off_the_diagonal(wide_data, rng, rows, intercept):
    X, _ = wide_data
    problem = problem_of(wide_data, rows, penalty="SquaredL2", intercept=intercept)
    A = with_ones(X) if intercept else X
    first, second, scales, chances = np.arange(0, 40), np.arange(40, 80), rng.random(300), rng.random(300)
    room = np.zeros(problem.dimension)
    own, common = _overlaps(problem.parts.rows, np.arange(300), scales, chances, first, second, room)

    def off(k, h):
        product = np.outer(A[k], A[k]) * np.outer(A[h], A[h])
        return product.sum() - np.diag(product).sum()

    assert own == pytest.approx(sum(scales[k] ** 2 * (1.0 - chances[k]) * off(k, k) for k in first), rel=1e-10)
    assert common == pytest.approx(
        sum(scales[k] * scales[h] * off(k, h) for k, h in zip(first, second, strict=True)), rel=1e-8
    )
    assert not room.any()


def test_a_sample_is_trusted_as_far_as_its_rows_agree(rng):
    """Of independent features the diagonal says all, of features that follow three others few rows do."""
    alike = rng.standard_normal((2000, 3)) @ rng.standard_normal((3, 400))
    for X, dropped in ((rng.standard_normal((2000, 400)), True), (alike, False)):
        problem = bg.Problem(X, np.sign(X[:, 0]), bg.Logistic(), bg.SquaredL2(1e-3))
        subset = RowSubset(problem)
        subset.diagonal = np.zeros(400)
        subset.evaluate(np.zeros(400))
        estimate = HessianRows(subset, new_stream(0))
        estimate.move(subset.second_derivatives, 0.1)
        assert estimate.dropped == dropped
        estimate.move(subset.second_derivatives, 0.1)
        assert estimate.dropped == dropped  # for good
        estimate = HessianRows(subset, new_stream(0))
        estimate.move(subset.second_derivatives, 1.0)
        assert not estimate.dropped


@pytest.mark.parametrize("rows", ["dense", "sparse"])
def test_all_rows_are_taken_where_few_columns_work(wide_data, rows):
    subset = RowSubset(problem_of(wide_data, rows))
    subset.diagonal = np.zeros(701)
    subset.evaluate(np.zeros(701))
    size = np.sort(np.abs(subset.gradient))[::-1]
    estimate = HessianColumns(subset, new_stream(0))
    assert estimate.affordable(0.25, np.zeros(701), np.full(701, size[650])) == 0.25
    assert estimate.move(subset.second_derivatives, 0.25) < 150
    assert not estimate.exact
    estimate.dropped = True  # whatever a sample was worth
    estimate.affordable(0.25, np.zeros(701), np.full(701, size[20]))
    assert estimate.move(subset.second_derivatives, 0.25) == 300
    assert estimate.exact
    assert not estimate.dropped


def test_columns_keep_to_the_room_they_have(wide_data, monkeypatch):
    monkeypatch.setattr("banditgrad.solvers.newton.columns.MOST_ENTRIES", 6000)
    problem = problem_of(wide_data)
    subset = RowSubset(problem)
    subset.evaluate(np.zeros(701))
    assert (
        10 < HessianColumns(subset, new_stream(0)).move(subset.second_derivatives, 1.0) < 60
    )  # of 300 rows with 210 entries each
    result = bg.minimise(problem, bg.SampledNewton(), passes=200, seed=0)
    assert result.value < problem.value(minimiser(problem)) + 1e-6


@pytest.mark.parametrize("rows", ["dense", "sparse"])
@pytest.mark.parametrize(("loss", "penalty"), [("Logistic", "L1"), ("SquaredHinge", "ElasticNet"), ("Squared", "L1")])
def test_wide_problems_with_zeros_converge(wide_data, loss, penalty, rows):
    problem = problem_of(wide_data, rows, loss, penalty)
    result = bg.minimise(problem, bg.SampledNewton(), passes=60, seed=0)
    assert abs(result.value - problem.value(minimiser(problem))) < 1e-10
    assert np.all(np.diff(result.history.value) <= 1e-13)
    assert 0 < np.count_nonzero(result.w) < 700


@pytest.mark.parametrize("rows", ["dense", "sparse"])
def test_few_rows_of_many_features_can_all_be_met(rows):
    """No row is then in the bend of the squared hinge any more, and the Hessian is that of the penalty alone."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 1000)) / 30.0
    given = X if rows == "dense" else sp.csr_array(X)
    problem = bg.Problem(given, np.sign(X[:, 0]), bg.SquaredHinge(), bg.SquaredL2(1e-4))
    result = bg.minimise(problem, bg.SampledNewton(), passes=60, seed=0)
    assert result.value - problem.value(minimiser(problem)) < 1e-10


@pytest.mark.parametrize("rows", ["dense", "sparse"])
def test_wide_problems_agree_with_scikit_learn_and_closed_forms(wide_data, rows):
    from sklearn.linear_model import LogisticRegression

    X, y = wide_data
    given = X if rows == "dense" else sp.csr_array(X)
    solve = [
        bg.minimise(bg.Problem(given, y, loss, bg.SquaredL2(0.05)), passes=80, seed=0).w
        for loss in (bg.Squared(), bg.Logistic())
    ]
    ridge = np.linalg.solve(X.T @ X / 300 + 0.05 * np.eye(700), X.T @ y / 300)
    np.testing.assert_allclose(solve[0], ridge, atol=1e-7)
    logistic = LogisticRegression(C=1 / (300 * 0.05), fit_intercept=False, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(solve[1], logistic.coef_[0], atol=1e-5)


def test_boldness_that_came_too_early_is_earned_by_more_steps():
    trust, steps = Trust(predicted=1.0), []
    for _ in range(4):
        trust.raise_caution()
        caution, count = trust.caution, 0
        while trust.caution == caution:
            trust.earn_boldness()
            count += 1
        steps.append(count)
    assert steps == [1, 2, 4, 8]
    trust.predictions.extend([1.0, 1e-3])  # near: Newton's steps are right
    trust.raise_caution()
    caution = trust.caution
    trust.earn_boldness()
    assert trust.caution < caution
