"""Test loss against gradient steps and seconds: shuffling beside bandit samplers, on three problems, 5 seeds.

The same model, step size and number of steps for all; the step size is the best one for shuffling among a few.
Seconds are CPU seconds of one thread, drawing, loading, training and feedback included, evaluation left out; runs of
the samplers take turns, and the fastest run of each counts.

    digits       scikit-learn's 8 × 8 digits, balanced; an MLP
    rare class   10 features, one sample in fifty is positive: those outside a ball; an MLP
    shapes       noisy 12 × 12 images of eight shapes, the rarest 64 times rarer than the most common; a CNN

Feedback is the last-layer bound. Writes one figure per problem and prints a table.
"""

import argparse
import time
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import banditgrad as bg
from banditgrad.torch import BanditBatchSampler, IndexedDataset, cross_entropy_bound

FIGURES = Path(__file__).parent.parent / "docs" / "figures"
RECORDS = 40  # evaluations per run


class Problem(NamedTuple):
    train: TensorDataset
    test: TensorDataset
    model: object  # a function that makes one
    step_sizes: tuple
    batch_size: int
    steps: int


def mlp(inputs, classes):
    return nn.Sequential(nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, classes))


def cnn(classes):
    return nn.Sequential(
        *(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 9, classes)),
    )


def tensors(x, y):
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.int64))


def digits():
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:1200], order[1200:]
    return Problem(
        *(tensors(x[part] / 16, y[part]) for part in (train, test)), lambda: mlp(64, 10), (0.02, 0.05, 0.1), 32, 1500
    )


def rare_class():
    """Positive outside a ball that holds 98 of 100 samples: nearly all samples soon have nothing more to teach."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((70_000, 10))
    radius = np.linalg.norm(x[:, :5], axis=1)
    y = (radius > np.quantile(radius, 0.98)).astype(int)
    train, test = slice(0, 50_000), slice(50_000, None)
    return Problem(
        *(tensors(x[part], y[part]) for part in (train, test)), lambda: mlp(10, 2), (0.02, 0.05, 0.1), 64, 4000
    )


def shapes():
    rng = np.random.default_rng(0)
    rows, columns = np.mgrid[:5, :5]
    masks = [
        rows == 2,
        columns == 2,
        rows == columns,
        rows + columns == 4,
        (rows == 2) | (columns == 2),
        (rows == columns) | (rows + columns == 4),
        np.maximum(abs(rows - 2), abs(columns - 2)) == 2,
        abs(rows - 2) + abs(columns - 2) == 2,
    ]
    frequency = 2.0 ** -np.arange(8)
    frequency[-1] = frequency[-2]  # the rarest are 64 times rarer than the first

    def make(n):
        y = rng.choice(8, n, p=frequency / frequency.sum())
        x = 0.35 * rng.standard_normal((n, 1, 12, 12))
        for image, label, (top, left) in zip(x, y, rng.integers(0, 8, (n, 2)), strict=True):
            image[0, top : top + 5, left : left + 5] += masks[label]
        return tensors(x, y)

    return Problem(make(8_000), make(4_000), lambda: cnn(8), (0.02, 0.05, 0.1), 64, 2500)


PROBLEMS = {"digits": digits, "rare class": rare_class, "shapes": shapes}


def samplers(problem):
    horizon = problem.steps * problem.batch_size
    return {
        "shuffling": (None, "#4477AA", "-"),
        "MABS": ({"sampler": bg.Mabs(horizon=horizon), "guard": False}, "#AA3377", "-"),
        "VRB": ({"sampler": bg.Vrb(), "guard": False}, "#228833", "-"),
        "RecentNorm": ({"sampler": bg.RecentNorm(), "guard": False}, "#CCBB44", "-"),
        "MABS, guarded": ({"sampler": bg.Mabs(horizon=horizon)}, "#AA3377", ":"),
        "RecentNorm, guarded": ({"sampler": bg.RecentNorm()}, "#CCBB44", ":"),
    }


def endless(loader):
    while True:
        yield from loader


def run(problem, options, step_size, seed):
    """One training run: (step, CPU seconds, test loss, test error) rows, the share of adaptive batches, the last τ."""
    torch.manual_seed(seed)
    model = problem.model()
    optimiser = torch.optim.SGD(model.parameters(), step_size, momentum=0.9)
    n = len(problem.train)
    if options is None:
        sampler = None
        loader = DataLoader(problem.train, problem.batch_size, shuffle=True)
    else:
        sampler = BanditBatchSampler(n, problem.batch_size, seed=seed, **options)
        loader = DataLoader(IndexedDataset(problem.train), batch_sampler=sampler)
    every = problem.steps // RECORDS
    seconds, adaptive, history = 0.0, 0, []
    batches = endless(loader)
    for step in range(problem.steps + 1):
        if step % every == 0:
            history.append((step, seconds, *evaluate(model, problem.test)))
        begin = time.process_time()
        x, y, *idx = next(batches)
        z = model(x)
        loss = F.cross_entropy(z, y, reduction="none")
        optimiser.zero_grad()
        if sampler is None:
            loss.mean().backward()
        else:
            adaptive += sampler.statistics()["adaptive"]
            (loss * sampler.weights(idx[0])).mean().backward()
            sampler.update(idx[0], cross_entropy_bound(z, y))
        optimiser.step()
        seconds += time.process_time() - begin
    return np.array(history), adaptive / (problem.steps + 1), 1.0 if sampler is None else sampler.statistics()["tau"]


@torch.no_grad()
def evaluate(model, data):
    x, y = data.tensors
    z = model.eval()(x)
    model.train()
    return F.cross_entropy(z, y).item(), (z.argmax(1) != y).double().mean().item()


def best_step_size(problem, seeds):
    """The step size with which shuffling has the least test loss, over the second half of the run."""

    def loss(step_size):
        halves = [run(problem, None, step_size, 100 + seed)[0][RECORDS // 2 :, 2] for seed in range(seeds)]
        return np.mean(halves)

    return min(problem.step_sizes, key=loss)


def plot(name, runs, styles, path):
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained", sharey=True)
    for sampler, histories in runs.items():
        _, colour, line = styles[sampler]
        later = slice(3, None)  # the first steps look alike and would fill the plot
        losses = np.array([history[later, 2] for history in histories])
        seconds = min((history[later, 1] for history in histories), key=lambda column: column[-1])
        for axis, along in zip(axes, (histories[0][later, 0], seconds), strict=True):
            axis.plot(along, np.median(losses, axis=0), line, color=colour, label=sampler, linewidth=1.4)
            axis.fill_between(along, losses.min(0), losses.max(0), color=colour, alpha=0.1, linewidth=0)
    axes[0].set(xlabel="gradient steps", ylabel="test loss", yscale="log", title=f"{name}: by steps")
    axes[1].set(xlabel="CPU seconds", title=f"{name}: by seconds")
    for axis in axes:
        axis.grid(alpha=0.3, which="both")
        axis.yaxis.set_major_formatter("{x:.3g}")
        axis.yaxis.set_minor_formatter("{x:.3g}")
        axis.tick_params(which="minor", labelsize=7)
    axes[0].legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=PROBLEMS)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    console = Console(width=110)
    for name in options.problems:
        problem = PROBLEMS[name]()
        step_size = best_step_size(problem, min(options.seeds, 2))
        table = Table(title=f"{name}: step {step_size}, batch {problem.batch_size}, {problem.steps} steps, medians")
        for column in ("sampler", "least test loss", "last test loss", "last error", "adaptive", "τ", "CPU seconds"):
            table.add_column(column, justify="left" if column == "sampler" else "right")
        styles, runs = samplers(problem), {}
        results = {sampler: [] for sampler in styles}
        for seed in range(options.seeds):
            for sampler, (arguments, *_) in styles.items():
                results[sampler].append(run(problem, arguments, step_size, seed))
        for sampler, ended in results.items():
            runs[sampler] = [history for history, *_ in ended]
            losses = np.array([history[:, 2] for history in runs[sampler]])
            table.add_row(
                sampler,
                f"{np.median(losses.min(axis=1)):.4f}",
                f"{np.median(losses[:, -5:].mean(axis=1)):.4f}",
                f"{np.median([history[-5:, 3].mean() for history in runs[sampler]]):.2%}",
                f"{np.mean([share for _, share, _ in ended]):.0%}",
                f"{np.median([tau for *_, tau in ended]):.1f}",
                f"{min(history[-1, 1] for history in runs[sampler]):.2f}",
            )
        console.print(table)
        plot(name, runs, styles, FIGURES / f"torch-{name.replace(' ', '-')}.png")


if __name__ == "__main__":
    main()
