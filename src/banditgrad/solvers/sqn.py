"""Stochastic quasi-Newton (Byrd, Hansen, Nocedal and Singer 2016, algorithms 1 and 2):

    w ← w - γ_t H (ĝ + λ ∇r(w)),    ĝ = (1/b) Σ_{i in batch} ∇φ_i(w) / (n p_i)

H approximates the inverse Hessian. Every L steps it learns a pair (s, y): s is the change of the mean of L iterates,
y = (∇²f_S + λ ∇²r) s with a sub-sampled Hessian at the newer mean; H is the BFGS matrix of the last M pairs, applied
by the two-loop recursion. For the first 2L steps H is the identity. The sampler chooses the gradients' batches; the
Hessian's are uniform.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline, kernel
from banditgrad._random import new_stream, uniform_index
from banditgrad.rows import add, dot
from banditgrad.solvers.base import BAD_INDEX, Batch, Solver, check_batch_size, draw_batch, estimate, new_batch
from banditgrad.solvers.shrinkage import Eager, eager
from banditgrad.solvers.stride import check_stride, new_stride, stride_along

Vector = NDArray[np.float64]

FLATTEST = 1e-10  # a pair whose curvature <s, y> / (‖s‖ ‖y‖) is below this tells nothing and is left out


class Memory(NamedTuple):
    """The last M pairs (s, y) in a ring, and room for the two-loop recursion."""

    s: NDArray[np.float64]
    y: NDArray[np.float64]
    inverse: Vector  # 1 / <s, y>
    alpha: Vector
    book: NDArray[np.int64]  # pairs kept, the place of the next one


class SqnState(NamedTuple):
    w: Vector
    stride: Any
    shrinkage: Eager
    batch: Batch
    time: NDArray[np.int64]
    direction: Vector
    total: Vector  # the sum of the iterates since the last pair
    means: NDArray[np.float64]  # the means of the last L iterates and of the L before
    memory: Memory
    stream: NDArray[np.uint64]
    hessian_batch: int
    every: int
    l2: float


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
        check_stride(self, self.step_size)
        check_batch_size(self, self.batch_size)
        for name in ("hessian_batch_size", "every", "memory"):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
                raise ValueError(f"Sqn expects {name} to be a whole number of at least 1, got {value!r}.")

    def start(self, problem: Any, w: Vector, seed: Any) -> SqnState:
        d, m = w.size, int(self.memory)
        _, l2 = problem.shrinkage or (0.0, 0.0)
        memory = Memory(np.zeros((m, d)), np.zeros((m, d)), np.zeros(m), np.zeros(m), np.zeros(2, np.int64))
        return SqnState(
            w=w,
            stride=new_stride(problem, self.step_size, w, self.batch_size),
            shrinkage=eager(problem, proximal=False),
            batch=new_batch(problem.n, self.batch_size),
            time=np.zeros(1, np.int64),
            direction=np.zeros(d),
            total=np.zeros(d),
            means=np.zeros((2, d)),
            memory=memory,
            stream=new_stream(seed),
            hessian_batch=int(self.hessian_batch_size),
            every=int(self.every),
            l2=l2,
        )

    def advance(self, problem: Any, state: SqnState, sampler: Any, steps: int) -> int:
        return stride_along(lambda m: _sqn(problem.parts, state, sampler, m), state, steps)

    def iterate(self, problem: Any, state: SqnState) -> Vector:
        return state.w.copy()


@kernel
def _sqn(parts, state, sampler, steps):
    w, v, batch, memory = state.w, state.direction, state.batch, state.memory
    for step in range(steps):
        if not draw_batch(parts, sampler, batch):
            return BAD_INDEX
        if not estimate(parts, w, state.shrinkage, batch):
            return step
        state.time[0] += 1
        for j in range(w.size):
            penalised = j < state.shrinkage.penalised
            v[j] = state.shrinkage.penalty.subgradient(w[j]) if penalised else 0.0
            state.total[j] += w[j]
        for k in range(batch.i.size):
            add(parts.rows, batch.i[k], batch.factor[k], v)
        if state.time[0] > 2 * state.every:
            _apply(memory, v)
        state.stride.measure_direction(parts, batch, v)
        gamma = state.stride.step_at(state.time[0])
        for j in range(w.size):
            w[j] -= gamma * v[j]
        if state.time[0] % state.every == 0:
            _learn_pair(parts, state)
    return steps


@inline
def _apply(memory, v):
    """v ← H v: the two-loop recursion."""
    s, y, alpha = memory.s, memory.y, memory.alpha
    kept, capacity = memory.book[0], memory.inverse.size
    if kept == 0:
        return
    newest = (memory.book[1] + capacity - 1) % capacity
    for age in range(kept):
        k = (newest + capacity - age) % capacity
        alpha[k] = memory.inverse[k] * _inner(s, k, v)
        for j in range(v.size):
            v[j] -= alpha[k] * y[k, j]
    scale = 1.0 / (memory.inverse[newest] * _squares(y, newest))  # <s, y> / <y, y> of the newest pair
    for j in range(v.size):
        v[j] *= scale
    for age in range(kept - 1, -1, -1):
        k = (newest + capacity - age) % capacity
        beta = memory.inverse[k] * _inner(y, k, v)
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
    means, memory, d = state.means, state.memory, state.w.size
    k = memory.book[1]
    s, y = memory.s, memory.y
    first = state.time[0] == state.every
    for j in range(d):
        means[1, j] = means[0, j]
        means[0, j] = state.total[j] / state.every
        state.total[j] = 0.0
    if first:
        return
    _drop_oldest(memory)
    for j in range(d):
        s[k, j] = means[0, j] - means[1, j]
        y[k, j] = state.l2 * s[k, j] if j < state.shrinkage.penalised else 0.0
    _hessian_times(parts, state, means[0], s[k], y[k])
    product = _inner(s, k, y[k])
    if product > FLATTEST * math.sqrt(_squares(s, k) * _squares(y, k)):
        memory.inverse[k] = 1.0 / product
        memory.book[0] += 1
        memory.book[1] = (k + 1) % memory.inverse.size


@inline
def _drop_oldest(memory):
    """Make room for one more pair."""
    memory.book[0] = min(memory.book[0], memory.inverse.size - 1)


@inline
def _hessian_times(parts, state, w, s, out):
    """out += ∇²f_S(w) s = (1/|S|) Σ_{i in S} φ_i''(<x_i, w>) <x_i, s> x_i, S drawn uniformly."""
    n = parts.norms2.size
    for _ in range(state.hessian_batch):
        i = uniform_index(state.stream, n)
        curve = parts.terms.curve(i, dot(parts.rows, i, w))
        add(parts.rows, i, curve * dot(parts.rows, i, s) / state.hessian_batch, out)
