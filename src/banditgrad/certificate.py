"""How far from the minimum a point can be: the duality gap, and the gradient mapping in units of the columns.

For any u, F* is at least  D(u) = -(1/n) Σ_i φ_i*(u_i) - (λr)*(-g),  g = (1/n) Σ_i u_i x_i.  The slopes at w, shrunk by
factors 0 <= s_i <= 1 that make D(u) finite, are such u: u_i = s_i φ_i'(z_i). The conjugates φ_i* are not needed, since

    φ_i*(s_i φ_i') <= s_i (φ_i' z_i - φ_i)        for any convex φ_i >= 0,

with equality at s_i = 1. So F(w) - F* <= F(w) + (1/n) Σ_i s_i (φ_i' z_i - φ_i) + (λr)*(-g).
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import kernel
from banditgrad.rows import add, dot

Vector = NDArray[np.float64]


def duality_gap(problem: Any, w: Vector) -> float:
    """An upper bound on F(w) - F*; infinite where there is none, as without a penalty."""
    if problem.shrinkage is None:
        return math.inf
    l1, l2 = problem.shrinkage
    values, slopes, products = np.empty(problem.n), np.empty(problem.n), np.empty(problem.n)
    _expand(problem.parts, w, values, slopes, products)
    shrunk = _balanced(slopes) if problem.fit_intercept else np.ones(problem.n)
    gradient = np.zeros(problem.dimension)
    _add_up(problem.parts, shrunk * slopes, gradient)
    g, v = np.abs(gradient[: problem.d]), w[: problem.d]
    if l2 == 0.0:
        largest = float(g.max(initial=0.0))
        s = min(1.0, l1 / largest) if largest > 0.0 else 1.0
        conjugate = 0.0
    else:
        s, conjugate = 1.0, float(np.sum(np.maximum(g - l1, 0.0) ** 2)) / (2.0 * l2)
    if l1 == l2 == 0.0 and g.any():
        return math.inf
    penalty = l1 * float(np.abs(v).sum()) + 0.5 * l2 * float(v @ v)
    # summed term by term: near the minimum what is left is much smaller than F
    return max(0.0, float(np.mean(values * (1.0 - s * shrunk) + s * shrunk * products)) + penalty + conjugate)


def _balanced(slopes: Vector) -> Vector:
    """Factors that make the slopes sum to zero, as an intercept without a penalty asks for."""
    up, down = float(slopes[slopes > 0.0].sum()), -float(slopes[slopes < 0.0].sum())
    least = min(up, down)
    return np.where(slopes > 0.0, least / up if up > 0.0 else 1.0, least / down if down > 0.0 else 1.0)


def column_curvatures(problem: Any) -> Vector:
    """Upper bounds on the second derivatives of f: the loss's curvature times the mean square of each column."""
    squares = np.zeros(problem.dimension)
    _add_squares(problem.parts, squares)
    return squares * float(problem.loss.curvature())


@kernel
def _expand(parts, w, values, slopes, products):
    for i in range(values.size):
        z = dot(parts.rows, i, w)
        values[i] = parts.terms.term(i, z)
        slopes[i] = parts.terms.slope(i, z)
        products[i] = slopes[i] * z


@kernel
def _add_up(parts, slopes, out):
    """out += (1/n) Σ_i slopes_i x_i."""
    for i in range(slopes.size):
        if slopes[i] != 0.0:
            add(parts.rows, i, slopes[i] / slopes.size, out)


@kernel
def _add_squares(parts, out):
    """out += (1/n) Σ_i s_i x_i², entry by entry."""
    n, rows, weights = parts.norms2.size, parts.rows, parts.terms.weights
    for i in range(n):
        scale = weights[i] / n if weights.size > 0 else 1.0 / n
        for k in range(rows.begin(i), rows.end(i)):
            x = np.float64(rows.entry(i, k))
            out[rows.column(i, k)] += scale * x * x
        if rows.intercept != 0.0:
            out[out.size - 1] += scale
