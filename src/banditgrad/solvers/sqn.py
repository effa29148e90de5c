"""Stochastic quasi-Newton (Byrd, Hansen, Nocedal and Singer 2016, algorithms 1 and 2):

    w ← w - γ_t H (ĝ + λ ∇r(w)),    ĝ = (1/b) Σ_{i in minibatch} ∇φ_i(w) / (n p_i)

H approximates the inverse Hessian. Every L steps it learns a pair (s, y): s is the change of the mean of L iterates,
y = (∇²f_S + λ ∇²r) s with a sub-sampled Hessian at the newer mean; H is the BFGS matrix of the last M pairs, applied
by the two-loop recursion. For the first 2L steps H is the identity. The sampler chooses the rows of gradients; those of
Hessians are uniform.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline, kernel
from banditgrad._random import new_stream, uniform_index
from banditgrad.solvers.base import BAD_INDEX, Solver, expect_subgradients
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

Vector = NDArray[np.float64]

FLATTEST = 1e-10  # a pair whose curvature <s, y> / (‖s‖ ‖y‖) is below this tells nothing and is left out


RING = np.dtype([("kept", "i8"), ("next", "i8")])  # pairs kept, the place of the next one


class SecantPairs(NamedTuple):
    """The last M pairs (s, y) in a ring, and room for the two-loop recursion."""

    s: NDArray[np.float64]
    y: NDArray[np.float64]
    inverse: Vector  # 1 / <s, y>
    alpha: Vector
    ring: NDArray[np.void]  # one RING record


class SqnState(NamedTuple):
    iterate: Eager
    rule: Any  # for the step size
    minibatch: Minibatch
    time: NDArray[np.int64]  # steps made
    direction: Vector
    total: Vector  # the sum of the iterates since the last pair
    means: NDArray[np.float64]  # the means of the last L iterates and of the L before
    pairs: SecantPairs
    stream: NDArray[np.uint64]
    hessian_rows: int
    every: int
    l2: Vector  # of each coordinate that is penalised


@dataclass(frozen=True, eq=False)
class Sqn(Solver):
    """w ← w - γ_t H ĝ, H from sub-sampled Hessian-vector products. A step costs O(M d), on sparse rows as well.

    Parameters
    ----------
    step_size : float, Schedule or "auto"
        γ_t; "auto" finds it while running.
    batch_size : int
        b, how many rows one step draws, all from one p; each is fed back.
    hessian_batch_size : int
        How many rows, drawn uniformly, a Hessian-vector product is taken from.
    every : int
        L, the number of steps between two pairs.
    memory : int
        M, the number of pairs kept.
    """

    step_size: Any = "auto"
    batch_size: int = 50
    hessian_batch_size: int = 300
    every: int = 10
    memory: int = 10

    def __post_init__(self) -> None:
        check_schedule(self, self.step_size)
        check_batch_size(self, self.batch_size)
        for name in ("hessian_batch_size", "every", "memory"):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
                raise ValueError(f"Sqn expects {name} to be a whole number of at least 1, got {value!r}.")

    @property
    def takes_several_margins(self) -> bool:
        return True

    @property
    def takes_vector_penalties(self) -> bool:
        return True

    def start(self, problem: Any, w: Vector, seed: Any) -> SqnState:
        d, m = w.size, int(self.memory)
        expect_subgradients(problem, "Sqn")
        _, l2 = problem.shrinkage or (0.0, 0.0)
        pairs = SecantPairs(np.zeros((m, d)), np.zeros((m, d)), np.zeros(m), np.zeros(m), np.zeros(1, RING))
        return SqnState(
            iterate=new_eager(problem, w, proximal=False),
            rule=schedule_or_distance(problem, self.step_size, w, self.batch_size),
            minibatch=new_minibatch(problem, self.batch_size),
            time=np.zeros(1, np.int64),
            direction=np.zeros(d),
            total=np.zeros(d),
            means=np.zeros((2, d)),
            pairs=pairs,
            stream=new_stream(seed),
            hessian_rows=int(self.hessian_batch_size),
            every=int(self.every),
            l2=np.broadcast_to(np.asarray(l2), problem.penalised).copy(),
        )

    def advance(self, problem: Any, state: SqnState, sampler: Any, steps: int) -> int:
        return advance_by_rule(problem, lambda m: _sqn(problem.parts, state, sampler, m), state, steps)

    def iterate(self, problem: Any, state: SqnState) -> Vector:
        return state.iterate.w.copy()


@kernel
def _sqn(parts, state, sampler, steps):
    iterate, w, v, minibatch = state.iterate, state.iterate.w, state.direction, state.minibatch
    for step in range(steps):
        if not next_minibatch(parts, sampler, minibatch):
            return BAD_INDEX
        if not estimate(parts, iterate, minibatch):
            return step
        state.time[0] += 1
        for j in range(w.size):
            v[j] = 0.0
            state.total[j] += w[j]
        iterate.penalty.add_subgradient(w, 1.0, v, iterate.penalised)
        add_estimate(parts, minibatch, 1.0, v)
        if state.time[0] > 2 * state.every:
            _apply(state.pairs, v)
        state.rule.measure_direction(parts, minibatch, v)
        gamma = state.rule.step_at(state.time[0])
        for j in range(w.size):
            w[j] -= gamma * v[j]
        if state.time[0] % state.every == 0:
            _learn_pair(parts, state)
    return steps


@inline
def _apply(pairs, v):
    """v ← H v: the two-loop recursion."""
    s, y, alpha = pairs.s, pairs.y, pairs.alpha
    kept, capacity = pairs.ring[0].kept, pairs.inverse.size
    if kept == 0:
        return
    newest = (pairs.ring[0].next + capacity - 1) % capacity
    for age in range(kept):
        k = (newest + capacity - age) % capacity
        alpha[k] = pairs.inverse[k] * _inner(s, k, v)
        for j in range(v.size):
            v[j] -= alpha[k] * y[k, j]
    scale = 1.0 / (pairs.inverse[newest] * _squares(y, newest))  # <s, y> / <y, y> of the newest pair
    for j in range(v.size):
        v[j] *= scale
    for age in range(kept - 1, -1, -1):
        k = (newest + capacity - age) % capacity
        beta = pairs.inverse[k] * _inner(y, k, v)
        for j in range(v.size):
            v[j] += (alpha[k] - beta) * s[k, j]


@inline
def _inner(matrix, k, v):
    total = 0.0
    for j in range(v.size):
        total += matrix[k, j] * v[j]
    return total


@inline
def _squares(matrix, k):
    total = 0.0
    for j in range(matrix.shape[1]):
        total += matrix[k, j] * matrix[k, j]
    return total


@inline
def _learn_pair(parts, state):
    """s and y from the mean of the last L iterates and the one before; kept if the curvature is positive."""
    means, pairs, d = state.means, state.pairs, state.total.size
    for j in range(d):
        means[1, j] = means[0, j]
        means[0, j] = state.total[j] / state.every
        state.total[j] = 0.0
    if state.time[0] == state.every:
        return
    s, y, ring = pairs.s, pairs.y, pairs.ring[0]
    k = ring.next
    ring.kept = min(ring.kept, pairs.inverse.size - 1)  # the oldest pair makes room
    for j in range(d):
        s[k, j] = means[0, j] - means[1, j]
        y[k, j] = state.l2[j] * s[k, j] if j < state.iterate.penalised else 0.0
    _hessian_times(parts, state, means[0], s[k], y[k])
    product = _inner(s, k, y[k])
    if product > FLATTEST * math.sqrt(_squares(s, k) * _squares(y, k)):
        pairs.inverse[k] = 1.0 / product
        ring.kept += 1
        ring.next = (k + 1) % pairs.inverse.size


@inline
def _hessian_times(parts, state, w, s, out):
    """out += ∇²f_S(w) s = (1/|S|) Σ_{i in S} ∇²φ_i(w) s, S drawn uniformly."""
    n = parts.norms2.size
    for _ in range(state.hessian_rows):
        i = uniform_index(state.stream, n)
        parts.terms.add_curved(parts.rows, state.minibatch.scratch, i, w, s, state.hessian_rows, out)
