"""Proximal stochastic gradient descent, equation (17), in a Bregman geometry ψ:

w ← argmin_u  <ĝ, u> + λ r(u) + B_ψ(u, w) / γ_t ,   that is   ∇ψ(w⁺) + γ_t λ ∂r(w⁺) ∋ ∇ψ(w) - γ_t ĝ .
"""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline, kernel
from banditgrad.geometries import Euclidean, PNorm
from banditgrad.penalties import L1, Zero
from banditgrad.solvers.base import BAD_INDEX, Solver
from banditgrad.solvers.parts.iterates.base import flushed
from banditgrad.solvers.parts.iterates.choice import new_proximal
from banditgrad.solvers.parts.iterates.proximal import Eager, new_eager
from banditgrad.solvers.parts.minibatch import (
    Minibatch,
    add_estimate,
    check_batch_size,
    estimate,
    new_minibatch,
    next_minibatch,
)
from banditgrad.solvers.parts.step_size.distance import advance_by_rule, check_schedule, schedule_or_distance


class ProxSgdState(NamedTuple):
    iterate: Any
    rule: Any  # for the step size
    minibatch: Minibatch
    time: NDArray[np.int64]  # steps made


class PNormState(NamedTuple):
    iterate: Eager
    dual: NDArray[np.float64]  # θ = ∇ψ(w)
    exponent: float  # q, with 1/p + 1/q = 1
    rule: Any
    minibatch: Minibatch
    time: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ProxSgd(Solver):
    """w ← argmin_u <ĝ, u> + λ r(u) + B_ψ(u, w) / γ_t.

    Parameters
    ----------
    step_size : float, Schedule or "auto"
        γ_t: a number, `ShiftedInverseTime` (theorem 3), `InverseTime` or your own schedule; "auto" finds it while
        running.
    geometry : Euclidean or PNorm
        ψ. `Euclidean` takes any penalty, in O(non-zeros) a step on sparse rows. `PNorm` takes `L1` and `Zero`, for
        which the step is a soft threshold in the dual, in O(d) a step: ‖w‖_p changes with every coordinate.
    batch_size : int
        How many rows one step draws, all from one p; each is fed back.
    """

    step_size: Any = "auto"
    geometry: Any = field(default_factory=Euclidean)
    batch_size: int = 1

    def __post_init__(self) -> None:
        check_schedule(self, self.step_size)
        check_batch_size(self, self.batch_size)
        if not isinstance(self.geometry, (Euclidean, PNorm)):
            raise TypeError(f"ProxSgd expects geometry=Euclidean() or geometry=PNorm(p), got {self.geometry!r}.")

    @property
    def takes_several_margins(self) -> bool:
        return True

    @property
    def takes_vector_penalties(self) -> bool:
        return True

    def start(self, problem: Any, w: NDArray[np.float64], seed: Any) -> ProxSgdState | PNormState:
        rule = schedule_or_distance(problem, self.step_size, w, self.batch_size)
        minibatch, time = new_minibatch(problem, self.batch_size), np.zeros(1, np.int64)
        if isinstance(self.geometry, Euclidean):
            return ProxSgdState(new_proximal(problem, w), rule, minibatch, time)
        if not isinstance(problem.penalty, (L1, Zero)):
            raise TypeError(f"PNorm has a closed step for L1 and Zero only, got {problem.penalty!r}. Use Euclidean().")
        p = self.geometry.p
        dual = np.zeros_like(w)
        _link(w, p, dual)
        return PNormState(new_eager(problem, w, proximal=True), dual, p / (p - 1.0), rule, minibatch, time)

    def advance(self, problem: Any, state: Any, sampler: Any, steps: int) -> int:
        step = _prox_sgd if isinstance(state, ProxSgdState) else _p_norm_sgd
        return advance_by_rule(problem, lambda m: step(problem.parts, state, sampler, m), state, steps)

    def iterate(self, problem: Any, state: Any) -> NDArray[np.float64]:
        w: NDArray[np.float64] = flushed(state.iterate).w
        return w


@kernel
def _prox_sgd(parts, state, sampler, steps):
    iterate, minibatch, rule = state.iterate, state.minibatch, state.rule
    for step in range(steps):
        if not next_minibatch(parts, sampler, minibatch):
            return BAD_INDEX
        if not estimate(parts, iterate, minibatch):
            return step
        state.time[0] += 1
        rule.measure_rows(parts, minibatch)
        gamma = rule.step_at(state.time[0])
        add_estimate(parts, minibatch, -gamma, iterate.w)
        iterate.penalise(gamma)
    return steps


@kernel
def _p_norm_sgd(parts, state, sampler, steps):
    iterate, dual, minibatch, rule = state.iterate, state.dual, state.minibatch, state.rule
    for step in range(steps):
        if not next_minibatch(parts, sampler, minibatch):
            return BAD_INDEX
        if not estimate(parts, iterate, minibatch):
            return step
        state.time[0] += 1
        rule.measure_rows(parts, minibatch)
        gamma = rule.step_at(state.time[0])
        add_estimate(parts, minibatch, -gamma, dual)
        iterate.penalty.prox_all(dual, gamma, iterate.penalised)
        link(dual, state.exponent, iterate.w)
    return steps


@inline
def link(v, p, out):
    """out = ∇(½ ‖v‖_p²) = sign(v) |v|^(p-1) / ‖v‖_p^(p-2)."""
    largest = 0.0
    for j in range(v.size):
        largest = max(largest, abs(v[j]))
    total = 0.0
    for j in range(v.size):  # relative to the largest, so that no power overflows
        total += (abs(v[j]) / largest) ** p if largest > 0.0 else 0.0
    norm = largest * total ** (1.0 / p)
    for j in range(v.size):
        out[j] = math.copysign(norm * (abs(v[j]) / norm) ** (p - 1.0), v[j]) if v[j] != 0.0 else 0.0


@kernel
def _link(v, p, out):
    link(v, p, out)
