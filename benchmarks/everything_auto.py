"""Passes and milliseconds to F − F* ≤ 1e-3, 1e-4, 1e-6, 1e-8 with nothing chosen but the solver.

The automatic sampler and step; one process, solvers taking turns, medians over seeds. Milliseconds are those of the
solver's steps, after compilation and without the records, of which there are two per pass.

    python benchmarks/everything_auto.py [--seeds 5] [--out out/bench]
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from rich.console import Console
from rich.table import Table

import banditgrad as bg
from race.display import keep
from race.measure import TARGETS
from race.optimum import certified_optimum
from race.problems import DATA, Task

SOLVERS = {"auto": "auto", "ProxSvrg": bg.ProxSvrg(), "Saga": bg.Saga()}
OBJECTIVES = ("l1-logistic", "l2-logistic", "squared-hinge")
PASSES = 60


def first_below(history, least):
    """(milliseconds, passes) at the first record within each target, or infinity."""
    reached = [np.flatnonzero(history.value - least <= target) for target in TARGETS]
    return [(1e3 * history.seconds[k[0]], history.passes[k[0]]) if k.size else (np.inf, np.inf) for k in reached]


def cell(runs):
    """Medians over the runs: milliseconds, and passes in brackets."""
    milliseconds, passes = np.median(runs, axis=0).T
    return f"{_joined(milliseconds, '.0f')} ({_joined(passes, '.3g')})"


def _joined(numbers, form):
    return " / ".join(f"{number:{form}}" if number < np.inf else "–" for number in numbers)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("out/bench"), help="where a CSV file goes")
    options = parser.parse_args()
    table = Table(title="Milliseconds (passes) to 1e-3 / 1e-4 / 1e-6 / 1e-8", title_justify="left")
    for column in ("", *SOLVERS):
        table.add_column(column)
    for data in ("w8a", "ijcnn1", "a9a"):
        X, y = DATA[data]()
        for objective in OBJECTIVES:
            task = Task(data, objective, X, y)
            problem, least = task.problem(), certified_optimum(task, options.out / "optima.json").value
            runs = {name: [] for name in SOLVERS}
            for seed in range(options.seeds):
                for name, solver in SOLVERS.items():
                    done = bg.minimise(
                        problem,
                        solver,
                        passes=PASSES,
                        record_every=0.5,
                        seed=seed,
                        callback=lambda progress, least=least: progress.value - least <= TARGETS[-1],
                    )
                    runs[name].append(first_below(done.history, least))
            table.add_row(task.name, *(cell(runs[name]) for name in SOLVERS))
    Console(width=150).print(table)
    keep(table, options.out / "everything-auto.csv")


if __name__ == "__main__":
    main()
