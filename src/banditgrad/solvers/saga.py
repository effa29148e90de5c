"""SAGA (Defazio, Bach and Lacoste-Julien 2014):

w ← prox(w - γ ((∇φ_i(w) - ∇φ_i(w̃_i)) / (n p_i) + (1/n) Σ_j ∇φ_j(w̃_j)), γ),    then w̃_i is the w before the step.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline, kernel
from banditgrad.objective import full_gradient
from banditgrad.solvers.base import BAD_INDEX
from banditgrad.solvers.parts.minibatch import next_minibatch, row_ahead
from banditgrad.solvers.parts.safeguard import LONGEST_GAP, approve, check_later, go_back, objective
from banditgrad.solvers.parts.step_size.smoothness import bursts
from banditgrad.solvers.parts.variance_reduction import (
    ReducedState,
    VarianceReduced,
    difference,
    leapt,
    new_state,
    stabilise,
    start_over,
    step_limit,
    weigh,
)


@dataclass(frozen=True, eq=False)
class Saga(VarianceReduced):
    """SAGA with any sampler; its table is two numbers per row. It starts from the gradients at w0.

    Parameters
    ----------
    step_size : float or "auto"
        γ; "auto" finds it while running.
    """

    step_size: Any = "auto"

    def start(self, problem: Any, w: NDArray[np.float64], seed: Any) -> ReducedState:
        state = new_state(problem, self.step_size, w, table=True)
        _begin(problem.parts, state)
        return state

    def advance(self, problem: Any, state: ReducedState, sampler: Any, steps: int) -> int:
        return int(_saga(problem.parts, state, sampler, steps))


@kernel
def _saga(parts, state, sampler, steps):
    iterate, table, minibatch, automatic = state.iterate, state.table, state.minibatch, state.rule.automatic
    one_nth = 1.0 / parts.norms2.size
    if automatic and steps > 0 and state.stability.limit[0] == math.inf:
        stabilise(parts, state, sampler)
    for step in range(steps):
        if not next_minibatch(parts, sampler, minibatch):
            return BAD_INDEX
        i = minibatch.i[0]
        parts.terms.fetch_of(table, row_ahead(minibatch))
        z, slope, change, energy = difference(parts, state, i)  # ∇φ_i(w) - ∇φ_i(w̃_i) = change · x_i
        if not (abs(z) < np.inf and energy < np.inf):
            if not automatic:
                return step
            go_back(state.safeguard, iterate.w, iterate.clock[0].gamma)
            _begin_anew(parts, state)
            continue
        factor = weigh(parts, state, i, z, change, energy, step_limit(state))  # change / (n p_i)
        parts.terms.move_along(
            parts.rows, iterate, minibatch.scratch, i, factor, change * one_nth
        )  # w, then g = (1/n) Σ_j ∇φ_j(w̃_j)
        parts.terms.remember(table, minibatch.scratch, i, z, slope)  # w̃_i
        if automatic:
            _watch(parts, state, sampler)
    return steps


@inline
def _watch(parts, state, sampler):
    """Look at F when it is due, or may have leapt; go back to the best point where it has risen.

    The next look is later while all goes well, but not where a row's term may grow from one draw to the next.
    """
    iterate, safeguard, watch, n = state.iterate, state.safeguard, state.safeguard.watch[0], parts.norms2.size
    watch.until -= 1
    if watch.until <= 0:
        iterate.flush()
        gamma = iterate.clock[0].gamma
        stable = gamma * state.stability.overshoot <= state.stability.limit[0]  # γ r_i <= 1 for all rows
        value = objective(parts, state.minibatch.scratch, safeguard, iterate.w)
        if approve(safeguard, iterate.w, value, watch.gap, gamma):
            check_later(safeguard, min(watch.gap + watch.gap // 2, LONGEST_GAP * n if stable else max(1, n // 2)))
        else:
            _begin_anew(parts, state)
        stabilise(parts, state, sampler)
    elif bursts(state.rule) and leapt(parts, state):
        _begin_anew(parts, state)


@inline
def _begin_anew(parts, state):
    """Go on from w: all w̃_i are w."""
    start_over(parts, state)
    full_gradient(parts, state.minibatch.scratch, state.iterate.w, state.table, state.iterate.g, False)
    state.iterate.resume()


@kernel
def _begin(parts, state):
    full_gradient(parts, state.minibatch.scratch, state.iterate.w, state.table, state.iterate.g, False)
    state.iterate.resume()
