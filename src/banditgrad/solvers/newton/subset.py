"""The data term on all rows or some of them: value, gradient and second derivatives, by one pass in their order."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline, inline_sum, kernel
from banditgrad.rows import Dense, add, dot, read_only
from banditgrad.samplers.blocks import new_block

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

AHEAD = 4  # rows between one being asked for and its turn
DRAWN_TOGETHER = 1024  # rows


class RowSubset:
    """Some rows with weights, or all of them with weight 1/n, and what was found where they were evaluated last.

    f(w) = Σ_k weight_k φ_i(<x_i, w>),  i = chosen[k].

    Attributes
    ----------
    value, gradient : f and ∇f
    margins, second_derivatives : z_k = <x_i, w> and h_k = weight_k φ_i''(z_k): the Hessian is Σ_k h_k x_i x_i'
    diagonal : of the Hessian, or empty where it is not wanted
    point : where that was; None before the first evaluation
    behind : whether the margins, and nothing else, are still those of a point before
    """

    def __init__(self, problem: Any, chosen: Any = None, weights: Any = None) -> None:
        self.parts, self.all = problem.parts, chosen is None
        self.chosen = np.zeros(0, np.int64) if self.all else chosen
        self.weights = np.zeros(0) if self.all else weights
        self.size = problem.n if self.all else chosen.size
        self.norms2 = self.parts.norms2 if self.all else read_only(self.parts.norms2[chosen])
        self.margins, self.previous_margins = np.zeros(self.size), np.zeros(self.size)
        self.second_derivatives = np.zeros(self.size)
        self.gradient, self.diagonal = np.zeros(problem.dimension), np.zeros(0)
        self.value, self.behind = np.inf, False
        self.point: Vector | None = None  # where it was evaluated

    def evaluate(self, w: Vector) -> float:
        """f(w), and all the attributes there; the margins of the evaluation before are kept."""
        self.margins, self.previous_margins = self.previous_margins, self.margins
        out = (self.margins, self.second_derivatives, self.gradient, self.diagonal)
        if isinstance(self.parts.rows, Dense):
            self.value = _evaluate_dense(self.parts, self.chosen, self.weights, w, *out, np.zeros(4), np.zeros(4))
        else:
            self.value = _evaluate(self.parts, self.chosen, self.weights, w, *out)
        self.point, self.behind = w, False
        return self.value

    def move(self, w: Vector, hessian: Matrix) -> float:
        """f(w), where f is quadratic: by its Hessian, without a look at the rows."""
        assert self.point is not None
        v = w - self.point
        change = hessian @ v
        self.value += float((self.gradient + 0.5 * change) @ v)
        self.gradient = self.gradient + change
        self.point, self.behind = w, True
        return self.value

    def value_along(self, t: float) -> float:
        """f on the line from the point of the evaluation before, t = 0, to that of the last, t = 1. Reads no row."""
        return float(_value_along(self.parts, self.chosen, self.weights, self.previous_margins, self.margins, t))

    def feedback(self) -> Vector:
        """a_i = ‖∇φ_i(w)‖² / n² of these rows, where they were evaluated last."""
        out = np.zeros(self.size)
        _feedback(self.parts, self.chosen, self.margins, out)
        return out

    def entry_curvatures(self) -> Vector:
        """The mean square of each column's entries, times Σ_k h_k (entries of row k)."""
        squares, counts = np.zeros(self.gradient.size), np.zeros(self.gradient.size)
        entries = float(_count_entries(self.parts.rows, self.chosen, self.second_derivatives, squares, counts))
        return entries * squares / np.maximum(counts, 1.0)

    def rows(self, k: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of the problem that are the k-th of this subset."""
        return k if self.all else self.chosen[k]


@kernel
def _evaluate(parts, chosen, weights, w, margins, second_derivatives, gradient, diagonal):
    n, some = parts.norms2.size, chosen.size > 0
    weight, total, zero = 1.0 / n, 0.0, True
    for j in range(gradient.size):
        gradient[j] = 0.0
        zero = zero and w[j] == 0.0
    for j in range(diagonal.size):
        diagonal[j] = 0.0
    for k in range(margins.size):
        i = k
        if some:
            i, weight = chosen[k], weights[k]
            if k + AHEAD < chosen.size:
                parts.rows.fetch(chosen[k + AHEAD])
        z = 0.0 if zero else dot(parts.rows, i, w)
        value, slope, second = parts.terms.expand(i, z)
        total += weight * value
        margins[k] = z
        second_derivatives[k] = weight * second
        if slope != 0.0 or second != 0.0:
            if diagonal.size > 0:
                _add_both(parts.rows, i, weight * slope, weight * second, gradient, diagonal)
            else:
                add(parts.rows, i, weight * slope, gradient)
    return total


@inline
def _add_both(rows, i, slope, second, gradient, diagonal):
    """gradient += slope · x_i and diagonal += second · x_i², entry by entry."""
    for k in range(rows.begin(i), rows.end(i)):
        j, x = rows.column(i, k), np.float64(rows.entry(i, k))
        gradient[j] += slope * x
        diagonal[j] += second * x * x
    if rows.intercept != 0.0:
        gradient[gradient.size - 1] += slope
        diagonal[diagonal.size - 1] += second


@kernel
def _evaluate_dense(parts, chosen, weights, w, margins, second_derivatives, gradient, diagonal, slopes, curves):
    """The same for dense rows, four at a time: w and the gradient are then read once for the four.

    `slopes` and `curves` are room for four numbers each.
    """
    n, size, last, some = parts.norms2.size, margins.size, margins.size - 1, chosen.size > 0
    matrix, intercept = parts.rows.matrix, parts.rows.intercept
    weight, total, zero = 1.0 / n, 0.0, True
    for j in range(gradient.size):
        gradient[j] = 0.0
        zero = zero and w[j] == 0.0
    for j in range(diagonal.size):
        diagonal[j] = 0.0
    for begin in range(0, size, 4):
        four = (begin, min(begin + 1, last), min(begin + 2, last), min(begin + 3, last))
        if some:
            four = (chosen[four[0]], chosen[four[1]], chosen[four[2]], chosen[four[3]])
        z = (0.0, 0.0, 0.0, 0.0) if zero else _dots(matrix, four, w)  # at zero no row need be read
        for t in range(4):
            slopes[t] = 0.0  # so that a row that fills up the last four does not count
            curves[t] = 0.0
        for t in range(min(4, size - begin)):
            k = begin + t
            if some:
                weight = weights[k]
            margins[k] = z[t] + (w[w.size - 1] if intercept != 0.0 else 0.0)
            value, slope, second = parts.terms.expand(four[t], margins[k])
            total += weight * value
            second_derivatives[k] = weight * second
            slopes[t] = weight * slope
            curves[t] = weight * second
        _add_four(matrix, four, slopes, gradient)
        if diagonal.size > 0:
            _add_four_squares(matrix, four, curves, diagonal)
        if intercept != 0.0:
            gradient[gradient.size - 1] += slopes[0] + slopes[1] + slopes[2] + slopes[3]
            if diagonal.size > 0:
                diagonal[diagonal.size - 1] += curves[0] + curves[1] + curves[2] + curves[3]
    return total


@inline_sum
def _dots(matrix, four, w):
    a, b, c, d = four
    z0, z1, z2, z3 = 0.0, 0.0, 0.0, 0.0
    for j in range(matrix.shape[1]):
        z0 += matrix[a, j] * w[j]
        z1 += matrix[b, j] * w[j]
        z2 += matrix[c, j] * w[j]
        z3 += matrix[d, j] * w[j]
    return z0, z1, z2, z3


@inline_sum
def _add_four(matrix, four, scales, out):
    a, b, c, d = four
    s0, s1, s2, s3 = scales[0], scales[1], scales[2], scales[3]
    for j in range(matrix.shape[1]):
        out[j] += s0 * matrix[a, j] + s1 * matrix[b, j] + s2 * matrix[c, j] + s3 * matrix[d, j]


@inline_sum
def _add_four_squares(matrix, four, scales, out):
    a, b, c, d = four
    s0, s1, s2, s3 = scales[0], scales[1], scales[2], scales[3]
    for j in range(matrix.shape[1]):
        x0, x1 = np.float64(matrix[a, j]), np.float64(matrix[b, j])
        x2, x3 = np.float64(matrix[c, j]), np.float64(matrix[d, j])
        out[j] += s0 * x0 * x0 + s1 * x1 * x1 + s2 * x2 * x2 + s3 * x3 * x3


@inline
def add_squares(rows, i, scale, out):
    """out += scale · x_i², entry by entry."""
    for k in range(rows.begin(i), rows.end(i)):
        x = np.float64(rows.entry(i, k))
        out[rows.column(i, k)] += scale * x * x
    if rows.intercept != 0.0:
        out[out.size - 1] += scale


@kernel
def _count_entries(rows, chosen, second_derivatives, squares, counts):
    """Sums of squares and numbers of the entries of each column of the chosen rows; Σ_k h_k (entries of row k)."""
    total = 0.0
    for m in range(chosen.size):
        i = chosen[m]
        if m + AHEAD < chosen.size:
            rows.fetch(chosen[m + AHEAD])
        add_squares(rows, i, 1.0, squares)
        for k in range(rows.begin(i), rows.end(i)):
            counts[rows.column(i, k)] += 1.0
        total += second_derivatives[m] * (rows.end(i) - rows.begin(i) + rows.intercept)
    if rows.intercept != 0.0:
        counts[counts.size - 1] = chosen.size
    return total


@kernel
def _feedback(parts, chosen, margins, out):
    n, some = parts.norms2.size, chosen.size > 0
    for k in range(margins.size):
        i = chosen[k] if some else k
        slope = parts.terms.slope(i, margins[k])
        out[k] = slope * slope * parts.norms2[i] / n / n


@kernel
def _value_along(parts, chosen, weights, start, end, t):
    n, some = parts.norms2.size, chosen.size > 0
    total = 0.0
    for k in range(start.size):
        z = start[k] + t * (end[k] - start[k])
        if some:
            total += weights[k] * parts.terms.term(chosen[k], z)
        else:
            total += parts.terms.term(k, z) / n
    return total


def draw_subset(problem: Any, sampler: Any, m: int) -> RowSubset | None:
    """m rows from the sampler, with weights 1/(m n p_i): unbiased. None where an index is out of range."""
    chosen, weights = np.zeros(m, np.int64), np.zeros(m)
    whole = m - m % DRAWN_TOGETHER
    for piece, size in ((chosen[:whole], DRAWN_TOGETHER), (chosen[whole:], m - whole)):
        if not _draw(sampler, new_block(problem.n, max(size, 1)), piece):
            return None
    chosen.sort()  # rows that lie far apart are read four times as fast in their order, and so are their p_i
    _weigh(problem.parts, sampler, chosen, weights)
    return RowSubset(problem, chosen, weights)


def report(subset: RowSubset, sampler: Any) -> None:
    """Feed the a_i of these rows back to the sampler."""
    _report(subset.parts, sampler, subset.chosen, subset.weights, subset.feedback())


@kernel
def _draw(sampler, block, chosen):
    """Draw whole blocks until `chosen` is full."""
    for first in range(0, chosen.size, block.i.size):
        sampler.draw_many(block)
        for t in range(block.i.size):
            i = block.i[t]
            if i < 0 or i >= block.n:
                return False
            chosen[first + t] = i
    return True


@kernel
def _weigh(parts, sampler, chosen, weights):
    n, m = parts.norms2.size, chosen.size
    for k in range(m):
        weights[k] = 1.0 / (m * n * sampler.probability(chosen[k]))


@kernel
def _report(parts, sampler, chosen, weights, feedback):
    n, m = parts.norms2.size, chosen.size
    for k in range(m):
        if feedback[k] < np.inf:
            sampler.update(chosen[k], 1.0 / (m * n * weights[k]), feedback[k])
