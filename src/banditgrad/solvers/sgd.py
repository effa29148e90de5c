"""Stochastic gradient descent, equation (2):  w ← w - γ_t (ĝ(w) + λ ∇r(w)),  ĝ = ∇φ_i(w) / (n p_i)."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import kernel
from banditgrad.solvers.base import BAD_INDEX, Batch, Solver, check_batch_size, draw_batch, estimate, new_batch
from banditgrad.solvers.shrinkage import choose, settled
from banditgrad.solvers.stride import check_stride, new_stride, stride_along


class SgdState(NamedTuple):
    w: NDArray[np.float64]
    stride: Any
    shrinkage: Any
    batch: Batch
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
        check_stride(self, self.step_size)
        check_batch_size(self, self.batch_size)
        if self.average not in (None, "linear"):
            raise ValueError(f'Sgd expects average=None or average="linear", got {self.average!r}.')

    def start(self, problem: Any, w: NDArray[np.float64], seed: Any) -> SgdState:
        _, l2 = problem.shrinkage or (0.0, 0.0)
        stride = new_stride(problem, self.step_size, w, self.batch_size, longest=0.5 / l2 if l2 > 0.0 else math.inf)
        shrinkage = choose(problem, stride, proximal=False, average=self.average is not None)
        return SgdState(w, stride, shrinkage, new_batch(problem.n, self.batch_size), np.zeros(1, np.int64))

    def advance(self, problem: Any, state: SgdState, sampler: Any, steps: int) -> int:
        return stride_along(lambda m: _sgd(problem.parts, state, sampler, m), state, steps)

    def iterate(self, problem: Any, state: SgdState) -> NDArray[np.float64]:
        w, shrinkage = settled(state.shrinkage, state.w)
        t = float(state.time[0])
        return w if self.average is None or t == 0.0 else shrinkage.weighted_sum * (2.0 / (t * (t + 1.0)))

    def feedback(self, problem: Any, state: SgdState) -> NDArray[np.float64]:
        w, _ = settled(state.shrinkage, state.w)  # the gradients are taken here, also where the solution is a mean
        return np.asarray((problem.gradient_norms(w) / problem.n) ** 2)


@kernel
def _sgd(parts, state, sampler, steps):
    w, shrinkage, batch = state.w, state.shrinkage, state.batch
    for step in range(steps):
        if not draw_batch(parts, sampler, batch):
            return BAD_INDEX
        if not estimate(parts, w, shrinkage, batch):
            return step
        state.time[0] += 1
        state.stride.measure_batch(parts, batch)
        gamma = state.stride.step_at(state.time[0])
        shrinkage.shrink(w, gamma)  # the sub-gradient is taken at w^t, before the gradient step
        for k in range(batch.i.size):
            shrinkage.catch_and_add(parts.rows, batch.i[k], w, gamma, -gamma * batch.factor[k])
    return steps
