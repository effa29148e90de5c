"""Does every fit reach the minimum, on any data and for every seed? Stalls, explosions and false reasons are counted.

python benchmarks/zoo.py                      everything, ten seeds: hours
python benchmarks/zoo.py --small              small sets and few seeds: minutes
python benchmarks/zoo.py --half held-out      the half on which no constant was chosen
python benchmarks/zoo.py --sets kdd-raw australian --seeds 4

A *stall*: a fit that promises the minimum (`minimise` and the estimators with all defaults) ends more than 1e-6 of F*
above it. An *explosion*: F at a record is above F(w0), with a stochastic method above 1.5 F(w0), or a result is above
the best record. A *false reason*: "converged" where it did not, or "passes done" after F rose. Solvers of first order
promise no more than that F neither explodes nor is told falsely.

F* is the least value that anything here found, certified by a duality gap where there is one.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import banditgrad as bg
from banditgrad.linear_model import BanditClassifier, BanditRegressor
from sets import DataSet, all_sets

NEAR = 1e-6  # relative to F*
ROUNDING = 1e-9  # relative to F(w0)
NOISY = 1.5  # times F(w0): what F of a stochastic method may come to on its way
LARGE = 2_000_000  # entries: larger sets take part with fewer seeds and problems
PASSES, FIRST_ORDER_PASSES = 300, 20


class Kind(NamedTuple):
    """A problem on a data set: loss and penalty, with an intercept or weights."""

    name: str
    loss: Any
    penalty: Any
    intercept: bool = False
    weighted: bool = False


CLASSIFICATION = (
    Kind("logistic l1 1e-2", bg.Logistic(), bg.L1(1e-2), intercept=True),
    Kind("logistic l1 1e-4", bg.Logistic(), bg.L1(1e-4)),
    Kind("logistic l1 1e-6", bg.Logistic(), bg.L1(1e-6), intercept=True),
    Kind("logistic l2 1e-2", bg.Logistic(), bg.SquaredL2(1e-2), weighted=True),
    Kind("logistic l2 1e-4", bg.Logistic(), bg.SquaredL2(1e-4), intercept=True),
    Kind("logistic l2 1e-8", bg.Logistic(), bg.SquaredL2(1e-8)),
    Kind("logistic elastic net 1e-5", bg.Logistic(), bg.ElasticNet(1e-5, 0.5), intercept=True, weighted=True),
    Kind("squared hinge l2 1e-4", bg.SquaredHinge(), bg.SquaredL2(1e-4)),
    Kind("squared hinge l1 1e-4", bg.SquaredHinge(), bg.L1(1e-4), intercept=True),
    Kind("squared l1 1e-3", bg.Squared(), bg.L1(1e-3), intercept=True),
)
REGRESSION = (
    Kind("squared l1 1e-3", bg.Squared(), bg.L1(1e-3), intercept=True),
    Kind("squared l2 1e-4", bg.Squared(), bg.SquaredL2(1e-4), intercept=True),
    Kind("squared l2 1e-8", bg.Squared(), bg.SquaredL2(1e-8), intercept=True, weighted=True),
    Kind("squared", bg.Squared(), bg.Zero(), intercept=True),
    Kind("huber l2 1e-4", bg.Huber(), bg.SquaredL2(1e-4), intercept=True),
    Kind("huber l1 1e-4", bg.Huber(), bg.L1(1e-4)),
)
FEW_KINDS = ("logistic l1 1e-4", "logistic l2 1e-4", "squared l2 1e-4", "huber l2 1e-4")

FIRST_ORDER: dict[str, Callable[[], bg.Solver]] = {
    "ProxSvrg": bg.ProxSvrg,
    "Saga": bg.Saga,
    "S2gd": bg.S2gd,
    "LSvrg": bg.LSvrg,
    "Sgd": bg.Sgd,
    "ProxSgd": bg.ProxSgd,
}


@dataclass
class Run:
    """One fit, and what was wrong with it."""

    who: str
    seed: int
    start: float
    values: np.ndarray  # F at the records
    value: float
    reason: bg.Reason | None
    promises: bool  # the minimum
    faults: list[str] = field(default_factory=list)


def problems(data: DataSet, only: tuple[str, ...] | None) -> Iterator[tuple[Kind, bg.Problem]]:
    X, y = data.load()
    classes = set(np.unique(y)) <= {-1.0, 1.0}
    weights = 10.0 ** np.random.default_rng(0).uniform(-3.0, 3.0, len(y))
    large = (X.size if isinstance(X, np.ndarray) else X.nnz) > LARGE
    for kind in CLASSIFICATION if classes else REGRESSION:
        if (only is None and large and kind.name not in FEW_KINDS) or (only is not None and kind.name not in only):
            continue
        yield kind, bg.Problem(X, y, kind.loss, kind.penalty, weights if kind.weighted else None, kind.intercept)


def minimised(problem: bg.Problem, who: str, solver: Any, seed: int, passes: int, promises: bool) -> Run:
    result = bg.minimise(problem, solver, passes=passes, seed=seed)
    history = result.history.value
    return Run(who, seed, history[0], history, result.value, result.reason, promises)


def estimated(problem: bg.Problem, kind: Kind, X: Any, y: np.ndarray, seed: int) -> Run:
    """The estimator with its own defaults but for the penalty, judged by the same F."""
    penalty = {bg.L1: "l1", bg.SquaredL2: "l2", bg.ElasticNet: "elasticnet", bg.Zero: None}[type(kind.penalty)]
    loss = {bg.Logistic: "log_loss", bg.SquaredHinge: "squared_hinge", bg.Squared: "squared_error"}[type(kind.loss)]
    settings = {"loss": loss, "penalty": penalty, "alpha": kind.penalty.strength, "random_state": seed}
    settings["l1_ratio"] = getattr(kind.penalty, "l1_ratio", 0.5)
    estimator = (BanditRegressor if loss == "squared_error" else BanditClassifier)(
        fit_intercept=kind.intercept, **settings
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        estimator.fit(X, y, sample_weight=problem.sample_weight)
    w = np.append(estimator.coef_.ravel(), estimator.intercept_) if kind.intercept else estimator.coef_.ravel()
    history, value = estimator.history_[0].value, problem.value(w)
    reason = bg.Reason.PASSES_DONE if told else bg.Reason.CONVERGED
    return Run("estimator", seed, history[0], history, value, reason, True)


def judge(run: Run, least: float) -> None:
    """Write down what was wrong, where `least` is F*."""
    distance = run.value - least
    far = distance > NEAR * abs(least) + 1e-12 * abs(run.start)
    slack = ROUNDING * abs(run.start)
    if run.promises and far:
        run.faults.append(f"stall: {distance / max(abs(least), 1e-300):.1e} above F*")
    most = run.start + slack if run.promises else NOISY * run.start
    if not np.isfinite(run.value) or (run.values.max() > most and run.reason is not bg.Reason.ROSE):
        run.faults.append(f"explosion: F rose to {run.values.max() / run.start:.3g} times F(w0)")
    elif run.value > run.values.min() + slack:
        run.faults.append(f"explosion: the result is {run.value - run.values.min():.1e} above the best record")
    if run.reason is bg.Reason.CONVERGED and far:
        run.faults.append("false reason: converged")
    if run.reason is bg.Reason.PASSES_DONE and run.values[-1] > run.start + slack:
        run.faults.append("false reason: passes done, and F rose")


def visit(data: DataSet, arguments: argparse.Namespace, console: Console) -> list[Run]:
    runs: list[Run] = []
    for kind, problem in problems(data, arguments.kinds):
        begin, X, y = time.perf_counter(), *data.load()
        seeds = range(arguments.seeds if problem.parts.norms2.size * problem.d < 1e8 else min(arguments.seeds, 3))
        here = [minimised(problem, "minimise", "auto", seed, PASSES, True) for seed in seeds]
        if type(kind.loss) in (bg.Logistic, bg.SquaredHinge, bg.Squared):
            here += [estimated(problem, kind, X, y, seed) for seed in list(seeds)[:2]]
        for name, solver in FIRST_ORDER.items():
            if arguments.first_order:
                some = list(seeds)[: max(1, arguments.seeds // 3)]
                here += [minimised(problem, name, solver(), seed, FIRST_ORDER_PASSES, False) for seed in some]
        best = min(here, key=lambda run: run.value)
        for run in here:
            judge(run, best.value)
        gap = certified_gap(problem, arguments)
        faults = [f"{run.who}, seed {run.seed}: {fault}" for run in here for fault in run.faults]
        took = time.perf_counter() - begin
        style = "red" if faults else "dim"
        console.print(f"{data.name} {kind.name}: F* = {best.value:.8g}, gap {gap:.0e}, {took:.1f} s", style=style)
        for fault in faults:
            console.print(f"    {fault}", style="red", highlight=False)
        runs += here
    return runs


def certified_gap(problem: bg.Problem, arguments: argparse.Namespace) -> float:
    """Relative to F*."""
    result = bg.minimise(problem, passes=PASSES, seed=arguments.seeds)
    return result.gap / max(abs(result.value), 1e-300)


def by_solver(runs: list[Run]) -> Table:
    table = Table("solver", "fits", "faults", title="All fits")
    for who in dict.fromkeys(run.who for run in runs):
        mine = [run for run in runs if run.who == who]
        table.add_row(who, str(len(mine)), str(sum(len(run.faults) for run in mine)))
    return table


def summary(half: str, runs: list[Run]) -> str:
    def count(word: str) -> int:
        return sum(fault.startswith(word) for run in runs for fault in run.faults)

    return (
        f"{half}: {len(runs)} fits; stalls {count('stall')}, explosions {count('explosion')}, "
        f"false reasons {count('false')}"
    )


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=all_sets(), help="which data sets")
    parser.add_argument("--half", choices=("tuning", "held-out"), help="one half of them")
    parser.add_argument("--kinds", nargs="+", help="which problems, by name")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--small", action="store_true", help="sets with few entries, three seeds")
    parser.add_argument("--no-first-order", dest="first_order", action="store_false", help="only what promises F*")
    return parser.parse_args()


def main() -> int:
    arguments, console = options(), Console(width=140)
    if arguments.small:
        arguments.seeds = min(arguments.seeds, 3)
    by_half: dict[str, list[Run]] = {"tuning": [], "held-out": []}
    for data in all_sets().values():
        wanted = data.name in (arguments.sets or all_sets()) and arguments.half in (None, data.half)
        if not wanted:
            continue
        try:
            X, _ = data.load()
        except FileNotFoundError as error:
            console.print(f"{data.name} is left out: {error}", style="dim")
            continue
        if arguments.small and (X.size if isinstance(X, np.ndarray) else X.nnz) > LARGE // 8:
            continue
        by_half[data.half] += visit(data, arguments, console)
    everything = [run for runs in by_half.values() for run in runs]
    if not everything:
        raise SystemExit("Nothing was run.")
    console.print(by_solver(everything))
    for half, runs in by_half.items():
        if runs:
            console.print(summary(half, runs), style="bold")
    return 1 if any(run.faults for run in everything) else 0


if __name__ == "__main__":
    sys.exit(main())
