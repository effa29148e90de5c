"""penalty_factor, positive, bounds and groups of the estimators."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import lsq_linear, nnls
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, MultiTaskLasso
from typer.testing import CliRunner

from banditgrad.cli import app
from banditgrad.linear_model import (
    BanditClassifier,
    BanditClassifierCV,
    BanditRegressor,
    BanditRegressorCV,
    load_model,
    save_model,
)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((300, 6)) * np.array([1.0, 2.0, 5.0, 0.5, 1.0, 1.0])
    return X, X @ [1.0, -0.5, 0.2, 0.0, 0.0, 0.4] + 0.5 * rng.standard_normal(300) + 2.0


def test_regression_beside_scikit_learn_and_scipy(data):
    X, y = data
    for l1_ratio, theirs in ((1.0, Lasso), (0.3, ElasticNet)):
        more = {} if theirs is Lasso else {"l1_ratio": l1_ratio}
        ours = BanditRegressor(penalty="elasticnet", alpha=0.1, l1_ratio=l1_ratio, positive=True, tol=1e-10).fit(X, y)
        np.testing.assert_allclose(ours.coef_, theirs(0.1, positive=True, tol=1e-12, **more).fit(X, y).coef_, atol=1e-7)
    plain = BanditRegressor(penalty=None, positive=True, fit_intercept=False, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(plain.coef_, nnls(X, y)[0], atol=1e-7)
    bounded = BanditRegressor(penalty=None, bounds=(-0.1, [0.3, 1, 1, 1, 1, None]), fit_intercept=False, tol=1e-10)
    upper = [0.3, 1, 1, 1, 1, np.inf]
    np.testing.assert_allclose(bounded.fit(X, y).coef_, lsq_linear(X, y, (-0.1, upper), tol=1e-14).x, atol=1e-7)


def test_factors_are_units_of_columns(data):
    X, y = data
    factors = np.array([0.5, 1.0, 2.0, 1.0, 4.0, 1.0])
    one = BanditClassifier(penalty="l1", alpha=0.05, penalty_factor=factors, tol=1e-10).fit(X, y > 2.0)
    other = BanditClassifier(penalty="l1", alpha=0.05, tol=1e-10).fit(X / factors, y > 2.0)
    np.testing.assert_allclose(one.coef_ * factors, other.coef_, atol=1e-6)


def test_c_and_a_free_feature_beside_scikit_learn(data):
    """scikit-learn's intercept has no penalty: a column of ones with factor 0 is another."""
    X, y = data
    A = np.column_stack([np.ones(300), X])
    ours = BanditClassifier(C=0.5, penalty_factor=np.r_[0.0, np.ones(6)], fit_intercept=False, tol=1e-10)
    ours.fit(A, y > 2.0)
    theirs = LogisticRegression(C=0.5, tol=1e-10, max_iter=1000).fit(X, y > 2.0)
    np.testing.assert_allclose(ours.coef_[0, 1:], theirs.coef_[0], atol=1e-6)
    np.testing.assert_allclose(ours.coef_[0, 0], theirs.intercept_[0], atol=1e-6)


def test_standardize_scales_the_penalty_and_not_the_bounds(data):
    X, y = data
    for form in (X, sp.csr_array(X)):
        model = BanditRegressor(alpha=1e-3, bounds=(-0.2, 0.15), standardize=True, tol=1e-10).fit(form, y)
        assert model.coef_.min() == pytest.approx(-0.2, abs=1e-12)
        assert model.coef_.max() == pytest.approx(0.15, abs=1e-12)
    factors, deviation = np.array([1.0, 0.0, 1.0, 2.0, 1.0, 1.0]), X.std(axis=0)
    one = BanditRegressor(penalty="l1", alpha=0.1, penalty_factor=factors, standardize=True, tol=1e-10).fit(X, y)
    other = BanditRegressor(penalty="l1", alpha=0.1, penalty_factor=factors, tol=1e-10).fit(X / deviation, y)
    np.testing.assert_allclose(one.coef_ * deviation, other.coef_, atol=1e-6)


def test_groups_of_single_features_are_the_lasso_and_rows_those_of_scikit_learn(data):
    X, y = data
    alone = BanditRegressor(penalty="group_lasso", groups=np.arange(6), alpha=0.2, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(alone.coef_, Lasso(0.2, tol=1e-12).fit(X, y).coef_, atol=1e-6)
    mixed = BanditRegressor(penalty="sparse_group_lasso", groups=[[0, 1], [2, 3], [4, 5]], alpha=0.2, l1_ratio=1.0)
    np.testing.assert_allclose(mixed.set_params(tol=1e-10).fit(X, y).coef_, alone.coef_, atol=1e-6)
    # two tasks with the same rows are one with blocks of rows, whose coefficients of a feature are a group
    rng = np.random.default_rng(0)
    Y = X[:, :3] @ rng.standard_normal((3, 2)) + rng.standard_normal((300, 2))
    theirs = MultiTaskLasso(0.2, fit_intercept=False, tol=1e-12).fit(X, Y).coef_
    blocks = np.kron(X, np.eye(2))
    ours = BanditRegressor(penalty="group_lasso", groups=np.repeat(np.arange(6), 2), alpha=0.1, fit_intercept=False)
    ours.set_params(penalty_factor=np.ones(6), tol=1e-10).fit(blocks, Y.ravel())
    np.testing.assert_allclose(ours.coef_.reshape(6, 2).T, theirs, atol=1e-6)


def test_a_group_goes_as_one(data):
    X, y = data
    target = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    groups = [[0, 1], [2, 3], [4, 5]]
    for model in (
        BanditClassifier(penalty="group_lasso", groups=groups, alpha=0.1),
        BanditClassifier(penalty="group_lasso", groups=groups, alpha=0.1, multi_class="ovr"),
    ):
        norms = np.abs(model.fit(X, target).coef_).reshape(3, 3, 2).max(axis=2)
        zero = (norms == 0.0).all(axis=0) if model.multi_class == "auto" else norms == 0.0
        assert zero.any()
        assert not zero.all()
    assert BanditClassifier(positive=True, alpha=0.01).fit(X, target).coef_.min() == 0.0


def test_cross_validation_passes_them_on(data):
    X, y = data
    settings = {"alphas": 6, "cv": 3, "random_state": 0}
    grouped = BanditClassifierCV(penalty="group_lasso", groups=[[0, 1], [2, 3], [4, 5]], **settings).fit(X, y > 2.0)
    assert grouped.best_estimator_.groups == [[0, 1], [2, 3], [4, 5]]
    assert not grouped.path_.coefs[0].any()
    positive = BanditRegressorCV(penalty="l1", positive=True, standardize=True, **settings).fit(X, y)
    assert positive.coef_.min() == 0.0
    free = BanditRegressorCV(penalty="l1", penalty_factor=[0, 1, 1, 1, 1, 1], **settings).fit(X, y)
    assert free.path_.coefs[0][0] != 0.0
    assert abs(free.path_.coefs[0][1:]).max() < 1e-6
    ratios = BanditRegressorCV(penalty="sparse_group_lasso", groups=[[0, 1], [2, 3], [4, 5]], l1_ratio=[0.2, 0.8])
    assert len(ratios.set_params(**settings).fit(X, y).paths_) == 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"penalty": "group_lasso"}, "needs groups"),
        ({"penalty": "l1", "groups": [[0]]}, "group_lasso"),
        ({"penalty": "group_lasso", "groups": [[0]], "positive": True}, "positive"),
        ({"penalty": "group_lasso", "groups": [[9]]}, "feature 9"),
        ({"penalty_factor": [1.0, 2.0]}, "penalty_factor"),
        ({"penalty_factor": [-1.0] * 6}, "negative"),
        ({"penalty_factor": ["a"] * 6}, "penalty_factor"),
        ({"bounds": (0.5, 1.0)}, "lower <= 0"),
        ({"bounds": 1.0}, "pair"),
        ({"bounds": ([0.0, 0.0], None)}, "bounds"),
    ],
)
def test_settings_are_checked(data, settings, words):
    with pytest.raises(ValueError, match=words):
        BanditClassifier(**settings).fit(data[0], data[1] > 2.0)


def test_streams(data):
    X, y = data
    model = BanditClassifier(positive=True, alpha=1e-3, random_state=0)
    assert model.partial_fit(X, y > 2.0, classes=[False, True]).coef_.min() >= 0.0
    with pytest.raises(ValueError, match="group_lasso"):
        BanditClassifier(penalty="group_lasso", groups=[[0]]).partial_fit(X, y > 2.0, classes=[False, True])


def test_no_table_of_standard_errors_but_with_factors(data):
    X, y = data
    A = np.column_stack([np.ones(300), X])
    free = BanditRegressor(alpha=0.1, penalty_factor=np.r_[0.0, np.ones(6)], fit_intercept=False).fit(A, y)
    plain = BanditRegressor(alpha=0.1).fit(X, y)
    errors = free.summary(A, y)["standard_error"].to_numpy(), plain.summary(X, y)["standard_error"].to_numpy()
    np.testing.assert_allclose(errors[0][1:], errors[1][:6], rtol=1e-6)
    for settings in ({"positive": True}, {"bounds": (-1, 1)}, {"penalty": "group_lasso", "groups": [[0, 1]]}):
        with pytest.raises(ValueError, match="no standard errors"):
            BanditRegressor(**settings).fit(X, y).summary(X, y)


def test_model_files(data, tmp_path):
    X, y = data
    for settings in (
        {"penalty_factor": np.arange(6), "bounds": (-np.inf, np.full(6, 0.3))},
        {"penalty": "group_lasso", "groups": np.arange(6) // 2, "alpha": 0.05},
        {"penalty": "sparse_group_lasso", "groups": [np.array([0, 1]), (2, 5)], "alpha": 0.05},
    ):
        model = BanditRegressor(**settings, random_state=0).fit(X, y)
        again = load_model(save_model(model, tmp_path / "model.json"))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        np.testing.assert_array_equal(again.fit(X, y).coef_, model.coef_)


def test_the_command_line(data, tmp_path):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["word"] = np.where(X[:, 0] > 0, "high", np.where(X[:, 1] > 0, "middle", "low"))
    frame["label"] = np.where(y > 2.0, "yes", "no")
    frame.to_csv(tmp_path / "table.csv", index=False)

    def fit(*options):
        out = tmp_path / "model.json"
        done = CliRunner().invoke(app, ["fit", str(tmp_path / "table.csv"), "--json", "--out", str(out), *options])
        assert done.exit_code == 0, done.output
        return json.loads(out.read_text())

    model = fit("--penalty", "l1", "--alpha", "2", "--penalty-factor", "a=0", "--penalty-factor", "word=2")
    zero = dict(zip(model["features"], np.array(model["coef"][0]) == 0.0, strict=True))
    assert [name for name in zero if not zero[name]] == ["a"]
    assert min(fit("--non-negative", "--upper", "0.3")["coef"][0]) == 0.0
    assert max(fit("--upper", "0.3")["coef"][0]) == pytest.approx(0.3)
    model = fit("--penalty", "group_lasso", "--alpha", "0.1")
    lengths = [len(group) for group in model["settings"]["groups"]]
    assert lengths[:6] == [1] * 6  # and the levels of the words together
    assert lengths[6] > 1
    assert fit("--penalty", "group_lasso", "--group", "a,b", "--group", "word")["settings"]["groups"][0] == [0, 1]
    for options in (["--penalty-factor", "z=1"], ["--penalty-factor", "a=-1"], ["--group", "a"]):
        assert CliRunner().invoke(app, ["fit", str(tmp_path / "table.csv"), *options]).exit_code == 2
