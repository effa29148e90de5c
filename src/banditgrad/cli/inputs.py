"""What several commands do: read data of any kind, choose a loss for it, measure models on it, write files."""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import typer
from numpy.typing import NDArray

from banditgrad.datasets import load, read_table
from banditgrad.datasets.encoding import Encoding, numbers_only
from banditgrad.datasets.frames import STDIN, File, kind_of, open_files, quoted, read_frame
from banditgrad.datasets.libsvm import SOURCES
from banditgrad.datasets.svmlight import parse
from banditgrad.datasets.tables import find_label
from banditgrad.problem import Problem
from banditgrad.registry import CLASSIFICATION_LOSSES, LOG_LINK_LOSSES, REGRESSION_LOSSES, make_loss, make_penalty

SCALES_APART = 1e4  # times the smallest column, from where it is worth a word
MOST_CLASSES = 30  # labels that are whole numbers and not more than so many are taken as classes


class Reading(NamedTuple):
    """How to read a table: the options of that name."""

    label: str | None = None
    drop: list[str] | None = None
    category: list[str] | None = None
    number: list[str] | None = None
    sep: str | None = None
    header: bool | None = None
    na: list[str] | None = None
    missing: str = "impute"
    weight: str | None = None

    @property
    def layout(self) -> dict[str, Any]:
        return {"sep": self.sep, "header": self.header, "na": self.na or ()}

    @property
    def given(self) -> list[str]:
        """The options that only tables have, and that were used."""
        usual = Reading()
        names = {"header": "--header" if self.header else "--no-header", "weight": "--weights"}
        pairs = zip(self._fields, self, usual, strict=True)
        return [names.get(name, f"--{name}") for name, value, default in pairs if value not in (default, [])]


class Data(NamedTuple):
    """A file's rows; `y` holds labels as they are in the file, whole numbers as int."""

    origin: str
    X: Any
    y: NDArray[Any]
    weights: NDArray[np.float64] | None = None
    names: list[str] | None = None
    zero_based: bool | None = None  # svmlight: whether the first feature has the index 0
    encoding: Encoding | None = None  # of a table: how its columns became features
    notes: Sequence[str] = ()
    kept: Mapping[str, list[Any]] = {}


def read_data(
    sources: str | list[str],
    reading: Reading | None = None,
    features: int | None = None,
    zero_based: bool | None = None,
) -> Data:
    """Data of any kind that is read."""
    reading = reading or Reading()
    named = _named_set(sources)
    if named is not None:
        _expect_no_options(reading, f"{named} is svmlight")
        dataset = load(named)
        return Data(named, dataset.X, tidy(dataset.y), zero_based=False)
    files = _open(sources)
    if kind_of(files[0]) == "svmlight":
        _expect_no_options(reading, f"{files[0].origin} is read as svmlight")
        return _svmlight(files, features, zero_based)
    if features is not None:
        raise typer.BadParameter("--features is for svmlight files; a table has as many as it has columns.")
    table = read_table(
        files,
        reading.label,
        weight=reading.weight,
        drop=reading.drop or (),
        category=reading.category or (),
        number=reading.number or (),
        missing=reading.missing,
        **reading.layout,
    )
    assert table.y is not None
    origin = _origin(files)
    return Data(origin, table.X, tidy(table.y), table.weights, table.names, None, table.encoding, table.notes)


def read_like(
    sources: str | list[str],
    d: int,
    encoding: Encoding | None,
    zero_based: bool | None = None,
    reading: Reading | None = None,
    need_label: bool = True,
    keep: list[str] | None = None,
) -> Data:
    """Data with the features of other data or of a model: d of them, made as its encoding says where it has one."""
    reading = reading or Reading()
    if _named_set(sources) is None:
        files = _open(sources)
        if kind_of(files[0]) != "svmlight":
            return _table_like(files, d, encoding, reading, need_label, keep or [])
        origin = _origin(files)
    else:
        origin = str(_named_set(sources))
    if encoding is not None:
        raise ValueError(
            f"{origin} is read as svmlight, which has no columns; the model was trained on a table with the columns "
            f"{quoted(encoding.used, 8)}. Pass a table with these."
        )
    if keep:
        raise typer.BadParameter(f"--keep is for tables; {origin} is read as svmlight.")
    if _named_set(sources) is None:
        return _svmlight(files, d, zero_based)
    data = read_data(sources)
    if data.X.shape[1] != d:
        raise ValueError(f"{origin} has {data.X.shape[1]} features, the model has {d}.")
    return data


def _table_like(
    files: list[File], d: int, encoding: Encoding | None, reading: Reading, need_label: bool, keep: list[str]
) -> Data:
    options: dict[str, Any] = {"need_label": need_label, "keep": keep, **reading.layout}
    names = None
    if encoding is None:  # a model of features without names takes all columns, which must be numbers
        frame = read_frame(files, **reading.layout)
        label = find_label(_origin(files), frame, reading.label, need_label)
        names = [name for name in frame.frame.columns if name != label and name not in keep]
        if len(names) != d:
            raise ValueError(f"{_origin(files)} has {len(names)} feature columns, the model has {d} features.")
        encoding = numbers_only(names)
    table = read_table(files, reading.label, encoding=encoding, **options)
    y = np.zeros(0) if table.y is None else tidy(table.y)
    return Data(
        _origin(files), table.X, y, None, None if names else table.names, None, encoding, table.notes, table.kept
    )


def encoding_of(model: Any) -> Encoding | None:
    """How a model's features are made of a table's columns; None for a model of features without names."""
    names = getattr(model, "feature_names_in_", None)
    return getattr(model, "encoding_", None) or (None if names is None else numbers_only(names.tolist()))


def _named_set(sources: str | list[str]) -> str | None:
    """The set that is meant, if there is no file of that name."""
    name = sources if isinstance(sources, str) else sources[0] if len(sources) == 1 else ""
    return name if name in SOURCES and not Path(name).exists() else None


def _open(sources: str | list[str]) -> list[File]:
    try:
        files = open_files(sources)
    except FileNotFoundError as error:
        raise typer.BadParameter(f"{error} The sets known by name are {', '.join(SOURCES)}.") from None
    except IsADirectoryError as error:
        raise typer.BadParameter(str(error)) from None
    kinds = {kind_of(file) for file in files}
    if len(files) > 1 and kinds & {"svmlight"}:
        raise typer.BadParameter("Several files are read as one only if they are tables; pass one svmlight file.")
    return files


def _origin(files: list[File]) -> str:
    name = "standard input" if files[0].origin == STDIN else files[0].origin
    return name if len(files) == 1 else f"{name} and {len(files) - 1} more"


def _expect_no_options(reading: Reading, what: str) -> None:
    if reading.given:
        raise typer.BadParameter(f"{reading.given[0]} is for tables, that is CSV and Parquet; {what}.")


def _svmlight(files: list[File], features: int | None, zero_based: bool | None) -> Data:
    [file] = files
    X, y, zero_based = parse(file.content, file.origin, features, "auto" if zero_based is None else zero_based)
    if X.shape[1] == 0:
        raise ValueError(f"{file.origin} has no features: no line has an index:value.")
    return Data(_origin(files), X, tidy(y), zero_based=zero_based)


def split(data: Data, share: float, classify: bool, seed: int) -> tuple[Data, Data]:
    """Rows to train on and rows to test on, with the same shares of each class where all have two rows or more."""
    from sklearn.model_selection import train_test_split

    n = data.X.shape[0]
    _, counts = np.unique(data.y, return_counts=True)
    many = classify and counts.min() > 1 and min(share, 1 - share) * n >= counts.size
    try:
        train, test = train_test_split(
            np.arange(n), test_size=share, random_state=seed, stratify=data.y if many else None
        )
    except ValueError:
        raise typer.BadParameter(f"--test-size {share:g} of {n:,} rows leaves none to train or to test on.") from None
    train.sort()
    test.sort()
    weights = None if data.weights is None else data.weights[train]
    if classify and np.unique(data.y[train]).size < counts.size:
        lost = np.setdiff1d(data.y, data.y[train])
        raise ValueError(
            f"{data.origin}: no row of the class {str(lost[0])!r} is left to train on. Pass a smaller --test-size."
        )
    return (
        data._replace(X=data.X[train], y=data.y[train], weights=weights),
        data._replace(X=data.X[test], y=data.y[test], weights=None, notes=()),
    )


def by_size(y: NDArray[Any]) -> dict[str, int]:
    """How many rows each class has, the largest first."""
    classes, counts = np.unique(y, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return {str(classes[k]): int(counts[k]) for k in order}


def in_shares(classes: Mapping[str, int], most: int = 8) -> str:
    """Classes in words, the largest first."""
    n = sum(classes.values())
    shares = [f"{name} {percent(count / n)}" for name, count in classes.items()]
    rest = f", and {len(shares) - most} with {percent(sum(list(classes.values())[most:]) / n)}"
    return f"{len(shares)} classes: {', '.join(shares[:most])}{rest if len(shares) > most else ''}"


def percent(share: float) -> str:
    """With as many digits as it takes not to be 0."""
    return f"{share:.1%}" if share >= 1e-3 else f"{100 * share:.1g}%"


def scale_notes(data: Data) -> list[str]:
    """What there is to say of columns in very different units."""
    sizes = _sizes(data.X)
    used = np.flatnonzero(sizes)
    if used.size < 2:
        return []
    small, large = (used[at] for at in (sizes[used].argmin(), sizes[used].argmax()))
    if sizes[large] <= SCALES_APART * sizes[small]:
        return []
    first = 0 if data.zero_based else 1
    small_name, large_name = (
        repr(data.names[j]) if data.names is not None else f"feature {j + first}" for j in (small, large)
    )
    return [
        f"Columns differ by {sizes[large] / sizes[small]:.0e} in scale: entries of {large_name} are about "
        f"{sizes[large]:.2g}, those of {small_name} {sizes[small]:.2g}. A penalty holds down what is small; "
        "--standardize treats all alike."
    ]


def _sizes(X: Any) -> NDArray[np.float64]:
    """The root of the mean square of each column's entries that are not zero."""
    if sp.issparse(X):
        counts = np.bincount(X.indices, X.data != 0.0, minlength=X.shape[1])
        squares = np.bincount(X.indices, np.square(X.data, dtype=np.float64), minlength=X.shape[1])
    else:
        counts = np.count_nonzero(X, axis=0)
        squares = np.einsum("ij,ij->j", X, X)
    return np.asarray(np.sqrt(squares / np.maximum(counts, 1)))


def expect_labels(other: Data, data: Data, classify: bool) -> None:
    """Labels to measure a model on must be of the kind it was trained with."""
    if classify:
        unknown = np.setdiff1d(other.y.astype(str), data.y.astype(str))
        if unknown.size:
            raise ValueError(
                f"{other.origin} has the label {str(unknown[0])!r}, which does not occur in {data.origin}."
            )
    elif other.y.dtype.kind in "US":
        raise ValueError(
            f"{other.origin} has words as labels, such as {str(other.y[0])!r}; those of {data.origin} are numbers."
        )


def scores(model: Any, data: Data) -> dict[str, float]:
    """Accuracy, AUC and log loss, or R² (D² of the loss, where there is one) and the mean absolute error."""
    from sklearn import metrics

    predicted = call(model.predict, data)
    if not hasattr(model, "classes_"):
        explained = {"R²": _r2(data.y, predicted)}
        if model.loss in (*LOG_LINK_LOSSES, "quantile") and data.y.size > 1:
            explained = {"D²": float(call(lambda X: model.score(X, data.y), data))}
        return {**explained, "mean |error|": metrics.mean_absolute_error(data.y, predicted)}
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
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")  # they were looked at when it was read
        return method(data.X)


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
        raise ValueError(
            f"{data.origin}: {loss} needs numbers as labels, got {str(classes[0])!r}. Use --loss log_loss."
        )
    if loss in CLASSIFICATION_LOSSES and classes.size < 2:
        raise ValueError(f"{data.origin} has one class only, {str(classes[0])!r}. {loss} needs at least two.")
    if loss in CLASSIFICATION_LOSSES and data.y.dtype.kind == "f":
        raise ValueError(
            f"{data.origin}: {loss} needs classes as labels, got {classes.size} different numbers such as "
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
                f"{data.origin} has {classes.size} classes ({listed}); this takes two. Set one against the rest with "
                "--positive LABEL."
            )
        chosen = classes[-1]
    else:
        named = [each for each in classes if str(each) == positive]
        if not named:
            raise ValueError(f"{data.origin} has no label {positive!r}; there are {', '.join(map(str, classes[:8]))}.")
        chosen = named[0]
    return np.where(data.y == chosen, 1.0, -1.0)


def problem_of(
    data: Data, loss: str, positive: str | None, penalty: str, alpha: float, l1_ratio: float, standardize: bool = False
) -> Problem:
    """The problem that the options describe, with an intercept."""
    X = data.X
    if standardize:
        from banditgrad.linear_model.scaling import learn_scaling

        X = learn_scaling(X, None, centred=True).apply(X)
    part = make_penalty(None if penalty == "none" else penalty, alpha, l1_ratio)
    return Problem(X, as_targets(data, loss, positive), make_loss(loss), part, fit_intercept=True)
