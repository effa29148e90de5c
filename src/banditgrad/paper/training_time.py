"""Training time on high-dimensional dense data: SGD with MABS, and with IS and its preprocessing, beside uniform SGD.

IS needs the row norms for its p. MABS takes the a_i from them too, without a second look at the row; it could do
without, so its steps are also told alone.
"""

from collections.abc import Sequence

from banditgrad.paper.cases import Cases
from banditgrad.paper.claims import Section, judge, number
from banditgrad.paper.scale import Scale
from banditgrad.paper.store import Results
from banditgrad.paper.tasks import Outcome, Task
from banditgrad.paper.timing import GRADIENT, SAMPLERS, SMOOTHNESS, Timing
from banditgrad.report import Claim, Table

PASSES = (1, 10, 30)  # lengths of training over which the preprocessing is spread
PRINTED = {"MABS": 0.10, GRADIENT: 0.40}


def _task(scale: Scale) -> Timing:
    return Timing(scale.time_rows, scale.time_features, scale.time_rounds)


def panels(scale: Scale, cases: Cases) -> dict[str, Sequence[Task]]:
    return {"time": [_task(scale)]}


def overhead(measured: Outcome, sampler: str, passes: int) -> float:
    """The time of training with a sampler over that with uniform sampling, less 1."""
    preparation = 0.0 if sampler == "uniform" else measured["norms"]
    return (preparation + passes * measured[sampler]) / (passes * measured["uniform"]) - 1.0


def steps_only(measured: Outcome, sampler: str) -> float:
    """The same, without preprocessing."""
    return measured[sampler] / measured["uniform"] - 1.0


def section(scale: Scale, results: Results) -> Section:
    measured = results[_task(scale)]
    rows = [
        [
            name,
            number(measured[name]),
            number(0.0 if name == "uniform" else measured["norms"]),
            _percent(steps_only(measured, name)),
            *(_percent(overhead(measured, name, passes)) for passes in PASSES),
            _percent(PRINTED[name]) if name in PRINTED else "",
        ]
        for name in SAMPLERS
    ]
    header = ["sampler", "seconds per pass", "preprocessing", "steps only", *(f"T = {k} n" for k in PASSES), "printed"]
    caption = (
        f"SGD on logistic regression, {scale.time_rows:,} dense rows of {scale.time_features:,} float32 features; one "
        f"thread, minima over {scale.time_rounds} interleaved rounds. The columns after are the extra time over "
        "uniform SGD: of the steps, and with the preprocessing spread over T draws."
    )
    return Section(_claims(scale, measured), [], [Table("Training time", header, rows, caption)])


def _percent(value: float) -> str:
    return f"{100 * value:+.0f} %".replace("-", "−")


def _claims(scale: Scale, measured: Outcome) -> list[Claim]:
    longest, shortest = PASSES[-1], PASSES[0]
    extra = {name: {passes: overhead(measured, name, passes) for passes in PASSES} for name in SAMPLERS}

    def told(name: str) -> str:
        spread = ", ".join(f"{_percent(extra[name][passes])} for T = {passes} n" for passes in PASSES)
        return f"steps alone {_percent(steps_only(measured, name))}; with the pass for the row norms {spread}"

    naive_days = measured["one eigenvalue"] * scale.time_rows / 86400
    rule_days = measured["norms"] / 86400
    size = f"n = {scale.time_rows:,}, d = {scale.time_features:,}"
    return [
        Claim(
            "Training time (d = 4000, n = 50000): SGD with MABS uses only 10 % more clock time than SGD.",
            f"{size}: {told('MABS')}.",
            judge([steps_only(measured, "MABS") <= 0.105, extra["MABS"][longest] <= 0.105]),
        ),
        Claim(
            "Training time: SGD with IS and p ∝ G_i uses 40 % more clock time than SGD.",
            f"{size}: {told(GRADIENT)}.",
            judge([extra[GRADIENT][passes] >= 0.40 for passes in (shortest, longest)]),
        ),
        Claim(
            "Training time: with p ∝ L_i IS is so slow that it did not terminate.",
            f"{size}: {told(SMOOTHNESS)}, as L_i = ‖x_i‖² / 4 needs one pass ({number(measured['norms'])} s). As "
            f"eigenvalues of n Hessians, which ignores the model's form, they would take {number(naive_days)} days.",
            judge([rule_days > 1.0, naive_days > 1.0]),
        ),
    ]
