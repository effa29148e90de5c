"""The whole: which parts there are, running them, and writing what they show."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console

from banditgrad._files import write_atomically
from banditgrad.paper import figure1, figure2, figure3, table1, text, theorem, training_time
from banditgrad.paper.cases import Cases, is_synthetic
from banditgrad.paper.claims import Section, markdown
from banditgrad.paper.display import display, duration
from banditgrad.paper.optimum import Optimum
from banditgrad.paper.runner import carry_out, plan
from banditgrad.paper.scale import Scale
from banditgrad.paper.store import Results, Store
from banditgrad.paper.tasks import Task
from banditgrad.report import Report, Table, installed_versions, this_machine, write_figures, write_html

PARTS: dict[str, ModuleType] = {
    "table1": table1,
    "figure1": figure1,
    "figure2": figure2,
    "figure3": figure3,
    "text": text,
    "time": training_time,
    "theorem": theorem,
}


def evaluate(
    names: Sequence[str], scale: Scale, out: Path, jobs: int, console: Console, cases: Cases, sweep: Any = None
) -> tuple[Report, list[Path]]:
    """Run the named parts, or what is missing of them, and write figures, CSV files, report.html and claims.md.

    Returns what is in the report, and the files, of which the page is the last.

    With a `banditgrad.dask.sweeps.Sweep` the runs are made on its cluster; outcomes are kept here all the same.
    """

    def say(words: str) -> None:
        console.print(words, highlight=False, soft_wrap=True)

    with Store(out / "runs.sqlite") as store:
        results = Results(store, cases)
        panels: dict[str, Sequence[Task]] = {}
        for name in names:
            panels.update(PARTS[name].panels(scale, cases))
        _complete(panels, results, jobs, console, say, sweep)
        sections = [PARTS[name].section(scale, results) for name in names]
        report = _report(names, scale, sections, _optima(panels, results))
    written = write_figures(report.figures, out) if report.figures else []
    written.append(write_atomically(out / "claims.md", markdown(report.claims).encode()))
    written.append(write_html(report, out / "report.html"))
    for claim in report.claims:
        say(f"{claim.verdict.value:14} {claim.statement}")
    say(f"Written: {written[-1]}")
    return report, written


def _complete(
    panels: dict[str, Sequence[Task]],
    results: Results,
    jobs: int,
    console: Console,
    say: Callable[[str], None],
    sweep: Any,
) -> None:
    jobs = jobs if sweep is None else sweep.threads
    say("Looking for what is missing; each kind of run is compiled and tried for a moment.")
    with console.status("looking") as status:
        work = plan(panels, results, status.update)
    kept = len({task for tasks in panels.values() for task in tasks}) - len(work.missing)
    if kept:
        say(f"{kept} runs are there from before.")
    if not work.missing:
        return
    say(f"{len(work.missing)} runs to do: about {duration(work.duration(jobs))} with {jobs} thread{'s'[: jobs > 1]}.")
    with display(console) as show:
        carry_out(work, results, jobs, show, sweep)


def _optima(panels: dict[str, Sequence[Task]], results: Results) -> list[Table]:
    tasks = dict.fromkeys(task for tasks in panels.values() for task in tasks if isinstance(task, Optimum))
    rows = [
        [task.case, f"{results[task]['value']:.12g}", f"{results[task]['gap']:.1e}"]
        for task in tasks
        if not (is_synthetic(task.case) and "set" in task.case)
    ]
    caption = (
        "F* is less than the value by at most the gap: on the real sets the duality gap, on the synthetic ones "
        "‖∇F‖² / (2 μ)."
    )
    return [Table("F*", ["set", "value", "gap"], rows, caption)] if rows else []


def _report(names: Sequence[str], scale: Scale, sections: Sequence[Section], more: Sequence[Table]) -> Report:
    summary = (
        "Section 4 of Salehi, Celis and Thiran, “Stochastic Optimization with Bandit Sampling”, recomputed. "
        "Verdicts are computed from the medians by fixed rules.\n\n"
        "Every run starts at w = 0; repeat r has seed r. MABS is Algorithm 1 with η = 0.4, mean(a²) learned and the "
        "exponent clipped at 1; solvers draw in blocks of 128 rows, or n/64 if these are fewer, so that p has learned "
        "from all steps but those of the last two blocks. IS has p ∝ L_i. Distances are to a certified F*."
    )
    if scale.name != "the paper's":
        summary += f"\n\nThis is a run at a smaller scale than the paper's ({scale.name})."
    settings = {field.name.replace("_", " "): getattr(scale, field.name) for field in dataclasses.fields(scale)}
    return Report(
        title="Bandit sampling: the paper's evaluation",
        summary=summary,
        claims=[claim for section in sections for claim in section.claims],
        figures=[figure for section in sections for figure in section.figures],
        tables=[table for section in sections for table in section.tables] + list(more),
        settings={"parts": ", ".join(names), **settings},
        machine=this_machine(),
        versions=installed_versions(),
    )
