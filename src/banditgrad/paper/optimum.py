"""F*, certified.

On the real sets: Prox-SVRG finds which coordinates are zero, Newton's method on the others does the rest, and the
duality gap of L1-penalised logistic regression bounds F(w) - F* from above:

    F* >= D(s) = (1/n) Σ_i h(s v_i),    v_i = 1 / (1 + exp(y_i <x_i, w>)),  h(v) = -v ln v - (1 - v) ln(1 - v),

for any s <= 1 with s ‖(1/n) Σ_i y_i v_i x_i‖_∞ <= λ. On the synthetic sets F* is that of a least-squares problem, and
the gap is bounded by ‖∇F‖² / (2 μ).
"""

import threading
import time
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import entr, expit

import banditgrad as bg
from banditgrad.paper.cases import STRENGTH, Case, Cases, is_synthetic
from banditgrad.paper.tasks import Outcome, Stopped

ENOUGH = 1e-12  # a duality gap below this needs no more work
_ROUNDS, _PASSES = 20, 20

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Optimum:
    """F* of a case: {"value", "gap"}, where F* is from value - gap to value."""

    case: str
    here: ClassVar[bool] = True  # linear algebra rounds differently where arrays lie differently in memory

    def settings(self) -> dict[str, Any]:
        return {"optimum of": self.case, "enough": ENOUGH}

    def data(self, cases: Cases) -> str:
        return cases[self.case].data_hash

    def work(self, cases: Cases, stop: threading.Event) -> Outcome:
        case = cases[self.case]
        value, gap = _least_squares(case) if is_synthetic(self.case) else _l1_logistic(case, stop)
        return {"value": value, "gap": gap}

    def kind(self) -> Hashable:
        return "optimum", self.case.partition("=")[0]

    def units(self, cases: Cases) -> float:
        return 1.0

    def trial(self, cases: Cases) -> float:
        if is_synthetic(self.case):
            return 0.0
        problem = cases[self.case].problem
        _svrg(problem, np.zeros(problem.d), 0, passes=1)  # compiles
        begin = time.perf_counter()
        _svrg(problem, np.zeros(problem.d), 0, passes=1)
        return 2 * _PASSES * (time.perf_counter() - begin)  # on the paper's sets one or two rounds are enough


def _least_squares(case: Case) -> tuple[float, float]:
    w = np.linalg.lstsq(case.X, case.y, rcond=None)[0]
    convexity = float(np.linalg.eigvalsh(case.X.T @ case.X / case.problem.n)[0])
    return case.problem.value(w), float(np.sum(case.problem.gradient(w) ** 2) / (2 * convexity))


def _l1_logistic(case: Case, stop: threading.Event) -> tuple[float, float]:
    w = np.zeros(case.problem.d)
    best = (case.problem.value(w), duality_gap(case, w))
    for round_ in range(_ROUNDS):
        if stop.is_set():
            raise Stopped
        w = _svrg(case.problem, w, round_, _PASSES)
        for point in (w, _newton(case, w)):
            best = min(best, (case.problem.value(point), duality_gap(case, point)), key=lambda pair: pair[1])
        if best[1] <= ENOUGH:
            break
    return best


def _svrg(problem: bg.Problem, w: Vector, seed: int, passes: int) -> Vector:
    solver, sampler = bg.ProxSvrg(), bg.Mabs()
    return bg.minimise(problem, solver, sampler, passes=passes, seed=seed, w0=w, record_every=passes).w


def duality_gap(case: Case, w: Vector) -> float:
    """An upper bound on F(w) - F*, up to rounding."""
    v = expit(-case.y * (case.X @ w))
    slope = np.abs(case.X.T @ (case.y * v)).max() / v.size
    v *= min(1.0, STRENGTH / slope) if slope > 0.0 else 1.0
    return max(0.0, case.problem.value(w) - float(np.mean(entr(v) + entr(1.0 - v))))


def _newton(case: Case, w: Vector, steps: int = 4) -> Vector:
    """The minimiser with the signs of w, or the last point before a sign changed."""
    support = np.flatnonzero(w)
    X, signs = sp.csc_array(case.X)[:, support], np.sign(w[support])
    for _ in range(steps if support.size else 0):
        z = X @ w[support]
        hessian = (X.T @ (sp.diags_array(expit(z) * expit(-z)) @ X)).toarray() / z.size
        gradient = case.problem.gradient(w)[support] + STRENGTH * signs
        moved = w.copy()
        moved[support] -= np.linalg.lstsq(hessian, gradient, rcond=1e-12)[0]
        if not np.array_equal(np.sign(moved[support]), signs):
            break
        w = moved
    return w
