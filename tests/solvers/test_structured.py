"""Solvers with penalties that know their coordinate and with those of groups: index for index, and to the minimum."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import lsq_linear, minimize, nnls

import banditgrad as bg
import reference
from iterates import last_iterate
from tables import STRUCTURED, structured

D = 12
SMOOTH = [name for name in STRUCTURED if not name.startswith("Box")]  # but for kinks: sub-gradients stay where F is
WEIGHTED = [name for name in STRUCTURED if name.startswith("Weighted")]
SOLVERS = {
    "ProxSgd": (bg.ProxSgd, reference.prox_sgd),
    "Saga": (bg.Saga, reference.saga),
    "ProxSvrg": (lambda step: bg.ProxSvrg(step, snapshot="mean"), reference.svrg),
}


def strengths(name):
    """(l1, l2) of each coordinate."""
    factors = np.arange(D) % 3 / 2.0
    l1, l2 = {"Weighted(L1)": (0.03, 0.0), "Weighted(SquaredL2)": (0.0, 0.05), "Weighted(ElasticNet)": (0.024, 0.036)}[
        name
    ]
    return l1 * factors, l2 * factors


@pytest.mark.parametrize("rows", ["dense", "sparse"])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", STRUCTURED)
def test_equal_to_the_plain_loop_index_for_index(small_data, rng, name, solver, rows):
    X, y = small_data
    n, make, oracle = len(y), *SOLVERS[solver]
    draws, p = rng.integers(0, n, 2000), rng.dirichlet(np.full(n, 5.0))
    problem = bg.Problem(X if rows == "dense" else sp.csr_array(X), y, bg.Logistic(), structured(D)[name])
    gamma = (lambda t: 0.05) if solver == "ProxSgd" else 0.05
    more = ([n] * (2000 // n + 1), True) if solver == "ProxSvrg" else ()
    prox = reference.structured_prox(name, D, D)
    expected = oracle(X, y, "Logistic", prox, None, gamma, draws, p, D, *more)
    got = last_iterate(problem, make(0.05), bg.Replay(draws, p), passes=2000 / n, record_every=0.31)
    np.testing.assert_allclose(got, expected, atol=1e-10)


@pytest.mark.parametrize("rows", ["dense", "sparse"])
@pytest.mark.parametrize("step", [0.05, bg.InverseTime(2.0), bg.ShiftedInverseTime(5.0, 0.1)], ids=repr)
@pytest.mark.parametrize("average", [None, "linear"])
@pytest.mark.parametrize("name", WEIGHTED)
def test_sgd_is_equation_2(small_data, rng, name, average, step, rows):
    X, y = small_data
    draws, p = rng.integers(0, len(y), 2500), rng.dirichlet(np.full(len(y), 5.0))
    gamma = {0.05: lambda t: 0.05, bg.InverseTime(2.0): lambda t: 1.0 / t}.get(step, lambda t: 1.0 / (5.0 + 0.1 * t))
    problem = bg.Problem(X if rows == "dense" else sp.csr_array(X), y, bg.Logistic(), structured(D)[name])
    expected = reference.sgd(X, y, "Logistic", *strengths(name), gamma, draws, p, D)
    got = last_iterate(problem, bg.Sgd(step, average=average), bg.Replay(draws, p), passes=2500 / 60, record_every=0.37)
    np.testing.assert_allclose(got, expected[average is not None], atol=1e-10)


@pytest.mark.parametrize("name", WEIGHTED)
@pytest.mark.parametrize(
    "solver",
    [
        bg.Sgd(bg.ShiftedInverseTime(5.0, 0.1), average="linear", batch_size=2),
        bg.ProxSgd(bg.InverseTime(1.0), batch_size=2),
        bg.Saga(0.05),
        bg.ProxSvrg(0.05),
    ],
    ids=lambda solver: type(solver).__name__,
)
def test_lazy_steps_are_the_eager_ones_on_many_rare_features(rng, solver, name):
    """More kinds of strengths than one, segments that end, an intercept, weights of rows."""
    n, d = 80, 1500
    X = sp.random(n, d, 0.004, random_state=rng, data_rvs=rng.standard_normal).toarray()
    y, s = rng.standard_normal(n), rng.random(n)
    draws, p = rng.integers(0, n, 4000), rng.dirichlet(np.full(n, 5.0))
    lazy, eager = (
        last_iterate(
            bg.Problem(form, y, bg.Huber(), structured(d)[name], s, True), solver, bg.Replay(draws, p), passes=20
        )
        for form in (sp.csr_array(X), X)
    )
    np.testing.assert_allclose(lazy, eager, atol=1e-10)


def test_strengths_of_too_many_kinds_are_not_lazy(rng):
    """But right."""
    X = sp.random(60, 40, 0.2, random_state=rng, data_rvs=rng.standard_normal).toarray()
    y, penalty = rng.standard_normal(60), bg.Weighted(bg.ElasticNet(0.05, 0.5), rng.random(40))
    draws = rng.integers(0, 60, 600)
    one, other = (
        last_iterate(bg.Problem(form, y, bg.Squared(), penalty), bg.Saga(0.01), bg.Replay(draws), passes=10)
        for form in (sp.csr_array(X), X)
    )
    np.testing.assert_allclose(one, other, atol=1e-12)


def minimum(X, y, name, margins=1):
    """F* by proximal gradient steps in plain NumPy, without an intercept."""
    n, d = X.shape
    prox = reference.structured_prox(name, d, d * margins)
    Y = np.eye(margins)[y.astype(int)] if margins > 1 else None

    def gradient(w):
        if margins == 1:
            return X.T @ reference.loss_derivative("Logistic", X @ w, y) / n
        Z = X @ w.reshape(d, margins)
        P = np.exp(Z - Z.max(axis=1, keepdims=True))
        return (X.T @ (P / P.sum(axis=1, keepdims=True) - Y) / n).ravel()

    bound = (0.25 if margins == 1 else 0.5) * np.linalg.norm(X, 2) ** 2 / n
    w = reference.proximal_gradient(gradient, prox, np.zeros(d * margins), 1.0 / bound, 4000)
    if margins == 1:
        value = reference.loss_value("Logistic", X @ w, y).mean()
    else:
        Z = X @ w.reshape(d, margins)
        value = np.mean(np.logaddexp.reduce(Z, axis=1) - np.sum(Z * Y, axis=1))
    return value + reference.structured_cost(name, d, w)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((400, D)) @ (np.eye(D) + 0.3 * rng.random((D, D)))
    return X, X @ rng.standard_normal(D) * 0.3 + rng.logistic(size=400)


@pytest.mark.parametrize("name", STRUCTURED)
@pytest.mark.parametrize("solver", ["samplednewton", "saga", "proxsvrg"])
def test_every_solver_comes_to_the_minimum(rows, name, solver):
    X, score = rows
    y = np.where(score > 0, 1.0, -1.0)
    problem = bg.Problem(X, y, bg.Logistic(), structured(D)[name])
    result = bg.minimise(problem, solver, passes=400, seed=0)
    assert result.value == pytest.approx(minimum(X, y, name), rel=1e-9)
    assert problem.optimality(result.w) < 1e-6
    gap = problem.gap(result.w)
    assert gap < 1e-8 or (gap == np.inf and ("Weighted" in name or name in ("Box", "GroupLasso(weights)")))


@pytest.mark.parametrize("kind", ["wide dense", "wide sparse"])
@pytest.mark.parametrize("name", ["Weighted(ElasticNet)", "Box(L1)", "Box(Weighted)", "GroupLasso", "SparseGroupLasso"])
def test_newton_without_a_matrix(rng, name, kind):
    """Coordinate and block coordinate descent on the columns of samples."""
    n, d = 150, 600
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.1 if kind == "wide sparse" else 0.3)
    y = np.where(X @ (rng.standard_normal(d) * (rng.random(d) < 0.05)) + 0.1 * rng.standard_normal(n) > 0, 1.0, -1.0)
    problem = bg.Problem(sp.csr_array(X) if kind == "wide sparse" else X, y, bg.Logistic(), structured(d)[name])
    newton = bg.minimise(problem, bg.SampledNewton(), passes=300, seed=0)
    if "Weighted" not in name or name.startswith("Box"):  # but where features are free of a penalty
        assert problem.gap(newton.w) < 1e-7 * newton.value
    other = bg.minimise(problem, bg.Saga(), passes=300, seed=0)
    assert newton.value <= other.value * (1.0 + 1e-9)
    assert problem.optimality(newton.w) < 1e-6


@pytest.mark.parametrize("name", STRUCTURED)
def test_several_margins(rows, name):
    """A feature's row of W shares its factor and bounds, and is a part of its group."""
    X, score = rows
    y = np.digitize(score, np.quantile(score, [0.3, 0.7])).astype(float)
    problem = bg.Problem(X, y, bg.Softmax(3), structured(D)[name])
    best = minimum(X, y, name, 3)
    newton = bg.minimise(problem, passes=200, seed=0)
    assert type(newton.solver).__name__ == "MultinomialNewton"
    assert newton.value == pytest.approx(best, rel=1e-9)
    assert bg.minimise(problem, bg.Saga(), passes=600, seed=0).value == pytest.approx(best, rel=1e-7)


def test_many_numbers_of_several_margins(rng):
    """More than there is a matrix for."""
    X, y = rng.standard_normal((900, 400)), rng.integers(0, 10, 900).astype(float)
    for penalty in (bg.Box(0.0, penalty=bg.SquaredL2(0.01)), bg.GroupLasso([[j] for j in range(400)], 0.002)):
        problem = bg.Problem(X, y, bg.Softmax(10), penalty)
        result = bg.minimise(problem, bg.SampledNewton(), passes=100, seed=0, tol=1e-8)
        assert result.converged
        assert problem.gap(result.w) < 1e-8


def test_weights_of_an_l1_norm_are_units_of_columns(rows):
    X, score = rows
    y, factors = np.where(score > 0, 1.0, -1.0), np.linspace(0.2, 3.0, D)
    one = bg.minimise(bg.Problem(X, y, bg.Logistic(), bg.Weighted(bg.L1(0.02), factors)), passes=100, seed=0)
    other = bg.minimise(bg.Problem(X / factors, y, bg.Logistic(), bg.L1(0.02)), passes=100, seed=0)
    assert one.value == pytest.approx(other.value, rel=1e-12)
    np.testing.assert_allclose(one.w * factors, other.w, atol=1e-7)


def test_bounds_beside_scipy(rows):
    X, y = rows
    least = bg.minimise(bg.Problem(X, y, bg.Squared(), bg.Box(0.0)), passes=100, seed=0).w
    np.testing.assert_allclose(least, nnls(X, y)[0], atol=1e-9)
    inside = bg.minimise(bg.Problem(X, y, bg.Squared(), bg.Box(-0.1, 0.2)), passes=100, seed=0).w
    np.testing.assert_allclose(inside, lsq_linear(X, y, (-0.1, 0.2), tol=1e-14).x, atol=1e-8)
    assert inside.min() >= -0.1
    assert inside.max() <= 0.2
    signs = np.where(y > 0, 1.0, -1.0)
    problem = bg.Problem(X, signs, bg.Logistic(), bg.Box(-0.1, 0.2, bg.SquaredL2(0.01)))
    theirs = minimize(
        lambda w: (problem.value(w), problem.gradient(w) + 0.01 * w),
        np.zeros(D),
        jac=True,
        bounds=[(-0.1, 0.2)] * D,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-12},
    )
    assert bg.minimise(problem, passes=100, seed=0).value == pytest.approx(theirs.fun, rel=1e-9)


def test_a_start_outside_the_bounds_is_brought_inside(rows):
    X, y = rows
    problem = bg.Problem(X, y, bg.Squared(), bg.Box(-0.1, 0.2))
    result = bg.minimise(problem, w0=np.full(D, 5.0), passes=50, seed=0)
    assert result.value == pytest.approx(bg.minimise(problem, passes=50, seed=0).value, rel=1e-12)


@pytest.mark.parametrize("name", ["Weighted(L1)", "GroupLasso", "SparseGroupLasso", "Box(L1)"])
def test_paths_begin_where_all_is_zero(rows, name):
    X, score = rows
    problem = bg.Problem(X, np.where(score > 0, 1.0, -1.0), bg.Logistic(), structured(D)[name], fit_intercept=True)
    path = bg.path(problem, 12, seed=0, tol=1e-9)
    penalised = slice(None) if name != "Weighted(L1)" else np.flatnonzero(np.arange(D) % 3)
    assert not path.results[0].w[:D][penalised].any()
    assert path.results[1].w[:D][penalised].any()
    assert np.all(np.diff(path.values) < 0.0)
