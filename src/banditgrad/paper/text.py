"""What the text of section 4 says of S2GD and of the quasi-Newton method, in several readings of the set-up.

The paper names the step sizes and the memory of the quasi-Newton method, but neither set, nor T, nor batch sizes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditgrad.paper.cases import Cases, synthetic
from banditgrad.paper.claims import Section, judge, number, times
from banditgrad.paper.optimum import Optimum
from banditgrad.paper.scale import REAL_SETS, Scale
from banditgrad.paper.store import Results
from banditgrad.paper.tasks import Run, Task
from banditgrad.report import Claim, Table
from banditgrad.report.contents import Cell

PRINTED = {"S2GD": 10.0, "SQN": 13.6}
STEPS = {"S2GD": 1.0, "SQN": 1e-4}
MEMORY = 200
SYNTHETIC = synthetic(20.0)
FLOOR, DIVERGED = 1e-12, 1e3  # distances to F*: below, rounding; above, hopeless
SAMPLERS = ("uniform", "MABS")


@dataclass(frozen=True)
class Reading:
    """One way to understand the set-up."""

    words: str
    case: str
    solver: str
    options: tuple[tuple[str, Any], ...]
    draws: int

    def runs(self, scale: Scale, sampler: str) -> list[Run]:
        return [
            Run(self.case, self.solver, self.options, sampler, self.draws, seed=seed)
            for seed in range(scale.text_repeats)
        ]


def _readings(scale: Scale, cases: Cases) -> list[Reading]:
    return [*_s2gd_readings(scale, cases), *_sqn_readings(scale, cases)]


def _s2gd_readings(scale: Scale, cases: Cases) -> list[Reading]:
    options = (("step_size", STEPS["S2GD"]),)
    readings = [
        Reading(f"{name}, T = {passes} n", name, "S2GD", options, passes * cases[name].problem.n)
        for name in REAL_SETS
        for passes in scale.s2gd_passes
    ]
    if scale.text_synthetic:
        readings.append(Reading("synthetic, τ = 20, T = 3000", SYNTHETIC, "S2GD", options, 3000))
    return readings


def _sqn_readings(scale: Scale, cases: Cases) -> list[Reading]:
    readings = []
    for batch, passes in scale.sqn_passes:
        for hessian in scale.sqn_hessian_batches:
            options = (
                ("step_size", STEPS["SQN"]),
                ("batch_size", batch),
                ("hessian_batch_size", hessian),
                ("memory", MEMORY),
            )
            for name in REAL_SETS:
                steps = max(1, round(passes * cases[name].problem.n / batch))
                words = f"{name}, batch {batch}, Hessian batch {hessian}, T = {passes:g} n"
                readings.append(Reading(words, name, "SQN", options, steps * batch))
            if scale.text_synthetic:
                words = f"synthetic, τ = 20, batch {batch}, Hessian batch {hessian}, 3000 steps"
                readings.append(Reading(words, SYNTHETIC, "SQN", options, 3000 * batch))
    return readings


def panels(scale: Scale, cases: Cases) -> dict[str, Sequence[Task]]:
    tasks: dict[str, Sequence[Task]] = {}
    for solver in PRINTED:
        readings = [reading for reading in _readings(scale, cases) if reading.solver == solver]
        optima = dict.fromkeys(Optimum(reading.case) for reading in readings)
        runs = [run for reading in readings for sampler in SAMPLERS for run in reading.runs(scale, sampler)]
        tasks[f"text-{solver}"] = [*optima, *runs]
    return tasks


@dataclass(frozen=True)
class Measured:
    """Median distances to F* at T."""

    reading: Reading
    uniform: float
    mabs: float

    @property
    def ratio(self) -> float:
        """How many times closer MABS is; not a number where a method diverged or both are at the optimum."""
        told = max(self.uniform, self.mabs)
        return self.uniform / self.mabs if FLOOR < told < DIVERGED else math.nan


def _measure(scale: Scale, results: Results, reading: Reading) -> Measured:
    best = results[Optimum(reading.case)]["value"]
    finals = {
        sampler: [results[run]["value"][-1] - best for run in reading.runs(scale, sampler)] for sampler in SAMPLERS
    }
    uniform, mabs = (max(float(np.median(finals[sampler])), FLOOR) for sampler in SAMPLERS)
    return Measured(reading, uniform, mabs)


def section(scale: Scale, results: Results) -> Section:
    measured = [_measure(scale, results, reading) for reading in _readings(scale, results.cases)]
    claims = [_claim(solver, [one for one in measured if one.reading.solver == solver]) for solver in PRINTED]
    rows: list[list[Cell]] = [
        [
            one.reading.solver,
            one.reading.words,
            number(one.uniform),
            number(one.mabs),
            number(one.ratio) if math.isfinite(one.ratio) else "–",
            PRINTED[one.reading.solver],
        ]
        for one in measured
    ]
    header = ["solver", "reading", "uniform", "MABS", "ratio", "printed"]
    caption = (
        f"Medians of F(w^T) − F* over {scale.text_repeats} runs, S2GD with step 1, SQN with step 1e-4 and memory "
        f"{MEMORY}. No ratio where a method diverged or both are within {FLOOR:g} of F*, which stands for less."
    )
    return Section(claims, [], [Table("In the text: S2GD and quasi-Newton", header, rows, caption)])


def _claim(solver: str, measured: list[Measured]) -> Claim:
    printed = PRINTED[solver]
    usable = [one for one in measured if math.isfinite(one.ratio)]
    name = {"S2GD": "S2GD with step size 1", "SQN": "Quasi-Newton with step size 1e-4 and M = 200"}[solver]
    statement = f"In the text: {name}: with MABS it is {printed:g} times closer to the optimal value."
    if not usable:
        return Claim(statement, "no reading tells the two apart.", judge([False]))
    closest = min(usable, key=lambda one: abs(math.log(one.ratio / printed)))
    better = sum(one.ratio > 1.0 for one in usable)
    near = [printed / 2 <= one.ratio <= printed * 2 for one in usable]
    told = (
        f"{times(closest.ratio)} in the closest of {len(measured)} readings ({closest.reading.words}); MABS is closer "
        f"in {better} of {len(usable)} readings that tell the two apart, "
        f"from {times(min(one.ratio for one in usable))} to {times(max(one.ratio for one in usable))}; "
        f"{sum(near)} are within a factor of 2 of the printed ratio."
    )
    return Claim(statement, told, judge([any(near), sum(near) > len(near) / 2, better == len(usable)]))
