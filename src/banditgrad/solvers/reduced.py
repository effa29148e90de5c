"""The loop that all variance-reduced solvers share.

    ĝ = (∇φ_i(w) - ∇φ_i(w̃_i)) / (n p_i) + (1/n) Σ_j ∇φ_j(w̃_j),    a_i = ‖∇φ_i(w) - ∇φ_i(w̃_i)‖² / n²

They differ in when the w̃_i move. SAGA: w̃_i becomes w whenever i is drawn. The snapshot methods: all w̃_i are one w̃,
which moves at the end of a *bin* of steps. For a linear model ∇φ_i(w̃_i) = slope · x_i, so a table of n slopes is all
there is to remember; the margins beside them serve the automatic step.
"""

import math
from abc import abstractmethod
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import bridge, inline, kernel, prefetch
from banditgrad._random import new_stream, peek, skip, unit
from banditgrad.rows import add, dot
from banditgrad.solvers.base import BAD_INDEX, LATER, Batch, Solver, draw_batch, new_batch
from banditgrad.solvers.drift import arrived, new_drift
from banditgrad.solvers.guard import (
    BEST,
    GAP,
    LEAP,
    LIMIT,
    LONGEST_GAP,
    UNTIL,
    Guard,
    approve,
    new_guard,
    objective,
    penalty_cost,
)
from banditgrad.solvers.pace import (
    SAFETY,
    Pace,
    brake,
    bursts,
    check_step_size,
    keep_pace,
    largest_curve,
    new_block,
    new_pace,
    note,
    shorten,
)
from banditgrad.solvers.stability import Stability, find_limit, new_stability

Vector = NDArray[np.float64]

SLOPE, MARGIN = 0, 1  # columns of `table`
LEFT, LENGTH = 0, 1  # indices into `clock`: steps until the bin ends; steps of the bin


@bridge
class Bins(Protocol):
    """How long a snapshot lasts."""

    def bin_length(self, stream: NDArray[np.uint64]) -> int:
        """The number of steps of the next bin, at least 1."""
        ...


class FixedBins(NamedTuple):
    """Always the same number of steps: Prox-SVRG."""

    steps: float

    def bin_length(self, stream):
        return np.int64(self.steps)


class GeometricBins(NamedTuple):
    """A new snapshot with probability 1/mean at every step: loopless SVRG."""

    mean: float

    def bin_length(self, stream):
        u = 1.0 - unit(peek(stream, 0))
        skip(stream, 1)
        if self.mean <= 1.0:
            return np.int64(1)
        return np.int64(1.0 + math.floor(min(math.log(u) / math.log1p(-1.0 / self.mean), 1e15)))


class TruncatedBins(NamedTuple):
    """t of 1..longest with probability ∝ shrink^(longest - t): S2GD."""

    longest: float
    shrink: float

    def bin_length(self, stream):
        u = unit(peek(stream, 0))
        skip(stream, 1)
        m, beta = self.longest, self.shrink
        if beta >= 1.0:
            return np.int64(u * m) + 1
        # P(t <= k) = (β^(m-k) - β^m) / (1 - β^m)
        tail = beta**m
        k = m - math.log(tail + u * (1.0 - tail)) / math.log(beta)
        return np.int64(min(max(math.ceil(k), 1.0), m))


class ReducedState(NamedTuple):
    drift: Any
    table: NDArray[np.float64]
    bins: Any  # unused by SAGA
    snapshot: Vector  # w̃, empty for SAGA
    stream: NDArray[np.uint64]
    clock: NDArray[np.int64]
    batch: Batch  # of one row
    pace: Pace
    guard: Guard
    stability: Stability


class Reduced(Solver):
    """Base of the solvers in this family: a subclass says how bins end."""

    step_size: Any

    def __post_init__(self) -> None:
        check_step_size(self, self.step_size)

    @abstractmethod
    def bins(self, problem: Any, gamma: float) -> Any:
        """The bins of a snapshot method, or None for SAGA."""

    def wants_mean(self) -> bool:
        """Whether a snapshot is the mean of its bin's iterates rather than the last one."""
        return False

    def start(self, problem: Any, w: Vector, seed: Any) -> ReducedState:
        pace = new_pace(problem, self.step_size, means=self.wants_mean())
        pace.caution[0] = SAFETY / pace.safety  # until there is a mean
        bins = self.bins(problem, pace.step[0])
        drift = new_drift(problem, w, pace.step[0], mean=self.wants_mean())
        state = ReducedState(
            drift=drift,
            table=np.zeros((problem.n, 2)),
            bins=FixedBins(math.inf) if bins is None else bins,
            snapshot=np.zeros(0 if bins is None else w.size),
            stream=new_stream(seed),
            clock=np.array([-1 if bins is None else 0, 0]),
            batch=new_batch(problem.n, 1),
            pace=pace,
            guard=new_guard(problem, w),
            stability=new_stability(problem, automatic=pace.automatic),
        )
        if bins is None:
            _fill_table(problem.parts, state, w)
        return state

    def advance(self, problem: Any, state: ReducedState, sampler: Any, steps: int) -> int:
        return int(_reduced(problem.parts, state, sampler, steps))

    def iterate(self, problem: Any, state: ReducedState) -> Vector:
        return arrived(state.drift, state.pace.step[0]).w

    def feedback(self, problem: Any, state: ReducedState) -> Vector:
        slopes = np.empty(problem.n)
        _slopes(problem.parts, self.iterate(problem, state), slopes)
        known = state.table[:, SLOPE]
        if state.snapshot.size and not state.clock[LENGTH]:  # before the first step the snapshot is yet to be taken
            known = slopes
        return np.asarray((slopes - known) ** 2 * problem.parts.norms2 / problem.n**2)


@kernel
def _reduced(parts, state, sampler, steps):
    n, drift, table, clock, batch = parts.norms2.size, state.drift, state.table, state.clock, state.batch
    memory = clock[LEFT] < 0  # SAGA
    one_nth = 1.0 / n
    a_unit = one_nth * one_nth
    if memory and state.pace.automatic and steps > 0 and state.stability.limit[0] == math.inf:
        _stabilise(parts, state, sampler)
    for step in range(steps):
        if clock[LEFT] == 0:
            _take_snapshot(parts, state, sampler)
        gamma = state.pace.step[0]
        if not draw_batch(parts, sampler, batch):
            return BAD_INDEX
        i, p_i = batch.i[0], batch.p[0]
        prefetch(table, batch.buffer.i[batch.clock[LATER]])
        z = drift.margin_at(parts.rows, i, gamma)
        slope = parts.terms.slope(i, z)
        change = slope - table[i, SLOPE]
        energy = change * change * parts.norms2[i]
        if not (abs(z) < np.inf and energy < np.inf):
            if not state.pace.automatic:
                return step
            approve(state.guard, drift.w, math.inf, 0, gamma)
            _begin_anew(parts, state)
            continue
        batch.feedback[0] = energy * a_unit  # a_i
        weight = 1.0 / (n * p_i)
        factor = change * weight
        if state.pace.automatic:
            if change != 0.0:
                curve = largest_curve(parts.terms, i, table[i, MARGIN], z, change)
                squared, product = energy * weight * weight, change * factor / curve
                note(state.pace, squared, product)
                brake(state.pace, drift, parts.rows, i, 1.0 / p_i, squared, product)  # before a move that may harm
            keep_pace(state.pace, drift, parts.rows, i, min(state.guard.numbers[LIMIT], state.stability.limit[0]))
            gamma = state.pace.step[0]
        drift.move(parts.rows, i, factor, change * one_nth if memory else 0.0, gamma)
        if memory:
            table[i, SLOPE] = slope
            table[i, MARGIN] = z
        else:
            clock[LEFT] -= 1
        if state.pace.automatic:
            state.guard.clock[UNTIL] -= 1
            if memory and state.guard.clock[UNTIL] <= 0:
                _check(parts, state, sampler)
            elif bursts(state.pace):
                _check_leap(parts, state)
    return steps


@inline
def _check(parts, state, sampler):
    """Look at F; go back to the best point if it has risen. The next look is later while all goes well, but not where
    a row's term may grow from one draw to the next."""
    drift, guard, n = state.drift, state.guard, parts.norms2.size
    drift.arrive(state.pace.step[0])
    gap = guard.clock[GAP]
    stable = state.pace.step[0] * state.stability.overshoot <= state.stability.limit[0]  # γ r_i <= 1 for all rows
    longest = LONGEST_GAP * n if stable else max(1, n // 2)
    if approve(guard, drift.w, objective(parts, guard, drift.w), gap, state.pace.step[0]):
        guard.clock[GAP] = min(gap + gap // 2, longest)
        guard.clock[UNTIL] = guard.clock[GAP]
    else:
        _begin_anew(parts, state)
    _stabilise(parts, state, sampler)


@inline
def _stabilise(parts, state, sampler):
    """Find the longest stable step anew; w is up to date."""
    find_limit(state.stability, parts, state.table[:, MARGIN], sampler)
    shorten(state.pace, state.drift, state.stability.limit[0])


@inline
def _check_leap(parts, state):
    """Look at F in between; go back to the best point if it has leapt up."""
    drift, guard, gamma = state.drift, state.guard, state.pace.step[0]
    drift.arrive(gamma)
    value, best = objective(parts, guard, drift.w), guard.numbers[BEST]
    if not value <= best + LEAP * abs(best):
        approve(guard, drift.w, math.inf, 0, gamma)
        _begin_anew(parts, state)


@inline
def _begin_anew(parts, state):
    """Go on from w, with the step that the guard allows."""
    drift, pace, guard = state.drift, state.pace, state.guard
    for j in range(drift.total.size):
        drift.total[j] = 0.0
    pace.step[0] = guard.numbers[LIMIT]
    new_block(pace)
    drift.change_step(pace.step[0])
    guard.clock[GAP] = parts.norms2.size
    guard.clock[UNTIL] = guard.clock[GAP]
    if state.clock[LEFT] < 0:
        _full_gradient(parts, drift.w, state.table, drift.g)
    else:
        state.clock[LEFT] = 0
        state.clock[LENGTH] = 0
    drift.depart()


@inline
def _take_snapshot(parts, state, sampler):
    """Move w̃ to the mean of the bin's iterates, or the last one, and compute ∇f(w̃); F comes with it."""
    drift, snapshot, clock, guard = state.drift, state.snapshot, state.clock, state.guard
    drift.arrive(state.pace.step[0])
    mean = drift.total.size > 0 and clock[LENGTH] > 0
    for j in range(snapshot.size):
        snapshot[j] = drift.total[j] / clock[LENGTH] if mean else drift.w[j]
    if mean:
        state.pace.caution[0] = 1.0
    _full_gradient(parts, snapshot, state.table, drift.g)
    if state.pace.automatic:
        value = _mean_term(parts, state.table) + penalty_cost(guard, snapshot)
        if not approve(guard, snapshot, value, clock[LENGTH], state.pace.step[0]):
            for j in range(snapshot.size):
                drift.w[j] = snapshot[j]
            _begin_anew(parts, state)
            _full_gradient(parts, snapshot, state.table, drift.g)
        _stabilise(parts, state, sampler)
    for j in range(drift.total.size):
        drift.total[j] = 0.0
    drift.depart()
    clock[LENGTH] = state.bins.bin_length(state.stream)
    clock[LEFT] = clock[LENGTH]


@inline
def _full_gradient(parts, w, table, g):
    n = parts.norms2.size
    for j in range(g.size):
        g[j] = 0.0
    for i in range(n):
        z = dot(parts.rows, i, w)
        slope = parts.terms.slope(i, z)
        table[i, SLOPE] = slope
        table[i, MARGIN] = z
        add(parts.rows, i, slope / n, g)


@inline
def _mean_term(parts, table):
    """(1/n) Σ φ_i at the margins of the table."""
    n, total = parts.norms2.size, 0.0
    for i in range(n):
        total += parts.terms.term(i, table[i, MARGIN])
    return total / n


@kernel
def _fill_table(parts, state, w):
    _full_gradient(parts, w, state.table, state.drift.g)
    state.drift.depart()


@kernel
def _slopes(parts, w, out):
    for i in range(out.size):
        out[i] = parts.terms.slope(i, dot(parts.rows, i, w))
