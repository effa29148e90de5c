"""Newton's method for `Softmax`: it reaches the minimum of scikit-learn's solvers, on any rows, from any seed."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression

import banditgrad as bg
from banditgrad.solvers.multinomial import MultinomialNewton, descent
from banditgrad.solvers.multinomial.look import Look, take
from banditgrad.solvers.multinomial.matrix import hessian_among
from banditgrad.solvers.multinomial.preconditioner import Preconditioner
from test_softmax import rows

LOADERS = {"iris": load_iris, "wine": load_wine, "digits": load_digits}


def load(name):
    X, y = LOADERS[name](return_X_y=True)
    return X, y.astype(float), int(y.max()) + 1


def curvature_at_some_point(form, seed=0):
    X, y = rows(seed)
    problem = bg.Problem(form(X), y, bg.Softmax(4), bg.SquaredL2(0.1), np.random.default_rng(1).random(200), True)
    W = np.random.default_rng(2).standard_normal(problem.shape)
    look = Look(problem)
    look.at(W)
    return problem, W, look


def hessian_by_differences(problem, W, h=1e-6):
    columns = []
    for place in np.ndindex(W.shape):
        step = np.zeros_like(W)
        step[place] = h
        columns.append((problem.gradient(W + step) - problem.gradient(W - step)).ravel() / (2 * h))
    return np.array(columns)


@pytest.mark.parametrize("form", [np.asarray, np.float32, sp.csr_array])
def test_products_and_the_matrix_are_those_of_the_hessian(form):
    problem, W, look = curvature_at_some_point(form)
    M, curvature = hessian_by_differences(problem, W), look.take_all()
    V, product = np.random.default_rng(3).standard_normal(W.shape), np.zeros(W.shape)
    curvature.product(V, product)
    np.testing.assert_allclose(product.ravel(), M @ V.ravel(), atol=1e-7)
    working = np.array([0, 1, 5, 6, 11, 20, 26, 27])
    np.testing.assert_allclose(hessian_among(curvature, working), M[np.ix_(working, working)], atol=1e-7)
    more = curvature._replace(added=0.3)
    again = np.zeros(W.shape)
    more.product(V, again)
    A = np.hstack([np.asarray(problem_rows(problem)), np.ones((200, 1))])
    added = 0.3 * A.T @ (look.scales[:, None] * (A @ V))
    np.testing.assert_allclose(again - product, added, atol=1e-12)
    diagonal = np.diag(hessian_among(more, np.arange(W.size))).reshape(W.shape)
    expected = np.diag(M).reshape(W.shape) + 0.3 * (A**2).T @ look.scales[:, None]
    np.testing.assert_allclose(diagonal, expected, atol=1e-7)


def problem_rows(problem):
    """The features as a plain array."""
    everything = problem.parts.rows
    if hasattr(everything, "matrix"):
        return everything.matrix
    return sp.csr_array((everything.data, everything.indices.astype(int), everything.indptr)).toarray()


@pytest.mark.parametrize("form", [np.float32, sp.csr_array])
def test_rows_can_be_taken(form):
    X, y = rows()
    problem = bg.Problem(form(X), y, bg.Softmax(4), fit_intercept=True)
    chosen = np.array([3, 3, 50, 199])
    some = Look(problem, chosen)
    W = np.random.default_rng(4).standard_normal(problem.shape)
    alone = bg.Problem(form(X[chosen]), y[chosen], bg.Softmax(4), fit_intercept=True)
    assert some.at(W) == pytest.approx(alone.value(W), rel=1e-12)
    assert take(problem.parts.rows, chosen[:0]).intercept == 1.0


def test_the_preconditioner_is_the_inverse_of_the_blocks():
    problem, W, look = curvature_at_some_point(np.asarray)
    held, M = np.full((7, 1), 0.1), hessian_by_differences(problem, W)
    stream = np.random.default_rng(5)
    blocks = Preconditioner(look.take_all(), held, 1.0, stream, matrices=True)
    r = np.random.default_rng(6).standard_normal(W.shape)
    s = blocks(r)
    for k in range(4):
        block = M[k::4, k::4] + 0.1 * np.eye(7)
        if len(look.scales) <= 8 * 7:  # all rows
            np.testing.assert_allclose(block @ s[:, k], r[:, k], atol=1e-5)
        assert 0.3 < (r[:, k] @ s[:, k]) / (r[:, k] @ np.linalg.solve(block, r[:, k])) < 3.0
    plain = Preconditioner(look.take_all(), held, 1.0, stream, matrices=False)
    np.testing.assert_allclose(plain(r), r / (np.diag(M).reshape(W.shape) + 0.1), rtol=1e-5)


def test_chances_sum_to_the_share_and_are_in_proportion():
    score = np.random.default_rng(7).random(1000) ** 8
    chances = descent._chances(score, 0.3)
    assert chances.sum() == pytest.approx(300.0)
    unsure = chances < 1.0
    assert np.ptp(chances[unsure] / score[unsure]) < 1e-9
    assert chances[~unsure].size > 0
    np.testing.assert_array_equal(descent._chances(np.zeros(10), 0.3), np.full(10, 0.3))


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("strength", [1e-1, 1e-2])
def test_ridge_agrees_with_scikit_learn_on_raw_columns(name, strength):
    X, y, classes = load(name)
    problem = bg.Problem(X, y, bg.Softmax(classes), bg.SquaredL2(strength), fit_intercept=True)
    theirs = LogisticRegression(C=1 / (len(y) * strength), tol=1e-12, max_iter=500, solver="newton-cg").fit(X, y)
    W = np.vstack([theirs.coef_.T, theirs.intercept_])
    result = bg.minimise(problem, passes=200, tol=1e-9, seed=0)
    assert result.converged
    assert result.value <= problem.value(W) * (1 + 1e-8)
    assert result.gap <= 1e-8 * result.value
    np.testing.assert_allclose(result.w[:-1], W[:-1], atol=1e-3 * abs(W[:-1]).max())


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("penalty", [bg.L1(1e-2), bg.L1(1e-3), bg.ElasticNet(1e-2, 0.5), bg.SquaredL2(1e-4)], ids=repr)
@pytest.mark.parametrize("seed", [0, 1])
def test_it_always_comes_to_the_minimum_which_the_gap_proves(name, penalty, seed):
    X, y, classes = load(name)
    for rows_ in (X, sp.csr_array(X)):
        problem = bg.Problem(rows_, y, bg.Softmax(classes), penalty, fit_intercept=True)
        result = bg.minimise(problem, passes=300, tol=1e-9, seed=seed)
        assert result.converged
        assert result.gap <= 1e-8 * result.value


@pytest.mark.parametrize("penalty", [bg.L1(1e-3), bg.SquaredL2(1e-5)], ids=repr)
def test_columns_of_any_size(penalty):
    rng = np.random.default_rng(8)
    X = np.exp(2.0 * rng.standard_normal((3000, 12))) * (rng.random((3000, 12)) < 0.3) * 10.0 ** rng.uniform(-2, 5, 12)
    z = np.log1p(X) @ rng.standard_normal((12, 5))
    y = (z - np.median(z, axis=0) + rng.gumbel(size=z.shape)).argmax(axis=1).astype(float)
    problem = bg.Problem(sp.csr_array(X), y, bg.Softmax(5), penalty, fit_intercept=True)
    results = [bg.minimise(problem, passes=500, tol=1e-9, seed=seed) for seed in range(3)]
    least = max(result.value - result.gap for result in results)  # of such columns rounding leaves some gaps wide
    for result in results:
        assert result.converged
        assert result.value - least <= 1e-8 * result.value


def test_saga_of_scikit_learn_finds_no_lower_objective_with_an_l1_norm():
    X, y, classes = load("digits")
    X = X / 16
    problem = bg.Problem(X, y, bg.Softmax(classes), bg.L1(1e-2), fit_intercept=False)
    options = {"solver": "saga", "tol": 1e-9, "max_iter": 3000, "random_state": 0, "fit_intercept": False}
    try:
        theirs = LogisticRegression(l1_ratio=1.0, C=1 / (len(y) * 1e-2), **options).fit(X, y)
    except TypeError:
        theirs = LogisticRegression(penalty="l1", C=1 / (len(y) * 1e-2), **options).fit(X, y)
    result = bg.minimise(problem, passes=200, tol=1e-9, seed=0)
    assert result.value == pytest.approx(problem.value(theirs.coef_.T), rel=1e-8)


@pytest.mark.parametrize("penalty", [bg.SquaredL2(0.01), bg.L1(0.005)], ids=repr)
def test_samples_of_rows_lead_to_the_same_minimum(penalty, monkeypatch):
    X, y = rows(n=4000, d=8, classes=5)
    problem = bg.Problem(sp.csr_array(X), y, bg.Softmax(5), penalty, fit_intercept=True)
    exact = bg.minimise(problem, passes=100, tol=1e-9, seed=0)
    monkeypatch.setattr(descent, "CHEAP", 0.0)  # all rows are too dear then
    for seed in range(3):
        sampled = bg.minimise(problem, passes=200, tol=1e-9, seed=seed)
        assert sampled.value == pytest.approx(exact.value, rel=1e-10)
        assert sampled.gap <= 1e-8 * sampled.value
    again = bg.minimise(problem, passes=200, tol=1e-9, seed=2)
    np.testing.assert_array_equal(again.w, sampled.w)


def test_it_starts_where_it_is_told_and_stays_at_the_minimum():
    X, y = rows()
    problem = bg.Problem(X, y, bg.Softmax(4), bg.SquaredL2(0.01), fit_intercept=True)
    best = bg.minimise(problem, passes=50, tol=1e-10, seed=0)
    again = bg.minimise(problem, passes=50, tol=1e-8, seed=1, w0=best.w + 5.0)  # the same margins but for a number
    assert again.passes <= 2
    assert again.value == pytest.approx(best.value, rel=1e-12)
    assert bg.minimise(problem, passes=0, w0=best.w).w.shape == (7, 4)


def test_separable_classes_without_a_penalty_do_not_end_it_early():
    X = np.vstack([np.eye(3)] * 5)
    problem = bg.Problem(X, np.tile([0.0, 1.0, 2.0], 5), bg.Softmax(3))
    assert bg.minimise(problem, passes=60, seed=0).value < 1e-8


def test_the_automatic_solver_is_newton_and_callbacks_see_matrices():
    X, y = rows()
    problem = bg.Problem(X, y, bg.Softmax(4), bg.SquaredL2(0.01))
    shapes = []
    result = bg.minimise(problem, callback=lambda progress: shapes.append(progress.w.shape), passes=3)
    assert isinstance(result.solver, MultinomialNewton)
    assert isinstance(bg.minimise(problem, bg.SampledNewton(), passes=1).solver, MultinomialNewton)
    assert shapes == [(6, 4)] * 3
    variances = bg.minimise(problem, passes=2, record_variance=True).history
    assert (variances.optimal_variance <= variances.uniform_variance).all()


class Cube(bg.L1):
    """A penalty of which no closed form is known."""

    def prox(self, w, step, j):
        return w


def test_what_it_cannot_do_is_refused():
    X, y = rows()
    with pytest.raises(TypeError, match=r"for Softmax takes Zero, L1, .* got Cube"):
        bg.minimise(bg.Problem(X, y, bg.Softmax(4), Cube(0.1)), bg.SampledNewton())
    with pytest.raises(TypeError, match="MultinomialNewton takes losses of several margins"):
        bg.minimise(bg.Problem(X, np.sign(y - 1.5), bg.Logistic()), MultinomialNewton())
