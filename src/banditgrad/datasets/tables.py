"""Reading CSV and Parquet tables: one column is the label, another may be the weights, the others become features."""

from collections.abc import Sequence
from difflib import get_close_matches
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from banditgrad.datasets.encoding import Encoding, learn_encoding, numbers_only
from banditgrad.datasets.frames import LABEL_NAMES, File, Frame, open_files, quoted, read_frame


class Table(NamedTuple):
    """Features X (float64, CSR where most are 0), the label and weight columns if there are, and the features' names.

    `encoding` made X of the file's columns, `notes` tell what was decided, `kept` holds columns as they are.
    """

    X: Any
    y: NDArray[Any] | None
    weights: NDArray[np.float64] | None
    names: list[str]
    encoding: Encoding
    notes: list[str]
    kept: dict[str, list[Any]]


def read_table(
    path: str | PathLike[str] | Sequence[File],
    label: str | None = None,
    *,
    weight: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    encoding: Encoding | None = None,
    need_label: bool = True,
    keep: Sequence[str] = (),
    sep: str | None = None,
    header: bool | None = None,
    na: Sequence[str] = (),
    category: Sequence[str] = (),
    number: Sequence[str] = (),
    missing: str = "impute",
) -> Table:
    """Features and labels from a CSV or Parquet file, whose columns need not be numbers.

    Words become one-hot features, those of rare levels pooled; gaps in numbers are filled with the median and marked by
    a feature of their own; columns that count the rows or are all different words are left out; dates are refused.

    Parameters
    ----------
    path : path
        .csv, .tsv or .parquet, also compressed by gzip, bzip2 or xz, which is told by the first bytes; a pattern
        (``part-*.parquet``), a folder of Parquet files, or "-" for standard input.
    label : str, optional
        The column of labels: its name, "first", "last" or its position from 1; by default the one that is called label,
        target, class or y.
    weight : str, optional
        A column of row weights.
    drop : list of str
        Columns to leave out.
    features : list of str, optional
        The columns to take as features, in this order; by default all others.
    encoding : Encoding, optional
        How columns become features, as another table's `Table.encoding`; by default it is learned from this table.
    need_label : bool
        Whether there must be labels; else they are not read, and may be missing.
    keep : list of str
        Columns to give back as they are.
    sep, header : str and bool, optional
        What is between the cells, and whether the first line names the columns; both are guessed unless given.
        Columns without names are called 1, 2, ...
    na : list of str
        What stands for a missing value, besides an empty cell, NA, NaN, null, None and ?.
    category, number : list of str
        Columns to take as words, or as numbers, whatever they look like.
    missing : "impute" or "error"
        What to do where numbers are missing.
    """
    if missing not in ("impute", "error"):
        raise ValueError(f'missing must be "impute" or "error", got {missing!r}.')
    files = open_files(path) if isinstance(path, (str, PathLike)) else list(path)
    origin = files[0].origin if len(files) == 1 else f"{files[0].origin} and {len(files) - 1} more"
    as_text = [*category, *set(keep).intersection(drop)]
    if encoding is not None:
        as_text = [*encoding.words, *set(keep).difference(encoding.used)]
    if encoding is not None and encoding.width is not None and header is None:
        header = False
    absent = None if encoding is None else encoding.absent
    found = read_frame(files, sep=sep, header=header, na=na, text=as_text, absent=absent)
    frame, notes = found.frame, found.notes
    label = find_label(origin, found, label, need_label)
    weight = None if weight is None else _column(origin, found, weight)
    keep = [_column(origin, found, name) for name in keep]
    learned = encoding is None
    if encoding is None:
        left = {label, weight, *(_column(origin, found, name) for name in drop)}
        chosen = [_column(origin, found, name) for name in features or frame.columns if features or name not in left]
        _expect_some(origin, frame, chosen)
        encoding, decided = learn_encoding(
            frame[chosen],
            origin,
            category=[_column(origin, found, name) for name in category],
            number=[_column(origin, found, name) for name in number],
            missing=missing,
        )
        notes = [*notes, *decided]
        if not found.header:
            encoding = Encoding(encoding.columns, len(frame.columns), label)
    _expect_some(origin, frame, encoding.names)
    X, surprises = encoding.encode_noting(frame, origin)
    return Table(
        X,
        _labels(origin, frame[label]) if label is not None and need_label else None,
        None if weight is None else _weights(origin, frame[weight]),
        encoding.names,
        encoding,
        [*notes, *([] if learned else surprises)],
        {name: _as_they_are(frame[name]) for name in keep},
    )


def find_label(origin: str, found: Frame, label: str | None, needed: bool) -> str | None:
    """The label column, if there is one or must be one."""
    if label is not None:
        return _column(origin, found, label)
    called = {name.lower(): name for name in reversed(found.frame.columns)}
    label = next((called[name] for name in LABEL_NAMES if name in called), None)
    if label is None and needed:
        why = f"no column called {', '.join(LABEL_NAMES)}" if found.header else "no names of columns"
        raise ValueError(
            f"{origin} has {why}. Name the label column: --label NAME, its position from 1, or `--label last`. There "
            f"are: {quoted(found.frame.columns)}."
        )
    return label


def _column(origin: str, found: Frame, name: str) -> str:
    """The column of this name, or at this position: from 1, from -1 backwards, first or last."""
    columns = list(found.frame.columns)
    if name in columns:
        return name
    place = {"first": "1", "last": "-1"}.get(name, name)
    if place.lstrip("-").isdigit() and 1 <= abs(int(place)) <= len(columns):
        return str(columns[int(place) - (int(place) > 0)])
    near = get_close_matches(name.lower(), [each.lower() for each in columns], 1)
    meant = f" Did you mean {next(each for each in columns if each.lower() == near[0])!r}?" if near else ""
    raise ValueError(f"{origin} has no column {name!r}.{meant} There are: {quoted(columns)}.")


def _expect_some(origin: str, frame: Any, features: Sequence[str]) -> None:
    if not features or not len(frame):
        raise ValueError(
            f"{origin} has {len(frame)} rows and {len(features)} feature columns. Both must be at least 1."
        )


def _weights(origin: str, column: Any) -> NDArray[np.float64]:
    """Numbers without gaps."""
    features, _ = numbers_only([str(column.name)]).encode_noting(column.to_frame(), origin)
    return np.asarray(features.toarray() if sp.issparse(features) else features)[:, 0]


def _labels(origin: str, column: Any) -> NDArray[Any]:
    missing = np.flatnonzero(column.isna())
    if missing.size:
        more = f" and {missing.size - 1:,} more" if missing.size > 1 else ""
        raise ValueError(
            f"{origin}: the label column {str(column.name)!r} is empty in row {missing[0] + 1}{more}. Remove such rows."
        )
    return column.to_numpy() if column.dtype.kind in "fiub" else column.astype(str).to_numpy(dtype=str)


def _as_they_are(column: Any) -> list[Any]:
    return column.astype(object).where(column.notna(), "").tolist()
