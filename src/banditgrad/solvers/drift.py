"""How w moves in one step of a variance-reduced method:  w ← prox(w - γ (f x_i + g), γ).

g, the mean gradient that the estimator is centred on, moves *every* coordinate at every step. `EagerDrift` does just
that. `LazyDrift` serves sparse rows: between two visits of a coordinate its g is fixed, so that with
α = 1/(1 + γ l2) the missed steps repeat one map,

    T(w) = α (w - γ (g + l1))  above zero,   α (w - γ (g - l1))  below,   0  in between,

which is affine on each side and leaves zero at most once: run down to zero, one step of T, run on below it (or stay,
where |g| <= l1). With A_k = α^k and B_k = α + ⋯ + α^k, k steps on one side are w ← A_k w - B_k γ (g ± l1). The sum of
the iterates, for the mean that Prox-SVRG takes, needs the sums of A_k and B_k in the same way.

Iterates are the textbook's. For l2 > 0 the powers are in tables; a block of steps ends when these are used up, at
steps that depend on the step count alone.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import bridge, inline, kernel
from banditgrad.rows import Csr, add, dot

Vector = NDArray[np.float64]

# columns of `tables`
A, B, SUM_A, SUM_B = 0, 1, 2, 3  # α^k, α + ⋯ + α^k, and the sums of both over 1..k


@bridge
class EagerDrift(NamedTuple):
    """Every coordinate moves at every step: for dense rows and for any penalty."""

    penalty: Any
    penalised: int  # all coordinates but the intercept
    w: Vector
    g: Vector
    total: Vector  # the sum of the iterates, or empty where it is not asked for
    clock: NDArray[np.int64]

    def margin_at(self, rows, i, gamma):
        """<x_i, w>, with the coordinates of row i brought up to date."""
        return dot(rows, i, self.w)

    def move(self, rows, i, factor, change, gamma):
        """One step: w ← prox(w - γ (factor · x_i + g), γ), then g ← g + change · x_i."""
        w, g = self.w, self.g
        for j in range(w.size):
            w[j] -= gamma * g[j]
        add(rows, i, -gamma * factor, w)
        for j in range(self.penalised):
            w[j] = self.penalty.prox(w[j], gamma)
        for j in range(self.total.size):
            self.total[j] += w[j]
        if change != 0.0:
            add(rows, i, change, g)

    def arrive(self, gamma):
        """Bring every coordinate, and the sum, up to date."""

    def change_step(self, gamma):
        """Make ready for another step size; everything is up to date."""

    def restart(self):
        """Make ready to go on from another w, set by the caller."""
        for j in range(self.total.size):
            self.total[j] = 0.0


class LazyDrift(NamedTuple):
    """Coordinates move when a row needs them; the penalty is l1 |w| + l2/2 w²."""

    l1: float
    l2: float
    w: Vector
    g: Vector
    total: Vector
    clock: NDArray[np.int64]  # steps of this block
    seen: NDArray[np.uint32]  # the step of the block up to which a coordinate is up to date
    tables: NDArray[np.float64]  # of one row where l2 = 0

    def margin_at(self, rows, i, gamma):
        now, w = self.clock[0], self.w
        z = w[w.size - 1] if rows.intercept != 0.0 else 0.0
        for k in range(rows.begin(i), rows.end(i)):
            j = rows.column(i, k)
            missed = now - np.int64(self.seen[j])
            if missed > 0:
                _travel(self, j, missed, gamma)
            z += rows.entry(i, k) * w[j]
        return z

    def move(self, rows, i, factor, change, gamma):
        now, w, g = self.clock[0] + 1, self.w, self.g
        alpha, threshold = 1.0 / (1.0 + gamma * self.l2), gamma * self.l1
        for k in range(rows.begin(i), rows.end(i)):
            j = rows.column(i, k)
            u = w[j] - gamma * (factor * rows.entry(i, k) + g[j])
            g[j] += change * rows.entry(i, k)
            w[j] = math.copysign(alpha * max(abs(u) - threshold, 0.0), u)
            self.seen[j] = now
            if self.total.size > 0:
                self.total[j] += w[j]
        if rows.intercept != 0.0:
            d = self.seen.size
            w[d] -= gamma * (factor + g[d])
            g[d] += change
            if self.total.size > 0:
                self.total[d] += w[d]
        self.clock[0] = now
        if now + 1 >= MAX_BLOCK or (self.l2 > 0.0 and now + 1 >= self.tables.shape[0]):
            self.arrive(gamma)

    def arrive(self, gamma):
        now = self.clock[0]
        for j in range(self.seen.size):
            missed = now - np.int64(self.seen[j])
            if missed > 0:
                _travel(self, j, missed, gamma)
            self.seen[j] = 0
        self.clock[0] = 0

    def restart(self):
        self.clock[0] = 0
        for j in range(self.seen.size):
            self.seen[j] = 0
        for j in range(self.total.size):
            self.total[j] = 0.0

    def change_step(self, gamma):
        if self.l2 > 0.0:
            refill(self.tables, gamma * self.l2)


MAX_BLOCK = 1 << 31


@inline
def _travel(drift, j, missed, gamma):
    """Make `missed` steps of coordinate j."""
    drift.seen[j] += np.uint32(missed)
    w, total = travelled(drift.w[j], drift.g[j], drift.l1, drift.l2, gamma, missed, drift.tables)
    drift.w[j] = w
    if drift.total.size > 0:
        drift.total[j] += total


@inline
def travelled(w, g, l1, l2, gamma, m, tables):
    """w after m steps of T, and the sum of the m iterates."""
    if w == 0.0 and abs(g) <= l1:
        return 0.0, 0.0
    side = -math.copysign(1.0, g) if w == 0.0 else math.copysign(1.0, w)
    v, speed = side * w, gamma * (side * g + l1)  # v >= 0; one step above zero is v ← α (v - speed)
    straight = m if speed <= 0.0 else _steps_above(v, speed, l2, tables, m)
    end, total = _run(v, speed, l2, straight, tables)
    m -= straight
    if m > 0:  # T once, from where v <= speed: to zero, or beyond where the drift is stronger than the threshold
        below = gamma * (side * g - l1)
        end = min(end - below, 0.0) / (1.0 + gamma * l2)
        total += end
        if m > 1 and below > 0.0:
            v, more = _run(-end, -below, l2, m - 1, tables)
            end = -v
            total -= more
    return side * end, side * total


@inline
def _run(v, speed, l2, k, tables):
    """A_k v - B_k speed and the sum of these from 1 to k."""
    if l2 == 0.0:
        return v - k * speed, k * v - 0.5 * k * (k + 1.0) * speed
    return (
        tables[k, A] * v - tables[k, B] * speed,
        tables[k, SUM_A] * v - tables[k, SUM_B] * speed,
    )


@inline
def _steps_above(v, speed, l2, tables, m):
    """How many of at most m steps of v ← α (v - speed) start at v > speed and so stay above zero; speed > 0."""
    if l2 == 0.0:
        k = min(v / speed, float(m))
        steps = np.int64(k)
        while steps > 0 and v - steps * speed <= 0.0:
            steps -= 1
        return steps
    low, high = 0, m  # v after `low` steps is above zero
    while low < high:
        middle = (low + high + 1) // 2
        if tables[middle, A] * v > tables[middle, B] * speed:
            low = middle
        else:
            high = middle - 1
    return low


def new_drift(problem: Any, w: Vector, gamma: float, *, mean: bool = False) -> Any:
    """Lazy for sparse rows and penalties with a closed form, else eager."""
    g, total = np.zeros_like(w), np.zeros(w.size if mean else 0)
    clock = np.zeros(1, np.int64)
    strengths = problem.shrinkage
    if not isinstance(problem.parts.rows, Csr) or strengths is None:
        return EagerDrift(problem.penalty, problem.d, w, g, total, clock)
    l1, l2 = strengths
    steps = max(1024, min(problem.d, 1 << 20)) if l2 > 0.0 else 0
    tables = np.zeros((steps + 1, 4))
    fill_tables(tables, gamma * l2)
    return LazyDrift(l1, l2, w, g, total, clock, np.zeros(problem.d, np.uint32), tables)


@kernel
def fill_tables(tables, strength):
    refill(tables, strength)


@inline
def refill(tables, strength):
    """The powers of α = 1/(1 + strength)."""
    alpha = 1.0 / (1.0 + strength)
    tables[0, A] = 1.0
    for k in range(1, tables.shape[0]):
        tables[k, A] = alpha * tables[k - 1, A]
        tables[k, B] = alpha * (tables[k - 1, B] + 1.0)
        tables[k, SUM_A] = tables[k - 1, SUM_A] + tables[k, A]
        tables[k, SUM_B] = tables[k - 1, SUM_B] + tables[k, B]


def arrived(drift: Any, gamma: float) -> Any:
    """The drift with every coordinate up to date, as a copy."""
    copies = [value.copy() if isinstance(value, np.ndarray) else value for value in drift]
    copy = type(drift)(*copies)
    _arrive(copy, gamma)
    return copy


@kernel
def _arrive(drift, gamma):
    drift.arrive(gamma)
