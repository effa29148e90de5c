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

# One coordinate in one place: a touch costs one cache line.
COORDINATE = np.dtype([("w", "f8"), ("g", "f8"), ("seen", "f8"), ("total", "f8")])  # seen: up to date as of this step

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

    def margin_at(self, rows, i, gamma):
        """<x_i, w>, with the coordinates of row i brought up to date."""
        return dot(rows, i, self.w)

    def move(self, rows, i, factor, change, gamma):
        """One step: w ← prox(w - γ (factor · x_i + g), γ), then g ← g + change · x_i. `margin_at` comes before."""
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

    def keep_row(self, rows, i):
        """Between `margin_at` and `move`, before `arrive`: the coordinates of row i are up to date."""

    def arrive(self, gamma):
        """Bring every coordinate up to date: now w, g and total hold what their names say."""

    def depart(self):
        """Go on from w, g and total, which the caller may have changed."""

    def change_step(self, gamma):
        """Make ready for another step size; everything is up to date."""


class LazyDrift(NamedTuple):
    """Coordinates move when a row needs them; the penalty is l1 |w| + l2/2 w²."""

    l1: float
    l2: float
    penalised: int
    w: Vector
    g: Vector
    total: Vector
    clock: NDArray[np.float64]  # steps of this block
    coordinates: NDArray[np.void]  # COORDINATE records: what is true between `depart` and `arrive`
    tables: NDArray[np.float64]  # of one row where l2 = 0

    def margin_at(self, rows, i, gamma):
        now, c = self.clock[0], self.coordinates
        z = c[c.size - 1].w if rows.intercept != 0.0 else 0.0
        if self.l2 == 0.0 and self.total.size == 0:  # two loops: in one, the other kind of step is 8 % slower
            for k in range(rows.begin(i), rows.end(i)):
                j = rows.column(i, k)
                w = _gone_straight(c[j].w, c[j].g, self.l1, gamma, now - c[j].seen, self.tables)
                c[j].w = w
                z += rows.entry(i, k) * w
        else:
            for k in range(rows.begin(i), rows.end(i)):
                j = rows.column(i, k)
                w = _caught_up(self, j, now, gamma)
                c[j].w = w
                z += rows.entry(i, k) * w
        return z

    def move(self, rows, i, factor, change, gamma):
        now, c = self.clock[0] + 1.0, self.coordinates
        alpha, threshold = 1.0 / (1.0 + gamma * self.l2), gamma * self.l1
        for k in range(rows.begin(i), rows.end(i)):
            j = rows.column(i, k)
            x = rows.entry(i, k)
            u = c[j].w - gamma * (factor * x + c[j].g)
            w = math.copysign(alpha * max(abs(u) - threshold, 0.0), u)
            c[j].w = w
            c[j].g += change * x
            c[j].seen = now
            if self.total.size > 0:
                c[j].total += w
        if rows.intercept != 0.0:
            last = c.size - 1
            c[last].w -= gamma * (factor + c[last].g)
            c[last].g += change
            c[last].total += c[last].w
        self.clock[0] = now
        if self.l2 > 0.0 and now + 1.0 >= self.tables.shape[0]:
            self.arrive(gamma)

    def keep_row(self, rows, i):
        for k in range(rows.begin(i), rows.end(i)):
            self.coordinates[rows.column(i, k)].seen = self.clock[0]

    def arrive(self, gamma):
        c = self.coordinates
        for j in range(c.size):
            if j < self.penalised:
                c[j].w = _caught_up(self, j, self.clock[0], gamma)
                c[j].seen = 0.0
            self.w[j] = c[j].w
            self.g[j] = c[j].g
            if self.total.size > 0:
                self.total[j] = c[j].total
        self.clock[0] = 0.0

    def depart(self):
        c = self.coordinates
        self.clock[0] = 0.0
        for j in range(c.size):
            c[j].w = self.w[j]
            c[j].g = self.g[j]
            c[j].seen = 0.0
            if self.total.size > 0:
                c[j].total = self.total[j]

    def change_step(self, gamma):
        if self.l2 > 0.0:
            refill(self.tables, gamma * self.l2)


@inline
def _gone_straight(w, g, l1, gamma, missed, tables):
    """w after the missed steps where l2 = 0: as after one step that is as long as all of them, unless the drift carries
    w over zero, which is rare."""
    length = missed * gamma
    # All three must be positive: g draws w towards zero, is stronger than the threshold, and w gets there.
    if l1 > 0.0 and min(w * g, abs(g) - l1, length * (abs(g) + l1) - abs(w)) > 0.0:  # one branch, rarely taken
        end, _ = travelled(w, g, l1, 0.0, gamma, np.int64(missed), tables)
        return end
    u = w - length * g
    return math.copysign(max(abs(u) - length * l1, 0.0), u)


@inline
def _caught_up(drift, j, now, gamma):
    """w of coordinate j as of now; its sum is brought up to date."""
    c, l1, l2, tables = drift.coordinates, drift.l1, drift.l2, drift.tables
    w, g, missed = c[j].w, c[j].g, now - c[j].seen
    if l1 == 0.0:
        end, total = _run(w, gamma * g, l2, missed, tables)
    else:
        side = math.copysign(1.0, w) if w != 0.0 else -math.copysign(1.0, g)
        end, total = _run(side * w, gamma * (side * g + l1), l2, missed, tables)
        if end < 0.0 and w != 0.0 and (abs(g) > l1 or drift.total.size > 0):  # rare: how it meets zero matters
            end, total = travelled(w, g, l1, l2, gamma, np.int64(missed), tables)
        else:  # it stays on its side of zero, or comes to zero and stays: no branch, which could not be foretold
            end, total = side * max(end, 0.0), side * max(total, 0.0)
    if drift.total.size > 0:
        c[j].total += total
    return end


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
    row = np.uint64(k)
    return (
        tables[row, A] * v - tables[row, B] * speed,
        tables[row, SUM_A] * v - tables[row, SUM_B] * speed,
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
    strengths = problem.shrinkage
    if not isinstance(problem.parts.rows, Csr) or strengths is None:
        return EagerDrift(problem.penalty, problem.d, w, g, total)
    l1, l2 = strengths
    steps = max(1024, min(problem.d, 1 << 20)) if l2 > 0.0 else 0
    tables = np.zeros((steps + 1, 4))
    fill_tables(tables, gamma * l2)
    lazy = LazyDrift(l1, l2, problem.d, w, g, total, np.zeros(1), np.zeros(w.size, COORDINATE), tables)
    depart(lazy)
    return lazy


@kernel
def depart(drift):
    drift.depart()


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
