"""The sampled Hessian by columns, for wide data with an l1 norm: no matrix is made.

The model is minimised by coordinate descent on the sampled rows, scaled by √c_k and turned to columns: a coordinate
costs a pass over its column. Only coordinates that are not zero, or that the gradient asks to move, are visited, in a
new random order each time: columns that are all alike a little, as counts are, slow a fixed order down. Where that does
not come near the minimiser, conjugate gradients move the coordinates that are not zero, all at once.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from banditgrad._jit import bridge, kernel
from banditgrad._random import shuffle
from banditgrad.rows import Dense
from banditgrad.solvers.newton.blocks import Blocks, FreeCurvature, among, asked_to_move, minimise_in_blocks
from banditgrad.solvers.newton.costs import MOST
from banditgrad.solvers.newton.matrix_free import PROBES, USUAL, HessianRows, conjugate_gradients
from banditgrad.solvers.newton.quadratic import descend_coordinates, stopped_at_zero
from banditgrad.solvers.newton.subset import AHEAD, RowSubset

Vector = NDArray[np.float64]
Indices = NDArray[np.int64]

SWEEPS = 30  # over the working coordinates at most, before conjugate gradients
PRODUCTS = 100  # of conjugate gradients at most
READING, SWEPT = 1.0, 4.0  # products with the rows: to turn them to columns, and in the sweeps of a step far away
ACCURACY = 1e-6  # of their result, as a share of the gradient's squared norm
MOST_ENTRIES = 1e8  # entries of a sample at most: of rows beyond the memory not all can be turned to columns


@bridge
class ColumnModel(NamedTuple):
    """<gradient, u - w> + ½ <u - w, M (u - w)> with M = A'A + diag(ridge), for coordinate descent; A by its columns."""

    indptr: Indices
    indices: NDArray[np.int32]
    data: Vector
    gradient: Vector
    w: Vector
    squares: Vector  # of the columns: the diagonal of A'A
    ridge: Vector
    t: Vector  # A (u - w)
    stream: NDArray[np.uint64]

    def visit(self, order):
        """Put the coordinates in the order in which the next sweep goes through them."""
        shuffle(order, order.size, self.stream)

    def partial(self, j, u):
        """The partial derivative where coordinate j is u."""
        r = self.gradient[j] + self.ridge[j] * (u - self.w[j])
        for k in range(self.indptr[j], self.indptr[j + 1]):
            r += self.data[k] * self.t[self.indices[k]]
        return r

    def shift(self, j, change):
        """Coordinate j has moved by this much."""
        for k in range(self.indptr[j], self.indptr[j + 1]):
            self.t[self.indices[k]] += change * self.data[k]

    def model_entry(self, j, k):
        """M_jk."""
        a, b, total = self.indptr[j], self.indptr[k], self.ridge[j] if j == k else 0.0
        while a < self.indptr[j + 1] and b < self.indptr[k + 1]:
            if self.indices[a] == self.indices[b]:
                total += self.data[a] * self.data[b]
                a += 1
                b += 1
            elif self.indices[a] < self.indices[b]:
                a += 1
            else:
                b += 1
        return total


class HessianColumns(HessianRows):
    """An estimate of the Hessian of a subset of rows, as the columns of the rows that were sampled."""

    def __init__(self, subset: RowSubset, stream: NDArray[np.uint64]) -> None:
        super().__init__(subset, stream)
        rows, self._stream = subset.parts.rows, stream
        entries = (rows.matrix if isinstance(rows, Dense) else rows.data).size * (
            subset.size / subset.parts.norms2.size
        )
        self._most = MOST_ENTRIES / max(entries, 1.0)
        if self._most < 1.0:
            subset.diagonal = np.zeros(subset.gradient.size)

    def exact_pays(self, second_derivatives: Vector, share: float) -> bool:
        return False

    def affordable(self, share: float, w: Vector, l1: Vector) -> float:
        """As given; but all rows from where they cost little more. `share` was found by the cost of all entries, though
        rows are read but once, and then only entries in working columns matter."""
        if share < 1.0 <= self._most and not self._all:
            part = _part(self.subset, (w != 0.0) | (np.abs(self.subset.gradient) > l1))
            self._all = share * USUAL > MOST * (READING + SWEPT * part)
        return share

    def move(self, second_derivatives: Vector, share: float, exact: bool = False) -> int:
        """A new sample, of no more rows than there is room for; if all were asked for, these must do."""
        self._all = self._all or exact
        wanted = 1.0 if self._all else share
        self.dropped = self.dropped and wanted < 1.0
        count = super().move(second_derivatives, min(wanted, self._most))
        self.dropped, self.exact = self.dropped and wanted < 1.0, wanted >= 1.0
        return count

    def minimise(self, gradient: Vector, w: Vector, l1: Vector, l2: Vector, tol: float) -> tuple[Vector, float]:
        """v = argmin <∇f, v> + ½ <v, M v> + l1 |w + v| + (l2/2) ‖w + v‖², to √tol, and <v, M v>."""
        working = np.flatnonzero((w != 0.0) | (np.abs(gradient) > l1))
        model = self._model_among(working, gradient, w)
        indptr, indices, data, squares, ridge, t = *model[:3], model.squares, model.ridge, model.t
        u, l1, l2 = w[working], l1[working], l2[working]
        order, goal = np.arange(u.size), math.sqrt(tol) / self.effort
        for left in range(int(math.log2(self.effort)), -1, -1):
            if descend_coordinates(model, squares + ridge, l1, l2, goal, SWEEPS, order, u) or left == 0:
                break
            _move_support(sp.csc_array((data, indices, indptr), shape=(t.size, u.size)), model, l1, l2, u)
        v = np.zeros_like(w)
        v[working] = u - w[working]
        return v, float(t @ t + ridge @ (v[working] ** 2))

    def minimise_in_blocks(self, gradient: Vector, w: Vector, blocks: Blocks, tol: float) -> tuple[Vector, float]:
        """Likewise with bounds or groups."""
        some, working = among(blocks, asked_to_move(blocks, w, gradient))
        model = self._model_among(working, gradient, w)
        A = sp.csc_array((model.data, model.indices, model.indptr), shape=(model.t.size, working.size))

        def solve(free: Indices, added: FreeCurvature, slope: Vector) -> Vector:
            part, ridge = A[:, free], model.ridge[free]
            weight = model.squares[free] + ridge + added.diagonal
            weight = np.where(weight > 0.0, weight, 1.0)
            product = lambda p: part.T @ (part @ p) + ridge * p + added.times(p)  # noqa: E731
            return conjugate_gradients(product, weight, -slope, ACCURACY, PRODUCTS)[0]

        v, rounds = np.zeros_like(w), 2 + int(math.log2(self.effort))
        v[working] = minimise_in_blocks(
            model, w[working], some, math.sqrt(tol) / self.effort, solve, lambda p: A.T @ (A @ p) + model.ridge * p,
            rounds,
        )  # fmt: skip
        return v, float(model.t @ model.t + model.ridge @ (v[working] ** 2))

    def _model_among(self, working: Indices, gradient: Vector, w: Vector) -> ColumnModel:
        indptr, indices, data = _columns(self.subset.parts.rows, self._chosen, self._scales, working, w.size)
        squares = np.add.reduceat(np.append(data**2, 0.0), indptr[:-1]) * (np.diff(indptr) > 0)
        ridge = np.maximum(self.diagonal[working] - squares, 0.0) if self.diagonal.size else np.zeros(squares.size)
        t = np.zeros(self._chosen.size)
        return ColumnModel(indptr, indices, data, gradient[working], w[working], squares, ridge, t, self._stream)


def _part(subset: RowSubset, working: NDArray[np.bool_]) -> float:
    """The share of the entries that lie in the working columns, by some of the rows."""
    some = subset.rows(np.linspace(0, subset.size - 1, min(subset.size, PROBES)).astype(np.int64))
    place = np.where(working, 0, -1).astype(np.int32)
    counts, everything = np.zeros(2, np.int64), np.zeros(2, np.int64)
    _count(subset.parts.rows, some, place, counts)
    _count(subset.parts.rows, some, np.zeros_like(place), everything)
    return float(counts[1] / max(everything[1], 1))


def _columns(
    rows: Any, chosen: Indices, scales: Vector, working: Indices, d: int
) -> tuple[Indices, NDArray[np.int32], Vector]:
    """The working columns of the chosen rows, each row times √scale: where each begins, and their rows and entries."""
    place = np.full(d, -1, np.int32)
    place[working] = np.arange(working.size, dtype=np.int32)
    counts = np.zeros(working.size + 1, np.int64)
    _count(rows, chosen, place, counts)
    indptr = np.cumsum(counts)
    indices, data = np.empty(indptr[-1], np.int32), np.empty(indptr[-1])
    _fill(rows, chosen, np.sqrt(scales), place, indptr[:-1].copy(), indices, data)
    return indptr, indices, data


@kernel
def _count(rows, chosen, place, counts):
    for m in range(chosen.size):
        i = chosen[m]
        if m + AHEAD < chosen.size:
            rows.fetch(chosen[m + AHEAD])
        for k in range(rows.begin(i), rows.end(i)):
            j = place[rows.column(i, k)]
            if j >= 0:
                counts[j + 1] += 1
    if rows.intercept != 0.0 and place[place.size - 1] >= 0:
        counts[place[place.size - 1] + 1] += chosen.size


@kernel
def _fill(rows, chosen, roots, place, ends, indices, data):
    last = place[place.size - 1] if rows.intercept != 0.0 else -1
    for m in range(chosen.size):
        i, root = chosen[m], roots[m]
        if m + AHEAD < chosen.size:
            rows.fetch(chosen[m + AHEAD])
        for k in range(rows.begin(i), rows.end(i)):
            j = place[rows.column(i, k)]
            if j >= 0:
                indices[ends[j]] = m
                data[ends[j]] = root * rows.entry(i, k)
                ends[j] += 1
        if last >= 0:
            indices[ends[last]] = m
            data[ends[last]] = root
            ends[last] += 1


def _move_support(A: Any, model: ColumnModel, l1: Vector, l2: Vector, u: Vector) -> None:
    """Move the coordinates that are not zero towards their joint minimiser, by conjugate gradients."""
    support = np.flatnonzero(u)
    here, A, l1, l2 = u[support], A[:, support], l1[support], l2[support]
    ridge = model.ridge[support] + l2
    slope = model.gradient[support] + model.ridge[support] * (here - model.w[support]) + l2 * here
    slope = slope + l1 * np.sign(here) + A.T @ model.t
    weight = model.squares[support] + ridge
    weight = np.where(weight > 0.0, weight, 1.0)
    step, _, _ = conjugate_gradients(lambda p: A.T @ (A @ p) + ridge * p, weight, -slope, ACCURACY, PRODUCTS)
    for change in stopped_at_zero(here, step, l1):
        product = A @ change
        if slope @ change + 0.5 * (product @ product + (ridge * change) @ change) < 0.0:
            model.t[:] += product
            u[support] = here + change
            return
