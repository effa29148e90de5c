"""What the sampling itself costs: a step with each sampler, as a multiple of the same step with uniform draws.

Sparse rows of 10 to 4000 non-zeros, n from 10⁴ to 10⁷ as far as the memory goes. One process, one thread, samplers
interleaved, minima over rounds: only ratios within one run mean anything.

    python benchmarks/sampling_cost.py [--rounds 5] [--gigabytes 1.5] [--out out/bench]
"""

import argparse
from pathlib import Path

from rich.console import Console
from rich.table import Table

import banditgrad as bg
from race.display import keep
from steps import contender, interleave, timed

NONZEROS = (10, 100, 1000, 4000)
ROWS = (10_000, 100_000, 1_000_000, 10_000_000)
BYTES_PER_ENTRY = 12
SAMPLERS = {
    "uniform": bg.Uniform(),
    "importance": bg.Importance(),
    "MABS": bg.Mabs(),
    "VRB": bg.Vrb(),
    "RecentNorm": bg.RecentNorm(),
    "auto": bg.Auto(),
}
SOLVERS = {"ProxSgd": bg.ProxSgd(0.01), "Saga": bg.Saga(0.1)}
ENTRIES = 5_000_000  # read per measurement, about: a few milliseconds to a tenth of a second


def measure(nonzeros, n, rounds):
    """Nanoseconds per step for each solver and sampler."""
    X, y = bg.datasets.make_imbalanced(n, max(1000, 2 * nonzeros), nonzeros, seed=0)
    problem = bg.Problem(X, y, bg.Logistic(), bg.L1(1e-4))
    steps = max(1000, min(200_000, ENTRIES // nonzeros))
    figures = {}
    for solver_name, solver in SOLVERS.items():
        runs = {name: contender(problem, solver, sampler, steps) for name, sampler in SAMPLERS.items()}
        for run in runs.values():
            run()  # weights that have learnt a little
        best = interleave({name: timed(run) for name, run in runs.items()}, rounds)
        figures |= {(solver_name, name): best[name] for name in runs}
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gigabytes", type=float, default=1.5, help="the largest data to generate")
    parser.add_argument("--out", type=Path, default=Path("out/bench"), help="where a CSV file goes")
    options = parser.parse_args()
    table = Table(title="A step with each sampler / the uniform step", title_justify="left")
    for column in ("non-zeros", "n", "solver", "uniform, ns", *list(SAMPLERS)[1:]):
        table.add_column(column, justify="left" if column == "solver" else "right")
    for nonzeros in NONZEROS:
        for n in ROWS:
            if n * nonzeros * BYTES_PER_ENTRY > options.gigabytes * 1e9:
                continue
            figures = measure(nonzeros, n, options.rounds)
            for solver in SOLVERS:
                uniform = figures[solver, "uniform"]
                ratios = [figures[solver, name] / uniform for name in list(SAMPLERS)[1:]]
                table.add_row(
                    f"{nonzeros}", f"{n:.0e}", solver, f"{uniform:.0f}", *(f"{ratio:.2f}" for ratio in ratios)
                )
        table.add_section()
    Console(width=110).print(table)
    keep(table, options.out / "sampling-cost.csv")


if __name__ == "__main__":
    main()
