"""Reading CSV and Parquet tables: one column is the label, another may be the weights, the others are features."""

import io
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad.datasets.svmlight import decompress

LABEL_NAMES = ("label", "target", "class", "y")  # what a label column is called, where the user does not say


class Table(NamedTuple):
    """Features X (float64), the label and weight columns if there are, and the features' names."""

    X: NDArray[np.float64]
    y: NDArray[Any] | None
    weights: NDArray[np.float64] | None
    names: list[str]


def is_table(path: str | PathLike[str]) -> bool:
    """Whether a file is a table by its name: .csv, .tsv, .parquet or .pq, perhaps with .gz, .bz2 or .xz."""
    return _kind(path) in (".csv", ".tsv", ".parquet", ".pq")


def read_table(
    path: str | PathLike[str],
    label: str | None = None,
    *,
    weight: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    need_label: bool = True,
) -> Table:
    """A table of numbers from a CSV or Parquet file; needs pandas.

    Parameters
    ----------
    path : path
        .csv, .tsv or .parquet, also compressed by gzip, bzip2 or xz, which is told by the first bytes.
    label : str, optional
        The column of labels; by default the one that is called label, target, class or y.
    weight : str, optional
        A column of row weights.
    drop : list of str
        Columns to leave out.
    features : list of str, optional
        The columns to take as features, in this order; by default all others.
    need_label : bool
        Whether there must be labels; else they are not read, and may be missing.
    """
    frame = _frame(Path(path))
    for name in [*([label] if label else []), *([weight] if weight else []), *drop]:
        _expect_column(path, frame, name)
    label = label or next((name for name in LABEL_NAMES if name in frame.columns), None)
    if label is None and need_label:
        raise ValueError(
            f"{path} has no column called {', '.join(LABEL_NAMES)}. Name the label column; there are: {_listed(frame)}."
        )
    if features is None:
        features = [name for name in frame.columns if name not in {label, weight, *drop}]
    for name in features:
        _expect_column(path, frame, name)
    if not features or not len(frame):
        raise ValueError(f"{path} has {len(frame)} rows and {len(features)} feature columns. Both must be at least 1.")
    X = np.column_stack([_numbers(path, frame, name) for name in features])
    weights = None if weight is None else _numbers(path, frame, weight)
    y = _labels(path, frame, label) if label is not None and need_label else None
    return Table(X, y, weights, [str(name) for name in features])


def _frame(path: Path) -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            f"{path} is read with pandas, which is not installed. Run: pip install 'banditgrad[tables]'"
        ) from error
    content = decompress(path.read_bytes(), str(path))
    if not content.strip():
        raise ValueError(f"{path} is empty.")
    try:
        if _kind(path) in (".parquet", ".pq"):
            frame = pd.read_parquet(io.BytesIO(content))
        else:
            frame = pd.read_csv(io.BytesIO(content), sep="\t" if _kind(path) == ".tsv" else ",", low_memory=False)
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} is not a readable table: {str(error).strip().removesuffix('.')}.") from error
    frame.columns = [str(name) for name in frame.columns]
    return frame


def _kind(path: str | PathLike[str]) -> str:
    path = Path(path)
    return Path(path.stem if path.suffix in (".gz", ".bz2", ".xz") else path.name).suffix.lower()


def _expect_column(path: Any, frame: Any, name: str) -> None:
    if name not in frame.columns:
        raise ValueError(f"{path} has no column {name!r}. There are: {_listed(frame)}.")


def _listed(frame: Any) -> str:
    names = list(frame.columns)
    return ", ".join(map(repr, names[:12])) + (", ..." if len(names) > 12 else "")


def _numbers(path: Any, frame: Any, name: str) -> NDArray[np.float64]:
    column = frame[name]
    if column.dtype.kind not in "fiub":
        text = column.dropna()
        example = f", for example {text.iloc[0]!r}" if len(text) else ""
        raise ValueError(
            f"{path}: the column {name!r} does not hold numbers{example}. Encode it as numbers, or leave it out."
        )
    values = column.to_numpy(np.float64)
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise ValueError(
            f"{path}: the column {name!r} has a missing or infinite value in row {bad[0] + 1}"
            f"{f' and {bad.size - 1} more' if bad.size > 1 else ''}. Remove or impute it."
        )
    return values


def _labels(path: Any, frame: Any, name: str) -> NDArray[Any]:
    column = frame[name]
    missing = np.flatnonzero(column.isna())
    if missing.size:
        raise ValueError(f"{path}: the label column {name!r} is empty in row {missing[0] + 1}. Remove such rows.")
    return column.to_numpy() if column.dtype.kind in "fiub" else column.astype(str).to_numpy(dtype=str)
