"""standardize=True, C and early stopping: the same as doing it by hand."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from banditgrad.linear_model import BanditClassifier, BanditClassifierCV, BanditRegressor


@pytest.fixture(scope="module")
def raw():
    """Columns of very different scale and mean, some sparse, one constant."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 6)) * 10.0 ** np.arange(-3, 3) + [0.0, 1.0, 0.0, 30.0, 0.0, 0.0]
    X[:, 4] = 2.5
    X[rng.random((400, 6)) < [0.0, 0.0, 0.8, 0.0, 0.0, 0.5]] = 0.0
    z = 900.0 * X[:, 0] + X[:, 2] - 0.01 * X[:, 5] + rng.standard_normal(400)
    return X, z


@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("intercept", [True, False])
def test_standardize_is_a_scaler_before_the_fit(raw, penalty, form, intercept):
    X, z = raw
    y, weights = z > 0, np.where(np.arange(400) % 3, 1.0, 2.0)
    settings = {"penalty": penalty, "alpha": 1e-2, "tol": 1e-10, "fit_intercept": intercept, "random_state": 0}
    model = BanditClassifier(standardize=True, **settings).fit(form(X), y, weights)
    scaler = StandardScaler(with_mean=intercept).fit(X, sample_weight=weights)
    by_hand = BanditClassifier(**settings).fit(scaler.transform(X), y, weights)
    assert np.allclose(model.decision_function(X), by_hand.decision_function(scaler.transform(X)), atol=1e-5)
    assert np.allclose(model.coef_ * scaler.scale_, by_hand.coef_, atol=1e-5)
    assert model.objective_ == pytest.approx(by_hand.objective_, rel=1e-8)


def test_a_standardised_fit_goes_on_from_its_own_coefficients(raw):
    X, z = raw
    model = BanditRegressor(standardize=True, warm_start=True, random_state=0, tol=1e-9).fit(X, z)
    before = model.coef_.copy()
    assert model.fit(X, z).n_iter_ <= 2
    assert np.allclose(model.coef_, before, rtol=1e-4)


def test_a_choice_of_alpha_may_be_standardised(raw):
    X, z = raw
    found = BanditClassifierCV(standardize=True, alphas=5, cv=3, random_state=0).fit(X, z > 0)
    scaled = StandardScaler().fit_transform(X)
    by_hand = BanditClassifierCV(alphas=5, cv=3, random_state=0).fit(scaled, z > 0)
    assert found.alpha_ == pytest.approx(by_hand.alpha_)
    assert found.score(X, z > 0) == pytest.approx(by_hand.score(scaled, z > 0), abs=0.01)
    assert list(found.path_.to_frame().columns) == ["alpha", "mean_score", "standard_error", "nonzeros"]


@pytest.mark.parametrize("weighted", [False, True])
def test_c_is_that_of_logistic_regression(raw, weighted):
    X, z = raw
    X, weights = StandardScaler().fit_transform(X), np.where(np.arange(400) % 3, 1.0, 3.0) if weighted else None
    model = BanditClassifier(C=0.3, tol=1e-10, random_state=0).fit(X, z > 0, weights)
    theirs = LogisticRegression(C=0.3, tol=1e-10, max_iter=1000).fit(X, z > 0, weights)
    assert np.allclose(model.coef_, theirs.coef_, atol=1e-5)
    assert model.alpha_ == pytest.approx(1.0 / (0.3 * (400 if weights is None else weights.sum())))


def test_early_stopping_keeps_the_pass_that_was_best_on_held_out_rows():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((120, 80))
    y = X[:, 0] + 2.0 * rng.standard_normal(120) > 0
    settings = {"penalty": None, "solver": "sgd", "tol": None, "max_iter": 60, "random_state": 0}
    stopped = BanditClassifier(early_stopping=True, validation_fraction=0.25, **settings).fit(X, y)
    (losses,) = stopped.validation_loss_
    assert losses.size < 60
    assert losses.argmin() == losses.size - 1 - stopped.n_iter_no_change
    assert stopped.sampling_probabilities_.size == 90
    fresh = rng.standard_normal((2000, 80))
    truth = fresh[:, 0] > 0
    assert stopped.score(fresh, truth) > BanditClassifier(**settings).fit(X, y).score(fresh, truth)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"C": 0.0}, "C must be above 0"),
        ({"C": 1.0, "alpha": 0.1}, "Pass one"),
        ({"early_stopping": True, "validation_fraction": 1.0}, "validation_fraction must lie between 0 and 1"),
        ({"early_stopping": True, "n_iter_no_change": 0}, "n_iter_no_change must be"),
    ],
)
def test_bad_values_are_named(raw, settings, message):
    with pytest.raises(ValueError, match=message):
        BanditClassifier(**settings).fit(raw[0], raw[1] > 0)


@pytest.mark.parametrize("settings", [{"standardize": True}, {"early_stopping": True}, {"C": 1.0}])
def test_a_stream_cannot_have_them(raw, settings):
    with pytest.raises(ValueError, match="which partial_fit never sees"):
        BanditClassifier(**settings).partial_fit(raw[0], raw[1] > 0, classes=[False, True])
