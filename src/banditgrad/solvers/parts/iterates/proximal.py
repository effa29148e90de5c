"""The iterate of (proximal) SGD: in every step the gradient moves one row's coordinates and the penalty moves all.

`Eager` does just that, and serves dense rows and any penalty. `LazyProximal` serves sparse rows. For l1 |w| + l2/2 w²
a proximal step of size γ is

    |w| ← α |w| - β, but not below zero,     α = 1/(1 + γ l2),  β = γ l1 α,

so that with P_s = α_0 ⋯ α_{s-1} and C_s = Σ_{r<s} β_r / P_{r+1}, kept in a table, b - a missed steps are

    |w_b| = P_b (|w_a| / P_a - (C_b - C_a)).

Iterates are the textbook's. A *segment* of steps ends when the table is full or P becomes small: all coordinates are
brought up to date, at steps that depend on the step count alone, so that looking at w never changes what follows.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import bridge, inline
from banditgrad.rows import add, dot
from banditgrad.solvers.parts.iterates.base import segment_length

Vector = NDArray[np.float64]

CLOCK = np.dtype([("now", "i8"), ("before", "i8")])  # steps made in this segment, and before it
PRODUCTS = np.dtype([("P", "f8"), ("inverse_P", "f8"), ("C", "f8"), ("D", "f8")])  # D: of `subgradient`

SMALLEST_P = 1e-100


@bridge
class Eager(NamedTuple):
    """The penalty acts on all coordinates at every step."""

    penalty: Any
    penalised: int  # how many coordinates are penalised: all but the intercept
    proximal: bool
    w: Vector
    weighted_sum: Vector  # Σ_t t w^t, or empty where no mean is asked for
    clock: NDArray[np.void]  # one CLOCK record

    def margin(self, rows, i):
        """<x_i, w>, with the coordinates of row i brought up to date."""
        return dot(rows, i, self.w)

    def penalise(self, gamma):
        """Let the penalty make its part of a step."""
        w, clock = self.w, self.clock[0]
        clock.now += 1
        for j in range(self.weighted_sum.size):
            self.weighted_sum[j] += clock.now * w[j]
        if self.proximal:
            self.penalty.prox_all(w, gamma, self.penalised)
        else:
            self.penalty.add_subgradient(w, -gamma, w, self.penalised)

    def free(self, j):
        """A coordinate that is not penalised, as an intercept."""
        return self.w[j]

    def add_row(self, rows, i, gamma, scale):
        """w += scale · x_i, where coordinates of row i may lag by the last step, of size gamma."""
        add(rows, i, scale, self.w)

    def flush(self):
        """Bring every coordinate, and the sum, up to date."""


class LazyProximal(NamedTuple):
    """Proximal steps of l1 |w| + l2/2 w², made when a row needs them."""

    l1: float
    l2: float
    w: Vector
    clock: NDArray[np.void]
    products: NDArray[np.void]  # PRODUCTS records, one per step of the segment
    seen: NDArray[np.uint32]  # the step of the segment up to which a coordinate is up to date

    def margin(self, rows, i):
        now, w = self.clock[0].now, self.w
        z = w[w.size - 1] if rows.intercept != 0.0 else 0.0
        for k in range(rows.begin(i), rows.end(i)):
            j = rows.column(i, k)
            w_j = after_steps(self.products, w[j], self.seen[j], now)
            w[j] = w_j
            self.seen[j] = now
            z += rows.entry(i, k) * w_j
        return z

    def free(self, j):
        return self.w[j]

    def penalise(self, gamma):
        alpha = 1.0 / (1.0 + gamma * self.l2)
        if log_step(self.products, self.clock[0], alpha, gamma * self.l1 * alpha, SMALLEST_P):
            self.flush()

    def flush(self):
        clock = self.clock[0]
        for j in range(self.seen.size):
            self.w[j] = after_steps(self.products, self.w[j], self.seen[j], clock.now)
            self.seen[j] = 0
        new_segment(clock)


@inline
def after_steps(products, w, a, b):
    """w after the steps a to b of the segment."""
    if a == b:
        return w
    v = products[b].P * (abs(w) * products[a].inverse_P - (products[b].C - products[a].C))
    return math.copysign(max(v, 0.0), w)


@inline
def log_step(products, clock, alpha, beta, smallest):
    """Enter a step |w| ← α |w| - β in the table; True when the segment must end."""
    s = clock.now
    product = alpha * products[s].P
    products[s + 1].P = product
    products[s + 1].inverse_P = 1.0 / product
    products[s + 1].C = products[s].C + beta * products[s + 1].inverse_P
    clock.now = s + 1
    return s + 2 == products.size or product < smallest


@inline
def new_segment(clock):
    clock.before += clock.now
    clock.now = 0


def new_products(problem: Any) -> NDArray[np.void]:
    products = np.zeros(segment_length(problem) + 1, PRODUCTS)
    products[0]["P"] = products[0]["inverse_P"] = 1.0
    return products


def new_eager(problem: Any, w: Vector, *, proximal: bool, average: bool = False) -> Eager:
    weighted_sum = np.zeros(w.size if average else 0)
    return Eager(problem.penalty, problem.penalised, proximal, w, weighted_sum, np.zeros(1, CLOCK))
