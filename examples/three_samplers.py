"""Three samplers, one problem: what drawing the right rows buys.

A sparse, imbalanced classification problem whose rows differ widely in norm, as word counts and click logs do. SGD
runs with the same step and the same number of draws; only the sampler differs. Prints a table and writes a plot.
"""

import time
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from matplotlib.ticker import NullFormatter
from rich.console import Console
from rich.table import Table

import banditgrad as bg

SAMPLERS = {
    "uniform": (bg.Uniform(), "#4477AA"),
    "importance (p ∝ L)": (bg.Importance(by="smoothness"), "#CCBB44"),
    "bandit (MABS)": (bg.Mabs(), "#AA3377"),
}
SEEDS = range(5)
PASSES = 20


def make_data(n=20_000, d=300, seed=0):
    """Rows with 10 non-zeros, log-normal scales, and one positive label in fifteen."""
    rng = np.random.default_rng(seed)
    columns = (d * rng.random((n, 10)) ** 2).astype(np.int32)  # some features are common, most are rare
    values = np.exp(0.5 * rng.standard_normal(n))[:, None] * rng.random((n, 10))
    X = sp.csr_array((values.ravel(), columns.ravel(), np.arange(0, 10 * n + 1, 10)), shape=(n, d))
    margins = X @ rng.standard_normal(d)
    threshold = np.quantile(margins, 1 - 1 / 15)
    y = np.where(margins + 0.5 * rng.standard_normal(n) > threshold, 1.0, -1.0)
    return X, y


def minimum(problem):
    """F*: many passes with a decreasing step."""
    schedule = bg.ShiftedInverseTime(alpha=4.0, mu=2e-4)
    return bg.minimise(
        problem, bg.ProxSgd(schedule, batch_size=8), bg.Mabs(), passes=1500, record_every=50, seed=0
    ).value


def main():
    console = Console()
    X, y = make_data()
    problem = bg.Problem(X, y, bg.Logistic(), bg.L1(1e-4), fit_intercept=True)
    console.print(
        f"L1-logistic regression, n = {problem.n:,}, d = {problem.d}, {np.mean(y > 0):.1%} positive, "
        f"τ = max L / mean L = {problem.tau:.1f}; SGD, step 0.5, {PASSES} passes, {len(SEEDS)} seeds"
    )
    best = minimum(problem)
    table = Table("sampler", *("F − F*", "vs uniform", "vs optimal", "seconds"))
    for column in table.columns[1:]:
        column.justify = "right"
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    uniform_variance = None
    for name, (sampler, colour) in SAMPLERS.items():
        begin = time.perf_counter()
        runs = [
            bg.minimise(problem, bg.Sgd(0.5), sampler, passes=PASSES, seed=seed, record_variance=True) for seed in SEEDS
        ]
        gaps = np.array([run.history.value for run in runs]) - best
        variance = np.array([run.history.effective_variance for run in runs])
        ratio = np.array([run.history.effective_variance / run.history.optimal_variance for run in runs])
        uniform_variance = variance if uniform_variance is None else uniform_variance
        table.add_row(
            name,
            f"{np.median(gaps[:, -1]):.2e}",
            f"{np.median(variance[:, -1] / uniform_variance[:, -1]):.2f}",
            f"{np.median(ratio[:, -1]):.1f}",
            f"{np.mean([run.seconds for run in runs]):.2f}",
        )
        for axis, curves in zip(axes, (gaps, ratio), strict=True):
            passes = runs[0].history.passes
            axis.plot(passes, np.median(curves, axis=0), color=colour, label=name)
            axis.fill_between(passes, curves.min(axis=0), curves.max(axis=0), color=colour, alpha=0.15, linewidth=0)
        console.print(f"  {name}: done in {time.perf_counter() - begin:.1f} s, compilation included", style="dim")
    console.print(table)
    console.print(
        "vs: the variance of the gradient at the end, divided by that of uniform and of optimal sampling", style="dim"
    )
    axes[0].set(title="Distance to the minimum, F(w) − F*")
    axes[1].set(title="Noise of the gradient: effective / optimal variance")
    for axis in axes:
        axis.set(xlabel="passes over the data", yscale="log", xticks=range(0, PASSES + 1, 5))
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.grid(alpha=0.3)
    axes[1].set_yticks([1, 2, 5, 10, 20], labels=["1", "2", "5", "10", "20"])
    axes[0].legend()
    path = Path("out") / "three_samplers.png"
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=120)
    console.print(f"Plot written to {path}")


if __name__ == "__main__":
    main()
