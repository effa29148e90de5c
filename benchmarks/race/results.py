"""What was measured, as rows of a CSV file, and who is first."""

import csv
import io
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from banditgrad._files import write_atomically
from race.contenders import OURS
from race.measure import Entry
from race.problems import half

NEAR, FAR = 1.25, 2.0


@dataclass(frozen=True)
class Cell:
    """The least seconds that a contender with one seed needed for F − F* ≤ target; infinity if it did not get there.

    `cutoff` is when its time was up: all that is known of an accuracy that it did not reach is that it takes longer.
    """

    task: str
    contender: str
    seed: int
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


def cells(entries: Iterable[Entry]) -> list[Cell]:
    rows = []
    for entry in entries:
        if not (entry.fits or entry.note):  # a seed that was left out
            continue
        for target in entry.targets:
            fit, fit_wall = entry.best(target), entry.best(target, "wall")
            cpu = fit.cpu if fit else math.inf
            wall = fit_wall.wall if fit_wall else math.inf
            effort = float(entry.contender.ladder[fit.rung]) if fit else math.nan
            who = (entry.task.name, entry.contender.name, entry.seed, entry.contender.stochastic)
            rows.append(Cell(*who, target, cpu, wall, effort, entry.cutoff))
    return rows


def worst_seeds(rows: Iterable[Cell]) -> list[Cell]:
    """Of each contender that of the slowest seed, at each accuracy by itself."""
    worst: dict[tuple[str, str, float], Cell] = {}
    for row in rows:
        key = (row.task, row.contender, row.target)
        worst[key] = max(worst.get(key, row), row, key=lambda cell: (cell.cpu, -cell.cutoff))
    return list(worst.values())


@dataclass(frozen=True)
class Standing:
    """On how many cells we are first, near first (within 1.25x) or behind; cells that nobody reached do not count."""

    first: int = 0
    near: int = 0
    behind: int = 0
    far: int = 0  # of those behind, by more than 2x
    nobody: int = 0

    @property
    def cells(self) -> int:
        return self.first + self.near + self.behind

    def __str__(self) -> str:
        return (
            f"first on {self.first} of {self.cells} cells, within {NEAR}x of first on {self.near}, "
            f"behind on {self.behind}, by more than 2x on {self.far}"
        )


def standing(rows: Sequence[Cell], stochastic_only: bool = False) -> Standing:
    """Our one contender with all defaults against the peers, all or the stochastic ones; the worst seed of each counts.

    A peer whose time was up counts as if it had got there at that moment, so that our own lead is never overstated.
    """
    counts = dict.fromkeys((field.name for field in fields(Standing)), 0)
    for here in by_cell(worst_seeds(rows)).values():
        us = our_time(here)
        peers = [row for row in here if row.library != OURS and (row.stochastic or not stochastic_only)]
        if us == min((row.cpu for row in peers), default=math.inf) == math.inf:
            counts["nobody"] += 1
            continue
        best = min((row.at_least for row in peers), default=math.inf)
        counts["first" if us <= best else "near" if us <= NEAR * best else "behind"] += 1
        counts["far"] += us > FAR * best
    return Standing(**counts)


def by_cell(rows: Sequence[Cell]) -> dict[tuple[str, float], list[Cell]]:
    """(task, target) → what everybody needed."""
    cells: dict[tuple[str, float], list[Cell]] = {}
    for row in rows:
        cells.setdefault((row.task, row.target), []).append(row)
    return cells


def our_time(here: Sequence[Cell]) -> float:
    return min((row.cpu for row in here if row.contender == OURS), default=math.inf)


def standings(rows: Sequence[Cell]) -> Iterator[tuple[str, Standing]]:
    """For each half, against everybody and among stochastic methods."""
    for side in ("tuning", "held-out"):
        mine = [row for row in rows if half(row.task) == side]
        if mine:
            yield f"{side}, all", standing(mine)
            yield f"{side}, stochastic", standing(mine, stochastic_only=True)


def write_csv(path: Path, rows: Sequence[Cell]) -> None:
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
                int(row["seed"]),
                row["stochastic"] == "True",
                *(float(row[name]) for name in ("target", "cpu", "wall", "effort", "cutoff")),
            )
            for row in csv.DictReader(file)
        ]
