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
    standardize: options.Standardize = False,
    positive: Positive = None,
    passes: Annotated[float, typer.Option("--passes", min=1.0, help="Length of the short run.")] = 15,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Look at a data file and tell whether bandit sampling is worth it.

    Prints the shape, the classes, how unlike the rows are, how long short runs took with and without adaptive sampling,
    how many uniform draws one by a sampler is worth, and a recommendation.

    **Examples**

    `banditgrad inspect a9a`

    `banditgrad inspect visits.csv --label bought --drop id`
    """
    reading = inputs.Reading(label, drop, category, number, sep, header, na, missing)
    file = inputs.read_data(data, reading, features)
    loss = inputs.choose_loss(file, loss)
    if positive is None and loss in CLASSIFICATION_LOSSES and np.unique(file.y).size > 2:
        positive = _most_frequent(file.y)
    problem = inputs.problem_of(file, loss, positive, penalty, alpha, l1_ratio, standardize)
    with screen.working("a short run") as say:
        found = inspection.inspect(problem, passes=passes, seed=seed, callback=screen.pass_by_pass(say, "a short run"))
    shape = describe(file, loss, positive, standardize)
    if json:
        screen.print_json({**shape, **as_json(found)})
    else:
        show(file.origin, shape, found)


def _most_frequent(y: Any) -> str:
    classes, counts = np.unique(y, return_counts=True)
    return str(classes[counts.argmax()])


def describe(file: inputs.Data, loss: str, positive: str | None, standardize: bool = False) -> dict[str, Any]:
    """The facts that need no run."""
    n, d = file.X.shape
    stored = int(file.X.nnz) if sp.issparse(file.X) else int(np.count_nonzero(file.X))
    shape: dict[str, Any] = {"rows": n, "features": d, "nonzeros": stored, "density": stored / (n * d), "loss": loss}
    if loss in CLASSIFICATION_LOSSES:
        shape["classes"] = inputs.by_size(file.y)
        shape["positive"] = positive if positive is not None else str(np.unique(file.y)[-1])
    else:
        y = file.y.astype(np.float64)
        shape["labels"] = {"mean": y.mean(), "deviation": y.std(), "least": y.min(), "largest": y.max()}
    shape["notes"] = [*file.notes, *(() if standardize else inputs.scale_notes(file))]
    return shape


def as_json(found: inspection.Inspection) -> dict[str, Any]:
    least, median, high, largest = found.row_norms
    return {
        "row_norms": {"least": least, "median": median, "percentile_99": high, "largest": largest},
        "tau": found.tau,
        "at_zero": {"perfect_gain": found.at_zero.perfect, "importance_gain": found.at_zero.importance},
        "near_optimum": {"perfect_gain": found.near_optimum.perfect, "importance_gain": found.near_optimum.importance},
        "proxsvrg": {"perfect_gain": found.reduced, "auto_gain": found.reduced_had},
        "half": found.half,
        "races": [race._asdict() for race in found.races],
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
            (
                "rows × features",
                f"{shape['rows']:,} × {shape['features']:,}, {inputs.percent(shape['density'])} not zero",
            ),
            ("labels", _labels(shape)),
            ("row norms", f"{least:.3g} to {largest:.3g}, median {median:.3g}, 99th percentile {high:.3g}"),
            ("τ = max L / mean L", f"{found.tau:.3g}, where 1 says that no row is longer than others"),
        ]
    )
    for note in shape["notes"]:
        screen.note(note)
    screen.table(
        ("to within 0.1 % of the best fit", "seconds", "passes"),
        [
            (_contender(race, found), screen.number(race.seconds, 2), screen.number(race.passes, 3))
            for race in found.races
        ],
    )
    screen.table(
        ("one draw is worth so many uniform ones", "importance", "auto", "perfect"),
        [
            (name, screen.number(gain.importance), "–", screen.number(gain.perfect))
            for name, gain in (("SGD at w = 0", found.at_zero), ("SGD near the optimum", found.near_optimum))
        ]
        + [("ProxSvrg, on the way", "–", screen.number(found.reduced_had), screen.number(found.reduced))],
    )
    screen.out.print(found.advice)


def _contender(race: inspection.Race, found: inspection.Inspection) -> str:
    if race.solver == found.solver and found.races[0] == race and race.sampler == "auto":
        return f"{race.solver} (the default)"
    return f"{race.solver} with the {race.sampler} sampler"


def _labels(shape: dict[str, Any]) -> str:
    if "labels" in shape:
        y = shape["labels"]
        return f"numbers from {y['least']:.4g} to {y['largest']:.4g}, mean {y['mean']:.4g}; loss {shape['loss']}"
    rest = f"; {shape['positive']} against the rest" if len(shape["classes"]) > 2 else ""
    return f"{inputs.in_shares(shape['classes'])}{rest}; loss {shape['loss']}"
