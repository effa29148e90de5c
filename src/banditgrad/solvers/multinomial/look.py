"""A look at rows with several margins each: the data term, its gradient, and what its curvature is made of.

f(W) = Σ_i c_i φ(W'x_i, y_i),   ∇f = X' (c_i ∇φ_i),   ∇²f V = X' (c_i ∇²φ_i V'x_i)
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad import margins
from banditgrad._jit import kernel
from banditgrad.rows import Csr, Dense, read_only

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]


class Look:
    """Some rows of a problem, or all of them, and what was seen of them at W.

    Attributes
    ----------
    scales : the c_i
    value, gradient : f(W) and ∇f(W)
    Z, slopes : margins and ∇φ_i, without the c_i, a row for each row
    """

    def __init__(self, problem: Any, chosen: Indices | None = None) -> None:
        parts, weights = problem.parts, problem.sample_weight
        self.all, self.rows, self.terms = chosen is None, parts.rows, parts.terms
        size = problem.n if chosen is None else chosen.size
        if chosen is None:
            self.scales = np.full(size, 1.0 / size) if weights is None else weights / size
        else:
            self.rows = take(parts.rows, chosen)
            self.terms = self.terms._replace(targets=read_only(parts.terms.targets[chosen]))
            chosen_weights = np.ones(size) if weights is None else weights[chosen]
            self.scales = chosen_weights / max(float(chosen_weights.sum()), 1e-300)
        self.value, self.gradient = np.inf, np.zeros(problem.shape)
        self.Z, self.slopes = np.zeros((size, problem.margins)), np.zeros((size, problem.margins))
        self._before, self._values = np.zeros((size, problem.margins)), np.zeros(size)

    @property
    def size(self) -> int:
        return int(self.scales.size)

    def at(self, W: Matrix) -> float:
        """f(W); where the look before was, is kept."""
        self.Z, self._before = self._before, self.Z
        margins.multiply(self.rows, W, self.Z)
        return self._expand()

    def stretch(self, t: float) -> float:
        """f at t times the step between the last two looks, of which the second is then there. It reads no row."""
        self.Z -= self._before
        self.Z *= t
        self.Z += self._before
        return self._expand()

    def _expand(self) -> float:
        margins.expand(self.terms, self.Z, self.slopes, self._values)
        self.value = float(self.scales @ self._values)
        return self.value

    def see_gradient(self) -> None:
        self.gradient[:] = 0.0
        margins.add_transposed(self.rows, self.scales[:, None] * self.slopes, self.gradient)

    def take(self, k: Indices, scales: Vector) -> "Curvature":
        """The curvature of some of the rows, with other c_i."""
        return Curvature(take(self.rows, k), self.terms._replace(targets=read_only(self.terms.targets[k])), scales,
                         self.Z[k], self.slopes[k], len(self.gradient))  # fmt: skip

    def take_all(self) -> "Curvature":
        return Curvature(self.rows, self.terms, self.scales, self.Z, self.slopes, len(self.gradient))


class Curvature(NamedTuple):
    """Rows and what ∇²f is made of, M = Σ_i c_i ∇²φ_i ⊗ x_i x_i'."""

    rows: Any
    terms: Any
    scales: Vector
    Z: Matrix
    slopes: Matrix
    features: int  # the intercept included
    added: float = 0.0  # c_i times this in all directions is added to c_i ∇²φ_i

    def product(self, V: Matrix, out: Matrix) -> None:
        """out += M V."""
        if isinstance(self.rows, Dense):
            self._dense_product(V, out)
        else:
            scratch = np.empty((2, V.shape[1]))
            _product(self.rows, self.terms, self.Z, self.slopes, self.scales, self.added, V, scratch, out)

    def _dense_product(self, V: Matrix, out: Matrix) -> None:
        """The rows are read once, some at a time."""
        d = self.rows.matrix.shape[1]
        for first, block in margins.blocks(self.rows, 0, self.scales.size):
            some = slice(first, first + len(block))
            D = block @ V[:d]
            if self.rows.intercept:
                D += V[d]
            more = self.added * self.scales[some, None] * D if self.added > 0.0 else 0.0
            margins.curve_products(
                self.terms._replace(targets=self.terms.targets[some]), self.Z[some], self.slopes[some],
                self.scales[some], D,
            )  # fmt: skip
            D += more
            out[:d] += block.T @ D
            if self.rows.intercept:
                out[d] += D.sum(axis=0)

    def parts(self) -> tuple[Matrix, Matrix]:
        """a_i and b_i with c_i ∇²φ_i = diag(a_i) - b_i b_i'."""
        a, b = np.empty_like(self.Z), np.empty_like(self.Z)
        margins.curve_parts(self.terms, self.Z, self.slopes, self.scales, a, b)
        a += self.added * self.scales[:, None]
        return a, b

    def diagonals(self) -> Matrix:
        """Those of the c_i ∇²φ_i."""
        a, b = self.parts()
        return np.maximum(a - b * b, 0.0)


@kernel
def _product(rows, terms, Z, slopes, scales, added, V, scratch, out):
    v, u = scratch[0], scratch[1]
    for i in range(scales.size):
        margins.dots(rows, i, V, v)
        terms.loss.curve_product(Z[i], slopes[i], terms.targets[i], v, u)
        for k in range(v.size):
            u[k] = scales[i] * (u[k] + added * v[k])
        margins.add_outer(rows, i, u, out)


def take(rows: Any, chosen: Indices) -> Any:
    """Copies of some rows."""
    if isinstance(rows, Dense):
        return rows._replace(matrix=read_only(rows.matrix[chosen].astype(np.float64, copy=False)))
    begins, lengths = rows.indptr[chosen].astype(np.int64), (rows.indptr[chosen + 1] - rows.indptr[chosen])
    indptr = np.append(0, np.cumsum(lengths, dtype=np.int64))
    places = np.repeat(begins - indptr[:-1], lengths) + np.arange(indptr[-1])
    return _csr(rows, indptr, rows.indices[places], rows.data[places])


def _csr(like: Csr, indptr: Any, indices: Any, data: Any) -> Csr:
    indptr, indices = indptr.astype(like.indptr.dtype), indices.astype(like.indices.dtype)
    return Csr(read_only(indptr), read_only(indices), read_only(data), like.intercept)


def as_dense(rows: Any, chosen: NDArray[np.int64], p: int) -> Matrix:
    """Some rows with all of their p entries, the intercept's included."""
    out = np.zeros((chosen.size, p))
    if isinstance(rows, Dense):
        out[:, : rows.matrix.shape[1]] = rows.matrix[chosen]
        out[:, rows.matrix.shape[1] :] = 1.0
    else:
        _fill(rows, chosen, out)
    return out


@kernel
def _fill(rows, chosen, out):
    for m in range(chosen.size):
        for e in range(rows.begin(chosen[m]), rows.end(chosen[m])):
            out[m, rows.column(chosen[m], e)] = rows.entry(chosen[m], e)
        if rows.intercept != 0.0:
            out[m, out.shape[1] - 1] = 1.0
