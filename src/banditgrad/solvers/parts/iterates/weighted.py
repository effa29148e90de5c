"""Lazy iterates of l1_j |w_j| + (l2_j/2) w_j², with strengths that differ among coordinates.

A coordinate's missed steps are those of `affine`, `proximal` or `subgradient` with its own strengths. Tables go by l2;
coordinates of one l2 share a table, and there are at most KINDS. Where γ_t changes, sums over steps enter with l1: in
units of l1_j, w_j / l1_j has an l1 norm of strength one, so that they share these, too.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline
from banditgrad.rows import Csr
from banditgrad.solvers.parts.iterates import affine, proximal, subgradient
from banditgrad.solvers.parts.iterates.base import segment_length

Vector = NDArray[np.float64]
Indices = NDArray[np.int64]

KINDS = 8  # tables at most: every step is entered in each. With more kinds of l2 all coordinates move at every step


class Kinds(NamedTuple):
    """Coordinates that share a table, and the strengths of each table."""

    of: Indices
    l1: Vector  # 1 or 0
    l2: Vector
    scales: Vector  # of each coordinate: l1_j, or 1 where that is 0


class WeightedReduced(NamedTuple):
    """As `LazyReduced`."""

    l1: Vector
    kinds: Kinds  # by l2
    penalised: int
    w: Vector
    g: Vector
    total: Vector
    clock: NDArray[np.void]
    coordinates: NDArray[np.void]
    powers: NDArray[np.void]  # a row for each kind

    def margin(self, rows, i):
        now, gamma, c = self.clock[0].now, self.clock[0].gamma, self.coordinates
        z = c[c.size - 1].w if rows.intercept != 0.0 else 0.0
        for k in range(rows.begin(i), rows.end(i)):
            j = rows.column(i, k)
            c[j].w = affine.caught_up(_alone(self, j), j, now, gamma)
            z += rows.entry(i, k) * c[j].w
        return z

    def move(self, rows, i, factor, change):
        self.move_row(rows, i, factor, change)
        self.end_move()

    def begin_move(self):
        pass

    def move_row(self, rows, i, factor, change):
        now, gamma, c = self.clock[0].now + 1.0, self.clock[0].gamma, self.coordinates
        for k in range(rows.begin(i), rows.end(i)):
            j, x = rows.column(i, k), rows.entry(i, k)
            u = c[j].w - gamma * (factor * x + c[j].g)
            c[j].w = _prox(u, gamma * self.l1[j], gamma * self.kinds.l2[self.kinds.of[j]])
            c[j].g += change * x
            c[j].seen = now
            if self.total.size > 0:
                c[j].total += c[j].w
        if rows.intercept != 0.0:
            self.move_free(c.size - 1, factor, change)

    def move_free(self, j, factor, change):
        c = self.coordinates
        c[j].w -= self.clock[0].gamma * (factor + c[j].g)
        c[j].g += change
        c[j].total += c[j].w

    def end_move(self):
        now = self.clock[0].now + 1.0
        self.clock[0].now = now
        if now + 1.0 >= self.powers.shape[1]:
            self.flush()

    def flush(self):
        now, gamma, c = self.clock[0].now, self.clock[0].gamma, self.coordinates
        for j in range(c.size):
            if j < self.penalised:
                c[j].w = affine.caught_up(_alone(self, j), j, now, gamma)
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
        for kind in range(self.kinds.l2.size):
            affine.refill(self.powers[kind], gamma * self.kinds.l2[kind])

    def note_row(self, rows, i):
        for k in range(rows.begin(i), rows.end(i)):
            self.coordinates[rows.column(i, k)].seen = self.clock[0].now

    def free(self, j):
        return self.coordinates[j].w


@inline
def _prox(u, l1, l2):
    v = abs(u) - l1
    if not v > 0.0:
        return 0.0
    return v / (1.0 + l2) if u > 0.0 else -v / (1.0 + l2)


@inline
def _alone(lazy, j):
    """The iterate with the strengths of coordinate j for all."""
    kind = lazy.kinds.of[j]
    return affine.LazyReduced(
        lazy.l1[j],
        lazy.kinds.l2[kind],
        lazy.penalised,
        lazy.w,
        lazy.g,
        lazy.total,
        lazy.clock,
        lazy.coordinates,
        lazy.powers[kind],
    )


class WeightedProximal(NamedTuple):
    """As `LazyProximal`."""

    kinds: Kinds  # by l2 and whether there is an l1 norm
    w: Vector
    clock: NDArray[np.void]
    products: NDArray[np.void]  # a row for each kind
    seen: NDArray[np.uint32]

    def margin(self, rows, i):
        w = self.w
        z = w[w.size - 1] if rows.intercept != 0.0 else 0.0
        for k in range(rows.begin(i), rows.end(i)):
            j = rows.column(i, k)
            _make_missed(self, j)
            z += rows.entry(i, k) * w[j]
        return z

    def free(self, j):
        return self.w[j]

    def penalise(self, gamma):
        kinds, clock = self.kinds, self.clock[0]
        step, full = clock.now, False
        for kind in range(kinds.l1.size):
            clock.now = step
            alpha = 1.0 / (1.0 + gamma * kinds.l2[kind])
            beta = gamma * kinds.l1[kind] * alpha
            full = proximal.log_step(self.products[kind], clock, alpha, beta, proximal.SMALLEST_P) or full
        if full:
            self.flush()

    def flush(self):
        for j in range(self.seen.size):
            _make_missed(self, j)
            self.seen[j] = 0
        proximal.new_segment(self.clock[0])


@inline
def _make_missed(lazy, j):
    now, w, scale = lazy.clock[0].now, lazy.w, lazy.kinds.scales[j]
    if lazy.seen[j] != now:
        products = lazy.products[lazy.kinds.of[j]]
        w[j] = scale * proximal.after_steps(products, w[j] / scale, lazy.seen[j], now)
        lazy.seen[j] = now


class WeightedSubgradient(NamedTuple):
    """As `LazySubgradient`."""

    kinds: Kinds
    constant: bool
    falling: bool
    w: Vector
    weighted_sum: Vector
    clock: NDArray[np.void]
    products: NDArray[np.void]  # a row for each kind
    sums: NDArray[np.void]
    seen: NDArray[np.uint32]

    def margin(self, rows, i):
        w = self.w
        z = w[w.size - 1] if rows.intercept != 0.0 else 0.0
        for k in range(rows.begin(i), rows.end(i)):
            j = rows.column(i, k)
            _catch_up(self, j)
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
        clock, kinds, w = self.clock[0], self.kinds, self.w
        t, s, d = clock.before + clock.now + 1, clock.now, self.seen.size
        for j in range(d, self.weighted_sum.size):  # an intercept is always up to date
            self.weighted_sum[j] += t * w[j]
        if 1.0 - gamma * kinds.l2[kinds.l2.size - 1] < subgradient.SMALLEST_ALPHA:
            self.flush()
            for j in range(d):
                _single_step(self, j, gamma, t)
            clock.before += 1
            return
        full = False
        for kind in range(kinds.l1.size):
            clock.now = s
            full = subgradient.log_subgradient_step(_of_kind(self, kind), gamma, t) or full
        if full:
            self.flush()

    def flush(self):
        for j in range(self.seen.size):
            _catch_up(self, j)
            self.seen[j] = 0
        proximal.new_segment(self.clock[0])


@inline
def _of_kind(lazy, kind):
    """The iterate with the strengths of one kind, in units of l1_j, for all."""
    return subgradient.LazySubgradient(
        lazy.kinds.l1[kind],
        lazy.kinds.l2[kind],
        lazy.constant,
        lazy.falling,
        lazy.w,
        lazy.weighted_sum,
        lazy.clock,
        lazy.products[kind],
        lazy.sums[kind],
        lazy.seen,
    )


@inline
def _catch_up(lazy, j):
    now, scale, averaged = lazy.clock[0].now, lazy.kinds.scales[j], lazy.weighted_sum.size > 0
    if lazy.seen[j] == now:
        return
    if lazy.w[j] == 0.0:
        lazy.seen[j] = now
        return
    lazy.w[j] /= scale
    if averaged:
        lazy.weighted_sum[j] /= scale
    subgradient.catch_up(_of_kind(lazy, lazy.kinds.of[j]), j, now)
    lazy.w[j] *= scale
    if averaged:
        lazy.weighted_sum[j] *= scale


@inline
def _single_step(lazy, j, gamma, t):
    w, kind = lazy.w, lazy.kinds.of[j]
    if lazy.weighted_sum.size > 0:
        lazy.weighted_sum[j] += t * w[j]
    l1 = lazy.kinds.l1[kind] * lazy.kinds.scales[j]
    pull = l1 if w[j] > 0.0 else (-l1 if w[j] < 0.0 else 0.0)
    w[j] -= gamma * (pull + lazy.kinds.l2[kind] * w[j])


def weighted_strengths(problem: Any) -> tuple[Vector, Vector] | None:
    """(l1, l2) of each coordinate where these can wait; None elsewhere."""
    strengths = problem.shrinkage if isinstance(problem.parts.rows, Csr) else None
    if strengths is None or np.ndim(strengths[0]) == 0 or np.unique(strengths[1]).size > KINDS:
        return None
    return strengths[0], strengths[1]


def new_kinds(l1: Vector, l2: Vector, *, in_units: bool) -> Kinds:
    """With `in_units`, of coordinates divided by l1_j; in the order of l2."""
    ones = (l1 > 0.0).astype(np.float64) if in_units else np.zeros_like(l1)
    pairs, of = np.unique(np.column_stack([l2, ones]), axis=0, return_inverse=True)
    scales = np.where(l1 > 0.0, l1, 1.0)
    return Kinds(np.ravel(of).astype(np.int64), pairs[:, 1].copy(), pairs[:, 0].copy(), scales)


def _tables(problem: Any, kinds: Kinds, dtype: Any) -> NDArray[np.void]:
    return np.zeros((kinds.l2.size, segment_length(problem) // kinds.l2.size + 1), dtype)


def _products(problem: Any, kinds: Kinds) -> NDArray[np.void]:
    products = _tables(problem, kinds, proximal.PRODUCTS)
    products["P"][:, 0] = products["inverse_P"][:, 0] = 1.0
    return products


def weighted_reduced(problem: Any, w: Vector, strengths: Any, total: Vector, clock: Any) -> WeightedReduced:
    kinds = new_kinds(*strengths, in_units=False)
    coordinates, powers = np.zeros(w.size, affine.COORDINATE), _tables(problem, kinds, affine.POWERS)
    about = (problem.penalised, w, np.zeros_like(w), total, clock, coordinates, powers)
    return WeightedReduced(strengths[0], kinds, *about)


def weighted_proximal(problem: Any, w: Vector, strengths: Any) -> WeightedProximal:
    kinds, seen = new_kinds(*strengths, in_units=True), np.zeros(problem.penalised, np.uint32)
    return WeightedProximal(kinds, w, np.zeros(1, proximal.CLOCK), _products(problem, kinds), seen)


def weighted_subgradient(problem: Any, w: Vector, strengths: Any, rule: Any, *, average: bool) -> WeightedSubgradient:
    kinds, seen = new_kinds(*strengths, in_units=True), np.zeros(problem.penalised, np.uint32)
    products = _products(problem, kinds)
    sums = np.zeros(products.shape if average else (kinds.l2.size, 0), subgradient.SUMS)
    weighted_sum, clock = np.zeros(w.size if average else 0), np.zeros(1, proximal.CLOCK)
    return WeightedSubgradient(kinds, rule.constant, rule.falling, w, weighted_sum, clock, products, sums, seen)
