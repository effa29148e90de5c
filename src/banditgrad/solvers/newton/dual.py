"""Coordinate ascent in the dual: a good beginning where rows are few for the number of features and sparse.

With a penalty (λ/2) ‖w‖² the minimiser is w = Σ_i α_i x_i / (λ n),  α_i = -φ_i'(<x_i, w>). One step moves α_i, and w
with it, to where this holds for row i (Hsieh, Chang, Lin, Keerthi and Sundararajan 2008): with q = ‖x_i‖² / (λ n), the
margin moves from z to the z' at which z' - z = -q (α_i + φ_i'(z')).

A sweep is a sample of the rows without repetition, in random order. Row i is taken with a probability in proportion to
how far it moved in the sweep before, for most rows have little left to tell; but none is left out twice in a row.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline, kernel
from banditgrad._random import peek, shuffle, skip, unit
from banditgrad.rows import Csr, add, dot, is_memory_mapped
from banditgrad.solvers.newton.subset import AHEAD, RowSubset

Vector = NDArray[np.float64]

FLOOR = 0.2  # the least probability that a row is taken
PASS = 0.8  # of all rows: as many make a pass
LEFT_OUT = -1.0  # instead of how far a row moved
TRIES, CLOSE = 20, 0.01  # for one z', to this part of its distance from z


class Limits(NamedTuple):
    """When Newton's method is faster: once a sweep gains less than `near` of all that was gained, or sweeps gain more
    than `slow` times what the ones before did, each, over as many `sweeps` and as many before (half as many at first:
    a sweep of few rows gains little, and the next then more)."""

    slow: float
    near: float
    sweeps: int


MANY, FEW = Limits(0.4, 1e-2, 2), Limits(0.95, 1e-10, 8)  # rows, for the number of features


class Dual:
    """Sweeps from w = 0.

    Attributes
    ----------
    w : the point
    value, gradient : F and ∇f there; they cost an evaluation of the rows where nobody asked since the last sweep
    near, ended : whether w is near the minimiser; whether Newton's method should go on, for this reason or because
        sweeps do not come near
    """

    def __init__(self, problem: Any, stream: NDArray[np.uint64]) -> None:
        _, self._l2 = problem.shrinkage
        self._parts, self._stream, self._scale = problem.parts, stream, self._l2 * problem.n
        self._subset, self._evaluated, self._d = RowSubset(problem), False, problem.d
        self._limits = MANY if problem.n > problem.d else FEW
        self._alphas, self._moves = np.zeros(problem.n), np.full(problem.n, LEFT_OUT)
        self._order = np.zeros(problem.n, np.int64)
        self._gains: list[float] = []
        self.w, self.near, self.ended = np.zeros(problem.dimension), False, False

    @staticmethod
    def suits(problem: Any) -> bool:
        """Whether it can be tried; its order does not suit files and costs long rows their speed, but where they are
        fewer than the features there are few of them. Losses without a bound on their curvature overflow on the way."""
        if problem.shrinkage is None or np.ndim(problem.shrinkage[0]):  # bounds, groups or a factor for each feature
            return False
        (l1, l2), rows = problem.shrinkage, problem.parts.rows
        entries = rows.data if isinstance(rows, Csr) else rows.matrix
        suitable = isinstance(rows, Csr) or problem.n < problem.d
        return problem.bounded_curvature and l1 == 0.0 and l2 > 0.0 and suitable and not is_memory_mapped(entries)

    @classmethod
    def leads(cls, problem: Any) -> bool:
        """Whether it is sure to come near in a few sweeps: with a mean q of 1 or less, where each step on a row moves
        w at least half as far as if there were no other rows."""
        return cls.suits(problem) and float(problem.parts.norms2.sum()) <= problem.shrinkage[1] * problem.n**2

    @property
    def begun(self) -> bool:
        return len(self._gains) > 0

    @property
    def value(self) -> float:
        penalised = self.w[: self._d]
        return self._evaluate().value + 0.5 * self._l2 * float(penalised @ penalised)

    @property
    def gradient(self) -> Vector:
        return self._evaluate().gradient

    @property
    def predicted(self) -> float:
        """What the last sweep gained at most: if it was little, so is what is left."""
        return self._gains[-1] / self._order.size

    def feedback(self) -> Vector:
        """a_i = ‖∇φ_i(w)‖² / n²."""
        return self._evaluate().feedback()

    def _evaluate(self) -> RowSubset:
        if not self._evaluated:
            self._evaluated = True
            self._subset.evaluate(self.w)
        return self._subset

    def step(self) -> None:
        """About as many rows as there are: one sweep at first, later two."""
        rows = 0.0
        while rows < PASS * self._order.size and not self.ended:
            rows += self.sweep()

    def sweep(self) -> int:
        """One sweep, and the number of its rows."""
        self._evaluated = False
        count = _choose(self._moves, self._stream, self._order)
        gain = self._sweep(self._order[:count])
        gains = self._gains
        gains.append(gain)
        slow, near, sweeps = self._limits
        self.near = gain <= near * sum(gains)
        span = min(sweeps, len(gains) // 2)
        slowly = 2 * span >= sweeps and sum(gains[-span:]) > slow**span * sum(gains[-2 * span : -span])
        self.ended = self.near or slowly or not math.isfinite(gain)
        return int(count)

    def _sweep(self, order: NDArray[np.int64]) -> float:
        return float(_sweep(self._parts, order, self._scale, self._alphas, self._moves, self.w))

    def compile(self) -> None:
        _choose(self._moves[:0], self._stream, self._order)
        self._sweep(self._order[:0])


@kernel
def _choose(moves, stream, order):
    """Rows for a sweep, shuffled; their number."""
    total, moved = 0.0, 0
    for i in range(moves.size):
        if moves[i] > 0.0:
            total += moves[i]
            moved += 1
    rate = moved / total if total > 0.0 else 0.0
    count = 0
    for i in range(moves.size):
        chance = max(FLOOR, rate * moves[i])
        if chance < 1.0 and moves[i] >= 0.0:
            u = unit(peek(stream, 0))
            skip(stream, 1)
            if u >= chance:
                moves[i] = LEFT_OUT
                continue
        order[count] = i
        count += 1
    shuffle(order, count, stream)
    return count


@kernel
def _sweep(parts, order, scale, alphas, moves, w):
    """Step on each of the rows; Σ ½ q (change of α_i)², at most what the dual gains times n."""
    gain = 0.0
    for k in range(order.size):
        i = order[k]
        if k + AHEAD < order.size:
            parts.rows.fetch(order[k + AHEAD])
        q = parts.norms2[i] / scale
        if q > 0.0:
            z = dot(parts.rows, i, w)
            change = (_fixed_point(parts.terms, i, z, q, alphas[i]) - z) / q
            moves[i] = abs(change) * math.sqrt(q)
            gain += 0.5 * q * change * change
            alphas[i] += change
            add(parts.rows, i, change / scale, w)
        else:
            moves[i] = 0.0
    return gain


@inline
def _fixed_point(terms, i, z, q, alpha):
    """z' = z - q (alpha + φ_i'(z')), by Newton's method within an interval that shrinks."""
    low, high, x = -np.inf, np.inf, z
    for _ in range(TRIES):
        excess = x - z + q * (alpha + terms.slope(i, x))
        if excess > 0.0:
            high = x
        else:
            low = x
        new = x - excess / (1.0 + q * terms.second(i, x))
        if new > high or new < low:
            new = 0.5 * (low + high)
        close = abs(new - x) <= CLOSE * abs(new - z)
        x = new
        if close:
            break
    return x
