"""Fitted models for others: as scikit-learn's own linear models, and as ONNX."""

import warnings
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import linear_model as theirs
from sklearn.utils.validation import check_is_fitted

from banditgrad._files import write_atomically
from banditgrad._names import shown
from banditgrad.registry import GROUPED, LOG_LINK_LOSSES

OPSET, IR_VERSION = 17, 8  # of 2022: whatever runs ONNX today reads them


def to_sklearn(model: Any) -> Any:
    """A model of scikit-learn's that predicts the same."""
    check_is_fitted(model)
    d = model.n_features_in_
    other = _classifier(model) if hasattr(model, "classes_") else _regressor(model)
    y = model.classes_ if hasattr(model, "classes_") else np.array([1.0, 2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other.fit(np.zeros((len(y), d)), y)  # makes it whole; then it is given what was learned elsewhere
    other.coef_ = model.coef_.copy()
    other.intercept_ = model.intercept_.copy() if hasattr(model, "classes_") else float(model.intercept_[0])
    if hasattr(model, "feature_names_in_"):
        other.feature_names_in_ = model.feature_names_in_
    return other


def _classifier(model: Any) -> Any:
    norm = "l2" if model.penalty in GROUPED else model.penalty  # there are no groups
    penalty = {"penalty": norm, "alpha": model.alpha, "l1_ratio": model.l1_ratio}
    if model.loss == "log_loss" and (model.classes_.size == 2 or model._is_multinomial):
        return theirs.LogisticRegression()
    return theirs.SGDClassifier(model.loss, **penalty, max_iter=1, tol=None)  # one against the rest, as here


def _regressor(model: Any) -> Any:
    if model.loss == "squared_error":
        return {
            **dict.fromkeys((None, *GROUPED), theirs.LinearRegression),
            "l2": lambda: theirs.Ridge(model.alpha),
            "l1": lambda: theirs.Lasso(model.alpha),
            "elasticnet": lambda: theirs.ElasticNet(model.alpha, l1_ratio=model.l1_ratio),
        }[model.penalty]()
    if model.loss in LOG_LINK_LOSSES:
        power = {"poisson": 1.0, "gamma": 2.0}.get(model.loss, model.power)
        return theirs.TweedieRegressor(power=power, alpha=model.alpha, link="log")
    if model.loss == "quantile":
        return theirs.QuantileRegressor(quantile=model.quantile, alpha=model.alpha)
    return theirs.SGDRegressor(model.loss, epsilon=model.epsilon, max_iter=1, tol=None)


def to_onnx(model: Any, path: str | PathLike[str] | None = None, dtype: Any = np.float32) -> Any:
    """An ONNX graph that predicts the same, for rows of `dtype`; written to `path` if there is one."""
    check_is_fitted(model)
    onnx = _onnx()
    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {shown(dtype)}.")
    graph = _Graph(onnx, kind)
    W = np.atleast_2d(model.coef_).T.astype(kind)
    z = graph.add("Add", graph.add("MatMul", "X", graph.constant(W)), graph.constant(model.intercept_.astype(kind)))
    rows = {"X": (kind, [None, model.n_features_in_])}
    if hasattr(model, "classes_"):
        outputs = _classes(graph, model, z)
    else:
        mean = graph.add("Exp", z) if model.loss in LOG_LINK_LOSSES else z
        outputs = {"prediction": (graph.column(mean, "prediction"), kind, [None])}
    whole = graph.model(rows, outputs, type(model).__name__)
    if hasattr(model, "feature_names_in_"):
        entry = whole.metadata_props.add()
        entry.key, entry.value = "features", "\n".join(map(str, model.feature_names_in_))
    onnx.checker.check_model(whole)
    if path is not None:
        write_atomically(Path(path), whole.SerializeToString())
    return whole


def _classes(graph: "_Graph", model: Any, z: str) -> dict[str, Any]:
    """Labels, and probabilities where the loss has some."""
    labels = model.classes_.astype(str) if model.classes_.dtype.kind in "OU" else model.classes_
    binary = labels.size == 2
    if binary:
        chosen = graph.column(graph.add("Cast", graph.add("Greater", z, graph.constant(graph.zero)), to=np.int64))
    else:
        chosen = graph.add("ArgMax", z, axis=1, keepdims=0)
    found = {"label": (graph.add("Gather", graph.constant(labels), chosen, name="label"), labels.dtype, [None])}
    if not hasattr(model, "predict_proba"):
        margins = graph.add("Identity", z, name="margins")
        return {**found, "margins": (margins, graph.kind, [None, 1 if binary else labels.size])}
    if model._is_multinomial:
        p = graph.add("Softmax", z, axis=1, name="probabilities")
        return {**found, "probabilities": (p, graph.kind, [None, labels.size])}
    one = graph.constant(np.ones((), graph.kind))
    if model.loss == "log_loss":
        p = graph.add("Sigmoid", z)
    else:
        half = graph.constant(np.array(0.5, graph.kind))
        inside = graph.add("Clip", z, graph.constant(np.array(-1, graph.kind)), one)
        p = graph.add("Mul", graph.add("Add", inside, one), half)
    if binary:
        p = graph.add("Concat", graph.add("Sub", one, p), p, axis=1, name="probabilities")
    else:
        total = graph.add("ReduceSum", p, graph.constant(np.array([1])), keepdims=1)
        some = graph.add("Greater", total, graph.constant(graph.zero))
        even = graph.constant(np.array(1.0 / labels.size, graph.kind))
        p = graph.add("Where", some, graph.add("Div", p, total), even, name="probabilities")
    return {**found, "probabilities": (p, graph.kind, [None, labels.size])}


class _Graph:
    """Nodes and constants, named as they come."""

    def __init__(self, onnx: Any, kind: Any) -> None:
        self.onnx, self.kind, self.zero = onnx, kind, np.zeros((), kind)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: Any) -> str:
        name = f"constant{len(self.constants)}"
        if values.dtype.kind == "U":
            text = [word.encode() for word in values.tolist()]
            tensor = self.onnx.helper.make_tensor(name, self.onnx.TensorProto.STRING, values.shape, text)
        else:
            tensor = self.onnx.numpy_helper.from_array(values, name)
        self.constants.append(tensor)
        return name

    def add(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        name = name or f"{kind.lower()}{len(self.nodes)}"
        if "to" in attributes:
            attributes["to"] = self._type(attributes["to"])
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [name], **attributes))
        return name

    def column(self, values: str, name: str = "") -> str:
        """A column as a vector."""
        return self.add("Reshape", values, self.constant(np.array([-1])), name=name)

    def model(self, inputs: dict[str, Any], outputs: dict[str, Any], name: str) -> Any:
        helper = self.onnx.helper
        taken = [helper.make_tensor_value_info(key, self._type(kind), shape) for key, (kind, shape) in inputs.items()]
        given = [
            helper.make_tensor_value_info(key, self._type(kind), shape) for key, (_, kind, shape) in outputs.items()
        ]
        graph = helper.make_graph(self.nodes, name, taken, given, self.constants)
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="banditgrad")

    def _type(self, kind: Any) -> int:
        kind = np.dtype(kind)
        proto = self.onnx.TensorProto
        return proto.STRING if kind.kind == "U" else self.onnx.helper.np_dtype_to_tensor_dtype(kind)


def _onnx() -> Any:
    try:
        import onnx
    except ImportError as error:
        raise ImportError('to_onnx needs onnx, which is not installed. Run: pip install "banditgrad[onnx]"') from error
    return onnx
