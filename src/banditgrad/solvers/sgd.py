"""Stochastic gradient descent, equation (2):  w ← w - γ_t (ĝ(w) + λ ∇r(w)),  ĝ = ∇φ_i(w) / (n p_i)."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import kernel
from banditgrad.solvers.base import BAD_INDEX, Solver, expect_subgradients
from banditgrad.solvers.parts.iterates.base import flushed
from banditgrad.solvers.parts.iterates.choice import new_subgradient
from banditgrad.solvers.parts.minibatch import (
    Minibatch,
    check_batch_size,
    estimate,
    new_minibatch,
    next_minibatch,
    recall,
)
from banditgrad.solvers.parts.step_size.distance import advance_by_rule, check_schedule, schedule_or_distance


class SgdState(NamedTuple):
    iterate: Any
    rule: Any  # for the step size
    minibatch: Minibatch
    time: NDArray[np.int64]  # steps made


@dataclass(frozen=True, eq=False)
class Sgd(Solver):
    """w ← w - γ_t (ĝ(w) + λ ∇r(w)), with a sub-gradient of r, 0 at kinks.

    Parameters
    ----------
    step_size : float, Schedule or "auto"
        γ_t: a number, `InverseTime`, `ShiftedInverseTime` or your own schedule; "auto" finds it while running.
    average : None or "linear"
        Whether the solution is the last iterate or 2/(T(T+1)) Σ_t t w^t, for which theorem 2 holds.
    batch_size : int
        How many rows one step draws, all from one p; each is fed back.
    """

    step_size: Any = "auto"
    average: str | None = None
    batch_size: int = 1

    def __post_init__(self) -> None:
        check_schedule(self, self.step_size)
        check_batch_size(self, self.batch_size)
        if self.average not in (None, "linear"):
            raise ValueError(f'Sgd expects average=None or average="linear", got {self.average!r}.')

    @property
    def takes_several_margins(self) -> bool:
        return True

    @property
    def takes_vector_penalties(self) -> bool:
        return True

    def start(self, problem: Any, w: NDArray[np.float64], seed: Any) -> SgdState:
        expect_subgradients(problem, "Sgd")
        l2 = float(np.max((problem.shrinkage or (0.0, 0.0))[1], initial=0.0))
        rule = schedule_or_distance(
            problem, self.step_size, w, self.batch_size, longest=0.5 / l2 if l2 > 0.0 else math.inf
        )
        iterate = new_subgradient(problem, w, rule, average=self.average is not None)
        return SgdState(iterate, rule, new_minibatch(problem, self.batch_size), np.zeros(1, np.int64))

    def advance(self, problem: Any, state: SgdState, sampler: Any, steps: int) -> int:
        return advance_by_rule(problem, lambda m: _sgd(problem.parts, state, sampler, m), state, steps)

    def iterate(self, problem: Any, state: SgdState) -> NDArray[np.float64]:
        iterate, t = flushed(state.iterate), float(state.time[0])
        w: NDArray[np.float64] = iterate.w
        return w if self.average is None or t == 0.0 else iterate.weighted_sum * (2.0 / (t * (t + 1.0)))

    def feedback(self, problem: Any, state: SgdState) -> NDArray[np.float64]:
        w = flushed(state.iterate).w  # the gradients are taken here, also where the solution is a mean
        return np.asarray((problem.gradient_norms(w) / problem.n) ** 2)


@kernel
def _sgd(parts, state, sampler, steps):
    iterate, minibatch, rule = state.iterate, state.minibatch, state.rule
    for step in range(steps):
        if not next_minibatch(parts, sampler, minibatch):
            return BAD_INDEX
        if not estimate(parts, iterate, minibatch):
            return step
        state.time[0] += 1
        rule.measure_rows(parts, minibatch)
        gamma = rule.step_at(state.time[0])
        iterate.penalise(gamma)  # the sub-gradient is taken at w^t, before the gradient step
        for k in range(minibatch.i.size):
            recall(parts, minibatch, k)
            scale = -gamma * minibatch.factor[k]
            parts.terms.add_row_along(parts.rows, iterate, minibatch.scratch, minibatch.i[k], gamma, scale)
    return steps
