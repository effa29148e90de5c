"""Models as files: nothing is lost, and nothing that is not a model gets in."""

import json

import numpy as np
import pytest

from banditgrad.datasets.encoding import Encoding, Levels, Numbers
from banditgrad.linear_model import BanditClassifier, BanditRegressor, load_model, save_model
from banditgrad.linear_model.model_file import _digest


@pytest.fixture
def model():
    fitted = BanditClassifier(random_state=3)
    fitted.classes_, fitted.n_features_in_, fitted.n_iter_ = np.array(["no", "yes"]), 3, 2
    # none of them is a float32, nor a short decimal
    fitted.coef_, fitted.intercept_ = np.array([[1 / 3, np.pi * 1e-300, -np.nextafter(1.0, 2.0)]]), np.array([0.1])
    return fitted


def test_coefficients_are_exact_to_the_bit(model, tmp_path):
    again = load_model(save_model(model, tmp_path / "model"))
    assert not np.array_equal(model.coef_, model.coef_.astype(np.float32))
    assert again.coef_.tobytes() == model.coef_.tobytes()
    assert again.intercept_.tobytes() == model.intercept_.tobytes()
    assert again.get_params() == model.get_params()


def test_numpy_scalars_are_parameters_like_any(model, tmp_path):
    given = {
        "alpha": np.float32(0.5),
        "l1_ratio": np.float64(1 / 3),
        "max_iter": np.int64(7),
        "fit_intercept": np.bool_(False),
        "penalty": np.str_("l1"),
    }
    again = load_model(save_model(model.set_params(**given), tmp_path / "model"))
    assert {name: again.get_params()[name] for name in given} == given
    assert not any(isinstance(value, np.generic) for value in again.get_params().values())


HUGE = 10**400


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"coef": [[np.nan, 1.0, 1.0]]}, "NaN is not a number of JSON"),
        ({"intercept": [-np.inf]}, "-Infinity is not a number of JSON"),
        ({"coef": [[HUGE, 1.0, 1.0]]}, "coef holds what is not a finite number"),
        ({"coef": [[None, 1.0, 1.0]]}, "coef holds what is not a finite number"),
        ({"intercept": [HUGE]}, "intercept holds what is not a finite number"),
        ({"settings": {"alpha": HUGE}}, "alpha must be a number"),
        ({"settings": {"loss": "perceptron"}}, "expects loss="),
        ({"n_features": HUGE}, "n_features is 1000"),
        ({"n_iter": "x"}, "n_iter is x"),
        ({"classes": [1, HUGE]}, "classes"),
    ],
)
def test_what_is_not_a_number_is_refused_also_with_a_right_checksum(model, tmp_path, change, words):
    path = save_model(model, tmp_path / "model")
    content = {**json.loads(path.read_bytes()), **change}
    del content["sha256"]
    path.write_text(json.dumps({**content, "sha256": _digest(content)}))
    with pytest.raises(ValueError, match=words):
        load_model(path)


def test_a_number_that_overflows_is_refused(model, tmp_path):
    path = save_model(model, tmp_path / "model")
    content = {**json.loads(path.read_bytes()), "intercept": [np.inf]}
    del content["sha256"]
    path.write_text(json.dumps({**content, "sha256": _digest(content)}).replace("Infinity", "1e999"))
    with pytest.raises(ValueError, match="intercept holds what is not a finite number"):
        load_model(path)


def test_a_model_that_could_not_be_loaded_is_not_saved(model, tmp_path):
    with pytest.raises(ValueError, match="alpha must be a number"):
        save_model(model.set_params(alpha=-1.0), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_regressor(tmp_path):
    X = np.random.default_rng(0).standard_normal((50, 3))
    model = BanditRegressor("huber", epsilon=np.float64(0.3), random_state=0).fit(X, X[:, 0])
    again = load_model(save_model(model, tmp_path / "model"))
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.epsilon == 0.3


def test_the_encoding_of_a_table_is_kept(model, tmp_path):
    model.encoding_ = Encoding((Numbers("a", 0.1), Levels("b", ("x",), True)))
    model.feature_names_in_ = np.array(model.encoding_.names, dtype=object)
    path = save_model(model, tmp_path / "model")
    assert load_model(path).encoding_ == model.encoding_
    content = json.loads(path.read_bytes())
    content["encoding"]["columns"][1]["levels"] = ["x", "y"]
    del content["sha256"]
    path.write_text(json.dumps({**content, "sha256": _digest(content)}))
    with pytest.raises(ValueError, match="whose features are not the model's"):
        load_model(path)


def test_a_model_of_the_first_format_is_read(model, tmp_path):
    path = save_model(model, tmp_path / "model")
    content = {**json.loads(path.read_bytes()), "format_version": 1}
    del content["sha256"], content["encoding"]
    path.write_text(json.dumps({**content, "sha256": _digest(content)}))
    assert np.array_equal(load_model(path).coef_, model.coef_)
