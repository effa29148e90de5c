"""Training time on high-dimensional dense data: SGD with MABS, and with IS and its preprocessing, beside uniform SGD.

Times are minima over rounds in which the samplers take turns. MABS is charged, as IS is, the pass over the data that
computes the row norms: they give IS its p, and MABS the a_i without a second look at the row.
"""

import threading
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

import banditgrad as bg
from banditgrad.paper.cases import Cases
from banditgrad.paper.claims import Section, judge, number
from banditgrad.paper.scale import Scale
from banditgrad.paper.store import Results
from banditgrad.paper.tasks import Outcome, Stopped, Task
from banditgrad.report import Claim, Table
from banditgrad.rows import squared_norms

GRADIENT, SMOOTHNESS = "IS, p ∝ G_i", "IS, p ∝ L_i"
SAMPLERS = {
    "uniform": bg.Uniform(),
    "MABS": bg.Mabs(),
    GRADIENT: bg.Importance(by="gradient_bound"),
    SMOOTHNESS: bg.Importance(),
}
PASSES = (1, 10, 30)  # lengths of training over which the preprocessing is spread
PRINTED = {"MABS": 0.10, GRADIENT: 0.40}
_EIGEN_SIZE = 1000  # a dense eigenvalue problem of d features takes (d / 1000)³ times as long as one of 1000


@dataclass(frozen=True)
class Timing:
    """Seconds of one pass for each sampler, of the row norms, and of L_i as the largest eigenvalue of one Hessian."""

    rows: int
    features: int
    rounds: int
    alone = True

    def settings(self) -> dict[str, Any]:
        samplers = {name: repr(sampler) for name, sampler in SAMPLERS.items()}
        return {"timing": [self.rows, self.features, self.rounds], "samplers": samplers}

    def data(self, cases: Cases) -> str:
        return "generated"

    def kind(self) -> Hashable:
        return "training time"

    def units(self, cases: Cases) -> float:
        return float(self.rows) * self.features * self.rounds

    def trial(self, cases: Cases) -> float:
        small = Timing(min(2000, self.rows), self.features, 1)
        small.work(cases, threading.Event())  # compiles
        begin = time.perf_counter()
        small.work(cases, threading.Event())
        return (time.perf_counter() - begin) / small.units(cases)

    def work(self, cases: Cases, stop: threading.Event) -> Outcome:
        problem = _dense_problem(self.rows, self.features)
        seconds: dict[str, list[float]] = {name: [] for name in (*SAMPLERS, "norms")}
        for round_ in range(self.rounds):
            begin = time.perf_counter()
            squared_norms(problem.parts.rows, np.empty(problem.n))
            seconds["norms"].append(time.perf_counter() - begin)
            for name, sampler in SAMPLERS.items():
                if stop.is_set():
                    raise Stopped
                run = bg.minimise(problem, bg.Sgd(1e-3), sampler, passes=1, seed=round_)
                seconds[name].append(run.seconds)
        return {
            **{name: min(times) for name, times in seconds.items()},
            "one eigenvalue": _one_eigenvalue(self.features),
        }


def _dense_problem(n: int, d: int) -> bg.Problem:
    """Normal features in float32, rows of log-normal scale, labels from a hyperplane."""
    rng = np.random.default_rng(0)
    X = np.empty((n, d), np.float32)
    for rows in np.array_split(X, max(1, n // 1000)):
        rng.standard_normal(out=rows, dtype=np.float32)
    X *= np.exp(0.5 * rng.standard_normal((n, 1), dtype=np.float32)) / np.sqrt(np.float32(d))
    y = np.where(X @ rng.standard_normal(d, dtype=np.float32) > 0, 1.0, -1.0)
    return bg.Problem(X, y, loss=bg.Logistic())


def _one_eigenvalue(d: int) -> float:
    """Seconds for L_i as one who does not know the model's form gets it: an eigenvalue of a d x d Hessian."""
    size = min(d, _EIGEN_SIZE)
    x = np.random.default_rng(0).standard_normal(size)
    begin = time.perf_counter()
    scipy.linalg.eigvalsh(0.25 * np.outer(x, x), subset_by_index=[size - 1, size - 1])
    return (time.perf_counter() - begin) * (d / size) ** 3


def _task(scale: Scale) -> Timing:
    return Timing(scale.time_rows, scale.time_features, scale.time_rounds)


def panels(scale: Scale, cases: Cases) -> dict[str, Sequence[Task]]:
    return {"time": [_task(scale)]}


def overhead(measured: Outcome, sampler: str, passes: int) -> float:
    """The time of training with a sampler over that with uniform sampling, less 1."""
    preparation = 0.0 if sampler == "uniform" else measured["norms"]
    return (preparation + passes * measured[sampler]) / (passes * measured["uniform"]) - 1.0


def section(scale: Scale, results: Results) -> Section:
    measured = results[_task(scale)]
    rows = [
        [
            name,
            number(measured[name]),
            number(0.0 if name == "uniform" else measured["norms"]),
            *(_percent(overhead(measured, name, passes)) for passes in PASSES),
            _percent(PRINTED[name]) if name in PRINTED else "",
        ]
        for name in SAMPLERS
    ]
    header = ["sampler", "seconds per pass", "preprocessing", *(f"T = {k} n" for k in PASSES), "printed"]
    caption = (
        f"SGD on logistic regression, {scale.time_rows:,} dense rows of {scale.time_features:,} float32 features; one "
        f"thread, minima over {scale.time_rounds} interleaved rounds. The columns T are the extra time over uniform "
        "SGD with the preprocessing spread over T draws."
    )
    return Section(_claims(scale, measured), [], [Table("Training time", header, rows, caption)])


def _percent(value: float) -> str:
    return f"{100 * value:+.0f} %".replace("-", "−")


def _claims(scale: Scale, measured: Outcome) -> list[Claim]:
    longest, shortest = PASSES[-1], PASSES[0]
    extra = {name: {passes: overhead(measured, name, passes) for passes in PASSES} for name in SAMPLERS}

    def told(name: str) -> str:
        return ", ".join(f"{_percent(extra[name][passes])} for T = {passes} n" for passes in PASSES)

    naive_days = measured["one eigenvalue"] * scale.time_rows / 86400
    rule_days = measured["norms"] / 86400
    size = f"n = {scale.time_rows:,}, d = {scale.time_features:,}"
    return [
        Claim(
            "Training time (d = 4000, n = 50000): SGD with MABS uses only 10 % more clock time than SGD.",
            f"{size}: {told('MABS')}.",
            judge([extra["MABS"][longest] <= 0.10, extra["MABS"][shortest] <= 0.10]),
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
