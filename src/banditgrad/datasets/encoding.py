"""From columns as they are to features: numbers with gaps filled, words one-hot. What was learned can be kept as JSON.

A column of numbers is one feature; where values are missing, these are filled with the median, and a second feature
tells where. A column of words is a feature for each level that is not rare; rare levels share one, and so do missing
values. A level that was never seen counts as rare, or where there is no such feature as none: all its features are 0.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from banditgrad._names import is_number
from banditgrad.datasets.frames import quoted

RARE, RARE_SHARE = 10, 0.01  # a level is rare if it has fewer rows than so many, or in small data than this share
SPARSE = 1 / 3  # rows are stored sparse if a smaller share of them is not zero
FEW_ROWS = 20  # from so many on, a column that counts the rows is no coincidence
OTHERS, MISSING = "(rare)", "(missing)"

_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ]\d{1,2}:\d{2}.*)?"  # 2024-05-31, also with a time
    r"|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})([T ]\d{1,2}:\d{2}.*)?"  # 31.5.2024, 05/31/24
    r"|\d{1,2}[- ][A-Za-z]{3,9}[- ]\d{2,4}"  # 31-May-2024
    r"|\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?"  # 17:45
)
_DRESSED = re.compile(r"[$€£]?\s?[+-]?\d[\d,.' ]*\s?[%$€£kM]?")  # $1,200 or 35 %
_IDENTIFIER = re.compile(r"(?i:(.*[_ .-])?(id|idx|index|uuid|rownames?)|unnamed: 0|)|.*[a-z]I[dD]")
_LOOKED_AT = 1000  # different values of a column, to tell whether they are dates


class Numbers(NamedTuple):
    """A column of numbers; `fill` goes where one is missing, or None may be, and `indicator` tells where."""

    name: str
    fill: float | None
    indicator: bool = False

    @property
    def features(self) -> list[str]:
        return [self.name, *([f"{self.name}={MISSING}"] if self.indicator else [])]


class Levels(NamedTuple):
    """A column of words, with a feature for each level, and perhaps for all rare ones and for missing values."""

    name: str
    levels: tuple[str, ...]
    rare: bool = False
    missing: bool = False

    @property
    def features(self) -> list[str]:
        shared = [OTHERS] * self.rare + [MISSING] * self.missing
        return [f"{self.name}={level}" for level in (*self.levels, *shared)]


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table become features.

    Attributes
    ----------
    columns : the columns that are used, `Numbers` or `Levels`
    width, label : of a table whose columns have no names, their number and the name (the position) of the label
    """

    columns: tuple[Numbers | Levels, ...]
    width: int | None = None
    label: str | None = None
    names: list[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", [name for column in self.columns for name in column.features])

    @property
    def used(self) -> list[str]:
        """The columns that features are made of."""
        return [column.name for column in self.columns]

    @property
    def words(self) -> list[str]:
        """Those of them whose cells are words."""
        return [column.name for column in self.columns if isinstance(column, Levels)]

    @property
    def absent(self) -> tuple[int, int] | None:
        """Of a table without names: the number of columns, and the position of the label, which may be absent."""
        return None if self.width is None or self.label is None else (self.width, int(self.label))

    def encode(self, frame: Any) -> Any:
        """The features of a pandas frame with these columns: an array, or a CSR array if most of them are zero."""
        return self.encode_noting(frame, "The table")[0]

    def encode_noting(self, frame: Any, origin: str) -> tuple[Any, list[str]]:
        """As `encode`, with what there is to know about levels and gaps that the encoding did not expect."""
        absent = [name for name in self.used if name not in frame.columns]
        if absent:
            raise ValueError(f"{origin} has no column {quoted(absent)}. There are: {quoted(frame.columns)}.")
        problems: list[str] = []
        notes: list[str] = []
        parts = [_features(column, frame[column.name], problems, notes) for column in self.columns]
        refuse(origin, problems)
        return _stacked(parts, len(frame)), notes

    def as_json(self) -> dict[str, Any]:
        """Plain lists, words and numbers."""
        columns = [
            {"kind": "levels" if isinstance(column, Levels) else "numbers", **column._asdict()}
            for column in self.columns
        ]
        return {"columns": columns, "width": self.width, "label": self.label}


def from_json(content: Any) -> Encoding:
    """What `Encoding.as_json` gave; a ValueError, KeyError or TypeError for anything else."""
    columns = tuple(_column(**each) for each in content["columns"])
    names = [column.name for column in columns]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"columns {names!r}, expected some, each once")
    width, label = content["width"], content["label"]
    position = 1 if label is None else int(label)
    if not (width is None or isinstance(width, int)) or not 1 <= position <= (width or 1):
        raise ValueError(f"{width!r} columns without names, and the label {label!r}")
    return Encoding(columns, width, label)


def _column(*, kind: str, name: Any, **content: Any) -> Numbers | Levels:
    if not isinstance(name, str) or kind not in ("numbers", "levels"):
        raise ValueError(f"a column {name!r} of {kind!r}")
    if kind == "numbers":
        number = Numbers(name, **content)
        filled = number.fill is None or (isinstance(number.fill, (int, float)) and math.isfinite(number.fill))
        if not filled or not isinstance(number.indicator, bool) or (number.fill is None and number.indicator):
            raise ValueError(f"the column {name!r} with fill {str(number.fill)[:20]!r}")
        return number
    column = Levels(name, **content)
    levels = column.levels
    if not isinstance(levels, list) or not all(isinstance(level, str) for level in levels):
        raise ValueError(f"the column {name!r} with levels that are not words")
    if len(set(levels)) < len(levels) or not (isinstance(column.rare, bool) and isinstance(column.missing, bool)):
        raise ValueError(f"the column {name!r} with levels that come twice")
    return column._replace(levels=tuple(levels))


def numbers_only(names: Sequence[str]) -> Encoding:
    """Columns of numbers in which nothing may be missing."""
    return Encoding(tuple(Numbers(name, None) for name in names))


def learn_encoding(
    frame: Any, origin: str, *, category: Sequence[str] = (), number: Sequence[str] = (), missing: str = "impute"
) -> tuple[Encoding, list[str]]:
    """The encoding that suits a frame of features, and what was decided.

    Parameters
    ----------
    frame : pandas DataFrame
    origin : str
        The file, for errors.
    category, number : list of str
        Columns that are to be taken as words or as numbers, whatever they look like.
    missing : "impute" or "error"
        What to do about missing values: fill them and add a feature that tells where they were, or list the columns.
    """
    columns: list[Numbers | Levels] = []
    told = _Told()
    for name in frame.columns:
        column = frame[name]
        if column.isna().all():
            told.left_out["empty"].append(name)
        elif _is_date(column) and name not in category:
            told.dates.append(name)
        elif name in category or (not _holds_numbers(column) and name not in number):
            _add_words(columns, column, name in category, missing, told)
        else:
            _add_numbers(columns, column, name in number, missing, told)
    refuse(origin, told.problems())
    return Encoding(tuple(columns)), told.notes()


class _Told:
    """What was found while looking at the columns."""

    def __init__(self) -> None:
        self.left_out: dict[str, list[str]] = {"empty": [], "index": [], "different": []}
        self.dates: list[str] = []
        self.filled: list[str] = []
        self.pooled: list[str] = []
        self.gaps: list[str] = []
        self.wrong: list[str] = []

    def problems(self) -> list[str]:
        found = list(self.wrong)
        if self.dates:
            found.append(
                f"{quoted(self.dates)} hold dates or times, of which a linear model can make nothing as they are. "
                "Turn them into numbers first (days since a date, weekday, hour), or leave them out: "
                + " ".join(f"--drop {_shell(name)}" for name in self.dates[:5])
            )
        if self.gaps:
            found.append(
                f"values are missing in {', '.join(self.gaps)}. Remove these rows or columns, or have the gaps filled: "
                "--missing impute"
            )
        return found

    def notes(self) -> list[str]:
        reasons = {
            "empty": "no values",
            "index": "they count or name the rows; --number NAME takes one all the same",
            "different": "words that hardly repeat: names or text; --category NAME takes one all the same",
        }
        found = [f"Left out: {quoted(names)} ({reasons[why]})." for why, names in self.left_out.items() if names]
        if self.filled:
            found.append(
                f"Missing values filled with the median, and marked by a feature: {', '.join(self.filled)}. "
                "(--missing error refuses them.)"
            )
        if self.pooled:
            found.append(f"Rare levels pooled: {', '.join(self.pooled)}.")
        return found


def _shell(name: str) -> str:
    return name if re.fullmatch(r"[\w.-]+", name) else f"'{name}'"


def refuse(origin: str, problems: Sequence[str]) -> None:
    """All that is wrong with a table in one error."""
    if problems:
        raise ValueError(f"{origin}: " + (".\n  ".join(problems)) + ".")


def _holds_numbers(column: Any) -> bool:
    if column.dtype.kind in "fiub" or _plain_numbers(column) is not None:
        return True
    return all(isinstance(value, str) and is_number(value) for value in column.dropna().unique())


def _plain_numbers(column: Any) -> Any:
    """A column of objects such as Decimal or True and None as floats, if it is that; text is not."""
    if column.dtype != object:
        return None
    try:
        values = column[column.notna()]
        return None if values.map(lambda value: isinstance(value, str)).any() else column.astype(np.float64)
    except (TypeError, ValueError):
        return None


def _is_date(column: Any) -> bool:
    if column.dtype.kind in "mM" or "date" in str(column.dtype) or "time" in str(column.dtype):
        return True
    if column.dtype.kind in "fiub":
        return False
    values = column.dropna().unique()[:_LOOKED_AT]
    if hasattr(values[0], "year"):
        return True
    return all(isinstance(value, str) and _DATE.fullmatch(value.strip()) for value in values)


def _words(column: Any) -> tuple[NDArray[np.int64], list[str]]:
    """A code for each row, -1 where the value is missing, and the different values as words."""
    codes, values = column.factorize()
    words = [_word(value) for value in values]
    if len(set(words)) == len(words):
        return codes, words
    unique, places = np.unique(np.array(words, dtype=object), return_inverse=True)
    return np.where(codes < 0, -1, places[codes]), unique.tolist()


def _word(value: Any) -> str:
    """1, not 1.0: whole numbers are read as floats where others are missing."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def _add_words(columns: list[Numbers | Levels], column: Any, asked: bool, missing: str, told: _Told) -> None:
    codes, words = _words(column)
    name, n = str(column.name), len(column)
    counts = np.bincount(codes[codes >= 0], minlength=len(words))
    if not asked and _is_mistaken(column, codes, words, counts, told):
        return
    gaps = int((codes < 0).sum())
    if gaps and missing == "error":
        told.gaps.append(_with_rows(name, gaps))
        return
    least = min(RARE, math.ceil(RARE_SHARE * n))
    common = [word for word, count in zip(words, counts.tolist(), strict=True) if count >= least]
    if not common or (not asked and n >= FEW_ROWS and len(words) > n / 2):
        told.left_out["different"].append(name)
        return
    rare = len(words) - len(common)
    if rare:
        told.pooled.append(f"{rare:,} of {len(words):,} in {name!r}")
    columns.append(Levels(name, tuple(sorted(common)), rare > 0, gaps > 0))


def _is_mistaken(column: Any, codes: Any, words: list[str], counts: Any, told: _Told) -> bool:
    """Whether words are numbers that someone has dressed up, or that stand beside a few words."""
    numeric = np.array([is_number(word) for word in words])
    name = str(column.name)
    if all(map(_DRESSED.fullmatch, words)):
        told.wrong.append(
            f"the column {name!r} holds numbers with signs, such as {words[0]!r}. Write them plainly, or take them as "
            f"words: --category {_shell(name)}"
        )
        return True
    if counts[numeric].sum() >= counts.sum() / 2:
        odd = words[int(np.flatnonzero(~numeric)[0])]
        row = int(np.flatnonzero(codes == words.index(odd))[0]) + 1
        told.wrong.append(
            f"the column {name!r} holds numbers, and {odd!r} in row {row}. If that stands for a missing value, pass "
            f"--na {_shell(odd)}; if all are words, --category {_shell(name)}"
        )
        return True
    return False


def _with_rows(name: str, count: int) -> str:
    return f"{name!r} ({count:,} row{'s'[: count > 1]})"


def _add_numbers(columns: list[Numbers | Levels], column: Any, asked: bool, missing: str, told: _Told) -> None:
    name = str(column.name)
    values = _values(column, told.wrong)
    if values is None:
        return
    if not asked and _counts_rows(name, values):
        told.left_out["index"].append(name)
        return
    gaps = np.isnan(values)
    count = int(gaps.sum())
    if count and missing == "error":
        told.gaps.append(_with_rows(name, count))
        return
    if count:
        told.filled.append(_with_rows(name, count))
    fill = float(np.median(values[~gaps])) if count else float(np.median(values))
    columns.append(Numbers(name, None if missing == "error" else fill, count > 0))


def _counts_rows(name: str, values: NDArray[np.float64]) -> bool:
    """Whether a column is an index: 0, 1, 2, ..., or whole numbers, all different, that are called an id."""
    n = values.size
    if n < FEW_ROWS or not np.all(values == np.round(values)):
        return False
    if values[0] in (0.0, 1.0) and np.array_equal(values, values[0] + np.arange(n)):
        return True
    return bool(_IDENTIFIER.fullmatch(name)) and np.unique(values).size == n


def _values(column: Any, problems: list[str]) -> NDArray[np.float64] | None:
    """A column as floats, NaN where a value is missing; None and a problem if it is not numbers, or infinite."""
    name = str(column.name)
    if column.dtype.kind in "fiub":
        values = column.to_numpy(np.float64, na_value=np.nan)
    else:
        plain = _plain_numbers(column)
        codes, words = _words(column) if plain is None else (None, [])
        odd = [word for word in words if not is_number(word) and word not in ("True", "False")]
        if odd:
            problems.append(f"the column {name!r} must hold numbers, and has {odd[0]!r} ({len(odd):,} such values)")
            return None
        table = np.array([float(word == "True") if word in ("True", "False") else float(word) for word in words])
        values = plain.to_numpy() if plain is not None else np.append(table, np.nan)[codes]
    infinite = np.flatnonzero(np.isinf(values))
    if infinite.size:
        problems.append(
            f"the column {name!r} has an infinite value in row {infinite[0] + 1}"
            f"{f' and {infinite.size - 1:,} more' if infinite.size > 1 else ''}. Remove it, or pass --na inf to have "
            "it taken as missing"
        )
        return None
    return np.asarray(values)


def _features(column: Numbers | Levels, cells: Any, problems: list[str], notes: list[str]) -> Any:
    """A column's features: either values, one array each, or the codes of levels."""
    if isinstance(column, Levels):
        return _codes(column, cells, notes), len(column.features)
    values = _values(cells, problems)
    if values is None:
        return []
    gaps = np.isnan(values)
    count = int(gaps.sum())
    if count and column.fill is None:
        problems.append(f"the column {column.name!r} has missing values in {count:,} rows, first in row "
                        f"{gaps.argmax() + 1}, and the model knows none. Remove or fill them")  # fmt: skip
        return []
    if count and column.fill is not None:
        values = np.where(gaps, column.fill, values)
        if not column.indicator:
            notes.append(f"{column.name!r}: {count:,} missing values filled with {column.fill:g}, the median.")
    return [values, gaps.astype(np.float64)] if column.indicator else [values]


def _codes(column: Levels, cells: Any, notes: list[str]) -> NDArray[np.int64]:
    """The number of each row's feature; -1 where it has none."""
    codes, words = _words(cells)
    known = {level: k for k, level in enumerate(column.levels)}
    other = len(known) if column.rare else -1
    unseen = [k for k, word in enumerate(words) if word not in known]
    if unseen:
        rows = int(np.isin(codes, unseen).sum())
        taken = "as rare" if column.rare else "as none"
        more = f" and {len(unseen) - 1:,} more" if len(unseen) > 1 else ""
        notes.append(
            f"{column.name!r}: the model has not seen {words[unseen[0]]!r}{more}, in {rows:,} row{'s'[: rows > 1]}; "
            f"counted {taken}."
        )
    table = np.array([known.get(word, other) for word in words] + [len(known) + column.rare if column.missing else -1])
    return np.asarray(table[codes])


def _stacked(parts: Sequence[Any], n: int) -> Any:
    """All features side by side."""
    width = sum(part[1] if isinstance(part, tuple) else len(part) for part in parts)
    stored = sum(n if isinstance(part, tuple) else sum(map(np.count_nonzero, part)) for part in parts)
    return _sparse(parts, n, width) if stored < SPARSE * n * width else _dense(parts, n, width)


def _dense(parts: Sequence[Any], n: int, width: int) -> NDArray[np.float64]:
    X = np.zeros((n, width))
    at = 0
    for part in parts:
        if isinstance(part, tuple):
            codes, count = part
            rows = np.flatnonzero(codes >= 0)
            X[rows, at + codes[rows]] = 1.0
            at += count
        else:
            for values in part:
                X[:, at] = values
                at += 1
    return X


def _sparse(parts: Sequence[Any], n: int, width: int) -> Any:
    """Column by column, then turned into rows."""
    rows, data, counts = [], [], []
    for part in parts:
        if isinstance(part, tuple):
            codes, count = part
            order = np.argsort(codes, kind="stable")
            rows.append(order[np.searchsorted(codes[order], 0) :].astype(np.int32))
            data.append(np.ones(rows[-1].size))
            counts.extend(np.bincount(codes[codes >= 0], minlength=count).tolist())
        else:
            for values in part:
                rows.append(np.flatnonzero(values).astype(np.int32))
                data.append(values[rows[-1]])
                counts.append(rows[-1].size)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    columns = sp.csc_array((np.concatenate(data), np.concatenate(rows), indptr), shape=(n, width))
    return sp.csr_array(columns)
