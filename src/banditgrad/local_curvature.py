"""How much the sub-costs curve where the loss has no bound on its second derivative: at the best constant margin.

Solvers measure curvature along their path. What they begin with, how samplers tell rows apart and the units of the
columns come from c = argmin (1/n) Σ_i φ_i(c), the margin of a model that knows no features: φ_i''(c), or for a loss
with kinks, whose slope changes by up to G over margins of about φ/G, the same G² / ((1/n) Σ_j φ_j(c)) for every row.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline, kernel

Vector = NDArray[np.float64]

GAIN = 0.01  # of F(0): a step towards c that gains less is the last
HALVINGS = 12  # of the interval that c lies in


def local_curvatures(problem: Any) -> Vector:
    """For each row, about how much its φ_i curves in the margin."""
    terms, n, loss = problem.parts.terms, problem.n, problem.loss
    c = _best_constant(terms, n)
    if hasattr(loss, "second_derivative"):
        seconds = np.empty(n)
        _seconds(terms, c, seconds)
        return seconds
    slope = float(loss.slope_bound())
    if not math.isfinite(slope):
        raise TypeError(
            f"{type(loss).__name__} bounds neither its slope nor its curvature. Give it second_derivative(self, z, y)."
        )
    mean = float(_mean_at(terms, n, c))
    seconds = np.full(n, slope * slope / mean if mean > 0.0 else 1.0)
    return seconds if problem.sample_weight is None else seconds * problem.sample_weight


@kernel
def _best_constant(terms, n):
    """argmin_c (1/n) Σ_i φ_i(c), roughly, from 0 by steps that double and then by halves."""
    start, slope = _value_and_slope(terms, n, 0.0)
    if slope == 0.0:
        return 0.0
    sign = -math.copysign(1.0, slope)
    near, value, step = 0.0, start, sign
    while True:
        far = near + step
        new, slope = _value_and_slope(terms, n, far)
        if not (new < math.inf and slope * sign < 0.0):
            break
        if value - new < GAIN * start:
            return far
        near, value, step = far, new, 2.0 * step
    for _ in range(HALVINGS):
        middle = 0.5 * (near + far)
        new, slope = _value_and_slope(terms, n, middle)
        if new < math.inf and slope * sign < 0.0:
            near = middle
        else:
            far = middle
    return near


@inline
def _value_and_slope(terms, n, c):
    value, slope = 0.0, 0.0
    for i in range(n):
        value += terms.term(i, c)
        slope += terms.slope(i, c)
    return value / n, slope / n


@kernel
def _mean_at(terms, n, c):
    return _value_and_slope(terms, n, c)[0]


@kernel
def _seconds(terms, c, out):
    for i in range(out.size):
        out[i] = terms.second(i, c)
