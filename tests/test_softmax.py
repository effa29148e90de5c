"""`Softmax` and problems of several margins, against NumPy, finite differences and one another."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

import banditgrad as bg
from tables import PENALTIES

margins = st.lists(st.floats(-60, 60), min_size=4, max_size=4).map(np.array)


def rows(seed=0, n=200, d=6, classes=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7)
    y = (X @ rng.standard_normal((d, classes)) + rng.gumbel(size=(n, classes))).argmax(axis=1)
    return X, y.astype(float)


def objective(X, y, W, l1=0.0, l2=0.0, weights=None, intercept=True):
    """F in plain NumPy."""
    A = np.hstack([X, np.ones((len(X), 1))]) if intercept else X
    Z = A @ W
    terms = logsumexp(Z, axis=1) - Z[np.arange(len(y)), y.astype(int)]
    V = W[: X.shape[1]]
    return np.average(terms, weights=weights) + l1 * abs(V).sum() + 0.5 * l2 * (V**2).sum()


@given(z=margins, y=st.integers(0, 3))
def test_value_and_slopes_are_the_formulas(z, y):
    loss, out = bg.Softmax(4), np.empty(4)
    value = logsumexp(z - z[y])
    assert loss.value(z, float(y)) == pytest.approx(value, rel=1e-12, abs=1e-15)
    assert loss.derivatives(z, float(y), out) == pytest.approx(value, rel=1e-12, abs=1e-15)
    np.testing.assert_allclose(out, softmax(z) - np.eye(4)[y], rtol=1e-12, atol=1e-15)
    assert np.linalg.norm(out) <= loss.slope_bound()


@given(z=margins, y=st.integers(0, 3), v=margins)
def test_curvature_is_the_formula(z, y, v):
    loss, slopes, out, a, b = bg.Softmax(4), np.empty(4), np.empty(4), np.empty(4), np.empty(4)
    loss.derivatives(z, float(y), slopes)
    loss.curve_product(z, slopes, float(y), v, out)
    loss.curve_parts(z, slopes, float(y), a, b)
    p = softmax(z)
    hessian = np.diag(p) - np.outer(p, p)
    np.testing.assert_allclose(out, hessian @ v, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(np.diag(a) - np.outer(b, b), hessian, rtol=1e-9, atol=1e-15)
    assert np.linalg.norm(out) <= loss.curvature() * np.linalg.norm(v) * (1.0 + 1e-12)
    aside = v.copy()
    loss.curve_product(z, slopes, float(y), aside, aside)  # in place
    np.testing.assert_array_equal(aside, out)


def test_curvature_of_a_row_that_is_nearly_certain_does_not_cancel():
    loss, z, slopes, out = bg.Softmax(3), np.array([60.0, 0.0, 1.0]), np.empty(3), np.empty(3)
    loss.derivatives(z, 0.0, slopes)
    v = np.array([1e6, 1.0, -2.0])
    loss.curve_product(z, slopes, 0.0, v, out)
    p, q = np.exp(-60.0), np.exp(-59.0)
    expected = [p * (1e6 - 1.0) + q * (1e6 + 2.0), p * (1.0 - 1e6), q * (-2.0 - 1e6)]
    np.testing.assert_allclose(out, expected, rtol=1e-12)


def test_large_margins_do_not_overflow():
    loss, out = bg.Softmax(3), np.empty(3)
    assert loss.value(np.array([1e5, 0.0, -1e5]), 2.0) == 2e5
    assert loss.derivatives(np.array([1e5, 0.0, -1e5]), 0.0, out) == 0.0
    assert out.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("classes", [1, 0, 2.5, np.inf, np.nan])
def test_the_number_of_classes_is_checked(classes):
    with pytest.raises(ValueError, match="whole number of classes"):
        bg.Softmax(classes)


@pytest.mark.parametrize("label", [-1.0, 4.0, 0.5])
def test_labels_are_checked(label):
    X, y = rows()
    y[7] = label
    with pytest.raises(ValueError, match=rf"class numbers from 0 to 3, got {label:g} at position 7"):
        bg.Problem(X, y, bg.Softmax(4))


@pytest.mark.parametrize("form", [np.asarray, np.float32, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_problem_is_the_formula(form, intercept, weighted):
    X, y = rows()
    X = np.float32(X).astype(float)
    rng = np.random.default_rng(1)
    s = rng.random(200) if weighted else None
    problem = bg.Problem(form(X), y, bg.Softmax(4), bg.ElasticNet(0.1, 0.3), s, intercept)
    W = rng.standard_normal(problem.shape)
    assert problem.shape == (6 + intercept, 4)
    assert problem.dimension == W.size
    assert problem.value(W) == pytest.approx(objective(X, y, W, 0.03, 0.07, s, intercept), rel=1e-12)
    assert problem.value(W.ravel()) == problem.value(W)
    A = np.hstack([X, np.ones((200, 1))]) if intercept else X
    scales = np.ones(200) if s is None else s / s.mean()
    slopes = scales[:, None] * (softmax(A @ W, axis=1) - np.eye(4)[y.astype(int)])
    np.testing.assert_allclose(problem.gradient(W), A.T @ slopes / 200, atol=1e-13)
    assert problem.gradient(W.ravel()).shape == (W.size,)
    norms = np.linalg.norm(slopes, axis=1) * np.linalg.norm(A, axis=1)
    np.testing.assert_allclose(problem.gradient_norms(W), norms, rtol=1e-12)
    np.testing.assert_allclose(problem.smoothness, 0.5 * scales * (A**2).sum(axis=1), rtol=1e-12)
    assert (problem.gradient_bounds >= norms).all()


def test_gradient_by_finite_differences():
    X, y = rows()
    problem = bg.Problem(sp.csr_array(X), y, bg.Softmax(4), fit_intercept=True)
    W, h = np.random.default_rng(2).standard_normal(problem.shape), 1e-6
    for place in np.ndindex(W.shape):
        step = np.zeros_like(W)
        step[place] = h
        difference = (problem.value(W + step) - problem.value(W - step)) / (2 * h)
        assert problem.gradient(W)[place] == pytest.approx(difference, abs=1e-8)


def test_memory_mapped_rows_are_used_in_place(tmp_path):
    X, y = rows()
    mapped = np.memmap(tmp_path / "X", np.float32, "w+", shape=X.shape)
    mapped[:] = X
    problem = bg.Problem(mapped, y, bg.Softmax(4))
    assert np.shares_memory(problem.parts.rows.matrix, mapped)
    W = np.random.default_rng(3).standard_normal(problem.shape)
    assert problem.value(W) == bg.Problem(np.float32(X), y, bg.Softmax(4)).value(W)


def minimiser(problem, X, y, l1, l2):
    """By L-BFGS on W = P - N, P and N not negative, which makes the l1 norm smooth."""
    d, shape = X.shape[1], problem.shape
    size = problem.dimension
    norm = np.zeros(shape)
    norm[:d] = l1

    def parts(v):
        W = (v[:size] - v[size:]).reshape(shape)
        g = problem.gradient(W)
        g[:d] += l2 * W[:d]
        return W, g

    def value(v):
        W, g = parts(v)
        smooth = objective(X, y, W, 0.0, l2)
        total = smooth + float(norm.ravel() @ (v[:size] + v[size:]))
        return total, np.concatenate([(g + norm).ravel(), (norm - g).ravel()])

    options = {"maxiter": 20_000, "maxfun": 50_000, "ftol": 1e-15, "gtol": 1e-11}
    found = minimize(value, np.zeros(2 * size), jac=True, method="L-BFGS-B", bounds=[(0, None)] * 2 * size,
                     options=options)  # fmt: skip
    return found.fun


@pytest.mark.parametrize("penalty", ["L1", "SquaredL2", "ElasticNet"])
def test_gap_bounds_what_is_left_and_vanishes_at_the_minimum(penalty):
    X, y = rows()
    problem = bg.Problem(X, y, bg.Softmax(4), PENALTIES[penalty], fit_intercept=True)
    best = minimiser(problem, X, y, *PENALTIES[penalty].shrinkage())
    result = bg.minimise(problem, passes=100, tol=1e-9, seed=0)
    rng = np.random.default_rng(4)
    for scale in (0.0, 0.01, 0.1, 1.0):
        W = result.w + scale * rng.standard_normal(problem.shape)
        assert problem.gap(W) >= problem.value(W) - best - 1e-9
    assert problem.gap(np.zeros(problem.shape)) >= problem.value(np.zeros(problem.shape)) - best
    assert result.gap < 1e-9
    assert result.value == pytest.approx(best, rel=1e-9)


def test_gap_with_weights_and_a_class_that_never_occurs():
    X, y = rows()
    weights = np.random.default_rng(5).random(200)
    problem = bg.Problem(X, y, bg.Softmax(6), bg.SquaredL2(0.1), weights, True)
    result = bg.minimise(problem, passes=60, tol=1e-8, seed=0)
    without = bg.minimise(bg.Problem(X, y, bg.Softmax(4), bg.SquaredL2(0.1), weights, True), passes=60, tol=1e-8)
    assert result.gap < 1e-6
    assert result.value == pytest.approx(without.value, rel=1e-6)  # more classes only leave more to be zero


def test_there_is_no_gap_without_a_penalty():
    X, y = rows()
    assert bg.Problem(X, y, bg.Softmax(4)).gap(np.zeros((6, 4))) == np.inf


def test_what_has_no_meaning_is_refused():
    X, y = rows()
    problem = bg.Problem(X, y, bg.Softmax(4))
    with pytest.raises(ValueError, match=r"offset is for losses of one margin, got Softmax"):
        bg.Problem(X, y, bg.Softmax(4), offset=y)
    with pytest.raises(TypeError, match="no residuals"):
        problem.residuals(np.zeros((6, 4)))
    with pytest.raises(ValueError, match=r"W must have shape \(6, 4\), the features by the margins, got \(4, 6\)"):
        problem.value(np.zeros((4, 6)))


def test_two_classes_are_logistic_regression():
    X, y = rows(classes=2)
    joint = bg.Problem(X, y, bg.Softmax(2), bg.SquaredL2(0.1), fit_intercept=True)
    single = bg.Problem(X, 2 * y - 1, bg.Logistic(), bg.SquaredL2(0.05), fit_intercept=True)
    W, w = bg.minimise(joint, tol=1e-10).w, bg.minimise(single, tol=1e-10).w  # ‖W‖² = ‖w‖²/2 for columns -w/2 and w/2
    np.testing.assert_allclose(W[:, 1] - W[:, 0], w, atol=1e-7)


def test_paths_begin_at_the_null_model():
    X, y = rows()
    problem = bg.Problem(X, y, bg.Softmax(4), bg.L1(1.0), fit_intercept=True)
    path = bg.path(problem, 5)
    assert path.w.shape == (5, 7, 4)
    assert not path.w[0, :6].any()
    np.testing.assert_allclose(softmax(path.w[0, 6]), np.bincount(y.astype(int)) / 200, atol=1e-5)
    assert (np.diff(path.nonzeros) >= 0).all()
    assert path.nonzeros[-1] > 12
