"""`banditgrad demo`: the main job, with nothing to give and nothing to download."""

from pathlib import Path
from typing import Annotated, Any

import typer

from banditgrad import inspection
from banditgrad.cli import inputs, options, screen
from banditgrad.cli.compare import run_and_show
from banditgrad.cli.inspect import describe, show
from banditgrad.datasets import make_borderline
from banditgrad.problem import Problem
from banditgrad.registry import make_loss, make_penalty

ROWS, FEATURES, BORDERLINE, ALPHA = 20_000, 300, 0.005, 1e-5
PASSES, SEEDS = 20, 3


def demo(
    out: Annotated[
        Path, typer.Option("--out", help="Folder for figures and report.", metavar="DIR", file_okay=False)
    ] = Path("out/demo"),
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Generate a data set, inspect it, compare samplers on it, and write a report.

    The first time takes about a minute, most of it compilation; later runs take seconds. All rows of the data are
    equally long, and most are soon learned: what is left to learn is in one row of two hundred, and only their
    gradients tell which.

    **Examples**

    `banditgrad demo`

    `banditgrad demo --out /tmp/demo`
    """
    inputs.expect_folder(out)
    X, y = make_borderline(ROWS, FEATURES, borderline=BORDERLINE, seed=seed)
    file = inputs.Data("generated data", X, y.astype(int))
    problem = Problem(X, y, make_loss("log_loss"), make_penalty("l2", ALPHA, 0.0), fit_intercept=True)
    with screen.working("compiling") as say:
        found = inspection.inspect(problem, seed=seed, callback=screen.pass_by_pass(say, "a short run"))
    if not json:
        show("Generated data: rows of equal norm, one of 200 hard to learn", describe(file, "log_loss", None), found)
    settings: dict[str, Any] = {
        "data": f"make_borderline({ROWS}, {FEATURES}, borderline={BORDERLINE}, seed={seed})",
        "loss": "log_loss",
        "penalty": "l2",
        "alpha": ALPHA,
        "passes": PASSES,
        "seeds": SEEDS,
    }
    samplers = ["uniform", "importance", "mabs", "auto"]
    if not json:
        screen.out.print(f"\n[bold]Samplers compared[/] with SGD, {PASSES} passes, medians of {SEEDS} seeds")
    run_and_show(problem, "generated data", ["sgd"], samplers, PASSES, SEEDS, seed, settings, out, json)
