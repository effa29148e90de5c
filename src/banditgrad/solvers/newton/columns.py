"""The sampled Hessian by columns, for wide data with an l1 norm: no matrix is made.

The model is minimised by coordinate descent on the sampled rows, scaled by √c_k and turned to columns: a coordinate
costs a look at its column. Only coordinates that are not zero, or that the gradient asks to move, are looked at, in a
new random order each time: columns that are all alike a little, as counts are, slow a fixed order down. Where that does
not come near the minimiser, conjugate gradients move the coordinates that are not zero, all at once.
"""

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from banditgrad._jit import kernel
from banditgrad._random import shuffle
from banditgrad.rows import Dense
from banditgrad.solvers.newton.matrix_free import RowCurvature
from banditgrad.solvers.newton.quadratic import best
from banditgrad.solvers.newton.view import AHEAD, View

Vector = NDArray[np.float64]
Indices = NDArray[np.int64]

SWEEPS = 30  # over the working coordinates at most, before conjugate gradients
PRODUCTS = 100  # of conjugate gradients at most
ACCURACY = 1e-6  # of their result, as a share of the gradient's squared norm
ROOM = 1e8  # entries of a sample at most: of rows beyond the memory not all can be turned to columns


class ColumnCurvature(RowCurvature):
    """An estimate of the Hessian of the rows in view, as the columns of the rows that were sampled."""

    def __init__(self, view: View, stream: NDArray[np.uint64]) -> None:
        super().__init__(view, stream)
        rows, self._stream = view.parts.rows, stream
        held = (rows.matrix if isinstance(rows, Dense) else rows.data).size * (view.size / view.parts.norms2.size)
        self._most = ROOM / max(held, 1.0)
        if self._most < 1.0:
            view.diagonal = np.zeros(view.gradient.size)

    def pays_in_full(self, bends: Vector, share: float) -> bool:
        return False

    def move(self, bends: Vector, share: float, exact: bool = False) -> int:
        """A new sample, of no more rows than there is room for; if all were asked for, these must do."""
        self._all = self._all or exact
        wanted = 1.0 if self._all else share
        count = super().move(bends, min(wanted, self._most))
        self.dropped, self.exact = self.dropped and wanted < 1.0, wanted >= 1.0
        return count

    def minimise(self, gradient: Vector, w: Vector, l1: Vector, l2: Vector, tol: float) -> tuple[Vector, float]:
        """The change v of w that minimises the quadratic model, to √tol, and the <v, M v> of it."""
        working = np.flatnonzero((w != 0.0) | (np.abs(gradient) > l1))
        indptr, indices, data = _columns(self.view.parts.rows, self._chosen, self._scales, working, w.size)
        seen = np.add.reduceat(np.append(data**2, 0.0), indptr[:-1]) * (np.diff(indptr) > 0)
        held = np.maximum(self.diagonal[working] - seen, 0.0) if self.diagonal.size else np.zeros(seen.size)
        u, t = w[working], np.zeros(self._chosen.size)
        columns, model = (indptr, indices, data), (gradient[working], w[working], l1[working], l2[working], seen, held)
        order, goal = np.arange(u.size), math.sqrt(tol) / self.effort
        for left in range(int(math.log2(self.effort)), -1, -1):
            if _descend(columns, model, goal, SWEEPS, self._stream, order, u, t) or left == 0:
                break
            _move_support(sp.csc_array((data, indices, indptr), shape=(t.size, u.size)), model, u, t)
        v = np.zeros_like(w)
        v[working] = u - w[working]
        return v, float(t @ t + held @ (v[working] ** 2))


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


def _move_support(A: Any, model: tuple[Vector, ...], u: Vector, t: Vector) -> None:
    """Move the coordinates that are not zero towards their joint minimiser; those that would change sign stop at zero,
    or all stop where the first does."""
    g, w, l1, l2, seen, held = model
    support = np.flatnonzero(u)
    here, sign, A = u[support], np.sign(u[support]), A[:, support]
    ridge = held[support] + l2[support]
    slope = g[support] + held[support] * (here - w[support]) + l2[support] * here + l1[support] * sign + A.T @ t
    step = _conjugate_gradients(A, ridge, seen[support] + ridge, -slope)
    crossing = (l1[support] > 0.0) & (sign * (here + step) < 0.0)
    up_to_first = step * np.min(-here[crossing] / step[crossing], initial=1.0)
    for change in (np.where(crossing, -here, step), up_to_first):
        product = A @ change
        if slope @ change + 0.5 * (product @ product + (ridge * change) @ change) < 0.0:
            t += product
            u[support] = here + change
            return


def _conjugate_gradients(A: Any, ridge: Vector, weight: Vector, b: Vector) -> Vector:
    """(A'A + diag(ridge))⁻¹ b, about; `weight` is the diagonal of that matrix."""
    weight = np.where(weight > 0.0, weight, 1.0)
    x, r = np.zeros_like(b), b.copy()
    s = r / weight
    p, energy = s, float(r @ s)
    goal = ACCURACY * energy
    for _ in range(PRODUCTS):
        if not energy > goal:
            break
        product = A.T @ (A @ p) + ridge * p
        curve = float(p @ product)
        if not (curve > 0.0 and math.isfinite(curve)):
            break
        x = x + (energy / curve) * p
        r = r - (energy / curve) * product
        s = r / weight
        before, energy = energy, float(r @ s)
        p = s + (energy / before) * p
    return x


@kernel
def _descend(columns, model, tol, sweeps, stream, order, u, t):
    """Sweeps of coordinate descent until none moves u by more than tol times what the first did; t = X (u - w).

    What is zero is passed over until the others have settled. Whether they came to an end.
    """
    indptr, indices, data = columns
    g, w, l1, l2, seen, held = model
    goal, everywhere = -1.0, True
    for _ in range(sweeps):
        worst = 0.0
        shuffle(order, order.size, stream)
        for j in order:
            if u[j] == 0.0 and not everywhere:
                continue
            r = g[j] + held[j] * (u[j] - w[j])
            for k in range(indptr[j], indptr[j + 1]):
                r += data[k] * t[indices[k]]
            curve = seen[j] + held[j]
            change = best(curve, r, u[j], l1[j], l2[j]) - u[j]
            if change != 0.0:
                u[j] += change
                worst = max(worst, abs(change) * math.sqrt(curve + l2[j]))
                for k in range(indptr[j], indptr[j + 1]):
                    t[indices[k]] += change * data[k]
        goal = tol * worst if goal < 0.0 else goal
        if worst <= goal and everywhere:
            return True
        everywhere = worst <= goal
    return False
