"""What one step of each solver costs, with uniform draws and with a bandit, beside the peers.

One process, one thread, contenders interleaved, minima of processor time over rounds: only ratios within one run mean
anything. A peer's step is the slope between a short and a long fit, divided by n. "floor" is a loop that does nothing
but read a random row, take its dot product with w and write it back: no penalty, no sampler, no variance reduction, but
also no rows that are fetched before they are needed.

A step on long dense rows waits for memory, whose pace changes by more than a sampler costs, with time and, by 5 %, with
where in memory a run's vectors happen to lie: there, twelve runs of each, medians, and ratios between neighbours in
time.

    python benchmarks/steps.py [--data FOLDER] [--rounds 25] [--dense] [--out out/bench]
"""

import argparse
import math
import os
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numba
import numpy as np
from rich.console import Console
from rich.table import Table

import banditgrad as bg
from race.display import keep

SAMPLERS = {"uniform": bg.Uniform(), "MABS": bg.Mabs(), "auto": bg.Auto()}
SOLVERS = {
    "Sgd": bg.Sgd(0.1),
    "ProxSgd": bg.ProxSgd(0.1),
    "Saga": bg.Saga(0.5),
    "Saga, auto step": bg.Saga(),
    "ProxSvrg": bg.ProxSvrg(0.5),
    "ProxSvrg, auto step": bg.ProxSvrg(),
    "S2gd": bg.S2gd(0.5),
    "LSvrg": bg.LSvrg(0.5),
    "Sqn (batch 50)": bg.Sqn(0.01),
}


def contender(problem, solver, sampler, steps, seed=0):
    """A function that makes `steps` draws and returns their number; what it compiles is compiled."""
    sampling = sampler.start(problem.n, horizon=30 * problem.n, seed=seed, smoothness=problem.smoothness)
    state = solver.start(problem, np.zeros(problem.dimension), np.random.SeedSequence(0))
    solver.advance(problem, state, sampling.state, 0)
    return lambda: solver.advance(problem, state, sampling.state, steps // solver.batch_size) * solver.batch_size


@numba.njit(error_model="numpy")
def _floor(indptr, indices, data, w, order):
    for i in order:
        z = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            z += data[k] * w[indices[k]]
        z = math.exp(-abs(z)) * 1e-3
        for k in range(indptr[i], indptr[i + 1]):
            w[indices[k]] -= data[k] * z


def floor(X, steps):
    order, w = np.random.default_rng(0).integers(0, X.shape[0], steps), np.zeros(X.shape[1])
    arguments = (X.indptr, X.indices.view(np.uint32), X.data, w, order)
    _floor(*arguments)
    return lambda: _floor(*arguments) or steps


def sklearn_saga(X, y, penalty, strength):
    from sklearn.linear_model import LogisticRegression

    def fit(passes):
        model = LogisticRegression(
            solver="saga",
            l1_ratio=1.0 if penalty == "l1" else 0.0,
            C=1.0 / (len(y) * strength),
            fit_intercept=False,
            tol=0.0,
            max_iter=passes,
            random_state=0,
        )
        model.fit(X, y)

    return fit


def cyanure_svrg(X, y, penalty, strength):
    import cyanure.estimators

    def fit(passes):
        model = cyanure.estimators.Classifier(
            loss="logistic",
            penalty=penalty,
            lambda_1=strength,
            solver="svrg",
            fit_intercept=False,
            tol=1e-30,
            duality_gap_interval=10_000,
            max_iter=passes,
            verbose=False,
        )
        model.fit(X, y)

    return fit


SHORT, LONG = 2, 12  # passes of a peer's two fits
PEERS = {"scikit-learn saga": sklearn_saga, "cyanure svrg": cyanure_svrg}


def whole_fit(fit, passes):
    def measure():
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit(passes)
        return time.process_time() - begin

    return measure


def timed(run):
    def measure():
        begin = time.process_time()
        steps = run()
        return (time.process_time() - begin) / steps

    return measure


def interleave(contenders, rounds):
    best = dict.fromkeys(contenders, math.inf)
    for _ in range(rounds):
        for name, measure in contenders.items():
            best[name] = min(best[name], measure())
    return {name: seconds * 1e9 for name, seconds in best.items()}


def side_by_side(contenders, rounds):
    """Medians, and those of the ratios to the first contender of the same solver; a contender is several runs."""
    seconds = {name: [] for name in contenders}
    for _ in range(rounds):
        for turn in range(len(next(iter(contenders.values())))):
            for name, runs in contenders.items():
                seconds[name].append(runs[turn]())
    first = {solver: (solver, sampler) for solver, sampler in reversed(contenders)}
    ratios = {name: np.median(np.divide(seconds[name], seconds[first[name[0]]])) for name in contenders}
    return {name: np.median(values) * 1e9 for name, values in seconds.items()}, ratios


def sparse_table(console, folder, rounds, out):
    data = bg.datasets.load("w8a", folder)
    X, y = data.X, data.y
    for penalty, part in (("l1", bg.L1(1e-4)), ("l2", bg.SquaredL2(1e-4))):
        problem = bg.Problem(X, y, bg.Logistic(), part)
        contenders = {("floor", ""): timed(floor(X, problem.n))}
        for solver_name, solver in SOLVERS.items():
            for sampler_name, sampler in SAMPLERS.items():
                run = contender(problem, solver, sampler, problem.n)
                run()
                contenders[solver_name, sampler_name] = timed(run)
        for name, make in PEERS.items():
            try:
                fit = make(X, y, penalty, 1e-4)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    fit(1)
            except ImportError as error:
                console.print(f"{name} is left out: {error}")
                continue
            contenders[name, "short"], contenders[name, "long"] = whole_fit(fit, SHORT), whole_fit(fit, LONG)
        figures = interleave(contenders, rounds)
        for name in [name for name, kind in figures if kind == "long"]:
            slope = (figures.pop((name, "long")) - figures.pop((name, "short"))) / (LONG - SHORT)
            figures[name, ""] = slope / problem.n
        title = f"w8a, {penalty}-logistic: nanoseconds per step"
        keep(print_table(console, title, figures), out / f"steps-{penalty}.csv")


def dense_table(console, rounds, out):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50_000, 4_000), dtype=np.float32)
    y = np.where(X[:, 0] + rng.standard_normal(len(X)) > 0, 1.0, -1.0)
    problem = bg.Problem(X, y, bg.Logistic(), bg.L1(1e-4))
    contenders = {}
    for solver_name in ("Sgd", "Saga", "ProxSvrg"):
        solver = type(SOLVERS[solver_name])(1e-4)  # a longer step diverges, and slopes that are zero save half the work
        for sampler_name in ("uniform", "MABS"):
            runs = [contender(problem, solver, SAMPLERS[sampler_name], 2_000, seed) for seed in range(12)]
            contenders[solver_name, sampler_name] = [timed(run) for run in runs]
    title = "dense, n = 50,000, d = 4,000: nanoseconds per step"
    keep(print_table(console, title, *side_by_side(contenders, rounds)), out / "steps-dense.csv")


def print_table(console, title, figures, ratios=None):
    table = Table(title=title, title_justify="left")
    columns = [name for name in SAMPLERS if any(sampler == name for _, sampler in figures)]
    table.add_column("")
    for name in columns:
        table.add_column(name, justify="right")
        if name != "uniform":
            table.add_column(f"{name} / uniform", justify="right")
    for solver in dict.fromkeys(solver for solver, _ in figures):
        if (solver, "") in figures:
            table.add_row(solver, f"{figures[solver, '']:.0f}")
            continue
        cells = []
        for name in columns:
            cells.append(f"{figures[solver, name]:.0f}")
            if name != "uniform":
                ratio = figures[solver, name] / figures[solver, "uniform"] if ratios is None else ratios[solver, name]
                cells.append(f"{ratio:.2f}")
        table.add_row(solver, *cells)
    console.print(table)
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="the folder that has w8a; else it is looked for or downloaded")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--dense", action="store_true", help="also the dense set (needs 1 GB)")
    parser.add_argument("--out", type=Path, default=Path("out/bench"), help="where CSV files go")
    options = parser.parse_args()
    console = Console(width=120)
    sparse_table(console, options.data, options.rounds, options.out)
    if options.dense:
        dense_table(console, options.rounds, options.out)


if __name__ == "__main__":
    main()
