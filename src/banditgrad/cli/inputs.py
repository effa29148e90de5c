"""What several commands ask for: options with one meaning, and data files of any kind."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from banditgrad.datasets import read_table
from banditgrad.datasets.svmlight import read_with_base
from banditgrad.datasets.tables import is_table
from banditgrad.problem import Problem
from banditgrad.registry import CLASSIFICATION_LOSSES, PENALTIES, REGRESSION_LOSSES, make_loss, make_penalty

MOST_CLASSES = 30  # labels that are whole numbers and not more than so many are taken as classes

FILE: dict[str, Any] = {"exists": True, "dir_okay": False, "readable": True, "show_default": False}
_TABLES = "CSV and Parquet"

DataFile = Annotated[
    Path, typer.Argument(metavar="DATA", help="svmlight (also .gz, .bz2, .xz), .csv, .tsv or .parquet.", **FILE)
]
Label = Annotated[
    str | None,
    typer.Option("--label", help=f"{_TABLES}: the label column. Default: label, target, class or y.", metavar="NAME"),
]
Drop = Annotated[list[str] | None, typer.Option("--drop", help=f"{_TABLES}: a column to leave out.", metavar="NAME")]
Features = Annotated[
    int | None,
    typer.Option("--features", min=1, help="svmlight: the number of features, if more than occur.", metavar="D"),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same result.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of words.")]
Alpha = Annotated[
    float,
    typer.Option("--alpha", min=0.0, help="λ, the strength of the penalty; 1/(n C) for those who think in C."),
]
L1Ratio = Annotated[float, typer.Option("--l1-ratio", min=0.0, max=1.0, help="Share of l1 in elasticnet.")]


def one_of(names: tuple[str | None, ...]) -> Any:
    """A callback that refuses other words, with exit code 2."""
    known = [str(name).lower() for name in names]

    def check(value: str) -> str:
        if value.lower() not in known:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(known)}.")
        return value.lower()

    return check


def list_of(known: Mapping[str, Any]) -> Any:
    """A callback for names with commas between them."""

    def check(value: str) -> str:
        names = [name.strip().lower() for name in value.split(",") if name.strip()]
        for name in names:
            if name not in known:
                raise typer.BadParameter(f"{name!r} is not one of {', '.join(known)}.")
        if not names or len(set(names)) < len(names):
            raise typer.BadParameter(f"pass one or more names, each once, with commas between; got {value!r}.")
        return ",".join(names)

    return check


LOSSES = (*CLASSIFICATION_LOSSES, *REGRESSION_LOSSES)
LossName = Annotated[
    str,
    typer.Option(
        "--loss",
        callback=one_of(("auto", *LOSSES)),
        help=f"{', '.join(LOSSES)}; auto is log_loss for classes, squared_error for other numbers.",
    ),
]
PenaltyName = Annotated[str, typer.Option("--penalty", callback=one_of(PENALTIES), help="l1, l2, elasticnet or none.")]


class Data(NamedTuple):
    """A file's rows; `y` holds labels as they are in the file, whole numbers as int."""

    path: Path
    X: Any
    y: NDArray[Any]
    weights: NDArray[np.float64] | None
    names: list[str] | None
    zero_based: bool | None = None  # svmlight: whether the first feature has the index 0


def read_data(
    path: Path,
    label: str | None = None,
    drop: list[str] | None = None,
    features: int | None = None,
    weight: str | None = None,
    zero_based: bool | None = None,
) -> Data:
    """A data file of any kind that is read; its extension tells which."""
    if is_table(path):
        if features is not None:
            raise typer.BadParameter("--features is for svmlight files; a table has as many as it has columns.")
        table = read_table(path, label, weight=weight, drop=drop or ())
        assert table.y is not None
        return Data(path, table.X, tidy(table.y), table.weights, table.names)
    for option, given in (("--label", label), ("--drop", drop), ("--weights", weight)):
        if given:
            raise typer.BadParameter(f"{option} is for .csv, .tsv and .parquet files; {path.name} is read as svmlight.")
    X, y, zero_based = read_with_base(path, features, "auto" if zero_based is None else zero_based)
    if X.shape[1] == 0:
        raise ValueError(f"{path} has no features: no line has an index:value.")
    return Data(path, X, tidy(y), None, None, zero_based)


def read_like(
    path: Path,
    d: int,
    names: list[str] | None,
    zero_based: bool | None = None,
    label: str | None = None,
    need_label: bool = True,
) -> Data:
    """A file with the features of another one or of a model: d of them, by name where these are known."""
    if is_table(path):
        table = read_table(path, label, features=names, need_label=need_label)
        if table.X.shape[1] != d:
            raise ValueError(f"{path} has {table.X.shape[1]} feature columns, the model has {d} features.")
        y = np.zeros(0) if table.y is None else tidy(table.y)
        return Data(path, table.X, y, None, table.names if names is not None else None)
    if names is not None:
        raise ValueError(
            f"{path} is read as svmlight, which has no names; the model knows its features by name: "
            f"{', '.join(map(repr, names[:8]))}{', ...' if len(names) > 8 else ''}. Pass a table with these columns."
        )
    return read_data(path, features=d, zero_based=zero_based)


def expect_labels(other: Data, data: Data, classify: bool) -> None:
    """Labels to measure a model on must be of the kind it was trained with."""
    if classify:
        unknown = np.setdiff1d(other.y.astype(str), data.y.astype(str))
        if unknown.size:
            raise ValueError(f"{other.path} has the label {unknown[0]!r}, which does not occur in {data.path}.")
    elif other.y.dtype.kind in "US":
        raise ValueError(f"{other.path} has words as labels, such as {other.y[0]!r}; those of {data.path} are numbers.")


def scores(model: Any, data: Data) -> dict[str, float]:
    """Accuracy, AUC and log loss, or R² and the mean absolute error."""
    from sklearn import metrics

    predicted = call(model.predict, data)
    if not hasattr(model, "classes_"):
        return {"R²": _r2(data.y, predicted), "mean |error|": metrics.mean_absolute_error(data.y, predicted)}
    found = {"accuracy": metrics.accuracy_score(data.y, predicted)}
    if model.classes_.size == 2:
        one = np.unique(data.y).size < 2
        found["AUC"] = np.nan if one else metrics.roc_auc_score(data.y, call(model.decision_function, data))
    if model.loss == "log_loss":
        found["log loss"] = metrics.log_loss(data.y, call(model.predict_proba, data), labels=model.classes_)
    return {name: float(value) for name, value in found.items()}


def _r2(y: NDArray[Any], predicted: NDArray[np.float64]) -> float:
    """NaN for a single row, where R² is not defined."""
    from sklearn.metrics import r2_score

    return float(r2_score(y, predicted)) if y.size > 1 else float("nan")


def call(method: Callable[[Any], Any], data: Data) -> Any:
    """A model's method on a file's rows, under the names that the model was given."""
    if data.names is None:
        return method(data.X)
    import pandas as pd

    return method(pd.DataFrame(data.X, columns=data.names))


def expect_writable(path: Path) -> None:
    """Before the work: an output file that cannot be written is told at once."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder. Pass the name of a file.")
    expect_folder(path.parent)


def expect_folder(folder: Path) -> None:
    """Make a folder for output, or say why not."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"Cannot write to {folder}: {error.strerror}.") from error
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"Cannot write to {folder}: permission denied.")


def write(path: Path, text: str) -> None:
    from banditgrad._files import write_atomically

    expect_writable(path)
    write_atomically(path, text.encode())


def tidy(y: NDArray[Any]) -> NDArray[Any]:
    """Labels as people write them: 1, not 1.0."""
    if y.dtype.kind == "f" and np.all(y == np.round(y)) and np.all(np.abs(y) < 2**53):
        return y.astype(np.int64)
    return y.astype(str) if y.dtype.kind == "b" else y


def choose_loss(data: Data, loss: str) -> str:
    """The loss asked for, if it suits the labels, or the usual one for them."""
    classes = np.unique(data.y)
    if loss == "auto":
        few = data.y.dtype.kind not in "f" and classes.size <= MOST_CLASSES
        loss = "log_loss" if data.y.dtype.kind in "US" or few else "squared_error"
    if loss in REGRESSION_LOSSES and data.y.dtype.kind in "US":
        raise ValueError(f"{data.path}: {loss} needs numbers as labels, got {classes[0]!r}. Use --loss log_loss.")
    if loss in CLASSIFICATION_LOSSES and classes.size < 2:
        raise ValueError(f"{data.path} has one class only, {classes[0]!r}. {loss} needs at least two.")
    if loss in CLASSIFICATION_LOSSES and data.y.dtype.kind == "f":
        raise ValueError(
            f"{data.path}: {loss} needs classes as labels, got {classes.size} different numbers such as "
            f"{classes[0]:g}. Use --loss squared_error."
        )
    return loss


def as_targets(data: Data, loss: str, positive: str | None) -> NDArray[np.float64]:
    """Targets for a single problem: -1 and +1 for two classes or one against the rest, else the numbers."""
    if loss in REGRESSION_LOSSES:
        return data.y.astype(np.float64)
    classes = np.unique(data.y)
    if positive is None:
        if classes.size > 2:
            listed = ", ".join(map(str, classes[:8])) + (", ..." if classes.size > 8 else "")
            raise ValueError(
                f"{data.path} has {classes.size} classes ({listed}); this takes two. Set one against the rest with "
                "--positive LABEL."
            )
        chosen = classes[-1]
    else:
        named = [each for each in classes if str(each) == positive]
        if not named:
            raise ValueError(f"{data.path} has no label {positive!r}; there are {', '.join(map(str, classes[:8]))}.")
        chosen = named[0]
    return np.where(data.y == chosen, 1.0, -1.0)


def problem_of(data: Data, loss: str, positive: str | None, penalty: str, alpha: float, l1_ratio: float) -> Problem:
    """The problem that the options describe, with an intercept."""
    part = make_penalty(None if penalty == "none" else penalty, alpha, l1_ratio)
    return Problem(data.X, as_targets(data, loss, positive), make_loss(loss), part, fit_intercept=True)
