"""Exported models predict the same."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.validation import check_is_fitted

from banditgrad.linear_model import BanditClassifier, BanditRegressor

rng = np.random.default_rng(0)
X = rng.standard_normal((200, 4))
CLASSES = {"two": np.array(["no", "yes"]), "three": np.array([1, 2, 5])}
CLASSIFIERS = [(loss, y) for loss in ("log_loss", "modified_huber", "squared_hinge", "hinge") for y in CLASSES]
REGRESSORS = [
    ("squared_error", None),
    ("squared_error", "l1"),
    ("squared_error", "l2"),
    ("squared_error", "elasticnet"),
    ("huber", "l2"),
    ("quantile", "l2"),
    ("poisson", "l2"),
    ("tweedie", "l2"),
]


def learned(model, problems):
    """The model with coefficients, which are all that an export looks at."""
    model.coef_ = rng.standard_normal((problems, 4)) if problems else rng.standard_normal(4)
    model.intercept_ = rng.standard_normal(max(problems, 1))
    model.n_features_in_, model.n_iter_ = 4, 1
    return model


def classifier(loss, y, **settings):
    model = learned(BanditClassifier(loss, **settings), 1 if y == "two" else 3)
    model.classes_ = CLASSES[y]
    return model


def regressor(loss, penalty):
    return learned(BanditRegressor(loss, penalty=penalty), 0)


@pytest.mark.parametrize(("loss", "y"), CLASSIFIERS)
def test_classifiers_of_scikit_learn(loss, y):
    ours = classifier(loss, y)
    theirs = ours.to_sklearn()
    check_is_fitted(theirs)
    assert np.array_equal(theirs.predict(X), ours.predict(X))
    if hasattr(ours, "predict_proba"):
        assert np.allclose(theirs.predict_proba(X), ours.predict_proba(X), atol=1e-12)
    else:
        assert np.allclose(theirs.decision_function(X), ours.decision_function(X))


def test_one_against_the_rest_stays_so():
    ours = classifier("log_loss", next(y for _, y in CLASSIFIERS if y != "two"), multi_class="ovr")
    assert np.allclose(ours.to_sklearn().predict_proba(X), ours.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize(("loss", "penalty"), REGRESSORS)
def test_regressors_of_scikit_learn(loss, penalty):
    ours = regressor(loss, penalty)
    assert np.allclose(ours.to_sklearn().predict(X), ours.predict(X))


def test_names_go_along():
    frame = pd.DataFrame(X, columns=list("abcd"))
    ours = classifier("log_loss", "two")
    ours.feature_names_in_ = np.array(list("abcd"), dtype=object)
    assert np.array_equal(ours.to_sklearn().predict(frame), ours.predict(frame))


MODELS = [(classifier, *each) for each in CLASSIFIERS] + [(regressor, *each) for each in REGRESSORS[-2:]]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("model", MODELS, ids=lambda each: "-".join(each[1:]))
def test_onnx_predicts_the_same(model, kind, tmp_path):
    pytest.importorskip("onnx", reason='not installed: pip install "banditgrad[onnx]"')
    runtime = pytest.importorskip("onnxruntime", reason="not installed: pip install onnxruntime")
    make, *settings = model
    ours = make(*settings)
    ours.to_onnx(tmp_path / "model.onnx", kind)
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    rows = X.astype(kind)
    found = dict(zip([each.name for each in session.get_outputs()], session.run(None, {"X": rows}), strict=True))
    tolerance = 1e-5 if kind == np.float32 else 1e-12
    if "prediction" in found:
        assert np.allclose(found["prediction"], ours.predict(X), rtol=tolerance, atol=tolerance)
        return
    margins = np.atleast_2d(ours.decision_function(X).T).T
    sure = np.abs(margins).min(axis=1) > 1e-4  # of others single precision may turn the sign
    assert np.array_equal(found["label"][sure], ours.predict(X)[sure])
    if hasattr(ours, "predict_proba"):
        assert np.allclose(found["probabilities"], ours.predict_proba(X), atol=tolerance)
    else:
        assert np.allclose(found["margins"], margins, rtol=tolerance, atol=tolerance)


def test_without_onnx_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r'pip install "banditgrad\[onnx\]"'):
        classifier("log_loss", "two").to_onnx()
