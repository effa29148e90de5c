"""Measuring training time on dense data: what a pass of SGD takes with each sampler, and what preprocessing takes.

Times are minima over rounds in which the samplers take turns.
"""

import threading
import time
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

import banditgrad as bg
from banditgrad.paper.cases import Cases
from banditgrad.paper.tasks import Outcome, Stopped
from banditgrad.rows import squared_norms

GRADIENT, SMOOTHNESS = "IS, p ∝ G_i", "IS, p ∝ L_i"
SAMPLERS = {
    "uniform": bg.Uniform(),
    "MABS": bg.Mabs(),
    GRADIENT: bg.Importance(by="gradient_bound"),
    SMOOTHNESS: bg.Importance(),
}
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
