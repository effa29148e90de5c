"""How far from the minimum a point can be: the duality gap, and the gradient mapping in units of the columns.

For any u, F* is at least  D(u) = -(1/n) Σ_i φ_i*(u_i) - (λr)*(-g),  g = (1/n) Σ_i u_i x_i.  The slopes at w, shrunk by
factors 0 <= s_i <= 1 that make D(u) finite, are such u: u_i = s_i φ_i'(z_i). The conjugates φ_i* are not needed, since

    φ_i*(s_i φ_i') <= s_i (φ_i' z_i - φ_i)        for any convex φ_i >= 0,

with equality at s_i = 1. So F(w) - F* <= F(w) + (1/n) Σ_i s_i (φ_i' z_i - φ_i) + (λr)*(-g).

A loss with a kink at k_i, straight on both sides and zero there, has φ_i*(u) = u k_i for all slopes u between the two.
Its own slopes at w say next to nothing. Those of the smoothed loss are between them, too; with the width at which they
show most,  F(w) - F* <= F(w) + (1/n) Σ_i u_i k_i + (λr)*(-g).
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditgrad import margins
from banditgrad._jit import kernel
from banditgrad.losses import can_be_smoothed, has_kinks
from banditgrad.rows import add, dot

Vector = NDArray[np.float64]

TINY = 1e-14  # of the largest residual: the least width of a smoothed loss
BALANCED, BALANCING = 1e-13, 50  # a mean slope that is zero but for rounding; steps to get there
NEVER = 1e4  # less of a margin: no probability is left


def duality_gap(problem: Any, w: Vector) -> float:
    """An upper bound on F(w) - F*; infinite where there is none, as without a penalty."""
    if problem.form is None or not math.isfinite(problem.form.cost(w[: problem.penalised])):
        return math.inf
    if problem.vector:
        return _vector_gap(problem, w)
    if has_kinks(problem.loss):
        return _least_gap(problem, w)
    values, slopes, products = np.empty(problem.n), np.empty(problem.n), np.empty(problem.n)
    _expand(problem.parts, w, values, slopes, products)
    return _gap(problem, w, values, slopes, products)


def _least_gap(problem: Any, w: Vector) -> float:
    """For a loss with kinks: the least gap that the slopes of smoothed losses show."""
    from scipy.optimize import minimize_scalar  # here: importing banditgrad should not wait for it

    loss, n = problem.loss, problem.n
    if not can_be_smoothed(loss) or (problem.form.plain and problem.form.free.all()):
        return math.inf
    values, margins, slopes = np.empty(n), np.empty(n), np.empty(n)
    _terms_and_margins(problem.parts, w, values, margins)
    residuals = margins - loss.kink(problem.parts.terms.targets)
    if problem.offset is not None:
        residuals += problem.offset

    def gap(log_width: float) -> float:
        _slopes(problem.with_loss(loss.smoothed(math.exp(log_width))).parts, margins, slopes)
        return _gap(problem, w, values, slopes, values - slopes * residuals + slopes * margins)

    sizes = np.sort(np.abs(residuals))
    widths = np.log(np.unique(np.maximum(sizes[_ranks(problem.dimension, n)], TINY * max(sizes[-1], TINY))))
    gaps = [gap(width) for width in widths]
    best = int(np.argmin(gaps))
    around = (widths[max(best - 1, 0)] - 1.0, widths[min(best + 1, widths.size - 1)] + 1.0)
    return min(gaps[best], float(minimize_scalar(gap, bounds=around, method="bounded", options={"maxiter": 12}).fun))


def _ranks(first: int, n: int) -> NDArray[np.int64]:
    """Of residuals: as many as there are coordinates, four times as many, and so on."""
    count = max(1, math.ceil(math.log(n / min(first, n), 4.0)) + 1)
    return np.minimum(first * 4 ** np.arange(count), n) - 1


def _gap(problem: Any, w: Vector, values: Vector, slopes: Vector, products: Vector) -> float:
    """F(w) - D(u) of slopes that are shrunk as far as needed; φ_i*(u_i) is the product less the value."""
    shrunk = _balanced(slopes) if problem.fit_intercept else np.ones(problem.n)
    gradient = np.zeros(problem.dimension)
    _add_up(problem.parts, shrunk * slopes, gradient)
    s, rest = _penalty_and_conjugate(problem, w, gradient)
    # summed term by term: near the minimum what is left is much smaller than F
    return max(0.0, float(np.mean(values * (1.0 - s * shrunk) + s * shrunk * products)) + rest)


def _penalty_and_conjugate(problem: Any, w: Vector, gradient: Vector) -> tuple[float, float]:
    """By how much to shrink the slopes, and then λr(w) + (λr)*(-g); infinite without a penalty."""
    if problem.shrinkage is None or np.ndim(problem.shrinkage[0]):
        return problem.form.conjugate(gradient[: problem.penalised], w[: problem.penalised])
    l1, l2 = problem.shrinkage
    g, v = np.abs(gradient[: problem.penalised]), w[: problem.penalised]
    if l2 == 0.0:
        largest = float(g.max(initial=0.0))
        s = min(1.0, l1 / largest) if largest > 0.0 else 1.0
        conjugate = 0.0
    else:
        s, conjugate = 1.0, float(np.sum(np.maximum(g - l1, 0.0) ** 2)) / (2.0 * l2)
    if l1 == l2 == 0.0 and g.any():
        return s, math.inf
    return s, l1 * float(np.abs(v).sum()) + 0.5 * l2 * float(v @ v) + conjugate


def _vector_gap(problem: Any, w: Vector) -> float:
    """Of a loss of several margins. With intercepts the slopes are those at margins to which numbers were added, the
    same for all rows, so that they sum to zero."""
    terms, n = problem.parts.terms, problem.n
    weights = np.ones(n) if problem.sample_weight is None else problem.sample_weight
    Z, slopes, values = np.empty((n, problem.margins)), np.empty((n, problem.margins)), np.empty(n)
    margins.multiply(problem.parts.rows, problem.shaped(w), Z)
    margins.expand(terms, Z, slopes, values)
    moved, moved_values = Z, values
    if problem.fit_intercept:
        moved, moved_values = Z.copy(), values.copy()
        if not _balance(terms, weights / n, moved, slopes, moved_values):
            return math.inf
    gradient = np.zeros(problem.shape)
    margins.add_transposed(problem.parts.rows, (weights / n)[:, None] * slopes, gradient)
    s, rest = _penalty_and_conjugate(problem, w, gradient.reshape(-1))
    conjugates = np.einsum("ik,ik->i", slopes, moved) - moved_values
    return max(0.0, float(np.mean(weights * (values + s * conjugates))) + rest)


def _balance(terms: Any, weights: Vector, Z: Vector, slopes: Vector, values: Vector) -> bool:
    """Add numbers to the columns of Z such that those of the weighted slopes sum to zero, by Newton's method; False
    where this fails. A class that never occurs gets one that leaves it no probability."""
    if not hasattr(terms.loss, "curve_product"):
        return False
    Z[:, (slopes[weights > 0.0] >= 0.0).all(axis=0)] -= NEVER
    margins.expand(terms, Z, slopes, values)
    for _ in range(BALANCING):
        slope = weights @ slopes
        if np.abs(slope).max() <= BALANCED:
            return True
        start, step, before, size = Z.copy(), _newton_step(terms, weights, Z, slopes, slope), weights @ values, 2.0
        while size > BALANCED:
            size *= 0.5
            Z[:] = start + size * step
            margins.expand(terms, Z, slopes, values)
            if weights @ values <= before + BALANCED * abs(before):
                break
    return False


def _newton_step(terms: Any, weights: Vector, Z: Vector, slopes: Vector, slope: Vector) -> Vector:
    """-(Σ_i weight_i ∇²φ_i)⁻¹ slope, by conjugate gradients; adding a number to all margins may do nothing."""
    scratch, step, rest = np.empty_like(Z), np.zeros_like(slope), -slope
    direction, energy = rest.copy(), float(rest @ rest)
    goal = BALANCED * energy
    for _ in range(2 * slope.size):
        scratch[:] = direction
        margins.curve_products(terms, Z, slopes, weights, scratch)
        product = scratch.sum(axis=0)
        curve = float(direction @ product)
        if not (energy > goal and curve > BALANCED * float(direction @ direction)):
            break
        step += energy / curve * direction
        rest -= energy / curve * product
        before, energy = energy, float(rest @ rest)
        direction = rest + energy / before * direction
    return step


def _balanced(slopes: Vector) -> Vector:
    """Factors that make the slopes sum to zero, as an intercept without a penalty asks for."""
    up, down = float(slopes[slopes > 0.0].sum()), -float(slopes[slopes < 0.0].sum())
    least = min(up, down)
    return np.where(slopes > 0.0, least / up if up > 0.0 else 1.0, least / down if down > 0.0 else 1.0)


def column_curvatures(problem: Any) -> Vector:
    """Upper bounds on the second derivatives of f: the loss's curvature times the mean square of each column.

    Where the loss has no bound: the second derivatives for a model without features.
    """
    squares, parts = np.zeros(problem.d + problem.fit_intercept), problem.parts
    if problem.bounded_curvature:
        add_squares(parts, squares)
        return squares * float(problem.loss.curvature())
    add_squares(parts._replace(terms=parts.terms._replace(weights=problem.curvatures)), squares)
    return squares


@kernel
def _expand(parts, w, values, slopes, products):
    for i in range(values.size):
        z = dot(parts.rows, i, w)
        values[i] = parts.terms.term(i, z)
        slopes[i] = parts.terms.slope(i, z)
        products[i] = slopes[i] * z


@kernel
def _terms_and_margins(parts, w, values, margins):
    for i in range(values.size):
        margins[i] = dot(parts.rows, i, w)
        values[i] = parts.terms.term(i, margins[i])


@kernel
def _slopes(parts, margins, slopes):
    for i in range(slopes.size):
        slopes[i] = parts.terms.slope(i, margins[i])


@kernel
def _add_up(parts, slopes, out):
    """out += (1/n) Σ_i slopes_i x_i."""
    for i in range(slopes.size):
        if slopes[i] != 0.0:
            add(parts.rows, i, slopes[i] / slopes.size, out)


@kernel
def add_squares(parts, out):
    """out += (1/n) Σ_i s_i x_i², entry by entry."""
    n, rows, weights = parts.norms2.size, parts.rows, parts.terms.weights
    for i in range(n):
        scale = weights[i] / n if weights.size > 0 else 1.0 / n
        for k in range(rows.begin(i), rows.end(i)):
            x = np.float64(rows.entry(i, k))
            out[rows.column(i, k)] += scale * x * x
        if rows.intercept != 0.0:
            out[out.size - 1] += scale
