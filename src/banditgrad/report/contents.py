"""What a report consists of."""

import enum
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

Cell = str | int | float


class Verdict(enum.Enum):
    """What measurements say of a claim."""

    HOLDS = "holds"
    HOLDS_PARTLY = "holds partly"
    DOES_NOT_HOLD = "does not hold"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Claim:
    """A statement, what was measured of it, and the verdict; `figure` is the key of the figure that shows it."""

    statement: str
    measured: str
    verdict: Verdict
    figure: str | None = None


@dataclass(frozen=True, eq=False)
class Curve:
    """Medians over repeated runs against x, with a band from `low` to `high`.

    Infinity means that the run diverged there, NaN that there is no value. `like` names the sampler whose colour to
    take, where `name` itself is not a sampler's; `emphasised` draws a thicker line.
    """

    name: str
    x: ArrayLike
    median: ArrayLike
    low: ArrayLike | None = None
    high: ArrayLike | None = None
    like: str | None = None
    emphasised: bool = False

    def __post_init__(self) -> None:
        size = np.size(self.x)
        for part in ("x", "median", "low", "high"):
            given = getattr(self, part)
            if given is None:
                continue
            values = np.array(given, dtype=np.float64)
            if values.ndim != 1 or values.size != size or size == 0:
                raise ValueError(
                    f"Curve {self.name!r}: {part} has shape {values.shape} and x has {size} points. "
                    "Pass one-dimensional arrays of one length, at least 1."
                )
            values.setflags(write=False)
            object.__setattr__(self, part, values)
        if (self.low is None) != (self.high is None):
            raise ValueError(f"Curve {self.name!r} has only one of low and high. Pass both for a band, or neither.")
        if not (np.all(np.isfinite(self.x)) and np.all(np.diff(self.x) > 0)):
            raise ValueError(
                f"Curve {self.name!r}: x must be finite and increase from point to point. Sort the points."
            )

    @property
    def points(self) -> NDArray[np.float64]:
        """The rows x, median, low, high; without a band low and high are the median."""
        low, high = (self.median, self.median) if self.low is None else (self.low, self.high)
        return np.array([self.x, self.median, low, high])


@dataclass(frozen=True, eq=False)
class Panel:
    """One chart. `key` names its CSV file. `y_min` and `y_max` keep the axis from following extremes further out."""

    key: str
    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    x_log: bool = False
    y_log: bool = False
    y_min: float | None = None
    y_max: float | None = None
    caption: str = ""

    def __post_init__(self) -> None:
        _check_key("Panel", self.key)
        object.__setattr__(self, "curves", tuple(self.curves))
        _check_unique(f"Panel {self.key!r}: the curves' names", (curve.name for curve in self.curves))
        if self.y_log and self.y_min is not None and not self.y_min > 0:
            raise ValueError(f"Panel {self.key!r} has a logarithmic y axis and y_min = {self.y_min}. Pass y_min > 0.")
        if self.y_min is not None and self.y_max is not None and not self.y_min < self.y_max:
            raise ValueError(f"Panel {self.key!r}: y_min = {self.y_min} is not below y_max = {self.y_max}.")


@dataclass(frozen=True, eq=False)
class Figure:
    """Panels in rows of `columns`, with one legend. `key` names its files."""

    key: str
    title: str
    panels: Sequence[Panel]
    columns: int = 3
    caption: str = ""

    def __post_init__(self) -> None:
        _check_key("Figure", self.key)
        object.__setattr__(self, "panels", tuple(self.panels))
        if not self.panels or self.columns < 1:
            raise ValueError(
                f"Figure {self.key!r} has {len(self.panels)} panels, {self.columns} columns. Pass one or more of each."
            )
        _check_unique(f"Figure {self.key!r}: the panels' keys", (panel.key for panel in self.panels))

    @property
    def curves(self) -> list[Curve]:
        """The first curve of each name, in order of appearance: what the legend shows."""
        first: dict[str, Curve] = {}
        for panel in self.panels:
            for curve in panel.curves:
                first.setdefault(curve.name, curve)
        return list(first.values())


@dataclass(frozen=True)
class Table:
    """Rows of text and numbers under a header."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(
                    f"Table {self.title!r}: a row has {len(row)} cells, the header {len(self.header)}: {list(row)!r}."
                )


@dataclass(frozen=True, eq=False)
class Report:
    """All that the page shows. `summary` is plain text; a blank line begins a new paragraph. `verdict` is what came out
    of it, in a sentence or two, and `terms` are explained in a line each."""

    title: str
    summary: str = ""
    claims: Sequence[Claim] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    machine: Mapping[str, object] = field(default_factory=dict)
    versions: Mapping[str, object] = field(default_factory=dict)
    verdict: str = ""
    terms: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        keys = [figure.key for figure in self.figures]
        _check_unique("Report: the figures' keys", keys)
        for claim in self.claims:
            if claim.figure is not None and claim.figure not in keys:
                raise ValueError(f"Claim {claim.statement!r} names the figure {claim.figure!r}; the report has {keys}.")


def _check_key(owner: str, key: str) -> None:
    """Keys become file names and anchors."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", key):
        raise ValueError(f"{owner} key {key!r} cannot name a file. Use letters, digits, '-' and '_'.")


def _check_unique(what: str, names: Iterable[str]) -> None:
    names = list(names)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{what} must differ, got {twice} more than once.")
