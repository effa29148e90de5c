"""Tables for the terminal and for the docs, and the figure."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from race.contenders import OURS
from race.measure import TARGETS
from race.problems import half
from race.results import Cell, Standing, by_cell, our_time, standings, worst_seeds

HALVES = ("tuning", "held-out")
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
    "glum": "#F0E442",
    "blitzl1": "#332288",
    "adelie": "#117733",
}


def seconds(value: float) -> str:
    """With a unit; a dash where the accuracy was not reached."""
    if math.isinf(value):
        return "–"
    if value < 0.1:
        return f"{1e3 * value:.2g} ms" if value < 0.01 else f"{1e3 * value:.0f} ms"
    return f"{value:.2f} s" if value < 10.0 else f"{value:.0f} s"


def _by_task(rows: Sequence[Cell]) -> dict[str, dict[str, dict[float, float]]]:
    """task → contender → target → seconds of the worst seed, in order of appearance."""
    tasks: dict[str, dict[str, dict[float, float]]] = {}
    for row in worst_seeds(rows):
        tasks.setdefault(row.task, {}).setdefault(row.contender, {})[row.target] = row.cpu
    return tasks


def print_tables(console: Console, rows: Sequence[Cell], notes: dict[str, str]) -> None:
    """One table per task, the best of each column marked with a star; `notes` stand below the table of their task."""
    for task, contenders in _by_task(rows).items():
        targets = list(next(iter(contenders.values())))
        best = {target: min(times[target] for times in contenders.values()) for target in targets}
        table = Table(title=f"{task} ({half(task)}): processor seconds to F − F* ≤", title_justify="left")
        table.add_column("")
        for target in targets:
            table.add_column(f"{target:.0e}", justify="right")
        for name, times in contenders.items():
            marked = [
                f"[bold green]{seconds(t)} *[/]" if t == best[target] < math.inf else f"{seconds(t)}  "
                for target, t in times.items()
            ]
            table.add_row(f"[bold]{name}[/]" if name == OURS else name, *marked)
        console.print(table)
        if task in notes:
            console.print(notes[task], style="dim")


def print_standings(console: Console, rows: Sequence[Cell]) -> None:
    table = Table("", *STANDING)
    for title, result in standings(rows):
        table.add_row(title, *_counts(result))
    console.print(table)


STANDING = ("cells", "first", "within 1.25x", "behind", "by more than 2x")


def _counts(result: Standing) -> list[str]:
    return [str(count) for count in (result.cells, result.first, result.near, result.behind, result.far)]


def summary(rows: Sequence[Cell]) -> str:
    """How we stand on both halves."""
    lines = [f"| | {' | '.join(STANDING)} |", "|---" + "|--:" * len(STANDING) + "|"]
    lines += [f"| {title} | {' | '.join(_counts(result))} |" for title, result in standings(rows)]
    return "\n".join(lines)


def tables(rows: Sequence[Cell]) -> str:
    """For each half, folded away: one row for each problem, our time and the best peer's at each accuracy."""
    lines = []
    for side in HALVES:
        mine = worst_seeds(row for row in rows if half(row.task) == side)
        if not mine:
            continue
        lines += [f"<details markdown><summary>Every problem, {side}</summary>", ""]
        lines.append(f"| F − F* ≤ | {' | '.join(f'{target:.0e}' for target in TARGETS)} |")
        lines.append("|---" * (1 + len(TARGETS)) + "|")
        cells = by_cell(mine)
        for task in dict.fromkeys(row.task for row in mine):
            columns = [_ours_and_best(cells.get((task, target), [])) for target in TARGETS]
            lines.append(f"| {task} | {' | '.join(columns)} |")
        lines += ["", "</details>", ""]
    return "\n".join(lines)


def _ours_and_best(here: Sequence[Cell]) -> str:
    """Our time, bold where it is first, and the fastest peer."""
    us = our_time(here)
    peer = min((row for row in here if row.library != OURS), key=lambda row: row.cpu, default=None)
    if peer is None:
        return ""
    ours = f"**{seconds(us)}**" if us < math.inf and us <= peer.cpu else seconds(us)
    return f"{ours} / {seconds(peer.cpu)}" + (f" {peer.contender}" if peer.cpu < math.inf else "")


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


def draw(path: Path, rows: Sequence[Cell]) -> None:
    """Of how many cells does each library need at most τ times what the fastest needs? A panel for each half.

    A library is shown by the best of its contenders in each cell, we by the one with all defaults.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    halves = [side for side in HALVES if any(half(row.task) == side for row in rows)]
    size = (max(5.0, 4.2 * len(halves)), 3.4)
    figure, axes = plt.subplots(1, len(halves), figsize=size, squeeze=False, sharey=True, layout="constrained")
    handles = {}
    for axis, side in zip(axes.flat, halves, strict=True):
        for library, shares in _profiles([row for row in rows if half(row.task) == side]).items():
            style = {"linewidth": 2.4, "zorder": 3} if library == OURS else {"linewidth": 1.2}
            handles[library] = axis.plot(FACTORS, shares, color=COLOURS.get(library), label=library, **style)[0]
        axis.set(xscale="log", ylim=(0.0, 1.02), title=side, xlabel="times the fastest")
        axis.set_xticks([1, 2, 5, 10], ["1", "2", "5", "10"])
        axis.minorticks_off()
        axis.grid(color="#dddddd", linewidth=0.6)
        axis.spines[["top", "right"]].set_visible(False)
    axes.flat[0].set_ylabel("share of cells")
    figure.legend(handles.values(), handles.keys(), loc="outside right upper", frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


FACTORS = [10.0 ** (k / 40) for k in range(45)]


def _profiles(rows: Sequence[Cell]) -> dict[str, list[float]]:
    """library → its share of cells at each factor; cells that it does not solve count against it."""
    ratios: dict[str, list[float]] = {}
    cells = [here for here in by_cell(worst_seeds(rows)).values() if min(row.cpu for row in here) < math.inf]
    for here in cells:
        best = min(row.cpu for row in here if row.library != OURS or row.contender == OURS)
        for library in dict.fromkeys(row.library for row in here):
            times = [row.cpu for row in here if row.library == library and (library != OURS or row.contender == OURS)]
            ratios.setdefault(library, []).append(min(times, default=math.inf) / best)
    return {
        library: [sum(ratio <= factor for ratio in mine) / len(cells) for factor in FACTORS]
        for library, mine in ratios.items()
    }
