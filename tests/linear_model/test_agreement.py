"""The same objective gives the same coefficients as other solvers: scikit-learn's, or L-BFGS-B where it has none."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.linear_model import ElasticNet, LinearRegression, LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from banditgrad.linear_model import BanditClassifier, BanditRegressor

ALPHA, EPSILON = 0.01, 0.5
L1_SHARE = {"l1": 1.0, "l2": 0.0, "elasticnet": 0.4, None: 0.0}
SETTINGS = {"l1_ratio": 0.4, "tol": 1e-9, "max_iter": 20_000, "random_state": 0}


@pytest.fixture(scope="module")
def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), np.where(y == 1, 1.0, -1.0)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16, y


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X), (y - y.mean()) / y.std()


def term_and_slope(loss, z, y):
    """The loss of each row and its derivative, written anew."""
    if loss == "log_loss":
        return np.logaddexp(0, -y * z), -y / (1 + np.exp(y * z))
    if loss == "squared_hinge":
        m = np.maximum(0, 1 - y * z)
        return m**2, -2 * y * m
    r = z - y
    if loss == "squared_error":
        return r**2 / 2, r
    return np.where(abs(r) <= EPSILON, r**2 / 2, EPSILON * (abs(r) - EPSILON / 2)), np.clip(r, -EPSILON, EPSILON)


def by_lbfgs(X, y, loss, penalty, intercept):
    """w = u - v with u, v >= 0 makes the l1 norm linear; the intercept comes last."""
    n, d = X.shape
    l1 = 0.0 if penalty is None else ALPHA * L1_SHARE[penalty]
    l2 = 0.0 if penalty is None else ALPHA - l1

    def value_and_gradient(uvb):
        w = uvb[:d] - uvb[d : 2 * d]
        term, slope = term_and_slope(loss, X @ w + uvb[-1], y)
        g = X.T @ slope / n + l2 * w
        b = slope.mean() if intercept else 0.0
        return term.mean() + l2 / 2 * w @ w + l1 * uvb[:-1].sum(), np.concatenate([g + l1, l1 - g, [b]])

    bounds = [(0, None)] * (2 * d) + [(None, None)]
    options = {"maxiter": 50_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-9, "maxcor": 50}
    uvb = scipy.optimize.minimize(
        value_and_gradient, np.zeros(2 * d + 1), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    ).x
    return uvb[:d] - uvb[d : 2 * d], uvb[-1]


def by_another_library(X, y, loss, penalty, intercept):
    n, share = X.shape[0], L1_SHARE[penalty]
    C = np.inf if penalty is None else 1 / (n * ALPHA)
    model = None
    if loss == "log_loss" and share == 0:
        model = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-12, fit_intercept=intercept)
    elif loss == "log_loss" and share == 1 and not intercept:
        model = LogisticRegression(
            C=C, l1_ratio=1.0, solver="liblinear", tol=1e-10, max_iter=10_000, random_state=0, fit_intercept=False
        )
    elif loss == "log_loss" and n < 5000:
        model = LogisticRegression(
            C=C, l1_ratio=share, solver="saga", tol=1e-9, max_iter=100_000, random_state=0, fit_intercept=intercept
        )
    elif loss == "squared_hinge" and penalty in ("l1", "l2") and not intercept:
        model = LinearSVC(
            C=C, penalty=penalty, dual=False, tol=1e-9, max_iter=100_000, random_state=0, fit_intercept=False
        )
    elif loss == "squared_error" and penalty is None:
        model = LinearRegression(fit_intercept=intercept)
    elif loss == "squared_error" and penalty == "l2":
        model = Ridge(n * ALPHA, fit_intercept=intercept)
    elif loss == "squared_error":
        model = ElasticNet(ALPHA, l1_ratio=share, tol=1e-12, max_iter=100_000, fit_intercept=intercept)
    if model is None:
        return by_lbfgs(X, y, loss, penalty, intercept)
    model.fit(X, y)
    return np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]) if intercept else 0.0


def assert_agrees(kind, X, y, loss, penalty, intercept):
    ours = kind(loss, penalty=penalty, alpha=ALPHA, fit_intercept=intercept, **SETTINGS)
    if loss == "huber":
        ours.set_params(epsilon=EPSILON)
    ours.fit(X, y)
    w, b = by_another_library(X, y, loss, penalty, intercept)
    np.testing.assert_allclose(np.ravel(ours.coef_), w, rtol=0, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_[0], b, rtol=0, atol=1e-4)
    if L1_SHARE[penalty] > 0.0:
        assert np.sum(ours.coef_ == 0.0) >= 0.9 * np.sum(abs(w) < 1e-6)  # exact zeros, but for borderline ones


@pytest.mark.parametrize("penalty", ["l1", "l2", "elasticnet"])
@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge"])
@pytest.mark.parametrize("intercept", [True, False])
def test_breast_cancer(breast_cancer, loss, penalty, intercept):
    assert_agrees(BanditClassifier, *breast_cancer, loss, penalty, intercept)


@pytest.mark.parametrize("penalty", ["l1", "l2", "elasticnet"])
@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge"])
def test_digits_below_five(digits, loss, penalty):
    X, y = digits
    assert_agrees(BanditClassifier, X, np.where(y < 5, 1.0, -1.0), loss, penalty, True)


def test_digits_one_against_the_rest(digits):
    X, y = digits
    ours = BanditClassifier(alpha=ALPHA, multi_class="ovr", n_jobs=2, **SETTINGS).fit(X, y)
    logistic = LogisticRegression(C=1 / (len(y) * ALPHA), solver="newton-cholesky", tol=1e-12)
    theirs = OneVsRestClassifier(logistic).fit(X, y)
    np.testing.assert_allclose(ours.coef_, np.vstack([each.coef_ for each in theirs.estimators_]), atol=1e-4)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("penalty", ["l1", "l2", "elasticnet", None])
@pytest.mark.parametrize("loss", ["squared_error", "huber"])
def test_diabetes(diabetes, loss, penalty):
    assert_agrees(BanditRegressor, *diabetes, loss, penalty, True)


def tidied(data):
    """With 32-bit indices, which liblinear asks for, and each column once: a9a has some twice, and then the minimiser
    with an l1 norm is not unique."""
    X, y = data
    _, keep = np.unique(np.random.default_rng(0).random(X.shape[0]) @ X, return_index=True)
    X = X.tocsc()[:, np.sort(keep)].tocsr()
    return sp.csr_matrix((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), X.shape), y


@pytest.mark.slow
@pytest.mark.parametrize("penalty", ["l1", "l2", "elasticnet"])
@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge"])
@pytest.mark.parametrize("name", ["a9a", "ijcnn1", "w8a"])
def test_libsvm_sets(real_data, name, loss, penalty):
    assert_agrees(BanditClassifier, *tidied(real_data(name)), loss, penalty, False)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge"])
def test_no_penalty(real_data, loss):
    assert_agrees(BanditClassifier, *tidied(real_data("ijcnn1")), loss, None, False)
