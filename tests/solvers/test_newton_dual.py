"""Sweeps in the dual: beside plain NumPy, and as the beginning of Newton's method on few, sparse rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import brentq
from sklearn.svm import LinearSVC

import banditgrad as bg
from banditgrad._random import new_stream
from banditgrad.solvers.newton import dual
from banditgrad.solvers.newton.dual import Dual
from newton_problems import problem_of, with_ones
from tables import LOSSES


def few_rows(n=1500, d=6000, seed=0):
    """Rows for which no matrix pays and no sample is enough, of unlike length."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.01, rng=rng, format="csr", data_sampler=rng.standard_normal)
    X = sp.csr_array(sp.diags_array(np.exp(0.5 * rng.standard_normal(n))) @ X)
    score = X @ (rng.standard_normal(d) * (rng.random(d) < 0.1))
    return X, np.where(score + 0.3 * score.std() * rng.standard_normal(n) > 0.0, 1.0, -1.0)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_step_solves_its_row(small_data, rng, loss, monkeypatch):
    monkeypatch.setattr(dual, "CLOSE", 1e-9)
    terms = problem_of(small_data, "sparse", loss, "SquaredL2").parts.terms
    for i in range(50):
        z, q, alpha = 5.0 * rng.standard_normal(), 10.0 ** rng.uniform(-3.0, 3.0), 0.5 * rng.standard_normal()

        def excess(x, i=i, z=z, q=q, alpha=alpha):
            return x - z + q * (alpha + terms.slope(i, x))

        assert dual._fixed_point.py_func(terms, i, z, q, alpha) == pytest.approx(
            brentq(excess, -1e6, 1e6, xtol=1e-12), abs=1e-5
        )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_sweep_is_what_numpy_makes_of_it(small_data, rng, loss, weighted):
    X, y = small_data
    weights = {"sample_weight": rng.uniform(0.1, 2.0, len(y))} if weighted else {}
    problem = problem_of(small_data, "sparse", loss, "SquaredL2", **weights)
    A, scale, alphas, w, expected = with_ones(X), problem.shrinkage[1] * len(y), np.zeros(len(y)), np.zeros(13), 0.0
    mine, order = Dual(problem, new_stream(0)), rng.integers(0, len(y), 60)
    for i in order:
        z, q = A[i] @ w, A[i] @ A[i] / scale
        change = (dual._fixed_point.py_func(problem.parts.terms, i, z, q, alphas[i]) - z) / q
        alphas[i] += change
        w += change * A[i] / scale
        expected += 0.5 * q * change**2
    assert mine._sweep(order) == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(mine.w, w, atol=1e-10)
    np.testing.assert_allclose(mine.w, A.T @ mine._alphas / scale, atol=1e-10)
    np.testing.assert_allclose(mine._alphas, alphas, atol=1e-10)


def test_rows_that_moved_are_taken_and_none_is_left_out_twice():
    moves, order, stream = np.full(20000, dual.LEFT_OUT), np.zeros(20000, np.int64), new_stream(0)
    assert dual._choose(moves, stream, order) == 20000
    np.testing.assert_array_equal(np.sort(order), np.arange(20000))
    assert (order != np.arange(20000)).mean() > 0.99
    moves[:] = np.where(np.arange(20000) < 1000, 100.0, 0.1)
    moves[19000:] = 0.0
    taken = order[: dual._choose(moves, stream, order)].copy()
    assert np.isin(np.arange(1000), taken).all()
    assert len(taken) == pytest.approx(1000 + 0.2 * 19000, rel=0.05)
    left_out = np.setdiff1d(np.arange(20000), taken)
    again = order[: dual._choose(moves, stream, order)]
    assert np.isin(left_out, again).all()
    assert len(np.unique(again)) == len(again)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["Logistic", "SquaredHinge", "Huber"])
def test_few_sparse_rows_are_soon_fitted(loss, intercept):
    X, y = few_rows()
    problem = bg.Problem(X, y, LOSSES[loss], bg.SquaredL2(1e-4), fit_intercept=intercept)
    result = bg.minimise(problem, passes=60, seed=0)
    again = bg.minimise(problem, passes=60, seed=0)
    np.testing.assert_array_equal(result.w, again.w)
    assert isinstance(result.sampling.sampler, bg.Uniform)  # it was not asked
    steepest = np.linalg.norm(problem.gradient_mapping(np.zeros(problem.dimension)))
    assert np.linalg.norm(problem.gradient_mapping(result.w)) <= 1e-5 * steepest


def test_it_agrees_with_liblinear():
    X, y = few_rows(seed=1)
    problem = bg.Problem(X, y, bg.SquaredHinge(), bg.SquaredL2(1e-3))
    svc = LinearSVC(C=1.0 / (1e-3 * len(y)), dual=True, tol=1e-10, fit_intercept=False, max_iter=100_000).fit(X, y)
    result = bg.minimise(problem, passes=40, seed=0)
    assert result.value <= problem.value(svc.coef_.ravel()) + 1e-12


def test_least_squares_with_a_strong_penalty():
    X, y = few_rows()
    problem = bg.Problem(X, y, bg.Squared(), bg.SquaredL2(1.0))
    w = X.T @ np.linalg.solve((X @ X.T).toarray() + len(y) * np.eye(len(y)), y)  # (X'X + λ n I)⁻¹ X'y
    for seed in range(3):
        np.testing.assert_allclose(bg.minimise(problem, passes=60, seed=seed).w, w, atol=1e-8 * np.abs(w).max())


def test_sweeps_are_judged_by_many_where_rows_are_few(monkeypatch):
    """They gain little where few rows are taken, and more the next time."""
    X, y = few_rows()

    def ends_after(gains):
        mine, gains = Dual(bg.Problem(X, y, bg.Logistic(), bg.SquaredL2(1e-4)), new_stream(0)), iter(gains)
        monkeypatch.setattr(mine, "_sweep", lambda order: next(gains))
        while not mine.ended:
            mine.sweep()
        return len(mine._gains), mine.near

    assert ends_after([1.0] * 40) == (8, False)
    falling = [0.7 ** (k + (-1) ** k) for k in range(100)]  # every second gains more than the one before
    count, near = ends_after(falling)
    assert near
    assert count > 50


@pytest.mark.parametrize("intercept", [False, True])
def test_what_it_knows_is_right(intercept):
    X, y = few_rows()
    problem = bg.Problem(X, y, bg.Logistic(), bg.SquaredL2(1e-3), fit_intercept=intercept)
    mine = Dual(problem, new_stream(0))
    for _ in range(2):
        mine.step()
        assert mine.value == pytest.approx(problem.value(mine.w), rel=1e-12)
        np.testing.assert_allclose(mine.gradient, problem.gradient(mine.w), atol=1e-14)
        np.testing.assert_allclose(mine.feedback(), (problem.gradient_norms(mine.w) / problem.n) ** 2, atol=1e-16)


def test_it_is_tried_only_where_it_suits(tmp_path):
    X, y = few_rows()
    np.save(tmp_path / "data.npy", X.data)
    mapped = sp.csr_array((np.load(tmp_path / "data.npy", mmap_mode="r"), X.indices, X.indptr), shape=X.shape)
    solver = bg.SampledNewton()

    def begins_in_dual(X=X, loss=None, penalty=None, start=0.0):
        problem = bg.Problem(X, y, loss or bg.Logistic(), penalty or bg.SquaredL2(1e-4))
        return solver.start(problem, np.full(problem.dimension, start), 0).dual is not None

    assert begins_in_dual()
    assert not begins_in_dual(loss=bg.Squared())
    assert begins_in_dual(loss=bg.Squared(), penalty=bg.SquaredL2(1.0))  # rows are short beside λ n
    assert not begins_in_dual(penalty=bg.ElasticNet(1e-4, 0.5))
    assert not begins_in_dual(penalty=bg.Zero())
    assert begins_in_dual(X=X.toarray())  # fewer rows than features
    assert not begins_in_dual(X=X.toarray()[:, :1400])
    assert not begins_in_dual(X=mapped)
    assert not begins_in_dual(X=X[:, :50])
    assert not begins_in_dual(start=0.1)


@pytest.mark.parametrize("astray", [1e3, np.nan])
def test_where_it_leads_nowhere_newton_begins_at_zero(monkeypatch, astray):
    def sweep(self):
        self.w[:], self.ended = astray, True
        return 1

    X, y = few_rows()
    problem = bg.Problem(X, y, bg.Logistic(), bg.SquaredL2(1e-2))
    best = bg.minimise(problem, passes=60, seed=0)
    monkeypatch.setattr(Dual, "sweep", sweep)
    result = bg.minimise(problem, passes=60, record_every=60, seed=0)
    assert result.value == pytest.approx(best.value, rel=1e-10)
