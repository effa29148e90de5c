"""The longest step at which no direction grows by itself, for a variance-reduced solver.

A displacement Δ u of w from w̃ is answered by the estimator's part that varies with  E <ĝ_c, u> = Δ uᵀH u  and
E‖ĝ_c‖² = Δ² uᵀN u,  where

    H = (1/n) Σ_i φ_i'' x_i x_iᵀ,    N = (1/n) Σ_i φ_i'' r_i x_i x_iᵀ,    r_i = φ_i'' ‖x_i‖² / (n p_i).

A step γ makes Δ² grow where γ uᵀN u > 2 uᵀH u. The directions in which this comes first are those that few rows know,
with an entry alone in its column or a row far longer than all others. Draws do not show them in time: such a row is
drawn once in a pass or two, and until then ∇f(w̃), which it dominates, moves w along it at every step.

So both sides are computed, from the diagonals of H and N, for all columns and for the directions x_i of rows with a
large r_i, where the row's own part is exact. This costs about as much as ∇f. As p_i counts the least that was seen so
far: what an adaptive sampler gives to a row today, it may take back as soon as that row has come to rest.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline

Vector = NDArray[np.float64]

STABLE = 1.0  # γ uᵀN u / uᵀH u, at most
STABLE_OF_TABLES = 0.5  # w̃_i of SAGA follow one by one: what a late one corrects, ∇f(w̃) has corrected for long
LONGEST_WAIT = 16  # passes until it is computed anew


class Stability(NamedTuple):
    least_p: Vector  # of each row, so far
    hessian: Vector  # the diagonals of n H and n N
    noise: Vector
    limit: Vector  # γ, at most
    stable: float
    until: NDArray[np.int64]  # steps until it is due; steps between the last two times


def new_stability(problem: Any, *, automatic: bool, table: bool) -> Stability:
    n, d = (problem.n, problem.dimension) if automatic else (0, 0)
    return Stability(
        least_p=np.full(n, math.inf),
        hessian=np.zeros(d),
        noise=np.zeros(d),
        limit=np.array([math.inf]),
        stable=STABLE_OF_TABLES if table else STABLE,
        until=np.array([0, problem.n]),
    )


@inline
def find_limit(stability, parts, margins, sampler):
    """Set the limit, where the rows have these margins."""
    rows, hessian, noise, n = parts.rows, stability.hessian, stability.noise, parts.norms2.size
    last = hessian.size - 1
    for j in range(hessian.size):
        hessian[j] = 0.0
        noise[j] = 0.0
    for i in range(n):
        stability.least_p[i] = min(stability.least_p[i], sampler.probability(i))
        curve = parts.terms.curve(i, margins[i])
        ratio = curve * parts.norms2[i] / (n * stability.least_p[i])
        for k in range(rows.begin(i), rows.end(i)):
            j, x = rows.column(i, k), np.float64(rows.entry(i, k))
            hessian[j] += curve * x * x
            noise[j] += ratio * curve * x * x
        hessian[last] += curve * rows.intercept
        noise[last] += ratio * curve * rows.intercept
    largest = 0.0
    for j in range(hessian.size):
        if hessian[j] > 0.0:
            largest = max(largest, noise[j] / hessian[j])
    for i in range(n):
        curve = parts.terms.curve(i, margins[i])
        ratio = curve * parts.norms2[i] / (n * stability.least_p[i])
        if ratio > largest:
            own = curve * parts.norms2[i] * parts.norms2[i]
            above, below = ratio * own, own
            for k in range(rows.begin(i), rows.end(i)):
                j, x = rows.column(i, k), np.float64(rows.entry(i, k))
                below += x * x * (hessian[j] - curve * x * x)
                above += x * x * (noise[j] - ratio * curve * x * x)
            below += rows.intercept * (hessian[last] - curve)
            above += rows.intercept * (noise[last] - ratio * curve)
            largest = max(largest, above / below)
    stability.limit[0] = stability.stable / largest if largest > 0.0 else math.inf
    stability.until[1] = min(2 * stability.until[1], LONGEST_WAIT * n)
    stability.until[0] = stability.until[1]
