"""More than two classes as one problem: the same model as scikit-learn's multinomial `LogisticRegression`."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.linear_model import LogisticRegression

import banditgrad as bg
from banditgrad.linear_model import BanditClassifier, BanditClassifierCV, load_model, save_model
from banditgrad.linear_model.classifier import is_multinomial

ALPHA = 1e-2


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


@pytest.fixture(scope="module")
def fitted(iris):
    return BanditClassifier(alpha=ALPHA, tol=1e-9, random_state=0).fit(*iris)


def test_it_is_the_model_of_scikit_learn(iris, fitted):
    X, y = iris
    theirs = LogisticRegression(C=1 / (len(y) * ALPHA), tol=1e-10, max_iter=1000).fit(X, y)
    assert fitted.coef_.shape == theirs.coef_.shape == (3, 4)
    assert fitted.intercept_.shape == theirs.intercept_.shape == (3,)
    np.testing.assert_allclose(fitted.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(fitted.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(fitted.predict_log_proba(X), theirs.predict_log_proba(X), atol=1e-3)
    np.testing.assert_allclose(fitted.decision_function(X), theirs.decision_function(X), atol=1e-3)
    assert (fitted.predict(X) == theirs.predict(X)).all()
    assert fitted.objective_.shape == (1,)
    assert fitted.importance_.shape == fitted.sampling_probabilities_.shape == (150,)
    assert fitted.solver_ == "multinomialnewton"


def test_class_weights_and_sample_weights_agree_with_scikit_learn(iris):
    X, y = iris
    s = np.random.default_rng(0).random(150)
    settings = {"class_weight": {"setosa": 1.0, "versicolor": 3.0, "virginica": 0.5}}
    ours = BanditClassifier(alpha=ALPHA, tol=1e-9, **settings).fit(X, y, sample_weight=s)
    total = s @ np.array([settings["class_weight"][label] for label in y])
    theirs = LogisticRegression(C=1 / (total * ALPHA), tol=1e-10, max_iter=1000, **settings).fit(X, y, sample_weight=s)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)


def test_one_against_the_rest_on_wish(iris):
    X, y = iris
    model = BanditClassifier(alpha=ALPHA, multi_class="ovr", tol=1e-9, random_state=0).fit(X, y)
    single = BanditClassifier(alpha=ALPHA, tol=1e-9, random_state=0).fit(X, np.where(y == "setosa", "a", "b"))
    np.testing.assert_allclose(model.coef_[0], -single.coef_[0], atol=1e-5)
    assert model.objective_.shape == (3,)
    hinge = BanditClassifier("squared_hinge", alpha=ALPHA).fit(X, y)
    assert hinge.objective_.shape == (3,)


def test_two_classes_are_one_problem_whatever_is_asked_for(iris):
    X, y = iris[0][:100], iris[1][:100]
    models = [BanditClassifier(alpha=ALPHA, multi_class=name).fit(X, y) for name in ("auto", "multinomial", "ovr")]
    for model in models:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)


def test_what_does_not_fit_is_refused(iris):
    with pytest.raises(ValueError, match='multi_class must be one of "auto", "multinomial", "ovr"; got "ovo"'.replace(
        '"ovo"', "'ovo'")):  # fmt: skip
        BanditClassifier(multi_class="ovo").fit(*iris)
    with pytest.raises(ValueError, match="comes with loss=\"log_loss\", not 'hinge'"):
        BanditClassifier("hinge", multi_class="multinomial").fit(*iris)
    with pytest.raises(TypeError, match=r"OneMargin\(.*takes losses of one margin, and Softmax\(classes=3.0\) has 3"):
        BanditClassifier(multi_class="multinomial", solver=OneMargin()).fit(*iris)


class OneMargin(bg.Saga):
    """Somebody's solver that knows of one margin only."""

    @property
    def takes_several_margins(self):
        return False


def test_solvers_of_one_margin_take_classes_one_against_the_rest():
    assert not is_multinomial(BanditClassifier(solver=OneMargin()), 3)
    assert is_multinomial(BanditClassifier(solver=bg.Sqn(batch_size=5)), 3)


def test_warm_starts_go_on_from_all_classes(iris, fitted):
    X, y = iris
    again = clone(fitted).set_params(warm_start=True).fit(X, y)
    first = again.coef_.copy()
    again.fit(X, y)
    assert again.n_iter_ <= 2
    np.testing.assert_allclose(again.coef_, first, atol=1e-7)


def test_model_files_keep_what_the_classes_are(iris, fitted, tmp_path):
    X, _ = iris
    loaded = load_model(save_model(fitted, tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    again = load_model(save_model(loaded, tmp_path / "again"))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


def test_models_of_former_versions_are_of_one_against_the_rest(iris, tmp_path):
    from banditgrad.linear_model.model_file import _digest

    X, y = iris
    model = BanditClassifier(alpha=ALPHA, multi_class="ovr", random_state=0).fit(X, y)
    content = json.loads(save_model(model, tmp_path / "model").read_text())
    del content["settings"]["multi_class"], content["sha256"]
    content["format_version"] = 2
    Path(tmp_path / "old").write_text(json.dumps({**content, "sha256": _digest(content)}))
    np.testing.assert_array_equal(load_model(tmp_path / "old").predict_proba(X), model.predict_proba(X))


def test_streams_take_all_classes_together(iris):
    X, y = iris
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = BanditClassifier(random_state=0)
    for _ in range(20):
        model.partial_fit(X, y, classes=np.unique(y))
    assert model.coef_.shape == (3, 4)
    assert model.score(X, y) > 0.93
    np.testing.assert_allclose(model.predict_proba(X), softmax(model.decision_function(X), axis=1))
    one = BanditClassifier(random_state=0, multi_class="ovr").partial_fit(X, y, classes=np.unique(y))
    assert not np.allclose(one.predict_proba(X), softmax(one.decision_function(X), axis=1))


def test_cross_validation_chooses_among_multinomial_models():
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = BanditClassifierCV(alphas=6, cv=3, random_state=0).fit(X, y)
    assert model.coef_.shape == (3, 13)
    assert model.best_score_ > 0.95
    np.testing.assert_allclose(model.predict_proba(X), softmax(model.decision_function(X), axis=1))
    assert model.path_.coefs[0].shape == (3, 13)


@pytest.mark.skipif("BANDITGRAD_DATA" not in os.environ, reason="BANDITGRAD_DATA names no folder with Fashion-MNIST")
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_fashion_agrees_with_scikit_learn(form):
    file = Path(os.environ["BANDITGRAD_DATA"], "fashion-mnist.npz")
    if not file.exists():
        pytest.skip(f"{file} is not there")
    data = np.load(file)
    some = np.random.default_rng(0).permutation(len(data["y"]))[:2000]
    X, y = data["X"][some].reshape(2000, -1) / 255.0, data["y"][some]
    model = BanditClassifier(alpha=1e-2, tol=1e-8, random_state=0).fit(form(X), y)
    theirs = LogisticRegression(C=1 / (2000 * 1e-2), tol=1e-9, max_iter=5000).fit(X, y)
    problem = bg.Problem(X, y.astype(float), bg.Softmax(10), bg.SquaredL2(1e-2), fit_intercept=True)
    value = problem.value(np.vstack([theirs.coef_.T, theirs.intercept_]))
    assert model.objective_[0] == pytest.approx(value, rel=1e-8)
    assert model.objective_[0] <= value * (1 + 1e-12)
