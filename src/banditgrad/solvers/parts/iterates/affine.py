"""The iterate of a variance-reduced method, which moves in every step by  w ← prox(w - γ (f x_i + g), γ).

g, the mean gradient that the estimator is centred on, moves *every* coordinate at every step. `EagerReduced` does just
that. `LazyReduced` serves sparse rows: between two visits of a coordinate its g is fixed, so that with
α = 1/(1 + γ l2) the missed steps repeat one map,

    T(w) = α (w - γ (g + l1))  above zero,   α (w - γ (g - l1))  below,   0  in between,

which is affine on each side and leaves zero at most once. With A_k = α^k and B_k = α + ⋯ + α^k, k steps on one side are
w ← A_k w - B_k γ (g ± l1). The sum of the iterates, for the mean that Prox-SVRG takes, needs the sums of A_k and B_k in
the same way. What can happen to w > 0, and likewise with both signs changed:

    g + l1 <= 0           it moves away from zero: on one side
    g + l1 > 0            it comes down to zero, if there is time
        |g| <= l1         and stays there
        g > l1            and, after one step of T, goes on below

Iterates are the textbook's. For l2 > 0 the powers are in a table; a *segment* of steps ends when this is used up, at
steps that depend on the step count alone.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import bridge, inline, kernel
from banditgrad.rows import add, dot

Vector = NDArray[np.float64]

# One coordinate in one place: a touch costs one cache line. It is up to date as of the step `seen` of the segment.
COORDINATE = np.dtype([("w", "f8"), ("g", "f8"), ("seen", "f8"), ("total", "f8")])
CLOCK = np.dtype([("now", "f8"), ("gamma", "f8")])  # steps made in this segment; γ
POWERS = np.dtype([("A", "f8"), ("B", "f8"), ("sum_A", "f8"), ("sum_B", "f8")])  # of each k; the sums are over 1..k


@bridge
class EagerReduced(NamedTuple):
    """Every coordinate moves at every step: for dense rows and for any penalty."""

    penalty: Any
    penalised: int  # all coordinates but the intercept
    w: Vector
    g: Vector
    total: Vector  # the sum of the iterates, or empty where it is not asked for
    clock: NDArray[np.void]  # one CLOCK record

    def margin(self, rows, i):
        """<x_i, w>, with the coordinates of row i brought up to date."""
        return dot(rows, i, self.w)

    def move(self, rows, i, factor, change):
        """One step: w ← prox(w - γ (factor · x_i + g), γ), then g ← g + change · x_i. `margin` comes before."""
        self.begin_move()
        self.move_row(rows, i, factor, change)
        self.end_move()

    def begin_move(self):
        """The same in parts, where a row moves several pieces of w: before them, each piece, after them."""
        w, g, gamma = self.w, self.g, self.clock[0].gamma
        for j in range(w.size):
            w[j] -= gamma * g[j]

    def move_row(self, rows, i, factor, change):
        add(rows, i, -self.clock[0].gamma * factor, self.w)
        if change != 0.0:
            add(rows, i, change, self.g)

    def move_free(self, j, factor, change):
        """Likewise of a coordinate j that is not penalised, as an intercept; not where rows have one of their own."""
        self.w[j] -= self.clock[0].gamma * factor
        self.g[j] += change

    def end_move(self):
        w, gamma = self.w, self.clock[0].gamma
        self.penalty.prox_all(w, gamma, self.penalised)
        for j in range(self.total.size):
            self.total[j] += w[j]

    def free(self, j):
        """Such a coordinate."""
        return self.w[j]

    def flush(self):
        """Bring every coordinate up to date: now w, g and total hold what their names say."""

    def resume(self):
        """Go on from w, g and total, which the caller may have changed."""

    def change_step(self, gamma):
        """Go on with another step size; everything is up to date."""
        self.clock[0].gamma = gamma

    def note_row(self, rows, i):
        """Between `margin` and `move`: row i is up to date."""


class LazyReduced(NamedTuple):
    """Coordinates move when a row needs them; the penalty is l1 |w| + l2/2 w²."""

    l1: float
    l2: float
    penalised: int
    w: Vector
    g: Vector
    total: Vector
    clock: NDArray[np.void]
    coordinates: NDArray[np.void]  # COORDINATE records: what is true between `resume` and `flush`
    powers: NDArray[np.void]  # POWERS records; one where l2 = 0

    def margin(self, rows, i):
        now, gamma, c = self.clock[0].now, self.clock[0].gamma, self.coordinates
        z = c[c.size - 1].w if rows.intercept != 0.0 else 0.0
        if self.l2 == 0.0 and self.total.size == 0:  # two loops: in one, the other kind of step is 8 % slower
            for k in range(rows.begin(i), rows.end(i)):
                j = rows.column(i, k)
                w = _after_straight_steps(c[j].w, c[j].g, self.l1, gamma, now - c[j].seen, self.powers)
                c[j].w = w
                z += rows.entry(i, k) * w
        else:
            for k in range(rows.begin(i), rows.end(i)):
                j = rows.column(i, k)
                w = caught_up(self, j, now, gamma)
                c[j].w = w
                z += rows.entry(i, k) * w
        return z

    def move(self, rows, i, factor, change):
        self.move_row(rows, i, factor, change)
        self.end_move()

    def begin_move(self):
        pass

    def move_row(self, rows, i, factor, change):
        now, gamma, c = self.clock[0].now + 1.0, self.clock[0].gamma, self.coordinates
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

    def move_free(self, j, factor, change):
        c = self.coordinates
        c[j].w -= self.clock[0].gamma * (factor + c[j].g)
        c[j].g += change
        c[j].total += c[j].w

    def end_move(self):
        now = self.clock[0].now + 1.0
        self.clock[0].now = now
        if self.l2 > 0.0 and now + 1.0 >= self.powers.size:
            self.flush()

    def flush(self):
        now, gamma, c = self.clock[0].now, self.clock[0].gamma, self.coordinates
        for j in range(c.size):
            if j < self.penalised:
                c[j].w = caught_up(self, j, now, gamma)
                c[j].seen = 0.0
            self.w[j] = c[j].w
            self.g[j] = c[j].g
            if self.total.size > 0:
                self.total[j] = c[j].total
        self.clock[0].now = 0.0

    def resume(self):
        c = self.coordinates
        self.clock[0].now = 0.0
        for j in range(c.size):
            c[j].w = self.w[j]
            c[j].g = self.g[j]
            c[j].seen = 0.0
            if self.total.size > 0:
                c[j].total = self.total[j]

    def change_step(self, gamma):
        self.clock[0].gamma = gamma
        if self.l2 > 0.0:
            refill(self.powers, gamma * self.l2)

    def note_row(self, rows, i):
        for k in range(rows.begin(i), rows.end(i)):
            self.coordinates[rows.column(i, k)].seen = self.clock[0].now

    def free(self, j):
        return self.coordinates[j].w


@inline
def _after_straight_steps(w, g, l1, gamma, missed, powers):
    """w after the missed steps where l2 = 0: as after one step that is as long as all of them, unless g carries w
    over zero, which is rare."""
    length = missed * gamma
    # All three must be positive: g draws w towards zero, is stronger than the threshold, and w gets there.
    if l1 > 0.0 and min(w * g, abs(g) - l1, length * (abs(g) + l1) - abs(w)) > 0.0:  # one branch, rarely taken
        end, _ = travelled(w, g, l1, 0.0, gamma, np.int64(missed), powers)
        return end
    u = w - length * g
    return math.copysign(max(abs(u) - length * l1, 0.0), u)


@inline
def caught_up(lazy, j, now, gamma):
    """w of coordinate j as of now; its sum is brought up to date."""
    c, l1, l2, powers = lazy.coordinates, lazy.l1, lazy.l2, lazy.powers
    w, g, missed = c[j].w, c[j].g, now - c[j].seen
    if l1 == 0.0:
        end, total = _run(w, gamma * g, l2, missed, powers)
    else:
        side = math.copysign(1.0, w) if w != 0.0 else -math.copysign(1.0, g)
        end, total = _run(side * w, gamma * (side * g + l1), l2, missed, powers)
        if end < 0.0 and w != 0.0 and (abs(g) > l1 or lazy.total.size > 0):  # rare: how it meets zero matters
            end, total = travelled(w, g, l1, l2, gamma, np.int64(missed), powers)
        else:  # it stays on its side of zero, or comes to zero and stays: no branch, which could not be foretold
            end, total = side * max(end, 0.0), side * max(total, 0.0)
    if lazy.total.size > 0:
        c[j].total += total
    return end


@inline
def travelled(w, g, l1, l2, gamma, m, powers):
    """w after m steps of T, and the sum of the m iterates."""
    if w == 0.0 and abs(g) <= l1:
        return 0.0, 0.0
    side = -math.copysign(1.0, g) if w == 0.0 else math.copysign(1.0, w)
    v, speed = side * w, gamma * (side * g + l1)  # v >= 0; one step above zero is v ← α (v - speed)
    straight = m if speed <= 0.0 else _steps_above(v, speed, l2, powers, m)
    end, total = _run(v, speed, l2, straight, powers)
    m -= straight
    if m > 0:  # T once, from where v <= speed: to zero, or beyond where g is stronger than the threshold
        below = gamma * (side * g - l1)
        end = min(end - below, 0.0) / (1.0 + gamma * l2)
        total += end
        if m > 1 and below > 0.0:
            v, more = _run(-end, -below, l2, m - 1, powers)
            end = -v
            total -= more
    return side * end, side * total


@inline
def _run(v, speed, l2, k, powers):
    """A_k v - B_k speed and the sum of these from 1 to k."""
    if l2 == 0.0:
        return v - k * speed, k * v - 0.5 * k * (k + 1.0) * speed
    row = np.uint64(k)
    return (
        powers[row].A * v - powers[row].B * speed,
        powers[row].sum_A * v - powers[row].sum_B * speed,
    )


@inline
def _steps_above(v, speed, l2, powers, m):
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
        if powers[middle].A * v > powers[middle].B * speed:
            low = middle
        else:
            high = middle - 1
    return low


@inline
def refill(powers, strength):
    """The powers of α = 1/(1 + strength)."""
    alpha = 1.0 / (1.0 + strength)
    powers[0].A = 1.0
    for k in range(1, powers.size):
        powers[k].A = alpha * powers[k - 1].A
        powers[k].B = alpha * (powers[k - 1].B + 1.0)
        powers[k].sum_A = powers[k - 1].sum_A + powers[k].A
        powers[k].sum_B = powers[k - 1].sum_B + powers[k].B


@kernel
def set_out(iterate, gamma):
    """Go on from w, g and total with steps of this length."""
    iterate.change_step(gamma)
    iterate.resume()
