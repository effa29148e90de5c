"""What does sampling save in training networks, and did the meter know? Shuffling with several budgets, random pruning,
InfoBatch, bandits with and without replacement, groups, on eight tasks.

Every run's step size falls linearly to zero; the first step size is the best for shuffling with the same budget, within
a factor of 1.3, by the test loss of one run. "Steps by gain": the step size is as much larger, and the schedule as much
faster, as the meter says (`GainSchedule`). One process, one thread; seconds are CPU seconds of drawing, loading,
training and feedback. Stopped, it goes on where it was. Real data are found through BANDITGRAD_DATA.
"""

import argparse
import math
import time
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from study.contenders import LADDER, all_contenders, candidates
from study.journal import Journal, Key
from study.rivals import Contender, shuffling
from study.tasks import TASKS, Task
from study.training import train
from study.verdict import budget_needed, limited_by_samples, row

FIGURE = Path(__file__).parent.parent / "docs" / "figures" / "torch-study.png"
TUNING_SEED = 1000
FINER = 1.7  # about √3, the ratio of the step sizes that are tried first
SHOWN = {
    "shuffling": "#4477AA",
    "InfoBatch": "#EE6677",
    "bandit": "#AA3377",
    "bandit, steps by gain": "#228833",
    "groups, steps by gain": "#CCBB44",
}


class Study:
    def __init__(self, journal: Journal, size: float, epochs: float, seconds: float) -> None:
        self.journal, self.size, self.epochs = journal, size, epochs
        self.end = time.monotonic() + seconds

    @property
    def over(self) -> bool:
        return time.monotonic() > self.end

    def outcome(self, task: Task, contender: Contender, step_size: float, seed: int):
        key = Key(task.name, contender.name, step_size, seed, self.size, self.epochs)
        if key not in self.journal.outcomes:
            self.journal.add(key, train(task, contender, step_size, seed), contender.ours)
        return self.journal.outcomes[key]

    def step_size(self, task: Task, budget: float) -> float:
        """The one with which shuffling within a budget ends with the least test loss: of three, of larger or smaller
        ones as long as these are better, and of two closer to the best."""

        def loss(step_size: float) -> float:
            end = self.outcome(task, shuffling(budget), step_size, TUNING_SEED).end.loss
            return end if math.isfinite(end) else math.inf

        tried = sorted(task.step_sizes)
        while (best := min(tried, key=loss)) in (tried[0], tried[-1]):
            tried = sorted([*tried, best * FINER**2 if best == tried[-1] else best / FINER**2])
        return min((best / FINER, best, best * FINER), key=loss)

    def run(self, tasks: list[Task], contenders: list[Contender], seeds: int, console: Console) -> None:
        steps = {}
        for task in tasks:
            for budget in dict.fromkeys(one.budget for one in contenders):
                if self.over:
                    return
                steps[task.name, budget] = self.step_size(task, budget)
                console.print(f"{task.name}, budget {budget:g}: step size {steps[task.name, budget]:.3g}")
        for seed in range(seeds):
            for task in tasks:
                for contender in contenders:
                    if self.over:
                        return
                    outcome = self.outcome(task, contender, steps[task.name, contender.budget], seed)
                    console.print(f"{task.name}, {contender.name}, {seed}: {outcome.end}, saving {outcome.saving:.3g}")


def warm_up(contenders: list[Contender]) -> None:
    """What is compiled at first is not to count."""
    for contender in contenders:
        train(TASKS["recommender"](0.01)._replace(epochs=1), contender, 0.01, TUNING_SEED)


def runs_of(journal: Journal, size: float, epochs: float) -> dict:
    """Outcomes by task and contender, one per seed."""
    runs: dict = {}
    for key, outcome in journal.outcomes.items():
        if (key.size, key.epochs) == (size, epochs) and key.seed != TUNING_SEED:
            runs.setdefault(key.task, {}).setdefault(key.contender, []).append(outcome)
    return runs


def tables(runs: dict) -> Iterator[tuple[str, dict, dict, dict]]:
    """For each task: rows by contender, and shuffling's test and training loss by budget."""
    for task, by_contender in runs.items():
        if "shuffling" in by_contender:
            base = by_contender["shuffling"]
            rows = {name: row(outcomes, base) for name, outcomes in by_contender.items()}
            rungs = {b: rows[name] for b in LADDER if (name := shuffling(b).name) in rows}
            ladders = ({b: getattr(one, kind) for b, one in rungs.items()} for kind in ("loss", "train_loss"))
            yield task, rows, *ladders


def report(runs: dict, console: Console) -> None:
    for task, rows, on_test, on_train in tables(runs):
        seeds = len(runs[task]["shuffling"])
        table = Table(title=f"{task}, {seeds} seeds", title_justify="left")
        for column in (
            *("contender", "samples", "loss", "±%", "error", "macro", "train loss", "CPU s"),
            *("worth", "of training", "noise", "τ", "promised", "adaptive"),
        ):
            table.add_column(column, justify="left" if column == "contender" else "right")
        base = rows["shuffling"]
        for name, one in rows.items():
            worth = [
                f"{budget_needed(ladder, loss) / one.share:.2f}" if limited_by_samples(ladder) else "-"
                for ladder, loss in ((on_test, one.loss), (on_train, one.train_loss))
            ]
            numbers = (
                *(f"{one.share:.2f}", f"{one.loss:.4g}", f"{100 * (one.loss / base.loss - 1):+.1f}"),
                *(f"{one.error:.4f}", f"{one.macro:.4f}", f"{one.train_loss:.4g}", f"{one.seconds:.2f}"),
                *worth,
                *(f"{one.noise_scale:.3g}", f"{one.tau:.3g}", f"{one.promised:.3g}", f"{one.adaptive:.2f}"),
            )
            table.add_row(name, *(number.replace("nan", "-").replace("inf", "-") for number in numbers))
        console.print(table)


def plot(runs: dict) -> None:
    """Test loss against samples, medians."""
    columns = max(1, min(4, len(runs)))
    rows = -(-max(1, len(runs)) // columns)
    size = (3.5 * columns, 3.0 * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    for axis, (task, by_contender) in zip(axes.flat, runs.items(), strict=False):
        for name, colour in SHOWN.items():
            if outcomes := by_contender.get(name):
                looks = np.median([[(a.samples, a.loss) for a in one.looks[1:]] for one in outcomes], axis=0)
                axis.plot(*looks.T, color=colour, label=name, linewidth=1.3)
        axis.set(title=task, xlabel="samples", yscale="log")
        axis.grid(alpha=0.3, which="both")
    axes.flat[0].set_ylabel("test loss")
    axes.flat[0].legend(fontsize=7)
    figure.savefig(FIGURE, dpi=70)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--contenders", nargs="+", help="their names; all unless given")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--size", type=float, default=1.0, help="the share of the training samples")
    parser.add_argument("--epochs", type=float, default=1.0, help="the share of each task's epochs")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no run after so many")
    parser.add_argument("--out", type=Path, default=Path("out/torch-study.jsonl"))
    parser.add_argument("--report", action="store_true", help="only show what was run, and draw the figure")
    parser.add_argument("--candidates", action="store_true", help="the rules among which the default is chosen")
    options = parser.parse_args()
    torch.set_num_threads(1)
    console, journal = Console(width=200), Journal(options.out)
    if not options.report:
        contenders = [shuffling(), *candidates()] if options.candidates else all_contenders()
        if options.contenders:
            contenders = [each for each in contenders if each.name in options.contenders]
        study = Study(journal, options.size, options.epochs, 60.0 * options.minutes)
        tasks = [TASKS[name](options.size) for name in options.tasks]
        tasks = [task._replace(epochs=max(1, round(options.epochs * task.epochs))) for task in tasks]
        warm_up(contenders)
        study.run(tasks, contenders, options.seeds, console)
    runs = runs_of(journal, options.size, options.epochs)
    report(runs, console)
    plot(runs)


if __name__ == "__main__":
    main()
