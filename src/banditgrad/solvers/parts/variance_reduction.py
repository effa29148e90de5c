"""The step that all variance-reduced solvers share.

    ĝ = (∇φ_i(w) - ∇φ_i(w̃_i)) / (n p_i) + (1/n) Σ_j ∇φ_j(w̃_j),    a_i = ‖∇φ_i(w) - ∇φ_i(w̃_i)‖² / n²

They differ in when the w̃_i move. SAGA: w̃_i becomes w whenever i is drawn. The snapshot methods: all w̃_i are one w̃,
which moves at the end of a *bin* of steps. For a linear model ∇φ_i(w̃_i) = slope · x_i, so a table of n slopes is all
there is to remember; the margins beside them serve the automatic step.

A kernel makes a step of `difference`, `weigh` and the iterate's `move`. Its state is a NamedTuple with the fields of
`ReducedState`, and perhaps others.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad import margins
from banditgrad._jit import inline, kernel
from banditgrad.objective import TABLE
from banditgrad.rows import dot
from banditgrad.solvers.base import Solver
from banditgrad.solvers.parts.iterates.base import flushed
from banditgrad.solvers.parts.iterates.choice import new_iterate
from banditgrad.solvers.parts.minibatch import Minibatch, new_minibatch
from banditgrad.solvers.parts.safeguard import LEAP, Safeguard, check_later, go_back, new_safeguard, objective
from banditgrad.solvers.parts.step_size.smoothness import (
    SAFETY,
    SmoothnessRule,
    check_step_size,
    first_step,
    measure,
    new_interval,
    set_step,
    smoothness_rule,
)
from banditgrad.solvers.parts.step_size.stability import Stability, find_limit, new_stability

Vector = NDArray[np.float64]


class VarianceReduced(Solver):
    """Base of the solvers in this family."""

    step_size: Any

    def __post_init__(self) -> None:
        check_step_size(self, self.step_size)

    @property
    def takes_several_margins(self) -> bool:
        return True

    @property
    def takes_vector_penalties(self) -> bool:
        return True

    def iterate(self, problem: Any, state: Any) -> Vector:
        w: Vector = flushed(state.iterate).w
        return w

    def feedback(self, problem: Any, state: Any) -> Vector:
        if problem.vector:
            slopes = margins.slopes(problem.parts, problem.shaped(self.iterate(problem, state)))
            slopes -= state.table.slopes
            if problem.sample_weight is not None:
                slopes *= problem.sample_weight[:, None]
            return np.asarray((slopes**2).sum(axis=1) * problem.parts.norms2 / problem.n**2)
        slopes = np.empty(problem.n)
        _slopes(problem.parts, self.iterate(problem, state), slopes)
        return np.asarray((slopes - state.table["slope"]) ** 2 * problem.parts.norms2 / problem.n**2)


class ReducedState(NamedTuple):
    iterate: Any
    table: Any  # slopes and margins at the w̃_i
    minibatch: Minibatch  # of one row
    rule: SmoothnessRule
    safeguard: Safeguard
    stability: Stability


def new_state(problem: Any, step_size: Any, w: Vector, *, means: bool = False, table: bool = False) -> ReducedState:
    """`means`: whether snapshots are means; `table`: whether each w̃_i moves when i is drawn."""
    rule = smoothness_rule(problem, step_size, means=means, table=table)
    rule.measured["caution"] = SAFETY / rule.safety  # until there is a mean
    return ReducedState(
        iterate=new_iterate(problem, w, first_step(problem, step_size), mean=means),
        table=new_table(problem),
        minibatch=new_minibatch(problem, 1),
        rule=rule,
        safeguard=new_safeguard(problem, w),
        stability=new_stability(problem, automatic=rule.automatic),
    )


def new_table(problem: Any) -> Any:
    """Room for a slope and a margin of each row, or for as many as it has margins."""
    if problem.vector:
        return margins.VectorTable(*np.zeros((2, problem.n, problem.margins)))
    return np.zeros(problem.n, TABLE)


@inline
def difference(parts, state, i):
    """∇φ_i(w) - ∇φ_i(w̃_i) = change · x_i: the margin and the slope at w, the change, and the squared norm of it all."""
    z, slope, change = parts.terms.difference(parts.rows, state.iterate, state.table, state.minibatch.scratch, i)
    return z, slope, change, change * change * parts.norms2[i]


@inline
def weigh(parts, state, i, z, change, energy, limit):
    """The factor of x_i in ĝ. The sampler is told a_i, and an automatic step, at most `limit` long, is set by it."""
    p_i, rule, one_nth = state.minibatch.p[0], state.rule, 1.0 / parts.norms2.size
    state.minibatch.feedback[0] = energy * (one_nth * one_nth)  # a_i
    weight = 1.0 / (parts.norms2.size * p_i)
    factor = change * weight
    if rule.automatic:
        if change != 0.0:
            second = parts.terms.largest_second(state.table, state.minibatch.scratch, i, z, change)
            measure(rule, state.iterate, parts, i, p_i, energy * weight * weight, change * factor / second)
        set_step(rule, state.iterate, parts, i, limit)
    return factor


@inline
def step_limit(state):
    return min(state.safeguard.watch[0].limit, state.stability.limit[0])


@inline
def stabilise(parts, state, sampler):
    """Find the longest stable step anew; w is up to date."""
    find_limit(state.stability, parts, state.table, sampler)
    limit = state.stability.limit[0]
    if limit < state.iterate.clock[0].gamma:
        state.iterate.change_step(limit)


@inline
def leapt(parts, state):
    """Whether F is far above the least that was seen; if so, w is the best point again."""
    iterate, best = state.iterate, state.safeguard.watch[0].best_value
    iterate.flush()
    if objective(parts, state.minibatch.scratch, state.safeguard, iterate.w) <= best + LEAP * abs(best):
        return False
    go_back(state.safeguard, iterate.w, iterate.clock[0].gamma)
    return True


@inline
def start_over(parts, state):
    """Go on from another w, with the step that the safeguard allows."""
    iterate = state.iterate
    for j in range(iterate.total.size):
        iterate.total[j] = 0.0
    new_interval(state.rule)
    iterate.change_step(state.safeguard.watch[0].limit)
    check_later(state.safeguard, parts.norms2.size)


@kernel
def _slopes(parts, w, out):
    for i in range(out.size):
        out[i] = parts.terms.slope(i, dot(parts.rows, i, w))
