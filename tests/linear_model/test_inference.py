"""Standard errors beside those of statsmodels, where it is installed, and of plain formulas."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from banditgrad.linear_model import BanditClassifier, BanditRegressor
from banditgrad.linear_model.inference import INTERCEPT


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 3)) * [1.0, 100.0, 0.01]
    z = X @ [0.5, -0.01, 30.0] + 0.3
    return X, z, rng


EXACT = {"penalty": None, "tol": 1e-12, "random_state": 0}


def by_formula(X, v, ridge, dispersion=1.0):
    design = np.column_stack([X, np.ones(len(X))])
    return np.sqrt(dispersion * np.diag(np.linalg.inv(design.T @ (v[:, None] * design) + np.diag(ridge))))


def test_log_odds(rows):
    X, z, rng = rows
    y = rng.random(500) < 1 / (1 + np.exp(-z))
    model = BanditClassifier(**EXACT).fit(X, y)
    table = model.summary(X, y)
    p = model.predict_proba(X)[:, 1]
    assert list(table.index) == ["x0", "x1", "x2", INTERCEPT]
    assert list(table.columns) == ["coefficient", "standard_error", "z", "p_value", "odds_ratio"]
    assert np.allclose(table["standard_error"], by_formula(X, p * (1 - p), np.zeros(4)))
    assert np.allclose(table["odds_ratio"], np.exp([*model.coef_[0], *model.intercept_]))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    assert list(BanditClassifier(**EXACT).fit(frame, y).summary(frame, y).index) == ["a", "b", "c", INTERCEPT]
    assert np.array_equal(model.summary(sp.csr_array(X), y)["coefficient"], table["coefficient"])
    sm = pytest.importorskip("statsmodels.api")
    theirs = sm.Logit(y.astype(float), sm.add_constant(X, prepend=False)).fit(disp=0, tol=1e-12)
    assert np.allclose(table["coefficient"], theirs.params, rtol=1e-5)
    assert np.allclose(table["standard_error"], theirs.bse, rtol=1e-5)
    assert np.allclose(table["p_value"], theirs.pvalues, atol=1e-6)


@pytest.mark.parametrize("standardize", [False, True])
def test_a_ridge_is_a_prior(rows, standardize):
    X, z, rng = rows
    X = X * [1.0, 0.01, 100.0] if not standardize else X
    y = rng.random(500) < 1 / (1 + np.exp(-z))
    model = BanditClassifier(alpha=0.1, tol=1e-12, random_state=0, standardize=standardize).fit(X, y)
    p = model.predict_proba(X)[:, 1]
    scale = X.std(axis=0) ** 2 if standardize else np.ones(3)
    assert np.allclose(
        model.summary(X, y)["standard_error"], by_formula(X, p * (1 - p), np.append(500 * 0.1 * scale, 0.0))
    )


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "gamma", "tweedie"])
def test_numbers(rows, loss):
    X, z, rng = rows
    mean = np.exp(0.3 * z)
    y = {
        "squared_error": z + rng.standard_normal(500),
        "poisson": rng.poisson(mean).astype(float),
        "gamma": mean * rng.gamma(2.0, 0.5, 500),
        "tweedie": np.array([rng.gamma(2.0, 0.5, k).sum() for k in rng.poisson(mean)]),
    }[loss]
    weights = np.where(np.arange(500) % 4, 1.0, 2.0)
    model = BanditRegressor(loss, **EXACT).fit(X, y, weights)
    table = model.summary(X, y, weights)
    fitted = model.predict(X)
    power = {"squared_error": 0.0, "poisson": 1.0, "gamma": 2.0, "tweedie": 1.5}[loss]
    v = np.ones(500) if loss == "squared_error" else fitted ** (2 - power)
    pearson = np.sum(weights * (y - fitted) ** 2 / (fitted**power if power else 1.0)) / (weights.sum() - 4)
    expected = by_formula(X, weights * v, np.zeros(4), 1.0 if loss == "poisson" else pearson)
    assert np.allclose(table["standard_error"], expected, rtol=1e-6)
    assert ("rate_ratio" in table) == (loss != "squared_error")
    twice = np.repeat(np.arange(500), weights.astype(int))
    repeated = model.summary(X[twice], y[twice])
    assert np.allclose(repeated["standard_error"], table["standard_error"])
    sm = pytest.importorskip("statsmodels.api")
    link = sm.families.links.Log()
    family = {
        "squared_error": sm.families.Gaussian(),
        "poisson": sm.families.Poisson(),
        "gamma": sm.families.Gamma(link),
        "tweedie": sm.families.Tweedie(link, var_power=1.5),
    }[loss]
    theirs = sm.GLM(y, sm.add_constant(X, prepend=False), family, freq_weights=weights).fit(tol=1e-12)
    assert np.allclose(table["standard_error"], theirs.bse, rtol=1e-4)


def test_each_class_has_its_rows(rows):
    X, z, rng = rows
    y = np.digitize(z + rng.standard_normal(500), [-0.5, 1.0])
    model = BanditClassifier(**EXACT, multi_class="ovr").fit(X, y)
    table = model.summary(X, y)
    assert table["class"].tolist() == [0] * 4 + [1] * 4 + [2] * 4
    alone = BanditClassifier(**EXACT).fit(X, y == 2)
    assert np.allclose(table["standard_error"][-4:], alone.summary(X, y == 2)["standard_error"], rtol=1e-5)
    together = BanditClassifier(alpha=1e-2).fit(X, y)
    with pytest.raises(ValueError, match='Take multi_class="ovr"'):
        together.summary(X, y)


def test_what_has_no_standard_errors_is_told(rows):
    X, z, _ = rows
    y = z > 0
    both = np.column_stack([X, X[:, 0] + X[:, 1]])
    for settings, data, message in (
        ({"penalty": "l1"}, X, "an l1 norm sets"),
        ({"loss": "hinge"}, X, "is no likelihood"),
        ({"penalty": None}, both, "The data do not tell all coefficients"),
    ):
        model = BanditClassifier(**settings, random_state=0, max_iter=5, tol=None).fit(data, y)
        with pytest.raises(ValueError, match=message):
            model.summary(data, y)
    with pytest.raises(ValueError, match=r"y must have shape \(500,\)"):
        BanditClassifier(random_state=0, tol=None, max_iter=2).fit(X, y).summary(X, y[:3])
