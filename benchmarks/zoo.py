"""Does every fit reach the minimum, on any data and for every seed? Stalls, explosions and false reasons are counted.

python benchmarks/zoo.py                      everything, ten seeds, three on large sets: many hours
python benchmarks/zoo.py --small --seeds 3    sets with few entries
python benchmarks/zoo.py --half held-out      the half on which no constant was chosen
python benchmarks/zoo.py --set kdd-raw australian --kind "logistic l1 1e-4" --solver minimise --seeds 10

The defaults of `minimise`, the estimators and `SampledNewton` promise the minimum; other solvers promise no more than
that F neither explodes nor is told falsely. minima/faults.py says what is a fault. Exit code 1 if there is one.

What was done is kept in out/zoo.jsonl: stopped, it goes on where it was, unless the package's code has changed.
"""

import argparse
import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from minima import optimum
from minima.faults import faults, is_far, summary
from minima.fits import FITTERS, Fit, OutOfTime, everybody, fit
from minima.journal import Journal
from minima.problems import CLASSIFICATION, LARGE, REGRESSION, Case, cases, entries
from sets import DataSet, all_sets

SEEDS, SEEDS_IF_LARGE = 10, 3


class Verdict:
    """Of one problem: its fits, what is wrong with each, and how many there was no time for."""

    def __init__(self, case: Case, journal: Journal, late: int) -> None:
        self.half, self.fits, self.late = case.data.half, journal.fits(case), late
        self.optimum = journal.optimum(case)
        self.faults = {fit: faults(fit, self.optimum) for fit in self.fits}

    @property
    def all_faults(self) -> list[str]:
        return [fault for found in self.faults.values() for fault in found]


def visit(case: Case, journal: Journal, solvers=None, seeds=None, time_limit: float | None = None) -> Verdict:
    """Every fit of a problem that the journal does not have yet."""
    if journal.optimum(case) is None:
        journal.add(case, optimum.find(case, min(time_limit or math.inf, optimum.SECONDS)))
    deadline, late = time.monotonic() + (time_limit or math.inf), 0
    done = {(fit.solver, fit.seed) for fit in journal.fits(case)}
    for solver in solvers or everybody(case):
        for seed in range(seeds or (SEEDS_IF_LARGE if case.large else SEEDS)):
            if (solver, seed) not in done and FITTERS[solver].can(case):
                try:
                    journal.add(case, fit(case, solver, seed, deadline))
                except OutOfTime:
                    late += 1
    return Verdict(case, journal, late)


def wanted(arguments: argparse.Namespace, console: Console) -> Iterator[DataSet]:
    for data in all_sets().values():
        if data.name not in (arguments.sets or all_sets()) or arguments.half not in (None, data.half):
            continue
        try:
            X, _ = data.load()
        except FileNotFoundError as error:
            console.print(f"{data.name} is left out: {error}", style="dim")
            continue
        if not arguments.small or entries(X) <= LARGE // 8:
            yield data


def tell(case: Case, verdict: Verdict, console: Console) -> None:
    best, found = verdict.optimum, verdict.faults
    line = f"{case.data.name}, {case.kind.name}: F* = {best.value:.8g} by {best.by}, {len(found)} fits"
    late = f", {verdict.late} not in time" if verdict.late else ""
    console.print(line + late, style="red" if verdict.all_faults else "dim", highlight=False)
    for one, why in found.items():
        for fault in why:
            console.print(f"    {one.solver}, seed {one.seed}: {fault}", style="red", highlight=False)


def by_solver(verdicts: list[Verdict]) -> Table:
    table = Table("solver", "fits", "within 1e-6 of F*", "fits with faults", title="All fits")
    rows: dict[str, list[tuple[Fit, Verdict]]] = {}
    for verdict in verdicts:
        for one in verdict.fits:
            rows.setdefault(one.solver, []).append((one, verdict))
    for solver in sorted(rows, key=list(FITTERS).index):
        mine = rows[solver]
        near = sum(not is_far(one, verdict.optimum.value) for one, verdict in mine)
        wrong = sum(bool(verdict.faults[one]) for one, verdict in mine)
        table.add_row(solver, str(len(mine)), f"{near / len(mine):.0%}", str(wrong))
    return table


def last_lines(verdicts: list[Verdict]) -> Iterator[str]:
    """One for each half, one for all."""
    for title in ("tuning", "held-out", "all"):
        some = [verdict for verdict in verdicts if title in (verdict.half, "all")]
        found = [fault for verdict in some for fault in verdict.all_faults]
        if some:
            yield summary(title, sum(len(verdict.fits) for verdict in some), len(some), found)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = dict.fromkeys(kind.name for kind in (*CLASSIFICATION, *REGRESSION))
    parser.add_argument("--sets", nargs="+", choices=all_sets(), metavar="SET", help="which data sets")
    parser.add_argument("--half", choices=("tuning", "held-out"), help="one half of them")
    parser.add_argument("--small", action="store_true", help="only sets with few entries")
    parser.add_argument("--kinds", nargs="+", choices=kinds, metavar="KIND", help="which problems, by name")
    parser.add_argument("--solvers", nargs="+", choices=FITTERS, metavar="SOLVER", help="who fits, by name")
    parser.add_argument("--seeds", type=int, help=f"{SEEDS} unless given, {SEEDS_IF_LARGE} on large sets")
    parser.add_argument(
        "--time-limit", type=float, help="seconds for one problem; what is not done by then is left out"
    )
    parser.add_argument("--out", type=Path, default=Path("out/zoo.jsonl"), help="where fits are kept")
    return parser.parse_args()


def main() -> int:
    arguments, console, verdicts = options(), Console(width=140), []
    journal = Journal(arguments.out)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        sets = list(wanted(arguments, console))
        task = bar.add_task("", total=len(sets))
        for data in sets:
            for case in cases(data, arguments.kinds):
                bar.update(task, description=f"{data.name}, {case.kind.name}")
                verdicts.append(visit(case, journal, arguments.solvers, arguments.seeds, arguments.time_limit))
                tell(case, verdicts[-1], console)
            bar.advance(task)
    if not verdicts:
        raise SystemExit("Nothing was run.")
    console.print(by_solver(verdicts))
    certified, late = sum(verdict.optimum.certified for verdict in verdicts), sum(verdict.late for verdict in verdicts)
    console.print(f"F* is certified for {certified} of {len(verdicts)} problems; {late} fits not in time")
    for line in last_lines(verdicts):
        console.print(line, style="bold", highlight=False)
    return 1 if any(verdict.all_faults for verdict in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
