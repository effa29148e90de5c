"""The lazy iterate of SGD with sub-gradients, which may cross zero:

    |w| ← α |w| - β,     α = 1 - γ l2,  β = γ l1.

On one side of zero, missed steps are as in `proximal`, with the same P and C. The linearly weighted mean of the
iterates needs Σ_s t_s w_s over them; with Q_s = Σ_{r<s} t_r P_r and R_s = Σ_{r<s} t_r P_r C_r it is

    (|w_a| / P_a + C_a)(Q_b - Q_a) - (R_b - R_a).

A coordinate near zero crosses it again and again. While every step crosses, |w| ← β - α |w|: for constant α and β a
geometric sequence about β / (1 + α); for α = 1 and falling β, with the alternating sums D_s = Σ_{r<s} (-1)^r β_r and
E_s = Σ_{r<s} t_r D_r, the signed w moves as w_b = w_a ∓ (D_b - D_a). Once a step does not cross, this formula leaves
[0, β] for good, so that its end tells whether it held throughout, and bisection where it ceased to. (An elastic net
with falling steps is left: there, coordinates that cross are stepped one by one.) So there are three regimes:

    it stays on its side                        up to the first step that crosses
    it crosses, α and β constant                in every step from there on
    it crosses, α = 1 and β never grows         up to the last step that crosses
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline
from banditgrad.solvers.parts.iterates.proximal import (
    SMALLEST_P,
    log_step,
    new_segment,
)

Vector = NDArray[np.float64]

SUMS = np.dtype([("Q", "f8"), ("R", "f8"), ("E", "f8")])

SMALLEST_P_FOR_SUMS = 1e-4  # differences of Q and R must not cancel
SMALLEST_ALPHA = 1e-3  # below it, a step is applied at once


class LazySubgradient(NamedTuple):
    """Sub-gradient steps of l1 |w| + l2/2 w², made when a row needs them."""

    l1: float
    l2: float
    constant: bool  # whether the step size is constant within a segment,
    falling: bool  # or at least never grows
    w: Vector
    weighted_sum: Vector  # Σ_t t w^t, or empty where no mean is asked for
    clock: NDArray[np.void]
    products: NDArray[np.void]
    sums: NDArray[np.void]  # SUMS records, one per step of the segment, or none
    seen: NDArray[np.uint32]  # the step of the segment up to which a coordinate is up to date

    def margin(self, rows, i):
        now, w = self.clock[0].now, self.w
        z = w[w.size - 1] if rows.intercept != 0.0 else 0.0
        for k in range(rows.begin(i), rows.end(i)):
            j = rows.column(i, k)
            if self.seen[j] != now:
                catch_up(self, j, now)
            z += rows.entry(i, k) * w[j]
        return z

    def free(self, j):
        return self.w[j]

    def add_row(self, rows, i, gamma, scale):
        now, w = self.clock[0].now, self.w
        t = self.clock[0].before + now
        for k in range(rows.begin(i), rows.end(i)):
            j = rows.column(i, k)
            if self.seen[j] != now:
                self.seen[j] = now
                _single_step(self, j, gamma, t)
            w[j] += scale * rows.entry(i, k)
        if rows.intercept != 0.0:
            w[w.size - 1] += scale

    def penalise(self, gamma):
        clock, w, d = self.clock[0], self.w, self.seen.size
        t = clock.before + clock.now + 1
        for j in range(d, self.weighted_sum.size):  # an intercept is always up to date
            self.weighted_sum[j] += t * w[j]
        alpha = 1.0 - gamma * self.l2
        if alpha < SMALLEST_ALPHA:
            self.flush()
            for j in range(d):
                _single_step(self, j, gamma, t)
            clock.before += 1
            return
        if log_subgradient_step(self, gamma, t):
            self.flush()

    def flush(self):
        now = self.clock[0].now
        for j in range(self.seen.size):
            if self.seen[j] != now:
                catch_up(self, j, now)
            self.seen[j] = 0
        new_segment(self.clock[0])


@inline
def log_subgradient_step(lazy, gamma, t):
    """Enter step t of the run in the tables; True when the segment must end."""
    clock, products, sums = lazy.clock[0], lazy.products, lazy.sums
    s, smallest = clock.now, SMALLEST_P
    products[s + 1].D = products[s].D + (gamma * lazy.l1 if s % 2 == 0 else -gamma * lazy.l1)
    if lazy.weighted_sum.size > 0:
        smallest = SMALLEST_P_FOR_SUMS
        sums[s + 1].Q = sums[s].Q + t * products[s].P
        sums[s + 1].R = sums[s].R + t * products[s].P * products[s].C
        sums[s + 1].E = sums[s].E + t * products[s].D
    return log_step(products, clock, 1.0 - gamma * lazy.l2, gamma * lazy.l1, smallest)


@inline
def _single_step(lazy, j, gamma, t):
    """Step t of coordinate j, as equation (2) has it."""
    w = lazy.w
    if lazy.weighted_sum.size > 0:
        lazy.weighted_sum[j] += t * w[j]
    l1 = lazy.l1 if w[j] != 0.0 else 0.0
    w[j] -= gamma * (math.copysign(l1, w[j]) + lazy.l2 * w[j])


@inline
def catch_up(lazy, j, b):
    """Bring coordinate j to step b of the segment."""
    a, w, products = np.int64(lazy.seen[j]), lazy.w[j], lazy.products
    lazy.seen[j] = b
    if w == 0.0:
        return
    level = abs(w) * products[a].inverse_P + products[a].C
    if level > products[b].C and lazy.weighted_sum.size == 0:  # it stays on its side of zero: nearly always
        lazy.w[j] = math.copysign(1.0, w) * (products[b].P * (level - products[b].C))
    else:
        _walk(lazy, j, a, b)


@inline
def _walk(lazy, j, a, b):
    """Bring coordinate j from step a to step b, regime by regime."""
    products, t = lazy.products, lazy.clock[0].before + 1
    sign, v, total = math.copysign(1.0, lazy.w[j]), abs(lazy.w[j]), 0.0
    while a < b and v != 0.0:
        level = v * products[a].inverse_P + products[a].C
        crosses = level < products[a + 1].C
        if crosses and lazy.constant:
            a, sign, v, total = _cross_constantly(lazy, t + a, a, b, sign, v, total)
        elif crosses and lazy.falling and lazy.l2 == 0.0:
            a, sign, v, total = _cross_for_a_time(lazy, a, b, sign, v, total)
        else:
            c = a + 1 if crosses else b
            if not crosses and level <= products[b].C:
                c = _first_crossing(products, level, a, b)
            a, sign, v, total = _stay(lazy, a, c, sign, level, total)
    lazy.w[j] = sign * v
    if lazy.weighted_sum.size > 0:
        lazy.weighted_sum[j] += total


# Each regime goes from step a to the step c that it returns, with the sign and |w| there and the weighted sum.


@inline
def _stay(lazy, a, c, sign, level, total):
    """No step crosses zero, but perhaps the last."""
    products, sums = lazy.products, lazy.sums
    if lazy.weighted_sum.size > 0:
        total += sign * (level * (sums[c].Q - sums[a].Q) - (sums[c].R - sums[a].R))
    v = products[c].P * (level - products[c].C)
    return c, -sign if v < 0.0 else sign, abs(v), total


@inline
def _cross_constantly(lazy, t, a, b, sign, v, total):
    """Every step up to b crosses zero, |w| ← β - α |w|, with constant α and β; the first is step t of the run."""
    products, sums, m = lazy.products, lazy.sums, b - a
    alpha = products[a + 1].P * products[a].inverse_P
    centre = (products[a + 1].C - products[a].C) * products[a + 1].P / (1.0 + alpha)  # β / (1 + α)
    if lazy.weighted_sum.size > 0:
        signs = -(m // 2) if m % 2 == 0 else t + m // 2  # Σ_s ±t_s
        total += sign * (centre * signs + (v - centre) * (sums[b].Q - sums[a].Q) * products[a].inverse_P)
    ratio = products[b].P * products[a].inverse_P
    v = centre + (ratio if m % 2 == 0 else -ratio) * (v - centre)
    return b, -sign if m % 2 == 1 else sign, v, total


@inline
def _cross_for_a_time(lazy, a, b, sign, v, total):
    """Steps cross zero, |w| ← β - |w|, up to one that does not."""
    products, sums = lazy.products, lazy.sums
    c = _crosses_until(products, v, a, b)
    if lazy.weighted_sum.size > 0:
        odd = 1.0 if a % 2 == 0 else -1.0
        total += sign * ((v + odd * products[a].D) * (sums[c].Q - sums[a].Q))
        total -= sign * odd * (sums[c].E - sums[a].E)
    return c, -sign if (c - a) % 2 == 1 else sign, _alternating(products, v, a, c), total


@inline
def _first_crossing(products, level, a, b):
    """The first step c in (a, b] with level <= C_c, where the coordinate reaches or crosses zero."""
    while b - a > 1:
        middle = (a + b) // 2
        if level <= products[middle].C:
            b = middle
        else:
            a = middle
    return b


@inline
def _alternating(products, v, a, b):
    """|w| after steps that each cross zero, |w| ← β - |w|; outside [0, β] where one of them did not."""
    move = products[b].D - products[a].D
    v = v - move if a % 2 == 0 else v + move
    return v if (b - a) % 2 == 0 else -v


@inline
def _crosses_until(products, v, a, b):
    """The last step c <= b up to which all steps from a on cross zero; the first does."""
    low, high = a + 1, b
    while low < high:
        middle = (low + high + 1) // 2
        u = _alternating(products, v, a, middle)
        if u >= 0.0 and u <= products[middle].C - products[middle - 1].C:
            low = middle
        else:
            high = middle - 1
    return low
