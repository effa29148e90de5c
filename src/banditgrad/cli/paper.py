"""`banditgrad paper`: recompute the paper's evaluation."""

import enum
import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from banditgrad.cli import app, cluster, options, screen


class Part(enum.StrEnum):
    """What to run."""

    table1 = "table1"
    figure1 = "figure1"
    figure2 = "figure2"
    figure3 = "figure3"
    text = "text"
    time = "time"
    theorem = "theorem"
    all = "all"


@app.command()
def paper(
    part: Annotated[Part, typer.Argument(help="Which part of the evaluation.")] = Part.all,
    repeats: Annotated[int | None, typer.Option(min=1, help="Runs per curve; the paper's own k unless given.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="All panels in about a minute.")] = False,
    out: Annotated[Path, typer.Option(help="Where results are kept and written.", file_okay=False)] = Path("out/paper"),
    jobs: Annotated[int, typer.Option(min=1, help="Threads.")] = os.cpu_count() or 1,
    scheduler: cluster.Scheduler = None,
    json: options.Json = False,
) -> None:
    """Recompute the paper's tables and figures, and say claim by claim what holds.

    Finished runs are kept in DIR/runs.sqlite: started again, it goes on where it was.

    **Examples**

    `banditgrad paper --quick`

    `banditgrad paper figure2 --repeats 10 --out figure2`
    """
    from banditgrad import paper as evaluation  # matplotlib and the like only where they are needed

    scale = evaluation.QUICK if quick else evaluation.PAPER
    if repeats is not None:
        scale = scale.with_repeats(repeats)
    names = list(evaluation.PARTS) if part is Part.all else [part.value]
    console = Console(highlight=False, stderr=json)
    try:
        with cluster.sweep(scheduler) as sweep:
            report, written = evaluation.evaluate(names, scale, out, jobs, console, evaluation.Cases(), sweep)
    except KeyboardInterrupt:
        console.print(f"Interrupted. What is done is kept in {out}; the same command goes on from there.")
        raise typer.Exit(screen.INTERRUPTED) from None
    if json:
        claims = [
            {"statement": claim.statement, "measured": claim.measured, "verdict": claim.verdict.value}
            for claim in report.claims
        ]
        screen.print_json({"settings": report.settings, "claims": claims, "files": list(map(str, written))})
