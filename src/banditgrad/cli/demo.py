"""`banditgrad demo`: the main job, with nothing to give and nothing to download."""

from pathlib import Path
from typing import Annotated, Any

import typer

from banditgrad import inspection
from banditgrad.cli import inputs, options, screen
from banditgrad.cli.compare import run_and_show
from banditgrad.cli.inspect import describe, show
from banditgrad.datasets import make_imbalanced
from banditgrad.problem import Problem
from banditgrad.registry import make_loss, make_penalty

ROWS, FEATURES, ALPHA = 20_000, 300, 1e-4
PASSES, SEEDS = 20, 3


def demo(
    out: Annotated[
        Path, typer.Option("--out", help="Folder for figures and report.", metavar="DIR", file_okay=False)
    ] = Path("out/demo"),
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Generate a data set, inspect it, compare samplers on it, and write a report.

    The first time takes about a minute, most of it compilation; later runs take seconds. The data are
    sparse, of very different row norms, and one label in thirty is positive, as click logs are.

    **Examples**

    `banditgrad demo`

    `banditgrad demo --out /tmp/demo`
    """
    inputs.expect_folder(out)
    X, y = make_imbalanced(ROWS, FEATURES, seed=seed)
    file = inputs.Data("generated data", X, y.astype(int))
    problem = Problem(X, y, make_loss("log_loss"), make_penalty("l2", ALPHA, 0.0), fit_intercept=True)
    with screen.working("compiling") as say:
        found = inspection.inspect(problem, seed=seed, callback=screen.pass_by_pass(say, "a short run"))
    if not json:
        show("Generated data: sparse, imbalanced, rows of very different norm", describe(file, "log_loss", None), found)
    settings: dict[str, Any] = {
        "data": f"make_imbalanced({ROWS}, {FEATURES}, seed={seed})",
        "loss": "log_loss",
        "penalty": "l2",
        "alpha": ALPHA,
        "passes": PASSES,
        "seeds": SEEDS,
    }
    samplers = ["uniform", "importance", "mabs", "auto"]
    if not json:
        screen.out.print(f"\n[bold]Samplers compared[/] with ProxSvrg, {PASSES} passes, medians of {SEEDS} seeds")
    run_and_show(problem, "generated data", ["proxsvrg"], samplers, PASSES, SEEDS, seed, settings, out, json)
