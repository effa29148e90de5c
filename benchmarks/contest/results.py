"""From lines of the journal to numbers: one `Cell` for each set, objective, solver and sampler."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contest.ranks import Table

TARGETS = (1e-3, 1e-4, 1e-5, 1e-6)

Problem = tuple[str, str, str]  # set, objective, solver


@dataclass(frozen=True, eq=False)
class Cell:
    """The runs of one sampler on one problem, one row a seed; diverged runs hold infinity from there on."""

    problem: Problem
    sampler: str
    passes: NDArray[np.float64]
    gaps: NDArray[np.float64]  # F − F*
    variance: NDArray[np.float64]  # over the least possible
    to_uniform: NDArray[np.float64]  # the same over that of uniform draws
    seconds_a_pass: float

    def passes_to(self, target: float) -> NDArray[np.float64]:
        """For each seed, the passes until F − F* is at most the target; infinity where it never is."""
        return np.array([self._first(row <= target) for row in self.gaps])

    def _first(self, there: NDArray[np.bool_]) -> float:
        return float(self.passes[there.argmax()]) if there.any() else np.inf

    def middle(self, values: NDArray[np.float64]) -> float:
        """The median over the seeds, of what was measured."""
        return float(np.quantile(values, 0.5, method="inverted_cdf"))

    @property
    def regret(self) -> float:
        """Dynamic regret: Σ V_e / Σ (the least V_e of each moment) - 1, the median over the seeds."""
        return self.middle(self.variance.mean(axis=1)) - 1.0

    @property
    def worst(self) -> float:
        """The largest variance over that of uniform draws, at any time and for any seed."""
        return float(np.nanmax(self.to_uniform))


def cells(lines: Iterable[dict[str, Any]]) -> list[Cell]:
    optima: dict[tuple[str, str], float] = {}
    paces: dict[Problem, dict[str, float]] = {}
    runs: dict[tuple[Problem, str], list[dict[str, Any]]] = {}
    for line in lines:
        key = line["key"]
        if "draw" in key:
            continue
        place = (key["set"], key["objective"])
        if key.get("what") == "pace":
            paces[*place, key["solver"]] = line["seconds"]
            continue
        values = [line["value"]] if key.get("what") == "optimum" else line["value"]
        finite = [value for value in values if np.isfinite(value)]
        optima[place] = min([optima.get(place, np.inf), *finite])
        if "sampler" in key:
            runs.setdefault(((*place, key["solver"]), key["sampler"]), []).append(line)
    return [
        _cell(problem, sampler, found, optima[problem[:2]], paces[problem][sampler])
        for (problem, sampler), found in runs.items()
    ]


def _cell(problem: Problem, sampler: str, runs: Sequence[dict[str, Any]], best: float, pace: float) -> Cell:
    longest = max(runs, key=lambda run: len(run["passes"]))["passes"]

    def column(name: str) -> NDArray[np.float64]:
        rows = np.full((len(runs), len(longest)), np.inf)
        for row, run in zip(rows, runs, strict=True):
            row[: len(run[name])] = run[name]
        return np.where(np.isnan(rows), np.inf, rows)

    variance, optimal, uniform = column("variance"), column("optimal"), column("uniform")
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio, to_uniform = variance / optimal, variance / uniform
    return Cell(
        problem,
        sampler,
        np.array(longest),
        np.maximum(column("value") - best, 1e-16),
        np.where(optimal > 0.0, np.nan_to_num(ratio, nan=1.0, posinf=1e6), 1.0),
        np.where(uniform > 0.0, to_uniform, np.nan),
        pace,
    )


def draw_costs(lines: Iterable[dict[str, Any]]) -> dict[str, float]:
    return {line["key"]["draw"]: line["nanoseconds"] for line in lines if "draw" in line["key"]}


def table(found: Sequence[Cell], measure: Any) -> Table:
    """One number a problem for each sampler, of problems that all samplers ran on."""
    samplers = list(dict.fromkeys(cell.sampler for cell in found))
    by_problem: dict[Problem, dict[str, Cell]] = {}
    for cell in found:
        by_problem.setdefault(cell.problem, {})[cell.sampler] = cell
    whole = [row for row in by_problem.values() if len(row) == len(samplers)]
    return {name: np.array([measure(row[name]) for row in whole]) for name in samplers}


def passes_to(target: float) -> Any:
    return lambda cell: cell.middle(cell.passes_to(target))


def seconds_to(target: float) -> Any:
    return lambda cell: cell.middle(cell.passes_to(target)) * cell.seconds_a_pass


def last_gap(cell: Cell) -> float:
    return cell.middle(cell.gaps[:, -1])


def regret(cell: Cell) -> float:
    return cell.regret
