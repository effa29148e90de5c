"""The table as Markdown, and a page with charts."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from banditgrad.report import Curve, Figure, Panel, Report, Table, installed_versions, this_machine
from contest.cases import Settings
from contest.ranks import against, standing
from contest.results import TARGETS, Cell, last_gap, passes_to, regret, seconds_to, table
from sets import all_sets

REFERENCE = "mabs"


def _number(value: float) -> str:
    return (
        "–" if not np.isfinite(value) else f"{value:.3g}" if 1e-3 <= abs(value) < 1e4 or value == 0 else f"{value:.1e}"
    )


def halves(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """The cells of all sets, and of each half."""
    sets = all_sets()
    found = {"all sets": list(cells)}
    for half in ("tuning", "held-out"):
        found[f"{half} sets"] = [cell for cell in cells if sets[cell.problem[0]].half == half]
    return {name: mine for name, mine in found.items() if mine}


def summary(cells: Sequence[Cell], draws: dict[str, float]) -> Table:
    """One row a sampler: mean ranks, with what they are told apart by, medians of regrets, costs."""
    measures = {
        "rank: F − F* at the end": last_gap,
        "rank: passes to 1e-4": passes_to(1e-4),
        "rank: CPU s to 1e-4": seconds_to(1e-4),
        "rank: regret": regret,
    }
    tables = {name: table(cells, measure) for name, measure in measures.items()}
    standings = {name: standing(values) for name, values in tables.items()}
    p_values = against(tables["rank: F − F* at the end"], REFERENCE)
    samplers = list(standings["rank: regret"].ranks)
    paces = table(cells, lambda cell: cell.seconds_a_pass)
    rows = []
    for name in sorted(samplers, key=lambda name: standings["rank: F − F* at the end"].ranks[name]):
        mine = [cell for cell in cells if cell.sampler == name]
        rows.append(
            [
                name,
                *(f"{one.ranks[name]:.1f}" for one in standings.values()),
                "" if name == REFERENCE else _number(p_values[name]),
                _number(float(np.median([cell.regret for cell in mine]))),
                _number(max(cell.worst for cell in mine)),
                f"{float(np.median(paces[name] / paces['uniform'])):.2f}",
                f"{draws[name]:.0f}" if name in draws else "–",
            ]
        )
    first = next(iter(standings.values()))
    friedman = ", ".join(f"{one.p_value:.0e}" for one in standings.values())
    return Table(
        "Samplers over all problems",
        [
            "sampler",
            *measures,
            f"p against {REFERENCE}",
            "dynamic regret",
            "worst / uniform",
            "pass / uniform",
            "draw, ns",
        ],
        rows,
        f"Mean ranks over {first.problems} problems (set × objective × solver), 1 is best; ranks that differ by less "
        f"than {first.difference:.1f} are not told apart (Nemenyi, 5 %). Friedman's p for the four: {friedman}. p: "
        f"Wilcoxon's test of F − F* at the end against {REFERENCE}, Holm's correction. Dynamic regret: Σ V_e over the "
        "least possible of each moment, less 1, the median over problems. Worst: the largest V_e over that of uniform "
        "draws at any time. Pass: CPU time over that with uniform draws. Draw: with its p and its update, n = 50,000.",
    )


def detail(cells: Sequence[Cell]) -> list[Table]:
    """For each solver: passes and CPU seconds to every target, the median and the range over the seeds."""
    tables = []
    for solver in dict.fromkeys(cell.problem[2] for cell in cells):
        rows: list[Any] = []
        for cell in cells:
            if cell.problem[2] != solver:
                continue
            reached = [cell.passes_to(target) for target in TARGETS]
            rows.append(
                [
                    f"{cell.problem[0]}, {cell.problem[1]}",
                    cell.sampler,
                    *(_spread(values) for values in reached),
                    *(_number(cell.middle(values) * cell.seconds_a_pass) for values in reached),
                    _number(last_gap(cell)),
                    _number(float(np.median(cell.variance))),
                    _number(cell.regret),
                ]
            )
        heads = [f"passes to {target:g}" for target in TARGETS] + [f"CPU s to {target:g}" for target in TARGETS]
        header = ["problem", "sampler", *heads, "F − F* at the end", "V_e / optimal", "dynamic regret"]
        tables.append(Table(f"{solver}: every problem", header, rows, "Median over the seeds (10 to 90 % quantile)."))
    return tables


def _spread(values: Any) -> str:
    low, middle, high = np.quantile(values, (0.1, 0.5, 0.9), method="inverted_cdf")
    return _number(middle) if low == high else f"{_number(middle)} ({_number(low)} to {_number(high)})"


def figures(cells: Sequence[Cell]) -> list[Figure]:
    found = []
    for solver in dict.fromkeys(cell.problem[2] for cell in cells):
        mine = [cell for cell in cells if cell.problem[2] == solver]
        for key, label, values in (("distance", "F − F*", "gaps"), ("variance", "V_e / optimal", "variance")):
            panels = [
                _panel(f"{solver}-{key}-{k}", problem, label, [c for c in mine if c.problem == problem], values)
                for k, problem in enumerate(dict.fromkeys(cell.problem for cell in mine))
            ]
            title = f"{solver}: " + (
                "distance to the minimum" if key == "distance" else "variance over the least possible"
            )
            found.append(Figure(f"{solver}-{key}", title, panels, columns=3))
    return found


def _panel(key: str, problem: Any, label: str, cells: Sequence[Cell], values: str) -> Panel:
    curves = []
    for cell in cells:
        rows = getattr(cell, values)[:, ::2]  # every pass
        low, middle, high = np.quantile(rows, (0.1, 0.5, 0.9), axis=0, method="inverted_cdf")
        curves.append(Curve(cell.sampler, cell.passes[::2], middle, low, high, emphasised=cell.sampler == "tracking"))
    top = 10.0 * float(np.max([curve.points[1][0] for curve in curves])) if values == "gaps" else None
    return Panel(
        key.replace("/", "-"), f"{problem[0]}, {problem[1]}", "passes", label, curves, y_log=True,
        y_min=1e-12 if values == "gaps" else None, y_max=top,
    )  # fmt: skip


def report(cells: Sequence[Cell], draws: dict[str, float], settings: Settings) -> Report:
    tables = []
    for name, mine in halves(cells).items():
        one = summary(mine, draws)
        tables.append(Table(f"{one.title}: {name}", one.header, one.rows, one.caption))
    return Report(
        "Samplers under one roof",
        "Every sampler with every solver on real data: what is reached after how many passes and how much processor "
        "time, how far the variance is from the least possible, and whether differences could be chance.\n\n"
        + words(settings),
        figures=figures(cells),
        tables=[*tables, *detail(cells)],
        settings=vars(settings),
        machine=this_machine(),
        versions=installed_versions(),
    )


def words(settings: Settings) -> str:
    """What the numbers were made with."""
    rows = "all rows" if settings.rows is None else f"at most {settings.rows:,} rows of each set, chosen at random"
    form = ", dense rows stored as sparse ones" if settings.sparse else ""
    return (
        f"Settings: {len(settings.sets)} sets ({', '.join(settings.sets)}), {rows}{form}; objectives "
        f"{', '.join(settings.objectives)}, λ = 1e-4; solvers {', '.join(settings.solvers)} with the step that each "
        f"finds; {settings.passes:g} passes, {settings.seeds} seeds, a record every half pass. CPU seconds are passes "
        "times those of one pass, measured apart with the samplers taking turns."
    )


def markdown(table: Table) -> str:
    lines = [table.header, ["---"] + ["--:"] * (len(table.header) - 1), *table.rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + f"\n\n{table.caption}\n"
