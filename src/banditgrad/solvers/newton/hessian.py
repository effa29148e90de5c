"""A Hessian for which only a sample of rows is read, chosen where it matters.

    H = Σ_k h_k x_i x_i',    h_k = weight_k φ_i''

The matrix always holds Ĥ = Σ_k c_k x_i x_i' for coefficients c_k that are known. To move it towards H, row k is taken
with probability π_k = min(1, rate · |h_k - c_k| ‖x_i‖²), and c_k grows by (h_k - c_k) / π_k: unbiased, and of least
variance for the number of rows. Once w moves little, so do the h_k, and few rows are needed for what is almost the
Hessian. Where the corrections would weigh more than the Hessian itself, c starts again from 0.

‖x_i‖² is measured in units in which every column has the same curvature, Σ_j x_ij² / H_jj, where that is worth a pass:
columns that differ by orders of magnitude are otherwise all but the largest left to chance.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline, kernel
from banditgrad._random import peek, skip, unit
from banditgrad.rows import Dense, add
from banditgrad.solvers.newton.blocks import Blocks, minimise_with_matrix
from banditgrad.solvers.newton.costs import Costs
from banditgrad.solvers.newton.quadratic import minimise_quadratic
from banditgrad.solvers.newton.subset import AHEAD, RowSubset

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

BLOCK = 512  # dense rows that are multiplied at a time
SHORT = 64  # features of dense rows that a loop of our own multiplies faster than BLAS does
PROBES = 128  # rows that tell whether to measure rows in units of the columns
WORTH_SCALING = 8.0  # by how much that must cut a sample's variance


class HessianMatrix:
    """An estimate of the Hessian of a subset of rows, as a matrix."""

    effort = 1.0  # spent on a minimiser
    dropped = False  # as a sample of rows without a matrix may be: here rows outnumber features
    constant = False  # whether it is known to be the Hessian at every w

    def __init__(self, subset: RowSubset, stream: NDArray[np.uint64]) -> None:
        d = subset.gradient.size
        self.subset, self.sample = subset, Sample(subset, stream)
        self.matrix, self.exact, self._scaled = np.zeros((d, d)), False, False

    @staticmethod
    def cost(costs: Costs) -> float:
        """Of a sample of all rows."""
        return costs.hessian

    @property
    def whole(self) -> bool:
        """Whether it is the Hessian itself."""
        return np.array_equal(self.sample.coefficients, self.subset.second_derivatives)

    def exact_pays(self, second_derivatives: Vector, share: float) -> bool:
        """Whether to take all rows where that has to be done but once, rather than a share of them."""
        return False

    def affordable(self, share: float, w: Vector, l1: Vector) -> float:
        """The share of the rows to take where `share` of them is what all their entries allow."""
        return share

    def move(self, second_derivatives: Vector, share: float, exact: bool = False) -> int:
        """Towards H = Σ_k h_k x_i x_i', and the number of rows it took; all the way if it is to be `exact`.

        From nothing it takes about share · size rows, or all of them where the share is 1 or more.
        """
        if self.constant:
            return 0
        if exact:
            self.exact, self.matrix[:] = True, 0.0
            picked, changes = self.sample.take_all(second_derivatives)
        else:
            if self.subset.all and not self._scaled:
                self._scale_rows(second_derivatives)
            afresh = self.sample.begin(second_derivatives)
            self.exact = afresh and share >= 1.0
            if afresh:
                self.matrix[:] = 0.0
            picked, changes = self.sample.pick(second_derivatives, 1.0 if self.exact else share)
        add_outer_products(self.subset.parts.rows, self.subset.rows(picked), changes, self.matrix)
        return picked.size

    def _scale_rows(self, second_derivatives: Vector) -> None:
        """Measure rows in units of the columns' curvature, as soon as that is known, if it pays."""
        diagonal = self.subset.diagonal if self.subset.diagonal.size else np.diag(self.matrix)
        if diagonal.any():
            self._scaled = True
            self.sample.scale(second_derivatives, diagonal)

    def minimise(self, gradient: Vector, w: Vector, l1: Vector, l2: Vector, tol: float) -> tuple[Vector, float]:
        """v and <v, M v>:

            v = argmin <∇f, v> + ½ <v, M v> + l1 |w + v| + (l2/2) ‖w + v‖²,    M = Ĥ + max(diag H - diag Ĥ, 0)

        so that a column of which the sample has seen too little has the Hessian's own diagonal.
        """
        M = self._held()
        v = minimise_quadratic(M, gradient, w, l1, l2, tol)
        return v, float(v @ (M @ v))

    def minimise_in_blocks(self, gradient: Vector, w: Vector, blocks: Blocks, tol: float) -> tuple[Vector, float]:
        """Likewise with bounds or groups."""
        M = self._held()
        v = minimise_with_matrix(M, gradient, w, blocks, tol)
        return v, float(v @ (M @ v))

    def _held(self) -> Matrix:
        """M."""
        M = self.matrix
        if not self.subset.diagonal.size:
            return M
        return np.asarray(M + np.diag(np.maximum(self.subset.diagonal - np.diag(M), 0.0)))


class Sample:
    """The coefficients c_k, and which of them to change."""

    def __init__(self, subset: RowSubset, stream: NDArray[np.uint64]) -> None:
        self.coefficients = np.zeros(subset.size)
        self._subset, self._stream, self._mass = subset, stream, 0.0
        self._norms2 = subset.norms2
        self._picked, self._changes = np.zeros(subset.size, np.int64), np.zeros(subset.size)

    def scale(self, second_derivatives: Vector, diagonal: Vector) -> None:
        """Measure rows by Σ_j x_ij² / diagonal_j rather than ‖x_i‖², if a few of them show that it pays.

        With s_k for the one and m_k for the other, the variance of the matrix in units of the diagonal is in proportion
        to Σ h_k² s_k² / π_k: by a factor (Σ h_k m_k) (Σ h_k s_k² / m_k) / (Σ h_k s_k)² larger with m_k.
        """
        rows, subset = self._subset.parts.rows, self._subset
        inverse = 1.0 / np.where(diagonal > 0.0, diagonal, np.inf)
        some = np.linspace(0, subset.size - 1, min(subset.size, PROBES)).astype(np.int64)
        h, m, s = second_derivatives[some], subset.norms2[some], np.zeros(some.size)
        _scaled_norms(rows, subset.rows(some), inverse, s)
        spread = float(h @ m) * float(h @ (s * s / np.where(m > 0.0, m, np.inf)))
        if spread > WORTH_SCALING * float(h @ s) ** 2:
            self._norms2 = np.zeros(subset.size)
            _scaled_norms(rows, np.arange(subset.size) if subset.all else subset.chosen, inverse, self._norms2)

    def take_all(self, second_derivatives: Vector) -> tuple[NDArray[np.int64], Vector]:
        """c becomes h, whatever it was; the rows that count and their coefficients."""
        self.coefficients[:] = second_derivatives
        curved = np.flatnonzero(second_derivatives)
        return curved, second_derivatives[curved]

    def begin(self, second_derivatives: Vector, afresh: bool = False) -> bool:
        """Begin to move c towards h; whether it was set to 0, as asked for or as less work than to correct it."""
        self._mass, correction = _masses(self._norms2, self.coefficients, second_derivatives)
        if correction < self._mass and not afresh:
            return False
        self.coefficients[:] = 0.0
        return True

    def pick(self, second_derivatives: Vector, share: float) -> tuple[NDArray[np.int64], Vector]:
        """The rows whose coefficients are changed, and by how much."""
        exact = share >= 1.0 and not self.coefficients.any()
        rate = np.inf if exact or self._mass == 0.0 else share * second_derivatives.size / self._mass
        out = (self._picked, self._changes)
        count = _pick(self._norms2, self.coefficients, second_derivatives, rate, self._stream, *out)
        return self._picked[:count], self._changes[:count]


def add_outer_products(rows: Any, chosen: NDArray[np.int64], scales: Vector, matrix: Matrix) -> None:
    """matrix += Σ_k scales_k x_i x_i', i = chosen[k]; the matrix is symmetric before and after. Long dense rows use
    BLAS."""
    if not isinstance(rows, Dense):
        _add_outer_products(rows, chosen, scales, matrix)
        return
    if len(matrix) <= SHORT:
        _add_dense_products(rows, chosen, scales, matrix)
        return
    for begin in range(0, chosen.size, BLOCK):
        these = chosen[begin : begin + BLOCK]
        adjacent = these[-1] - these[0] + 1 == these.size and (these[1:] > these[:-1]).all()  # then none need be copied
        block = rows.matrix[these[0] : these[-1] + 1] if adjacent else rows.matrix[these]
        block = block.astype(np.float64, copy=False)
        if rows.intercept:
            block = np.hstack([block, np.ones((len(block), 1))])
        matrix += block.T @ (scales[begin : begin + BLOCK, None] * block)


@kernel
def _masses(norms2, coefficients, second_derivatives):
    """Σ |h_k| ‖x_i‖² and Σ |h_k - c_k| ‖x_i‖²."""
    afresh, correction = 0.0, 0.0
    for k in range(second_derivatives.size):
        afresh += abs(second_derivatives[k]) * norms2[k]
        correction += abs(second_derivatives[k] - coefficients[k]) * norms2[k]
    return afresh, correction


@kernel
def _scaled_norms(rows, chosen, inverse, out):
    """Σ_j x_ij² inverse_j."""
    for k in range(chosen.size):
        i, total = chosen[k], inverse[inverse.size - 1] if rows.intercept != 0.0 else 0.0
        for e in range(rows.begin(i), rows.end(i)):
            x = np.float64(rows.entry(i, e))
            total += x * x * inverse[rows.column(i, e)]
        out[k] = total


@kernel
def _pick(norms2, coefficients, second_derivatives, rate, stream, picked, changes):
    count = 0
    for k in range(second_derivatives.size):
        change = second_derivatives[k] - coefficients[k]
        mass = abs(change) * norms2[k]
        if mass == 0.0:
            continue
        chance = rate * mass
        if chance < 1.0:
            u = unit(peek(stream, 0))
            skip(stream, 1)
            if u >= chance:
                continue
            change /= chance
        coefficients[k] += change
        picked[count] = k
        changes[count] = change
        count += 1
    return count


@inline
def _add_line(rows, i, scale, begin, k, matrix):
    """The products of entry k of row i with entries begin to k."""
    j, x = rows.column(i, k), scale * rows.entry(i, k)
    for h in range(begin, k + 1):
        matrix[j, rows.column(i, h)] += x * rows.entry(i, h)


@inline
def _add_four_lines(rows, i, scale, begin, k, matrix):
    """The products of entries k to k + 3 of row i with entries begin to k + 3, none of them twice.

    Each entry is read once for the four, and there are a quarter as many loops, whose ends nobody can foretell: two
    thirds of the time.
    """
    j0, j1, j2, j3 = rows.column(i, k), rows.column(i, k + 1), rows.column(i, k + 2), rows.column(i, k + 3)
    x0, x1 = scale * rows.entry(i, k), scale * rows.entry(i, k + 1)
    x2, x3 = scale * rows.entry(i, k + 2), scale * rows.entry(i, k + 3)
    for h in range(begin, k + 1):
        j, x = rows.column(i, h), rows.entry(i, h)
        matrix[j0, j] += x0 * x
        matrix[j1, j] += x1 * x
        matrix[j2, j] += x2 * x
        matrix[j3, j] += x3 * x
    y1, y2, y3 = rows.entry(i, k + 1), rows.entry(i, k + 2), rows.entry(i, k + 3)
    matrix[j1, j1] += x1 * y1
    matrix[j2, j1] += x2 * y1
    matrix[j3, j1] += x3 * y1
    matrix[j2, j2] += x2 * y2
    matrix[j3, j2] += x3 * y2
    matrix[j3, j3] += x3 * y3


@kernel
def _add_outer_products(rows, chosen, scales, matrix):
    """One half of each product is added as it comes, and both halves are made equal at the end."""
    d = matrix.shape[0]
    for j in range(d):
        for k in range(j):
            matrix[j, k] = 0.0  # the other half keeps what was there
    for m in range(chosen.size):
        i, scale = chosen[m], scales[m]
        if m + AHEAD < chosen.size:
            rows.fetch(chosen[m + AHEAD])
        begin, end = rows.begin(i), rows.end(i)
        first = begin + (end - begin) % 4
        for k in range(begin, first):
            _add_line(rows, i, scale, begin, k, matrix)
        for k in range(first, end, 4):
            _add_four_lines(rows, i, scale, begin, k, matrix)
        if rows.intercept != 0.0:
            add(rows, i, scale, matrix[d - 1])
    _join_halves(matrix)


@kernel
def _add_dense_products(rows, chosen, scales, matrix):
    """The same for dense rows, four at a time."""
    d, last = rows.matrix.shape[1], chosen.size - 1
    for j in range(matrix.shape[0]):
        for k in range(j):
            matrix[j, k] = 0.0
    for m in range(0, chosen.size, 4):
        a, b, c, e = chosen[m], chosen[min(m + 1, last)], chosen[min(m + 2, last)], chosen[min(m + 3, last)]
        s0, s1 = scales[m], scales[m + 1] if m + 1 <= last else 0.0
        s2, s3 = scales[m + 2] if m + 2 <= last else 0.0, scales[m + 3] if m + 3 <= last else 0.0
        for j in range(d):
            x0, x1 = s0 * rows.matrix[a, j], s1 * rows.matrix[b, j]
            x2, x3 = s2 * rows.matrix[c, j], s3 * rows.matrix[e, j]
            for k in range(j + 1):
                matrix[j, k] += (
                    x0 * rows.matrix[a, k] + x1 * rows.matrix[b, k] + (x2 * rows.matrix[c, k] + x3 * rows.matrix[e, k])
                )
        if rows.intercept != 0.0:
            for k in range(d):
                matrix[d, k] += (
                    s0 * rows.matrix[a, k] + s1 * rows.matrix[b, k] + (s2 * rows.matrix[c, k] + s3 * rows.matrix[e, k])
                )
            matrix[d, d] += s0 + s1 + s2 + s3
    _join_halves(matrix)


@inline
def _join_halves(matrix):
    for j in range(matrix.shape[0]):
        for k in range(j):
            total = matrix[j, k] + matrix[k, j]
            matrix[j, k] = total
            matrix[k, j] = total
