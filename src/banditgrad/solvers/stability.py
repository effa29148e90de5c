"""The longest step at which no direction grows by itself, for a variance-reduced solver.

A displacement Δ u of w from w̃ is answered by the estimator's part that varies with  E <ĝ_c, u> = Δ uᵀH u  and
E‖ĝ_c‖² = Δ² uᵀN u,  where

    H = (1/n) Σ_i φ_i'' x_i x_iᵀ,    N = (1/n) Σ_i φ_i'' r_i x_i x_iᵀ,    r_i = φ_i'' ‖x_i‖² / (n p_i).

A step γ changes Δ² by the factor  1 + γ² uᵀN u - 2 γ uᵀH u.  Where it grows, draws show it and the step is shortened,
unless it grows by orders of magnitude within a pass. The directions in which this comes first are those that few rows
know, with a huge entry alone in its column or a row far longer than all others. Such a row is drawn once in a pass or
two, and until then ∇f(w̃), which it dominates, moves w along it at every step. A limit on the growth of a whole pass,

    n (γ² uᵀN u - stable γ uᵀH u) <= GROWTH,    stable <= 2,

leaves alone the many directions that are slow, with rare and small entries, which a step may well overshoot.

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

GROWTH = 0.5  # of log Δ² in a pass
STABLE = 1.0
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
    limit = math.inf
    for j in range(hessian.size):
        limit = min(limit, _longest(hessian[j], noise[j], stability.stable))
    for i in range(n):
        curve = parts.terms.curve(i, margins[i])
        ratio = curve * parts.norms2[i] / (n * stability.least_p[i])
        if limit * ratio > stability.stable:
            own = curve * parts.norms2[i]
            above, below = ratio * own, own
            for k in range(rows.begin(i), rows.end(i)):
                j, x = rows.column(i, k), np.float64(rows.entry(i, k))
                share = x * x / parts.norms2[i]
                below += share * (hessian[j] - curve * x * x)
                above += share * (noise[j] - ratio * curve * x * x)
            share = rows.intercept / parts.norms2[i]
            below += share * (hessian[last] - curve * rows.intercept)
            above += share * (noise[last] - ratio * curve * rows.intercept)
            limit = min(limit, _longest(below, above, stability.stable))
    stability.limit[0] = limit
    stability.until[1] = min(2 * stability.until[1], LONGEST_WAIT * n)
    stability.until[0] = stability.until[1]


@inline
def _longest(hessian, noise, stable):
    """The γ at which  γ² noise - stable γ hessian = GROWTH,  in a direction with these n uᵀH u and n uᵀN u."""
    return (
        (stable * hessian + math.sqrt((stable * hessian) ** 2 + 4.0 * GROWTH * noise)) / (2.0 * noise)
        if noise > 0.0
        else math.inf
    )
