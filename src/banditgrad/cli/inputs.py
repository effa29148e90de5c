"""What several commands ask for: options with one meaning, and data files of any kind."""

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from banditgrad.datasets import read_svmlight, read_table
from banditgrad.datasets.tables import is_table
from banditgrad.registry import CLASSIFICATION_LOSSES, PENALTIES, REGRESSION_LOSSES

MOST_CLASSES = 30  # labels that are whole numbers and not more than so many are taken as classes

_FILE = {"exists": True, "dir_okay": False, "readable": True, "show_default": False}
_TABLES = "CSV and Parquet"

DataFile = Annotated[
    Path, typer.Argument(metavar="DATA", help="svmlight (also .gz, .bz2, .xz), .csv, .tsv or .parquet.", **_FILE)
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


def _one_of(names: tuple[str | None, ...]) -> Any:
    """A callback that refuses other words, with exit code 2."""
    known = [str(name).lower() for name in names]

    def check(value: str) -> str:
        if value.lower() not in known:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(known)}.")
        return value.lower()

    return check


LOSSES = (*CLASSIFICATION_LOSSES, *REGRESSION_LOSSES)
LossName = Annotated[
    str,
    typer.Option(
        "--loss",
        callback=_one_of(("auto", *LOSSES)),
        help=f"{', '.join(LOSSES)}; auto is log_loss for classes, squared_error for other numbers.",
    ),
]
PenaltyName = Annotated[str, typer.Option("--penalty", callback=_one_of(PENALTIES), help="l1, l2, elasticnet or none.")]


class Data(NamedTuple):
    """A file's rows; `y` holds labels as they are in the file, whole numbers as int."""

    path: Path
    X: Any
    y: NDArray[Any]
    weights: NDArray[np.float64] | None
    names: list[str] | None


def read_data(
    path: Path,
    label: str | None = None,
    drop: list[str] | None = None,
    features: int | None = None,
    weight: str | None = None,
) -> Data:
    """A data file of any kind that is read; its extension tells which."""
    if is_table(path):
        if features is not None:
            raise typer.BadParameter("--features is for svmlight files; a table has as many as it has columns.")
        table = read_table(path, label, weight=weight, drop=drop or ())
        assert table.y is not None
        return Data(path, table.X, _tidy(table.y), table.weights, table.names)
    for option, given in (("--label", label), ("--drop", drop), ("--weights", weight)):
        if given:
            raise typer.BadParameter(f"{option} is for .csv, .tsv and .parquet files; {path.name} is read as svmlight.")
    X, y = read_svmlight(path, features)
    if X.shape[1] == 0:
        raise ValueError(f"{path} has no features: no line has an index:value.")
    return Data(path, X, _tidy(y), None, None)


def _tidy(y: NDArray[Any]) -> NDArray[Any]:
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
