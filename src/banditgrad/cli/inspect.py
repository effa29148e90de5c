"""`banditgrad inspect`: is bandit sampling worth it on these data?"""

from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
import typer

from banditgrad import inspection
from banditgrad.cli import inputs, options, screen
from banditgrad.registry import CLASSIFICATION_LOSSES

Positive = Annotated[str | None, typer.Option("--positive", help="The class to set against the rest.", metavar="LABEL")]


def inspect(
    data: options.DataFiles,
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
    positive: Positive = None,
    passes: Annotated[float, typer.Option("--passes", min=1.0, help="Length of the short run.")] = 15,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Look at a data file and tell whether bandit sampling is worth it.

    Prints the shape, the classes, how unlike the rows are (τ), the variance that perfect sampling would save at the
    start and near the optimum, found by a short run, and a recommendation.

    **Examples**

    `banditgrad inspect a9a`

    `banditgrad inspect visits.csv --label bought --drop id`
    """
    reading = inputs.Reading(label, drop, category, number, sep, header, na, missing)
    file = inputs.read_data(data, reading, features)
    loss = inputs.choose_loss(file, loss)
    if positive is None and loss in CLASSIFICATION_LOSSES and np.unique(file.y).size > 2:
        positive = _most_frequent(file.y)
    problem = inputs.problem_of(file, loss, positive, penalty, alpha, l1_ratio)
    with screen.working("a short run") as say:
        found = inspection.inspect(problem, passes=passes, seed=seed, callback=screen.pass_by_pass(say, "a short run"))
    shape = describe(file, loss, positive)
    if json:
        screen.print_json({**shape, **as_json(found)})
    else:
        show(file.origin, shape, found)


def _most_frequent(y: Any) -> str:
    classes, counts = np.unique(y, return_counts=True)
    return str(classes[counts.argmax()])


def describe(file: inputs.Data, loss: str, positive: str | None) -> dict[str, Any]:
    """The facts that need no run."""
    n, d = file.X.shape
    stored = int(file.X.nnz) if sp.issparse(file.X) else int(np.count_nonzero(file.X))
    shape: dict[str, Any] = {"rows": n, "features": d, "nonzeros": stored, "density": stored / (n * d), "loss": loss}
    if loss in CLASSIFICATION_LOSSES:
        classes, counts = np.unique(file.y, return_counts=True)
        shape["classes"] = {str(name): int(count) for name, count in zip(classes, counts, strict=True)}
        shape["positive"] = positive if positive is not None else str(classes[-1])
    else:
        y = file.y.astype(np.float64)
        shape["labels"] = {"mean": y.mean(), "deviation": y.std(), "least": y.min(), "largest": y.max()}
    return shape


def as_json(found: inspection.Inspection) -> dict[str, Any]:
    least, median, high, largest = found.row_norms
    return {
        "row_norms": {"least": least, "median": median, "percentile_99": high, "largest": largest},
        "tau": found.tau,
        "at_zero": {"perfect_gain": found.at_zero.perfect, "importance_gain": found.at_zero.importance},
        "near_optimum": {"perfect_gain": found.near_optimum.perfect, "importance_gain": found.near_optimum.importance},
        "proxsvrg": {"perfect_gain": found.reduced, "auto_gain": found.reduced_had},
        "short_run": {"value": found.value, "passes": found.passes},
        "worth_it": found.worth,
        "solver": found.solver,
        "sampler": found.sampler,
        "advice": found.advice,
    }


def show(title: str, shape: dict[str, Any], found: inspection.Inspection) -> None:
    """The findings on the screen."""
    least, median, high, largest = found.row_norms
    screen.out.print(f"[bold]{screen.escape(title)}[/]")
    screen.facts(
        [
            ("rows × features", f"{shape['rows']:,} × {shape['features']:,}, {shape['density']:.2%} not zero"),
            ("labels", _labels(shape)),
            ("row norms", f"{least:.3g} to {largest:.3g}, median {median:.3g}, 99th percentile {high:.3g}"),
            ("τ = max L / mean L", f"{found.tau:.3g}"),
        ]
    )
    screen.table(
        ("variance, uniform = 1", "importance (p ∝ L)", "perfect sampling", "saved by perfect"),
        [
            (name, f"{1 / gain.importance:.2f}", f"{1 / gain.perfect:.2f}", f"{gain.saved:.0%}")
            for name, gain in (("SGD at w = 0", found.at_zero), ("SGD near the optimum", found.near_optimum))
        ]
        + [("ProxSvrg, on the way", "", f"{1 / found.reduced:.2f}", f"{1 - 1 / found.reduced:.0%}")],
    )
    screen.out.print(found.advice)


def _labels(shape: dict[str, Any]) -> str:
    if "labels" in shape:
        y = shape["labels"]
        return f"numbers from {y['least']:.4g} to {y['largest']:.4g}, mean {y['mean']:.4g}; loss {shape['loss']}"
    shares = [f"{name} {count / shape['rows']:.1%}" for name, count in shape["classes"].items()]
    words = ", ".join(shares[:10]) + (", ..." if len(shares) > 10 else "")
    rest = f"; {shape['positive']} against the rest" if len(shares) > 2 else ""
    return f"{len(shares)} classes: {words}{rest}; loss {shape['loss']}"
