"""Models as JSON files: readable, exact to the bit, and safe to load, since nothing in them is executed."""

import hashlib
import json
import math
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

import banditgrad
from banditgrad._files import write_atomically
from banditgrad.datasets.encoding import from_json
from banditgrad.linear_model.classifier import BanditClassifier
from banditgrad.linear_model.regressor import BanditRegressor

FORMAT = "banditgrad model"
# Since 2 there may be an encoding, without which predictions would be wrong; since 3 `multi_class` tells what the
# coefficients of several classes are: before, those of one against the rest; since 4 settings may be lists.
FORMAT_VERSION = 4
KINDS: dict[str, Any] = {kind.__name__: kind for kind in (BanditClassifier, BanditRegressor)}

Model = BanditClassifier | BanditRegressor


def save_model(model: Model, path: str | PathLike[str]) -> Path:
    """Write a fitted estimator's parameters, labels, features and coefficients.

    Parameters that are objects (``solver=bg.Saga(0.1)``) are noted in words; a loaded model has the default there.
    """
    if type(model).__name__ not in KINDS or not hasattr(model, "coef_"):
        raise ValueError(f"save_model expects a fitted BanditClassifier or BanditRegressor, got {model!r}.")
    known = KINDS[type(model).__name__]._get_param_names()  # a model fitted on Dask has more, and loads as a local one
    settings = {name: _as_python(getattr(model, name)) for name in known}
    plain = {name: value for name, value in settings.items() if _is_plain(value)}
    _with_settings(type(model).__name__, plain)  # or the file could not be loaded
    encoding = getattr(model, "encoding_", None)
    content = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "banditgrad": banditgrad.__version__,
        "estimator": type(model).__name__,
        "settings": plain,
        "settings_in_words": {name: repr(value) for name, value in settings.items() if name not in plain},
        "classes": model.classes_.tolist() if isinstance(model, BanditClassifier) else None,
        "features": getattr(model, "feature_names_in_", np.zeros(0)).tolist() or None,
        "encoding": None if encoding is None else encoding.as_json(),  # of the table it was trained on
        "zero_based": getattr(model, "zero_based_", None),  # of the svmlight file it was trained on
        "n_features": int(model.n_features_in_),
        "n_iter": int(model.n_iter_),
        "coef": np.atleast_2d(model.coef_).tolist(),
        "intercept": model.intercept_.tolist(),
    }
    text = json.dumps({**content, "sha256": _digest(content)}, allow_nan=False, indent=None)
    return write_atomically(Path(path), text.encode())


def load_model(path: str | PathLike[str]) -> Any:
    """The estimator in a file that `save_model` wrote; anything else is refused with a ValueError."""
    try:
        content = json.loads(Path(path).read_bytes(), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:  # not text, not JSON, or with numbers that JSON does not have
        raise ValueError(
            f"{path} is not a banditgrad model, or is damaged: it is not JSON ({error}). "
            "`banditgrad fit --out` writes one."
        ) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{path} is not a banditgrad model. Write one with `banditgrad fit --out` or save_model.")
    if content.get("format_version") not in range(1, FORMAT_VERSION + 1):
        raise ValueError(
            f"{path} has format version {content.get('format_version')!r}, written by banditgrad "
            f"{content.get('banditgrad')!r}; this is {banditgrad.__version__}, which reads versions up to "
            f"{FORMAT_VERSION}. Upgrade banditgrad."
        )
    if content.pop("sha256", None) != _digest(content):
        raise ValueError(f"{path} is damaged: its content does not match its SHA-256. Fit the model again.")
    try:
        return _restored(content)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{path} is not a whole banditgrad model: {error!r}.") from error


def _restored(content: dict[str, Any]) -> Any:
    if content["format_version"] < 3 and content["estimator"] == BanditClassifier.__name__:
        content["settings"] = {**content["settings"], "multi_class": "ovr"}
    model = _with_settings(content["estimator"], content["settings"])
    kind = type(model)
    coef, intercept = _finite("coef", content["coef"]), _finite("intercept", content["intercept"])
    d, classes = _whole("n_features", content["n_features"]), content["classes"]
    problems = 1 if classes is None or len(classes) == 2 else len(classes)
    if coef.shape != (problems, d) or intercept.shape != (problems,):
        raise ValueError(f"coefficients of shape {coef.shape}, expected {(problems, d)}")
    if kind is BanditClassifier:
        model.classes_ = np.array(classes)
        if model.classes_.ndim != 1 or model.classes_.dtype == object or len(classes) < 2:
            raise ValueError(f"classes {classes!r}")
    if content["features"] is not None:
        if len(content["features"]) != d:
            raise ValueError(f"{len(content['features'])} names for {d} features")
        model.feature_names_in_ = np.array(content["features"], dtype=object)
    if content.get("encoding") is not None:
        model.encoding_ = from_json(content["encoding"])
        if model.encoding_.names != content["features"]:
            raise ValueError("an encoding whose features are not the model's")
    if content.get("zero_based") is not None:
        model.zero_based_ = bool(content["zero_based"])
    model.coef_ = coef if kind is BanditClassifier else coef[0]
    model.intercept_, model.n_features_in_, model.n_iter_ = intercept, d, _whole("n_iter", content["n_iter"])
    return model


def _with_settings(name: str, settings: dict[str, Any]) -> Any:
    model = KINDS[name](**settings)
    model._check_parameters()
    return model


def _finite(name: str, values: Any) -> Any:
    try:
        array = np.array(values, np.float64)
    except OverflowError:
        array = np.array(np.inf)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds what is not a finite number")
    return array


def _whole(name: str, value: Any) -> int:
    if not isinstance(value, int) or not 1 <= value < 2**63:
        raise ValueError(f"{name} is {str(value)[:20]}, not a number of at least 1")
    return value


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")


def _as_python(value: Any) -> Any:
    """NumPy's numbers as Python's with the same values, arrays as lists; infinity, which JSON has not, as None."""
    if isinstance(value, (list, tuple)):
        return [_as_python(each) for each in value]
    if isinstance(value, np.ndarray):
        return _as_python(value.tolist())
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and math.isinf(value) else value


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_plain(each) for each in value)
    if isinstance(value, dict):  # class weights; JSON would turn the labels into text
        return False
    return value is None or isinstance(value, (str, bool, int, float))


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
