"""How a penalty acts on w between two visits of a coordinate.

Every step of (proximal) SGD changes the coordinates of one row by the gradient, and *all* coordinates by the penalty.
`Eager` does just that, and serves dense rows and any penalty. `Lazy` serves sparse rows: a coordinate is brought up
to date when a row needs it. For l1 |w| + l2/2 w² one step of size γ is

    |w| ← α |w| - β     with α = 1/(1 + γ l2), β = γ l1 α   (proximal; stops at zero)
                        or   α = 1 - γ l2,     β = γ l1     (sub-gradient; may cross zero),

so that with P_s = α_0 ⋯ α_{s-1} and C_s = Σ_{r<s} β_r / P_{r+1}, kept in tables, b - a missed steps are

    |w_b| = P_b (|w_a| / P_a - (C_b - C_a)).

The linearly weighted mean of the iterates needs Σ_s t_s w_s over missed steps; with Q_s = Σ_{r<s} t_r P_r and
R_s = Σ_{r<s} t_r P_r C_r it is  (|w_a| / P_a + C_a)(Q_b - Q_a) - (R_b - R_a).

Iterates are the textbook's. A block of steps ends when the tables are full or P becomes small: all coordinates are
brought up to date, at steps that depend on the step count alone, so that looking at w never changes what follows.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import bridge, inline, kernel

Vector = NDArray[np.float64]

# rows of `tables`
P, C, Q, R = 0, 1, 2, 3
# indices into `clock`
STEP, BEFORE = 0, 1  # steps in this block; steps before it

SMALLEST_P = 1e-100
SMALLEST_ALPHA = 1e-3  # below it, a step is applied at once


@bridge
class Eager(NamedTuple):
    """The penalty acts on all coordinates at every step."""

    penalty: Any
    penalised: int  # how many coordinates are penalised: all but the intercept
    proximal: bool
    weighted_sum: Vector  # Σ_t t w^t, or empty where no mean is asked for
    clock: NDArray[np.int64]

    def refresh(self, rows, i, w):
        pass

    def shrink(self, w, gamma):
        self.clock[STEP] += 1
        for j in range(self.weighted_sum.size):
            self.weighted_sum[j] += self.clock[STEP] * w[j]
        for j in range(self.penalised):
            if self.proximal:
                w[j] = self.penalty.prox(w[j], gamma)
            else:
                w[j] -= gamma * self.penalty.subgradient(w[j])

    def settle(self, w):
        """Bring every coordinate, and the sum, up to date."""


class Lazy(NamedTuple):
    """The penalty l1 |w| + l2/2 w² acts on a coordinate when a row needs it."""

    l1: float
    l2: float
    penalised: int
    proximal: bool
    constant: bool  # whether the step size is constant
    weighted_sum: Vector
    clock: NDArray[np.int64]
    tables: NDArray[np.float64]
    seen: NDArray[np.int32]  # the step of the block up to which a coordinate is up to date

    def refresh(self, rows, i, w):
        now = self.clock[STEP]
        for k in range(rows.begin(i), rows.end(i)):
            j = rows.column(i, k)
            if self.seen[j] != now:
                _catch_up(self, w, j, now)

    def shrink(self, w, gamma):
        s, tables = self.clock[STEP], self.tables
        t = self.clock[BEFORE] + s + 1
        alpha = 1.0 / (1.0 + gamma * self.l2) if self.proximal else 1.0 - gamma * self.l2
        beta = gamma * self.l1 * (alpha if self.proximal else 1.0)
        if self.weighted_sum.size > self.penalised:  # the intercept is always up to date
            self.weighted_sum[self.penalised] += t * w[self.penalised]
        if alpha < SMALLEST_ALPHA:
            self.settle(w)
            _step_all(self, w, alpha, beta, t)
            self.clock[BEFORE] += 1
            return
        tables[P, s + 1] = alpha * tables[P, s]
        tables[C, s + 1] = tables[C, s] + beta / tables[P, s + 1]
        if self.weighted_sum.size > 0:
            tables[Q, s + 1] = tables[Q, s] + t * tables[P, s]
            tables[R, s + 1] = tables[R, s] + t * tables[P, s] * tables[C, s]
        self.clock[STEP] = s + 1
        if s + 2 == tables.shape[1] or tables[P, s + 1] < SMALLEST_P:
            self.settle(w)

    def settle(self, w):
        now = self.clock[STEP]
        for j in range(self.penalised):
            if self.seen[j] != now:
                _catch_up(self, w, j, now)
            self.seen[j] = 0
        self.clock[BEFORE] += now
        self.clock[STEP] = 0


@inline
def _catch_up(lazy, w, j, b):
    """Bring coordinate j to step b of the block."""
    a = np.int64(lazy.seen[j])
    lazy.seen[j] = b
    if w[j] == 0.0:
        return
    tables = lazy.tables
    sign, v = math.copysign(1.0, w[j]), abs(w[j])
    total = 0.0
    while a < b and v != 0.0:
        c = b
        level = v / tables[P, a] + tables[C, a]
        if not lazy.proximal and lazy.constant and _crosses(tables, level, a + 1):
            if lazy.weighted_sum.size > 0:
                total += sign * _alternating_sum(tables, v, a, b, lazy.clock[BEFORE])
            v = _alternate(tables, v, a, b)
            if (b - a) % 2 == 1:
                sign = -sign
            a = b
        else:
            if level <= tables[C, b]:
                c = _first_crossing(tables, level, a, b)
            if lazy.weighted_sum.size > 0:
                total += sign * (level * (tables[Q, c] - tables[Q, a]) - (tables[R, c] - tables[R, a]))
            v = tables[P, c] * (level - tables[C, c])
            if v < 0.0:
                v = 0.0 if lazy.proximal else -v
                sign = -sign
            a = c
    w[j] = sign * v
    if lazy.weighted_sum.size > 0:
        lazy.weighted_sum[j] += total


@inline
def _crosses(tables, level, s):
    return level <= tables[C, s]


@inline
def _first_crossing(tables, level, a, b):
    """The first step c in (a, b] with level <= C_c, where the coordinate reaches or crosses zero."""
    while b - a > 1:
        middle = (a + b) // 2
        if level <= tables[C, middle]:
            b = middle
        else:
            a = middle
    return b


@inline
def _alternate(tables, v, a, b):
    """|w| after steps that each cross zero, |w| ← β - α |w|, with constant α and β."""
    ratio = tables[P, b] / tables[P, a]
    centre = _centre(tables, a)
    return centre + (ratio if (b - a) % 2 == 0 else -ratio) * (v - centre)


@inline
def _centre(tables, a):
    """β / (1 + α), the fixed point of |w| ← β - α |w|."""
    alpha = tables[P, a + 1] / tables[P, a]
    return (tables[C, a + 1] - tables[C, a]) * tables[P, a + 1] / (1.0 + alpha)


@inline
def _alternating_sum(tables, v, a, b, before):
    """Σ_s t_s (±|w_s|) over the same steps, the first sign being +."""
    m, t = b - a, before + a + 1
    centre = _centre(tables, a)
    signs = -(m // 2) if m % 2 == 0 else t + m // 2
    return centre * signs + (v - centre) * (tables[Q, b] - tables[Q, a]) / tables[P, a]


@inline
def _step_all(lazy, w, alpha, beta, t):
    """One sub-gradient step of all coordinates, for an α near or below zero."""
    for j in range(lazy.penalised):
        if lazy.weighted_sum.size > 0:
            lazy.weighted_sum[j] += t * w[j]
        if w[j] != 0.0:
            w[j] = alpha * w[j] - math.copysign(beta, w[j])


def choose(problem: Any, schedule: Any, *, proximal: bool, average: bool = False) -> Eager | Lazy:
    """Lazy for sparse rows and penalties with a closed form, else eager."""
    from banditgrad.rows import Csr
    from banditgrad.schedules import Constant

    weighted_sum = np.zeros(problem.dimension if average else 0)
    clock = np.zeros(2, np.int64)
    closed_form = getattr(problem.penalty, "shrinkage", None)
    if not isinstance(problem.parts.rows, Csr) or closed_form is None:
        return Eager(problem.penalty, problem.d, proximal, weighted_sum, clock)
    l1, l2 = closed_form()
    steps = max(1024, min(problem.d, 1 << 20))  # settling then costs about one coordinate per step
    tables = np.zeros((4 if average else 2, steps + 1))
    tables[P, 0] = 1.0
    constant = isinstance(schedule, Constant)
    seen = np.zeros(problem.d, np.int32)
    return Lazy(float(l1), float(l2), problem.d, proximal, constant, weighted_sum, clock, tables, seen)


def settled(shrinkage: Eager | Lazy, w: Vector) -> tuple[Vector, Vector]:
    """The iterate and the weighted sum as of now, without touching the run."""
    copies: Any = [value.copy() if isinstance(value, np.ndarray) else value for value in shrinkage]
    shrinkage, w = type(shrinkage)(*copies), w.copy()
    _settle(shrinkage, w)
    return w, shrinkage.weighted_sum


@kernel
def _settle(shrinkage, w):
    shrinkage.settle(w)
