"""`banditgrad compare`: the paper's comparison on the user's own data."""

from pathlib import Path
from typing import Annotated, Any

import typer

from banditgrad.cli import cluster, inputs, options, screen
from banditgrad.cli.inspect import Positive
from banditgrad.problem import Problem
from banditgrad.registry import SAMPLERS, SOLVERS, make_solver
from banditgrad.report import Report, comparison, write_figures, write_html


def compare(
    data: options.DataFiles,
    samplers: Annotated[
        str,
        typer.Option(
            "--samplers",
            callback=options.list_of(SAMPLERS),
            help=f"Some of {', '.join(SAMPLERS)}.",
            **options.complete_list(SAMPLERS),
        ),
    ] = "uniform,importance,mabs,auto",
    solvers: Annotated[
        str,
        typer.Option(
            "--solvers",
            callback=options.list_of(SOLVERS),
            help=f"Some of {', '.join(SOLVERS)}.",
            **options.complete_list(SOLVERS),
        ),
    ] = "sgd,proxsvrg",
    out: Annotated[
        Path, typer.Option("--out", help="Folder for figures and report.", metavar="DIR", file_okay=False)
    ] = Path("out/compare"),
    passes: Annotated[float, typer.Option("--passes", min=1.0, help="Passes over the data of each run.")] = 30,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Runs of each pair, with different seeds.")] = 3,
    label: options.Label = None,
    drop: options.Drop = None,
    category: options.Category = None,
    number: options.Number = None,
    sep: options.Sep = None,
    header: options.Header = None,
    na: options.Na = None,
    missing: options.Missing = "impute",
    features: options.Features = None,
    loss: options.LossName = "auto",
    penalty: options.PenaltyName = "l2",
    alpha: options.Alpha = 1e-4,
    l1_ratio: options.L1Ratio = 0.15,
    standardize: options.Standardize = False,
    positive: Positive = None,
    seed: options.Seed = 0,
    scheduler: cluster.Scheduler = None,
    json: options.Json = False,
) -> None:
    """Run solvers with several samplers on the same data and write a table, figures and a report.

    Steps are found automatically. Ctrl-C ends it and reports the runs that were done.

    **Examples**

    `banditgrad compare a9a --penalty l1 --alpha 1e-3`

    `banditgrad compare w8a --seeds 20 --scheduler tcp://10.0.0.1:8786`

    `banditgrad compare visits.csv --label bought --samplers uniform,mabs --solvers saga --out report`
    """
    reading = inputs.Reading(label, drop, category, number, sep, header, na, missing)
    file = inputs.read_data(data, reading, features)
    loss = inputs.choose_loss(file, loss)
    inputs.expect_folder(out)
    problem = inputs.problem_of(file, loss, positive, penalty, alpha, l1_ratio, standardize)
    settings = {
        "data": file.origin,
        "loss": loss,
        "penalty": penalty,
        "alpha": alpha,
        **({"l1_ratio": l1_ratio} if penalty == "elasticnet" else {}),
        **({"standardize": True} if standardize else {}),
        **({"label": label} if label else {}),
        **({"positive": positive} if positive else {}),
        "passes": passes,
        "seeds": seeds,
        "first seed": seed,
        "τ": f"{problem.tau:.3g}",
    }
    run_and_show(
        problem,
        Path(file.origin).name,
        solvers.split(","),
        samplers.split(","),
        passes,
        seeds,
        seed,
        settings,
        out,
        json,
        scheduler,
    )


def run_and_show(
    problem: Problem,
    name: str,
    solvers: list[str],
    samplers: list[str],
    passes: float,
    seeds: int,
    seed: int,
    settings: dict[str, Any],
    out: Path,
    json: bool = False,
    scheduler: str | None = None,
) -> None:
    """Compare, print the table, write figures and report; exit with 130 where it was interrupted."""
    with cluster.sweep(scheduler) as sweep, screen.working("comparing") as say:
        found = comparison.compare(
            problem,
            {solver: make_solver(solver) for solver in solvers},
            {sampler: SAMPLERS[sampler]() for sampler in samplers},
            passes=passes,
            seeds=seeds,
            seed=seed,
            tell=lambda words: say(f"comparing: {words}"),
            **({} if sweep is None else {"each": sweep.in_order}),
        )
        if found.outcomes:
            summary = (
                f"{problem.n:,} rows, {problem.d:,} features, τ = {problem.tau:.3g}. Each solver ran {passes:g} passes "
                f"with each sampler and {seeds} seed{'s'[: seeds > 1]}; only the sampler differs within a panel."
            )
            report = found.report(f"Samplers compared on {name}", summary, settings)
            page = write_html(report, out / "report.html")
            figures, remark = _write_figures(report, out)
    if not found.outcomes:
        screen.err.print("[yellow]Interrupted[/] before the first run was done: nothing to report.")
        raise typer.Exit(screen.INTERRUPTED)
    if json:
        screen.print_json(
            {
                "settings": settings,
                "minimum": found.best,
                "runs": found.rows(),
                "verdict": found.verdict,
                "report": str(page),
                "figures": [str(path) for path in figures],
                "interrupted": found.interrupted,
            }
        )
    else:
        _show(found)
        screen.out.print(found.verdict)
        beside = ", with figures and CSV files beside it" if figures else ""
        screen.out.print(f"Report: {screen.escape(str(page))}{beside}")
        if remark:
            screen.err.print(f"[yellow]Note:[/] {screen.escape(remark)}")
    if found.interrupted:
        screen.err.print("[yellow]Interrupted:[/] only the runs that were done are reported.")
        raise typer.Exit(screen.INTERRUPTED)


def _write_figures(report: Report, out: Path) -> tuple[list[Path], str]:
    """The files, and why there are none where matplotlib is absent: the page does without it."""
    try:
        return write_figures(report.figures, out), ""
    except ImportError as error:
        return [], str(error)


def _show(found: comparison.Comparison) -> None:
    screen.table(
        ("solver", "sampler", "F − F*", "passes to 0.1 %", "variance / uniform", "/ optimal", "seconds"),
        [
            (
                row["solver"],
                row["sampler"],
                "diverged" if row["diverged"] else f"{row['gap']:.1e}",
                screen.number(row["passes_to_near"]),
                screen.number(row["variance_vs_uniform"], 2),
                screen.number(row["variance_vs_optimal"], 2),
                f"{row['seconds']:.2f}",
            )
            for row in found.rows()
        ],
        left=2,
    )
