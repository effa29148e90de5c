"""Rows with several margins each, z_i = W'x_i, for losses φ(z, y) of them: W is a matrix, one column per margin.

Sums over the rows are products of matrices, Z = X W and X'S. Dense rows leave them to BLAS, some rows at a time; sparse
ones are a loop over entries, each of which meets a row of W.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import bridge, inline, kernel, prefetch
from banditgrad.rows import Dense, add

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

TOGETHER = 512  # dense rows that are multiplied at a time: their numbers then stay in the cache
AT_ONCE = 1 << 18  # margins that are held at a time where all are not asked for


class Scratch(NamedTuple):
    """For the numbers of one row, one for each margin; empty where a row has but one margin."""

    z: Vector  # the margins
    slopes: Vector  # ∇φ at them, without the row's weight
    direction: Vector  # u, of length 1: with a gradient or a difference of two = slope · x_i u'
    product: Vector  # of the curvature with it
    directions: Matrix  # that of each row of a minibatch


class VectorTable(NamedTuple):
    """Of each row, the slopes and margins when it was last looked at, without the rows' weights."""

    slopes: Matrix
    margins: Matrix


def new_scratch(width: int, rows: int = 1) -> Scratch:
    """For rows of so many margins, 0 where there is but one, in minibatches of so many."""
    z, slopes, direction, product = np.zeros((4, width))
    return Scratch(z, slopes, direction, product, np.zeros((rows, width)))


NO_SCRATCH = new_scratch(0)


class Slice(NamedTuple):
    """Rows as they meet one column of W, whose numbers lie `width` apart; without an intercept."""

    rows: Any
    k: int
    width: int
    intercept: float

    def begin(self, i):
        return self.rows.begin(i)

    def end(self, i):
        return self.rows.end(i)

    def column(self, i, e):
        return np.int64(self.rows.column(i, e)) * self.width + self.k

    def entry(self, i, e):
        return self.rows.entry(i, e)


class ExactCurves(NamedTuple):
    """The curvature of a loss that offers it."""

    bound: float

    def curve_along(self, loss, z, slopes, y, u, out):
        """<u, ∇²φ(z) u>."""
        loss.curve_product(z, slopes, y, u, out)
        total = 0.0
        for k in range(u.size):
            total += u[k] * out[k]
        return total

    def times(self, loss, z, slopes, y, v, out):
        """out = ∇²φ(z) v; v itself may be out."""
        loss.curve_product(z, slopes, y, v, out)

    def largest_curve(self, loss, z, slopes, y, a, b):
        """A bound on <u, ∇²φ(z) u> for all u of length 1: the largest a_k."""
        loss.curve_parts(z, slopes, y, a, b)
        largest = 0.0
        for k in range(a.size):
            largest = max(largest, a[k])
        return min(largest, self.bound)


bridge(ExactCurves)


class BoundedCurves(NamedTuple):
    """A bound on it, for a loss that does not."""

    bound: float

    def curve_along(self, loss, z, slopes, y, u, out):
        return self.bound

    def times(self, loss, z, slopes, y, v, out):
        for k in range(v.size):
            out[k] = self.bound * v[k]

    def largest_curve(self, loss, z, slopes, y, a, b):
        return self.bound


@bridge
class VectorTerms(NamedTuple):
    """The sub-costs φ_i as functions of the margins z = W'x_i, an array."""

    loss: Any
    targets: Vector
    weights: Vector  # sample weights, or empty
    curves: Any
    width: int  # how many margins

    def weight(self, i):
        return self.weights[i] if self.weights.size > 0 else 1.0

    def term(self, i, z):
        return self.weight(i) * self.loss.value(z, self.targets[i])

    def slopes(self, i, z, out):
        """∇φ_i as a function of z."""
        self.loss.derivatives(z, self.targets[i], out)
        if self.weights.size > 0:
            for k in range(out.size):
                out[k] *= self.weights[i]

    def fetch(self, i):
        prefetch(self.targets, i)
        if self.weights.size > 0:
            prefetch(self.weights, i)

    # What stochastic steps ask for, as of `problem.Terms`: a row stands for x_i u' with a direction u in the scratch.

    def margin_and_slope(self, rows, iterate, scratch, i):
        size = self.margins_of_row(rows, iterate, scratch, i)
        self.loss.derivatives(scratch.z, self.targets[i], scratch.slopes)
        for k in range(scratch.z.size):
            scratch.direction[k] = scratch.slopes[k]
        return size, self.weight(i) * _normalise(scratch.direction)

    def difference(self, rows, iterate, table, scratch, i):
        size = self.margins_of_row(rows, iterate, scratch, i)
        self.loss.derivatives(scratch.z, self.targets[i], scratch.slopes)
        for k in range(scratch.z.size):
            scratch.direction[k] = scratch.slopes[k] - table.slopes[i, k]
        return size, 0.0, self.weight(i) * _normalise(scratch.direction)

    def margins_of_row(self, rows, iterate, scratch, i):
        """Write them to the scratch; returns the sum of their sizes."""
        width, size = scratch.z.size, 0.0
        for k in range(width):
            z = iterate.margin(Slice(rows, k, width, 0.0), i)
            if rows.intercept != 0.0:
                z += iterate.free(iterate.w.size - width + k)
            scratch.z[k] = z
            size += abs(z)
        return size

    def largest_second(self, table, scratch, i, z, change):
        y, u, along = self.targets[i], scratch.direction, 0.0
        second = self.curves.curve_along(self.loss, scratch.z, scratch.slopes, y, u, scratch.product)
        before = self.curves.curve_along(self.loss, table.margins[i], table.slopes[i], y, u, scratch.product)
        for k in range(u.size):
            along += u[k] * (scratch.z[k] - table.margins[i, k])
        second = self.weight(i) * max(second, before)
        return max(second, change / along) if along > 0.0 else second

    def second_in(self, table, i):
        return self.weight(i) * self.curves.bound

    def move_along(self, rows, iterate, scratch, i, factor, change):
        width = scratch.direction.size
        iterate.begin_move()
        for k in range(width):
            u = scratch.direction[k]
            iterate.move_row(Slice(rows, k, width, 0.0), i, factor * u, change * u)
            if rows.intercept != 0.0:
                iterate.move_free(iterate.w.size - width + k, factor * u, change * u)
        iterate.end_move()

    def add_along(self, rows, scratch, i, scale, w):
        for k in range(self.width):
            add(Slice(rows, k, self.width, 0.0), i, scale * scratch.direction[k], w)
            if rows.intercept != 0.0:
                w[w.size - self.width + k] += scale * scratch.direction[k]

    def add_row_along(self, rows, iterate, scratch, i, gamma, scale):
        for k in range(self.width):
            iterate.add_row(Slice(rows, k, self.width, 0.0), i, gamma, scale * scratch.direction[k])
            if rows.intercept != 0.0:
                iterate.w[iterate.w.size - self.width + k] += scale * scratch.direction[k]

    def keep(self, scratch, k):
        """Remember the direction of a row as that of the minibatch's row k."""
        for m in range(scratch.direction.size):
            scratch.directions[k, m] = scratch.direction[m]

    def recall(self, scratch, k):
        for m in range(scratch.direction.size):
            scratch.direction[m] = scratch.directions[k, m]

    def along(self, rows, scratch, i, v):
        """<x_i u', V>, and the length of V'x_i."""
        _margins_at(rows, i, v, scratch.z)
        slope, squares = 0.0, 0.0
        for k in range(scratch.z.size):
            slope += scratch.direction[k] * scratch.z[k]
            squares += scratch.z[k] * scratch.z[k]
        return slope, math.sqrt(squares)

    def take_squares(self, rows, i, g, total):
        width = self.width
        for e in range(rows.begin(i), rows.end(i)):
            first = np.int64(rows.column(i, e)) * width
            for j in range(first, first + width):
                total += g[j] * g[j]
                g[j] = 0.0
        return total

    def free_coordinates(self):
        return self.width

    def add_curved(self, rows, scratch, i, w, s, share, out):
        _margins_at(rows, i, w, scratch.z)
        _margins_at(rows, i, s, scratch.product)
        self.loss.derivatives(scratch.z, self.targets[i], scratch.slopes)
        self.curves.times(self.loss, scratch.z, scratch.slopes, self.targets[i], scratch.product, scratch.product)
        for k in range(scratch.direction.size):
            scratch.direction[k] = scratch.product[k]
        self.add_along(rows, scratch, i, self.weight(i) / share, out)

    def note_row_of(self, rows, iterate, i):
        width = self.width
        for k in range(width):
            iterate.note_row(Slice(rows, k, width, 0.0), i)

    def remember(self, table, scratch, i, z, slope):
        for k in range(scratch.z.size):
            table.slopes[i, k] = scratch.slopes[k]
            table.margins[i, k] = scratch.z[k]

    def fetch_of(self, table, i):
        prefetch(table.slopes, i)
        prefetch(table.margins, i)

    def term_at(self, rows, scratch, w, i, zero):
        for k in range(scratch.z.size):
            scratch.z[k] = 0.0
        if not zero:
            _margins_at(rows, i, w, scratch.z)
        return self.term(i, scratch.z)

    def add_terms_along(self, rows, scratch, i, w, direction, lengths, n, values):
        _margins_at(rows, i, w, scratch.z)
        _margins_at(rows, i, direction, scratch.product)
        for part in range(lengths.size):
            for k in range(scratch.z.size):
                scratch.slopes[k] = scratch.z[k] + lengths[part] * scratch.product[k]
            values[part] += self.term(i, scratch.slopes) / n

    def add_gradient(self, rows, scratch, w, table, i, n, g, with_value):
        width = scratch.z.size
        _margins_at(rows, i, w, scratch.z)
        value = self.weight(i) * self.loss.derivatives(scratch.z, self.targets[i], scratch.slopes)
        for k in range(width):
            table.margins[i, k], table.slopes[i, k] = scratch.z[k], scratch.slopes[k]
            scratch.slopes[k] *= self.weight(i) / n
        for e in range(rows.begin(i), rows.end(i)):
            x, j = np.float64(rows.entry(i, e)), np.int64(rows.column(i, e))
            for k in range(width):
                g[j * width + k] += x * scratch.slopes[k]
        if rows.intercept != 0.0:
            for k in range(width):
                g[g.size - width + k] += scratch.slopes[k]
        return value


def vector_terms(loss: Any, targets: Vector, weights: Vector) -> VectorTerms:
    exact = hasattr(loss, "curve_product") and hasattr(loss, "curve_parts")
    bound = float(loss.curvature())
    return VectorTerms(
        loss, targets, weights, ExactCurves(bound) if exact else BoundedCurves(bound), int(loss.margins())
    )


@inline
def _normalise(u):
    """The length of u, which is 1 then, or 0 as it was."""
    total = 0.0
    for k in range(u.size):
        total += u[k] * u[k]
    length = math.sqrt(total)
    if length > 0.0:
        for k in range(u.size):
            u[k] /= length
    return length


@inline
def _margins_at(rows, i, w, z):
    """z = W'x_i, of W in a row."""
    width = z.size
    for k in range(width):
        z[k] = rows.intercept * w[w.size - width + k]
    for e in range(rows.begin(i), rows.end(i)):
        x, j = np.float64(rows.entry(i, e)), np.int64(rows.column(i, e))
        for k in range(width):
            z[k] += x * w[j * width + k]


def multiply(rows: Any, W: Matrix, out: Matrix, begin: int = 0) -> None:
    """out = X W, of as many rows as `out` has, from `begin` on."""
    if not isinstance(rows, Dense):
        _multiply(rows, begin, W, out)
        return
    d = rows.matrix.shape[1]
    for first, block in blocks(rows, begin, len(out)):
        np.matmul(block, W[:d], out=out[first : first + len(block)])
    if rows.intercept:
        out += W[d]


def add_transposed(rows: Any, S: Matrix, out: Matrix, begin: int = 0) -> None:
    """out += X'S, of as many rows as S has, from `begin` on."""
    if not isinstance(rows, Dense):
        _add_transposed(rows, begin, S, out)
        return
    d = rows.matrix.shape[1]
    for first, block in blocks(rows, begin, len(S)):
        out[:d] += block.T @ S[first : first + len(block)]
    if rows.intercept:
        out[d] += S.sum(axis=0)


def add_squares_transposed(rows: Any, S: Matrix, out: Matrix, begin: int = 0) -> None:
    """out += (X∘X)'S, with the squares of the entries."""
    if not isinstance(rows, Dense):
        _add_squares_transposed(rows, begin, S, out)
        return
    d = rows.matrix.shape[1]
    for first, block in blocks(rows, begin, len(S)):
        out[:d] += (block * block).T @ S[first : first + len(block)]
    if rows.intercept:
        out[d] += S.sum(axis=0)


def multiply_squares(rows: Any, U: Matrix, out: Matrix) -> None:
    """out = (X∘X) U, with the squares of the entries, of the first rows."""
    if not isinstance(rows, Dense):
        _multiply_squares(rows, U, out)
        return
    d = rows.matrix.shape[1]
    for first, block in blocks(rows, 0, len(out)):
        np.matmul(block * block, U[:d], out=out[first : first + len(block)])
    if rows.intercept:
        out += U[d]


def blocks(rows: Dense, begin: int, count: int) -> Iterator[tuple[int, Matrix]]:
    """Some rows at a time as float64, and where they are, counted from the first."""
    for first in range(0, count, TOGETHER):
        block = rows.matrix[begin + first : begin + min(first + TOGETHER, count)]
        yield first, block.astype(np.float64, copy=False).view(np.ndarray)


def _pieces(parts: Any, W: Matrix, n: int) -> Iterator[tuple[int, Matrix, Matrix, Vector]]:
    """Some rows at a time: the first of them, their margins, and room for their slopes and values."""
    count = min(n, max(1, AT_ONCE // W.shape[1]))
    Z, slopes, values = np.empty((count, W.shape[1])), np.empty((count, W.shape[1])), np.empty(count)
    for begin in range(0, n, count):
        m = min(count, n - begin)
        multiply(parts.rows, W, Z[:m], begin)
        yield begin, Z[:m], slopes[:m], values[:m]


def mean_term(parts: Any, W: Matrix) -> float:
    """f(W) = (1/n) Σ_i φ_i(W)."""
    n, total = parts.norms2.size, 0.0
    for begin, Z, _, values in _pieces(parts, W, n):
        _terms(parts.terms, begin, Z, values)
        total += float(values.sum())
    return total / n


def gradient(parts: Any, W: Matrix, out: Matrix) -> None:
    """out = ∇f(W)."""
    n = parts.norms2.size
    out[:] = 0.0
    for begin, Z, slopes, _ in _pieces(parts, W, n):
        _slopes(parts.terms, begin, Z, slopes)
        slopes /= n
        add_transposed(parts.rows, slopes, out, begin)


def gradient_norms(parts: Any, W: Matrix, out: Vector) -> None:
    """out_i = ‖∇φ_i(W)‖ = ‖x_i‖ ‖∇φ(z_i)‖."""
    for begin, Z, slopes, _ in _pieces(parts, W, out.size):
        _slopes(parts.terms, begin, Z, slopes)
        out[begin : begin + len(Z)] = np.linalg.norm(slopes, axis=1)
    out *= np.sqrt(parts.norms2)


def slopes(parts: Any, W: Matrix) -> Matrix:
    """∇φ_i of all rows, without their weights."""
    Z, values = np.empty((parts.norms2.size, W.shape[1])), np.empty(parts.norms2.size)
    out = np.empty_like(Z)
    multiply(parts.rows, W, Z)
    expand(parts.terms, Z, out, values)
    return out


def compile(parts: Any, W: Matrix) -> None:
    """Compile what the functions above run."""
    nothing, values = np.zeros((0, W.shape[1])), np.zeros(0)
    _terms(parts.terms, 0, nothing, values)
    _slopes(parts.terms, 0, nothing, nothing)
    multiply(parts.rows, W, nothing)
    add_transposed(parts.rows, nothing, W)


@kernel
def _terms(terms, begin, Z, values):
    for m in range(Z.shape[0]):
        values[m] = terms.term(begin + m, Z[m])


@kernel
def _slopes(terms, begin, Z, slopes):
    for m in range(Z.shape[0]):
        terms.slopes(begin + m, Z[m], slopes[m])


@kernel
def expand(terms, Z, slopes, values):
    """φ_i and ∇φ_i of all margins, without the rows' weights."""
    for m in range(Z.shape[0]):
        values[m] = terms.loss.derivatives(Z[m], terms.targets[m], slopes[m])


@kernel
def curve_products(terms, Z, slopes, scales, V):
    """Replace each v_i, a row of V, by scales_i ∇²φ_i v_i; the slopes are without the rows' weights."""
    for m in range(Z.shape[0]):
        terms.loss.curve_product(Z[m], slopes[m], terms.targets[m], V[m], V[m])
        for k in range(V.shape[1]):
            V[m, k] *= scales[m]


@kernel
def curve_parts(terms, Z, slopes, scales, a, b):
    """a_i and b_i with scales_i ∇²φ_i = diag(a_i) - b_i b_i', likewise."""
    for m in range(Z.shape[0]):
        terms.loss.curve_parts(Z[m], slopes[m], terms.targets[m], a[m], b[m])
        root = math.sqrt(scales[m])
        for k in range(a.shape[1]):
            a[m, k] *= scales[m]
            b[m, k] *= root


@inline
def dots(rows, i, W, z):
    """z = W'x_i, with the intercept."""
    last = W.shape[0] - 1
    for k in range(z.size):
        z[k] = rows.intercept * W[last, k]
    for e in range(rows.begin(i), rows.end(i)):
        x, j = np.float64(rows.entry(i, e)), rows.column(i, e)
        for k in range(z.size):
            z[k] += x * W[j, k]


@inline
def add_outer(rows, i, slopes, W):
    """W += x_i slopes'."""
    for e in range(rows.begin(i), rows.end(i)):
        x, j = np.float64(rows.entry(i, e)), rows.column(i, e)
        for k in range(slopes.size):
            W[j, k] += x * slopes[k]
    if rows.intercept != 0.0:
        for k in range(slopes.size):
            W[W.shape[0] - 1, k] += slopes[k]


@kernel
def _multiply(rows, begin, W, out):
    for m in range(out.shape[0]):
        dots(rows, begin + m, W, out[m])


@kernel
def _add_transposed(rows, begin, S, out):
    for m in range(S.shape[0]):
        add_outer(rows, begin + m, S[m], out)


@kernel
def _add_squares_transposed(rows, begin, S, out):
    for m in range(S.shape[0]):
        i = begin + m
        for e in range(rows.begin(i), rows.end(i)):
            x, j = np.float64(rows.entry(i, e)), rows.column(i, e)
            for k in range(S.shape[1]):
                out[j, k] += x * x * S[m, k]
        if rows.intercept != 0.0:
            for k in range(S.shape[1]):
                out[out.shape[0] - 1, k] += S[m, k]


@kernel
def _multiply_squares(rows, U, out):
    for i in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[i, k] = rows.intercept * U[U.shape[0] - 1, k]
        for e in range(rows.begin(i), rows.end(i)):
            x, j = np.float64(rows.entry(i, e)), rows.column(i, e)
            for k in range(out.shape[1]):
                out[i, k] += x * x * U[j, k]
