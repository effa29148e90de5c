"""How a penalty acts on w between two visits of a coordinate.

Every step of (proximal) SGD changes the coordinates of one row by the gradient, and *all* coordinates by the penalty.
`Eager` does just that, and serves dense rows and any penalty. The lazy ways serve sparse rows: a coordinate is
brought up to date when a row needs it. For l1 |w| + l2/2 w² one step of size γ is

    |w| ← α |w| - β     with α = 1/(1 + γ l2), β = γ l1 α   (`LazyProx`; stops at zero)
                        or   α = 1 - γ l2,     β = γ l1     (`LazySubgradient`; may cross zero),

so that with P_s = α_0 ⋯ α_{s-1} and C_s = Σ_{r<s} β_r / P_{r+1}, kept in tables, b - a missed steps are

    |w_b| = P_b (|w_a| / P_a - (C_b - C_a)).

The linearly weighted mean of the iterates needs Σ_s t_s w_s over missed steps; with Q_s = Σ_{r<s} t_r P_r and
R_s = Σ_{r<s} t_r P_r C_r it is  (|w_a| / P_a + C_a)(Q_b - Q_a) - (R_b - R_a).

Under sub-gradient steps a coordinate near zero crosses it again and again. While every step crosses, |w| ← β - α |w|:
for constant α and β a geometric sequence about β / (1 + α); for α = 1 and falling β, with the alternating sums
D_s = Σ_{r<s} (-1)^r β_r, the signed w moves as w_b = w_a ∓ (D_b - D_a). Once a step does not cross, this formula leaves
[0, β] for good, so that its end tells whether it held throughout, and bisection where it ceased to. (An elastic net
with falling steps is left: there, coordinates that cross are stepped one by one.)

Iterates are the textbook's. A block of steps ends when the tables are full or P becomes small: all coordinates are
brought up to date, at steps that depend on the step count alone, so that looking at w never changes what follows.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import bridge, inline, kernel
from banditgrad.rows import Csr, add, dot

Vector = NDArray[np.float64]

# columns of `tables`, one row per step of the block
P, INVERSE_P, C, D, Q, R, E = 0, 1, 2, 3, 4, 5, 6
# indices into `clock`
STEP, BEFORE = 0, 1  # steps in this block; steps before it

SMALLEST_P = 1e-100
SMALLEST_P_FOR_SUMS = 1e-4  # differences of Q and R must not cancel
SMALLEST_ALPHA = 1e-3  # below it, a step is applied at once


@bridge
class Eager(NamedTuple):
    """The penalty acts on all coordinates at every step."""

    penalty: Any
    penalised: int  # how many coordinates are penalised: all but the intercept
    proximal: bool
    weighted_sum: Vector  # Σ_t t w^t, or empty where no mean is asked for
    clock: NDArray[np.int64]

    def margin(self, rows, i, w):
        """<x_i, w>, with the coordinates of row i brought up to date."""
        return dot(rows, i, w)

    def shrink(self, w, gamma):
        """Let the penalty make its part of a step."""
        self.clock[STEP] += 1
        for j in range(self.weighted_sum.size):
            self.weighted_sum[j] += self.clock[STEP] * w[j]
        if self.proximal:
            for j in range(self.penalised):
                w[j] = self.penalty.prox(w[j], gamma)
        else:
            for j in range(self.penalised):
                w[j] -= gamma * self.penalty.subgradient(w[j])

    def catch_and_add(self, rows, i, w, gamma, scale):
        """w += scale · x_i, where coordinates of row i may lag by the last step, of size gamma."""
        add(rows, i, scale, w)

    def settle(self, w):
        """Bring every coordinate, and the sum, up to date."""


class LazyProx(NamedTuple):
    """Proximal steps of l1 |w| + l2/2 w², made when a row needs them."""

    l1: float
    l2: float
    clock: NDArray[np.int64]
    tables: NDArray[np.float64]
    seen: NDArray[np.uint32]  # the step of the block up to which a coordinate is up to date

    def margin(self, rows, i, w):
        now = self.clock[STEP]
        z = w[w.size - 1] if rows.intercept != 0.0 else 0.0
        for k in range(rows.begin(i), rows.end(i)):
            j = rows.column(i, k)
            w_j = _proximal(self.tables, w[j], self.seen[j], now)
            w[j] = w_j
            self.seen[j] = now
            z += rows.entry(i, k) * w_j
        return z

    def shrink(self, w, gamma):
        alpha = 1.0 / (1.0 + gamma * self.l2)
        if _log_step(self.tables, self.clock, alpha, gamma * self.l1 * alpha, SMALLEST_P):
            self.settle(w)

    def settle(self, w):
        for j in range(self.seen.size):
            w[j] = _proximal(self.tables, w[j], self.seen[j], self.clock[STEP])
            self.seen[j] = 0
        _new_block(self.clock)


class LazySubgradient(NamedTuple):
    """Sub-gradient steps of l1 |w| + l2/2 w², made when a row needs them."""

    l1: float
    l2: float
    constant: bool  # whether the step size is constant within a block,
    falling: bool  # or at least never grows
    weighted_sum: Vector
    clock: NDArray[np.int64]
    tables: NDArray[np.float64]
    seen: NDArray[np.uint32]

    def margin(self, rows, i, w):
        now = self.clock[STEP]
        z = w[w.size - 1] if rows.intercept != 0.0 else 0.0
        for k in range(rows.begin(i), rows.end(i)):
            j = rows.column(i, k)
            if self.seen[j] != now:
                _catch_up(self, w, j, now)
            z += rows.entry(i, k) * w[j]
        return z

    def catch_and_add(self, rows, i, w, gamma, scale):
        now = self.clock[STEP]
        t = self.clock[BEFORE] + now
        for k in range(rows.begin(i), rows.end(i)):
            j = rows.column(i, k)
            if self.seen[j] != now:
                self.seen[j] = now
                _single_step(self, w, j, gamma, t)
            w[j] += scale * rows.entry(i, k)
        if rows.intercept != 0.0:
            w[w.size - 1] += scale

    def shrink(self, w, gamma):
        t = self.clock[BEFORE] + self.clock[STEP] + 1
        d = self.seen.size
        if self.weighted_sum.size > d:  # the intercept is always up to date
            self.weighted_sum[d] += t * w[d]
        alpha = 1.0 - gamma * self.l2
        if alpha < SMALLEST_ALPHA:
            self.settle(w)
            for j in range(d):
                _single_step(self, w, j, gamma, t)
            self.clock[BEFORE] += 1
            return
        smallest = SMALLEST_P
        tables, s = self.tables, self.clock[STEP]
        tables[s + 1, D] = tables[s, D] + (gamma * self.l1 if s % 2 == 0 else -gamma * self.l1)
        if self.weighted_sum.size > 0:
            smallest = SMALLEST_P_FOR_SUMS
            tables[s + 1, Q] = tables[s, Q] + t * tables[s, P]
            tables[s + 1, R] = tables[s, R] + t * tables[s, P] * tables[s, C]
            tables[s + 1, E] = tables[s, E] + t * tables[s, D]
        if _log_step(tables, self.clock, alpha, gamma * self.l1, smallest):
            self.settle(w)

    def settle(self, w):
        now = self.clock[STEP]
        for j in range(self.seen.size):
            if self.seen[j] != now:
                _catch_up(self, w, j, now)
            self.seen[j] = 0
        _new_block(self.clock)


@inline
def _log_step(tables, clock, alpha, beta, smallest):
    """Enter a step |w| ← α |w| - β in the tables; True when the block must end."""
    s = clock[STEP]
    tables[s + 1, P] = alpha * tables[s, P]
    tables[s + 1, INVERSE_P] = 1.0 / tables[s + 1, P]
    tables[s + 1, C] = tables[s, C] + beta * tables[s + 1, INVERSE_P]
    clock[STEP] = s + 1
    return s + 2 == tables.shape[0] or tables[s + 1, P] < smallest


@inline
def _new_block(clock):
    clock[BEFORE] += clock[STEP]
    clock[STEP] = 0


@inline
def _proximal(tables, w, a, b):
    """w after the proximal steps a to b of the block."""
    if a == b:
        return w
    v = tables[b, P] * (abs(w) * tables[a, INVERSE_P] - (tables[b, C] - tables[a, C]))
    return math.copysign(max(v, 0.0), w)


@inline
def _single_step(lazy, w, j, gamma, t):
    """Step t of coordinate j, as equation (2) has it."""
    if lazy.weighted_sum.size > 0:
        lazy.weighted_sum[j] += t * w[j]
    l1 = lazy.l1 if w[j] != 0.0 else 0.0
    w[j] -= gamma * (math.copysign(l1, w[j]) + lazy.l2 * w[j])


@inline
def _catch_up(lazy, w, j, b):
    """Bring coordinate j to step b of the block, over stretches between which it crosses zero."""
    a = np.int64(lazy.seen[j])
    lazy.seen[j] = b
    if w[j] == 0.0:
        return
    tables, before = lazy.tables, lazy.clock[BEFORE]
    averaging = lazy.weighted_sum.size > 0
    sign, v, total = math.copysign(1.0, w[j]), abs(w[j]), 0.0
    level = v * tables[a, INVERSE_P] + tables[a, C]
    if level > tables[b, C] and not averaging:  # it stays on its side of zero
        w[j] = sign * (tables[b, P] * (level - tables[b, C]))
        return
    while a < b and v != 0.0:
        level = v * tables[a, INVERSE_P] + tables[a, C]
        crosses = level < tables[a + 1, C]
        if crosses and lazy.constant:  # from here on every step crosses zero
            if averaging:
                total += sign * _alternating_sum(tables, v, a, b, before + a + 1)
            v = _alternate(tables, v, a, b)
            sign = -sign if (b - a) % 2 == 1 else sign
            a = b
        elif crosses and lazy.falling and lazy.l2 == 0.0:
            c = _crosses_until(tables, v, a, b)
            if averaging:
                odd = 1.0 if a % 2 == 0 else -1.0
                total += sign * ((v + odd * tables[a, D]) * (tables[c, Q] - tables[a, Q]))
                total -= sign * odd * (tables[c, E] - tables[a, E])
            v = _alternating(tables, v, a, c)
            sign = -sign if (c - a) % 2 == 1 else sign
            a = c
        else:
            c = a + 1 if crosses else b
            if not crosses and level <= tables[b, C]:
                c = _first_crossing(tables, level, a, b)
            if averaging:
                total += sign * (level * (tables[c, Q] - tables[a, Q]) - (tables[c, R] - tables[a, R]))
            v = tables[c, P] * (level - tables[c, C])
            sign = -sign if v < 0.0 else sign
            v = abs(v)
            a = c
    w[j] = sign * v
    if averaging:
        lazy.weighted_sum[j] += total


@inline
def _first_crossing(tables, level, a, b):
    """The first step c in (a, b] with level <= C_c, where the coordinate reaches or crosses zero."""
    while b - a > 1:
        middle = (a + b) // 2
        if level <= tables[middle, C]:
            b = middle
        else:
            a = middle
    return b


@inline
def _alternating(tables, v, a, b):
    """|w| after steps that each cross zero, |w| ← β - |w|; outside [0, β] where one of them did not."""
    move = tables[b, D] - tables[a, D]
    v = v - move if a % 2 == 0 else v + move
    return v if (b - a) % 2 == 0 else -v


@inline
def _crosses_until(tables, v, a, b):
    """The last step c <= b up to which all steps from a on cross zero; the first does."""
    low, high = a + 1, b
    while low < high:
        middle = (low + high + 1) // 2
        u = _alternating(tables, v, a, middle)
        if u >= 0.0 and u <= tables[middle, C] - tables[middle - 1, C]:
            low = middle
        else:
            high = middle - 1
    return low


@inline
def _alternate(tables, v, a, b):
    """|w| after steps that each cross zero, |w| ← β - α |w|, with constant α and β."""
    ratio = tables[b, P] * tables[a, INVERSE_P]
    centre = _centre(tables, a)
    return centre + (ratio if (b - a) % 2 == 0 else -ratio) * (v - centre)


@inline
def _centre(tables, a):
    """β / (1 + α), the fixed point of |w| ← β - α |w|."""
    alpha = tables[a + 1, P] * tables[a, INVERSE_P]
    return (tables[a + 1, C] - tables[a, C]) * tables[a + 1, P] / (1.0 + alpha)


@inline
def _alternating_sum(tables, v, a, b, t):
    """Σ_s t_s (±|w_s|) over the same steps, the first of which is step t and has the sign +."""
    m = b - a
    centre = _centre(tables, a)
    signs = -(m // 2) if m % 2 == 0 else t + m // 2
    return centre * signs + (v - centre) * (tables[b, Q] - tables[a, Q]) * tables[a, INVERSE_P]


def choose(problem: Any, stride: Any, *, proximal: bool, average: bool = False) -> Any:
    """Lazy for sparse rows and penalties with a closed form, else eager."""
    strengths = problem.shrinkage
    if not isinstance(problem.parts.rows, Csr) or strengths is None:
        return eager(problem, proximal=proximal, average=average)
    l1, l2 = strengths
    weighted_sum = np.zeros(problem.dimension if average else 0)
    clock = np.zeros(2, np.int64)
    steps = max(1024, min(problem.d, 1 << 20))  # settling then costs about one coordinate per step
    tables = np.zeros((steps + 1, 7 if average else 4))
    tables[0, P] = tables[0, INVERSE_P] = 1.0
    seen = np.zeros(problem.d, np.uint32)
    if proximal:
        return LazyProx(l1, l2, clock, tables, seen)
    return LazySubgradient(l1, l2, stride.constant, stride.falling, weighted_sum, clock, tables, seen)


def eager(problem: Any, *, proximal: bool, average: bool = False) -> Eager:
    weighted_sum = np.zeros(problem.dimension if average else 0)
    return Eager(problem.penalty, problem.d, proximal, weighted_sum, np.zeros(2, np.int64))


def settled(shrinkage: Any, w: Vector) -> Any:
    """The iterate, and the shrinkage with its weighted sum, as of now, without touching the run."""
    copies = [value.copy() if isinstance(value, np.ndarray) else value for value in shrinkage]
    shrinkage, w = type(shrinkage)(*copies), w.copy()
    settle(shrinkage, w)
    return w, shrinkage


@kernel
def settle(shrinkage, w):
    """Bring w up to date in place."""
    shrinkage.settle(w)
