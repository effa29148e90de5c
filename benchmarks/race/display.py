"""Tables for the terminal and for the docs, and the figure."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from race.contenders import OURS
from race.measure import TARGETS
from race.results import Cell, Point, summary

FLOOR = 1e-10  # distances below it are drawn there: F* is not known much better
COLOURS = {
    OURS: "#D55E00",
    "scikit-learn": "#0072B2",
    "liblinear": "#000000",
    "cyanure": "#009E73",
    "snapml": "#CC79A7",
    "skglm": "#E69F00",
    "celer": "#56B4E9",
    "tick": "#8C564B",
    "copt": "#7F7F7F",
}


def seconds(value: float) -> str:
    """Three digits at most, in seconds; a dash where the accuracy was not reached."""
    if math.isinf(value):
        return "–"
    return f"{value:.3f}" if value < 1.0 else f"{value:.2f}" if value < 10.0 else f"{value:.0f}"


def _by_task(rows: Sequence[Cell]) -> dict[str, dict[str, list[float]]]:
    """task → contender → seconds per target, in order of appearance."""
    tasks: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        tasks.setdefault(row.task, {}).setdefault(row.contender, []).append(row.cpu)
    return tasks


def _best(contenders: dict[str, list[float]]) -> list[float]:
    return [min(column) for column in zip(*contenders.values(), strict=True)]


def print_tables(console: Console, rows: Sequence[Cell], notes: dict[str, str]) -> None:
    """One table per task, the best of each column marked with a star; `notes` stand below the table of their task."""
    for task, contenders in _by_task(rows).items():
        best = _best(contenders)
        table = Table(title=f"{task}: processor seconds to F − F* ≤", title_justify="left")
        table.add_column("")
        for target in TARGETS:
            table.add_column(f"{target:.0e}", justify="right")
        for name, times in contenders.items():
            marked = [
                f"[bold green]{seconds(t)} *[/]" if t == b < math.inf else f"{seconds(t)}  "
                for t, b in zip(times, best, strict=True)
            ]
            table.add_row(f"[bold]{name}[/]" if name == OURS else name, *marked)
        console.print(table)
        if task in notes:
            console.print(notes[task], style="dim")


def markdown(rows: Sequence[Cell]) -> str:
    """The summary, one overview of our time beside the best peers', and all the tables folded away."""
    lines = [summary(rows), "", "| problem | F − F* ≤ | banditgrad | best stochastic peer | best peer |"]
    lines.append("|---|---|---|---|---|")
    for task, target in dict.fromkeys((row.task, row.target) for row in rows):
        here = [row for row in rows if (row.task, row.target) == (task, target)]
        us = min((row.cpu for row in here if row.contender == OURS), default=math.inf)
        peers = [row for row in here if row.library != OURS]
        fastest = [_fastest([row for row in peers if row.stochastic]), _fastest(peers)]
        leads = us < math.inf and us <= min((row.cpu for row in peers), default=math.inf)
        ours = f"**{seconds(us)}**" if leads else seconds(us)
        label = task if target == TARGETS[0] else ""
        lines.append(f"| {label} | {target:.0e} | {ours} | {fastest[0]} | {fastest[1]} |")
    for task, contenders in _by_task(rows).items():
        best = _best(contenders)
        lines += ["", f"<details markdown><summary>{task}</summary>", ""]
        lines.append("| | " + " | ".join(f"{target:.0e}" for target in TARGETS) + " |")
        lines.append("|---|" + "--:|" * len(TARGETS))
        for name, times in contenders.items():
            cells = [f"**{seconds(t)}**" if t == b < math.inf else seconds(t) for t, b in zip(times, best, strict=True)]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def _fastest(rows: Sequence[Cell]) -> str:
    row = min(rows, key=lambda row: row.cpu, default=None)
    return "–" if row is None or math.isinf(row.cpu) else f"{seconds(row.cpu)} {row.contender}"


def keep(table: Table, path: Path) -> None:
    """Write a table as it is shown to a CSV file, for the docs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([column.header for column in table.columns])
        writer.writerows(zip(*(column.cells for column in table.columns), strict=True))


def kept_markdown(path: Path) -> str:
    """A table that was kept."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    lines = [header, ["---"] + ["--:"] * (len(header) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def fill_document(path: Path, name: str, text: str) -> None:
    """Put the text between the lines `<!-- name: start -->` and `<!-- name: end -->` of a document."""
    start, end = f"<!-- {name}: start -->", f"<!-- {name}: end -->"
    head, found, rest = path.read_text(encoding="utf-8").partition(start)
    _, found_end, tail = rest.partition(end)
    if not (found and found_end):
        raise ValueError(f"{path} has no place for results: it needs the lines {start} and {end}.")
    path.write_text(f"{head}{start}\n\n{text.strip()}\n\n{end}{tail}", encoding="utf-8")


def draw(path: Path, points: Sequence[Point]) -> None:
    """F − F* against processor seconds, a panel per task.

    A peer is shown by the best of its contenders at each moment, we by the one with all defaults.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    tasks = list(dict.fromkeys(point.task for point in points))
    columns = 6 if len(tasks) >= 12 else min(3, len(tasks))
    rows = math.ceil(len(tasks) / columns)
    size = (max(7.0, 3.0 * columns), 2.6 * rows + 0.9)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, sharey=True, layout="constrained")
    handles = {}
    for axis, task in zip(axes.flat, tasks, strict=False):
        here = [point for point in points if point.task == task and (point.library != OURS or point.contender == OURS)]
        for library in dict.fromkeys(point.library for point in here):
            x, y = _envelope([point for point in here if point.library == library])
            if len(x) == 1:  # there in one step: a line down to it, as a point at the edge is easily missed
                x, y = [x[0], x[0]], [1.0, y[0]]
            style = {"linewidth": 2.2, "zorder": 3} if library == OURS else {"linewidth": 1.2}
            handles[library] = axis.plot(
                x, y, color=COLOURS.get(library), marker="o", markersize=2.5, label=library, **style
            )[0]
        axis.set(xscale="log", yscale="log", ylim=(FLOOR, 1.0), title=task)
        axis.xaxis.set_major_locator(LogLocator(numticks=6))
        axis.xaxis.set_minor_formatter(NullFormatter())  # else an axis of less than a decade is a heap of numbers
        axis.title.set_fontsize(9)
        axis.grid(color="#dddddd", linewidth=0.6)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes.flat[len(tasks) :]:
        axis.remove()
    figure.supxlabel("processor seconds", fontsize=9)
    figure.supylabel("F − F*", fontsize=9)
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=len(handles), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _envelope(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    """The fits that are better than every faster one."""
    x, y, least = [], [], math.inf
    for point in sorted(points, key=lambda point: point.cpu):
        if point.distance < 0.999 * least:
            least = point.distance
            x.append(point.cpu)
            y.append(max(point.distance, FLOOR))
            if least <= FLOOR:
                break
    return x, y
