"""What was measured, as rows of a CSV file, and who is first."""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from banditgrad._files import write_atomically
from race.contenders import OURS
from race.measure import TARGETS, Entry

NEAR = 1.25


@dataclass(frozen=True)
class Cell:
    """The least seconds that a contender needed for F − F* ≤ target; infinity if it did not get there.

    `cutoff` is when its time was up: all that is known of an accuracy that it did not reach is that it takes longer.
    """

    task: str
    contender: str
    stochastic: bool
    target: float
    cpu: float
    wall: float
    effort: float  # passes, iterations or tolerance of the fastest fit; NaN if there is none
    cutoff: float = math.inf

    @property
    def library(self) -> str:
        return self.contender.split()[0]

    @property
    def at_least(self) -> float:
        return self.cutoff if math.isinf(self.cpu) else self.cpu


@dataclass(frozen=True)
class Point:
    """One fit: what the figure is drawn from."""

    task: str
    contender: str
    effort: float
    cpu: float
    wall: float
    distance: float

    @property
    def library(self) -> str:
        return self.contender.split()[0]


def cells(entries: Iterable[Entry]) -> list[Cell]:
    rows = []
    for entry in entries:
        for target in TARGETS:
            fit, fit_wall = entry.best(target), entry.best(target, "wall")
            cpu = fit.cpu if fit else math.inf
            wall = fit_wall.wall if fit_wall else math.inf
            effort = float(entry.contender.ladder[fit.rung]) if fit else math.nan
            who = entry.contender
            rows.append(Cell(entry.task.name, who.name, who.stochastic, target, cpu, wall, effort, entry.cutoff))
    return rows


def points(entries: Iterable[Entry]) -> list[Point]:
    return [
        Point(entry.task.name, entry.contender.name, entry.contender.ladder[fit.rung], fit.cpu, fit.wall, fit.distance)
        for entry in entries
        for fit in entry.fits
    ]


@dataclass(frozen=True)
class Standing:
    """On how many cells we are first, near first (within 1.25x) or behind; cells that nobody reached do not count."""

    first: int = 0
    near: int = 0
    behind: int = 0
    twice: int = 0  # of the first, those where every peer takes twice as long or more
    nobody: int = 0

    def __str__(self) -> str:
        total = self.first + self.near + self.behind
        nobody = f"; nobody reached {self.nobody} more" if self.nobody else ""
        return (
            f"first on {self.first} of {total} cells (by 2x or more on {self.twice}), "
            f"within {NEAR}x of first on {self.near}, behind on {self.behind}{nobody}"
        )


def standing(rows: Sequence[Cell], stochastic_only: bool = False) -> Standing:
    """Our one contender with all defaults against the peers: all of them, or the stochastic ones.

    A peer whose time was up counts as if it had got there at that moment, so that our own lead is never overstated.
    """
    counts = dict.fromkeys((field.name for field in fields(Standing)), 0)
    for task, target in dict.fromkeys((row.task, row.target) for row in rows):
        here = [row for row in rows if (row.task, row.target) == (task, target)]
        us = min((row.cpu for row in here if row.contender == OURS), default=math.inf)
        peers = [row for row in here if row.library != OURS and (row.stochastic or not stochastic_only)]
        if us == min((row.cpu for row in peers), default=math.inf) == math.inf:
            counts["nobody"] += 1
            continue
        best = min((row.at_least for row in peers), default=math.inf)
        counts["first" if us <= best else "near" if us <= NEAR * best else "behind"] += 1
        counts["twice"] += 2.0 * us <= best
    return Standing(**counts)


def summary(rows: Sequence[Cell]) -> str:
    return f"{OURS} is {standing(rows)}. Among stochastic methods: {standing(rows, stochastic_only=True)}."


def write_csv(path: Path, rows: Sequence[Cell] | Sequence[Point]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(rows[0])])
    writer.writeheader()
    writer.writerows(map(asdict, rows))
    write_atomically(path, text.getvalue().encode())


def read_cells(path: Path) -> list[Cell]:
    with path.open(newline="") as file:
        return [
            Cell(
                row["task"],
                row["contender"],
                row["stochastic"] == "True",
                *(float(row[name]) for name in ("target", "cpu", "wall", "effort", "cutoff")),
            )
            for row in csv.DictReader(file)
        ]


def read_points(path: Path) -> list[Point]:
    with path.open(newline="") as file:
        return [
            Point(row["task"], row["contender"], *(float(row[n]) for n in ("effort", "cpu", "wall", "distance")))
            for row in csv.DictReader(file)
        ]
