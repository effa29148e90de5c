"""Training on Dask: F − F* against rounds and seconds for 1, 2 and 4 workers, beside dask-ml, and bytes per round.

Two sets: w8a (CSR blocks, rows shuffled) and generated rows, made per partition from a seed (dense, float64, since
dask-ml's LogisticRegression takes no CSR blocks). All minimise the same F, logistic loss and an l2 penalty without an
intercept, on data that the workers hold before the clock starts. Seconds are those of a whole call to `fit`; dask-ml's
solvers, which do not say how they went, are run from zero with more and more iterations. On w8a our fits and those of
Incremental(SGD) are the fastest of three. Workers are separate processes of this machine. What lies beyond its cores
is a projection from a model fitted to measured times.

    python benchmarks/dask_training.py [--rows 5000000] [--out out/dask]

needs `pip install "banditgrad[dask,viz]" dask-ml`; without dask-ml its lines are left out with a note.
"""

import argparse
import itertools
import os
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp
from distributed import Client, LocalCluster, wait
from rich.console import Console
from rich.table import Table

import banditgrad as bg
from banditgrad.dask import BanditClassifier
from banditgrad.linear_model import BanditClassifier as LocalClassifier
from banditgrad.report import Curve, Figure, Panel, write_figures

ALPHA, FEATURES, BLOCKS = 1e-4, 20, 8
WORKERS, TARGETS = (1, 2, 4), (1e-3, 1e-6)
FLOOR = 1e-12
console = Console(width=110)


def generated_block(k, n):
    """Rows of very different norm with correlated features, and labels -1 and +1."""
    rng = np.random.default_rng([7, k])
    mixing = np.random.default_rng(7).standard_normal((FEATURES, FEATURES)) / FEATURES**0.5
    X = rng.standard_normal((n, FEATURES)) @ mixing
    X *= np.exp(0.7 * rng.standard_normal(n))[:, None]
    signal = X @ np.random.default_rng(8).standard_normal(FEATURES)
    return X, np.where(signal + rng.logistic(size=n) > 1.0, 1.0, -1.0)


class Generated:
    name, repeats = "generated", 1

    def __init__(self, rows):
        self.n = rows // BLOCKS * BLOCKS

    def collections(self):
        size = self.n // BLOCKS
        blocks = [dask.delayed(generated_block, nout=2)(k, size) for k in range(BLOCKS)]
        X = da.concatenate([da.from_delayed(X, (size, FEATURES), float) for X, _ in blocks])
        y = da.concatenate([da.from_delayed(y, (size,), float) for _, y in blocks])
        return X, y

    def whole(self):
        blocks = [generated_block(k, self.n // BLOCKS) for k in range(BLOCKS)]
        return np.concatenate([X for X, _ in blocks]), np.concatenate([y for _, y in blocks])


class W8a:
    name, repeats = "w8a", 3  # short fits: one hiccup of the machine would be all that is seen

    def __init__(self):
        data = bg.datasets.load("w8a")
        order = np.random.default_rng(0).permutation(data.y.size)
        X = sp.csr_array(data.X)[order]
        self._X, self._y, self.n = X, np.asarray(data.y)[order], data.y.size

    def whole(self):
        return self._X, self._y

    def collections(self, dense=False):
        ends = np.linspace(0, self.n, 5).astype(int)
        pieces = [self._X[a:b].toarray() if dense else self._X[a:b] for a, b in itertools.pairwise(ends)]
        X = da.concatenate([da.from_delayed(dask.delayed(p), p.shape, float, meta=p[:0]) for p in pieces])
        return X, da.from_array(self._y, chunks=(tuple(np.diff(ends)),))


def settings(**more):
    return {"alpha": ALPHA, "fit_intercept": False, "random_state": 0, **more}


class Trace:
    """F after so many rounds and seconds; `seconds` are of the whole call."""

    def __init__(self, name, rounds, seconds, values, bytes_per_round=None):
        self.name, self.rounds, self.seconds = name, np.asarray(rounds, float), np.asarray(seconds, float)
        self.values, self.bytes_per_round = np.asarray(values, float), bytes_per_round

    def reached(self, best, target):
        """Seconds until F - F* is at most `target` times F*."""
        hits = np.flatnonzero(self.values - best <= target * best)
        return self.seconds[hits[0]] if hits.size else np.inf


def fit_ours(data, label, X, y):
    BanditClassifier(**settings(max_iter=1, tol=None)).fit(X, y)  # compiles
    traces = []
    for _ in range(data.repeats):
        begin = time.perf_counter()
        model = BanditClassifier(**settings(tol=1e-8)).fit(X, y)
        total, history = time.perf_counter() - begin, model.history_[0]
        before = total - history.seconds[-1]  # loading, checking, and what follows the last round
        traces.append(Trace(label, history.rounds, before + history.seconds, history.value, model.bytes_per_round_))
    return model, fastest(traces)


def fastest(traces):
    return min(traces, key=lambda trace: trace.seconds[-1])


def objective(X, y):
    """F at given coefficients, on the cluster."""

    def value(w):
        losses = da.logaddexp(0.0, -y * (X @ w)).mean().compute()
        return float(losses + 0.5 * ALPHA * w @ w)

    return value


def peers(data, X, y, value, budget):
    """dask-ml's solvers with more and more iterations, until the budget of seconds per solver is used up."""
    try:
        from dask_ml.linear_model import LogisticRegression
        from dask_ml.wrappers import Incremental
        from sklearn.linear_model import SGDClassifier
    except ImportError as error:
        console.print(f"dask-ml is not here ({error}): its lines are left out.")
        return []
    warnings.filterwarnings("ignore")  # dask-ml's own, on names that newer versions of Dask have changed
    labels = da.where(y > 0, 1, 0).persist()
    traces = []
    for solver, counts in (("lbfgs", (5, 20, 60, 200)), ("admm", (2, 8, 30))):
        rounds, seconds, values = [0], [0.0], [value(np.zeros(X.shape[1]))]
        for count in counts:
            begin = time.perf_counter()
            model = LogisticRegression(
                C=1.0 / (ALPHA * data.n),
                solver=solver,
                max_iter=count,
                tol=1e-12,
                fit_intercept=False,
                solver_kwargs={"normalize": False},  # it would penalise the coefficients of scaled features
            ).fit(X, labels)
            seconds.append(time.perf_counter() - begin)
            rounds.append(count)
            values.append(value(np.ravel(model.coef_)))
            if sum(seconds) > budget:
                break
        traces.append(Trace(f"dask-ml {solver}", rounds, seconds, values))
    return [
        *traces,
        fastest([incremental(Incremental, SGDClassifier, X, labels, value, budget) for _ in range(data.repeats)]),
    ]


def incremental(wrapper, classifier, X, labels, value, budget):
    """A pass of SGD after another."""
    sgd = wrapper(classifier(loss="log_loss", alpha=ALPHA, fit_intercept=False, random_state=0))
    rounds, seconds, values, spent = [0], [0.0], [value(np.zeros(X.shape[1]))], 0.0
    while spent < budget and len(rounds) < 21:
        begin = time.perf_counter()
        (sgd.fit if len(rounds) == 1 else sgd.partial_fit)(X, labels, classes=[0, 1])
        spent += time.perf_counter() - begin
        rounds.append(rounds[-1] + 1)
        seconds.append(spent)
        values.append(value(np.ravel(sgd.coef_)))
    return Trace("dask-ml Incremental(SGD)", rounds, seconds, values)


def cluster(workers):
    return LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50)


def persisted(X, y):
    X, y = dask.persist(X, y)
    wait([X, y])
    return X, y


def measure(data, budget):
    traces, model = [], None
    for workers in WORKERS:
        with cluster(workers) as running, Client(running):
            X, y = persisted(*data.collections())
            label = f"{workers} worker{'s'[: workers > 1]}"
            model, trace = fit_ours(data, label, X, y)
            traces.append(trace)
            if workers == 2:
                if isinstance(data, W8a):
                    X, y = persisted(*data.collections(dense=True))
                rivals = peers(data, X, y, objective(X, y), budget)
    X, y = data.whole()
    local = LocalClassifier(**settings(tol=1e-9))
    local.fit(X[: min(len(y), 1000)], y[: min(len(y), 1000)])  # compiles
    begin = time.perf_counter()
    local.fit(X, y)
    seconds = time.perf_counter() - begin
    gap = float(model.objective_[0] / local.objective_[0] - 1.0)
    console.print(
        f"{data.name}: local solver {seconds:.1f} s, F = {local.objective_[0]:.12g}; on Dask {gap:+.1e} of it"
    )
    best = min(float(local.objective_[0]), *(float(trace.values.min()) for trace in traces + rivals))
    return traces, rivals, best


def show(name, traces, best):
    table = Table(
        "", *(f"seconds to {target:g}" for target in TARGETS), "least (F − F*)/F*", "rounds", "seconds", "kB a round"
    )
    for trace in traces:
        times = [trace.reached(best, target) for target in TARGETS]
        sent = "–" if trace.bytes_per_round is None else f"{trace.bytes_per_round / 1000:.1f}"
        table.add_row(
            trace.name,
            *(f"{each:.2f}" if np.isfinite(each) else "–" for each in times),
            f"{max(trace.values.min() - best, 0.0) / best:.0e}",
            f"{trace.rounds[-1]:.0f}",
            f"{trace.seconds[-1]:.1f}",
            sent,
        )
    console.print(f"\n{name}", table)


def figure(results):
    panels = []
    for name, (traces, rivals, best) in results.items():
        for x, label, shown in (("rounds", "rounds", traces), ("seconds", "seconds", traces + rivals)):
            curves = []
            for trace in shown:
                gap = np.maximum(trace.values - best, FLOOR * best) / best
                at, order = np.unique(getattr(trace, x), return_index=True)  # fits from zero may take less for more
                keep = slice(1 if x == "seconds" else 0, None)  # the start is at no time
                gap = gap[order][keep]
                curves.append(Curve(trace.name, at[keep], gap, gap, gap))
            panels.append(Panel(f"{name}-{x}", name, label, "(F − F*) / F*", curves, y_log=True, x_log=x == "seconds"))
    return Figure("dask-training", "Training on Dask", panels, columns=2)


def exchange_seconds():
    """What an exchange costs besides work, by the number of partitions: rounds on next to no rows."""
    times = {}
    with cluster(2) as running, Client(running):
        for blocks in (4, 16, 64):
            X = da.from_array(np.random.default_rng(0).standard_normal((blocks * 8, FEATURES)), chunks=(8, FEATURES))
            y = da.from_array(np.where(np.arange(blocks * 8) % 3 > 0, 1.0, -1.0), chunks=8)
            history = BanditClassifier(**settings(max_iter=12, tol=None)).fit(X, y).history_[0]
            times[blocks] = float(np.min(np.diff(history.seconds[2:])))
    slope, start = np.polyfit(list(times), list(times.values()), 1)
    return max(start, 0.0), max(slope, 0.0)


def project(traces, best):
    """Seconds to 1e-6 on machines of one core each: measured work over their number, plus measured exchanges."""
    start, slope = exchange_seconds()
    two = next(trace for trace in traces if trace.name == "2 workers")
    rounds = int(np.flatnonzero(two.values - best <= 1e-6 * best)[0])
    work = 2.0 * (np.diff(two.seconds[: rounds + 1]).sum() - rounds * (start + slope * BLOCKS))
    console.print(f"\nA round costs {start * 1e3:.0f} ms + {slope * 1e3:.2f} ms per partition besides work.")
    console.print("PROJECTION, not measured: 5 million rows on workers with a core each, one partition a worker")
    for workers in (4, 8, 16, 32, 64):
        seconds = work / workers + rounds * (start + slope * max(workers, BLOCKS))
        console.print(f"  {workers:3} workers: {seconds:6.1f} s in {rounds} rounds (if these stay as many)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=5_000_000, help="rows of the generated set")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds for each of dask-ml's solvers, about")
    parser.add_argument("--out", type=Path, default=Path("out/dask"))
    options = parser.parse_args()
    results = {}
    for data in (W8a(), Generated(options.rows)):
        results[data.name] = measure(data, options.budget)
        traces, rivals, best = results[data.name]
        show(f"{data.name}, {data.n:,} rows; dask-ml on 2 workers", traces + rivals, best)
    project(results["generated"][0], results["generated"][2])
    for path in write_figures([figure(results)], options.out):
        console.print(f"Written: {path}")


if __name__ == "__main__":
    main()
