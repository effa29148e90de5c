"""A limit on the step of a variance-reduced solver, from rows that draws show too late.

Along x_i, ∇f(w̃) answers a displacement Δ of row i's margin with γ r_i Δ in the 1 / p_i steps until the row is drawn,

    r_i = φ_i'' ‖x_i‖² / (n p_i),

where nothing else holds it: in the direction of a row far longer than all others, or of an entry alone in its column.
Beyond γ r_i = 2 that grows from one draw to the next. `smoothness` sees it at the draw, `safeguard` where F has risen.
Until they do, the row's term in F, a share of 1/n to begin with, is multiplied by (γ r_i)² a few times a pass. So γ r_i
is kept below about √n: a term has not become F before somebody looks.

As p_i counts the least that was seen so far: what an adaptive sampler gives to a row today, it may take back as soon as
that row has come to rest.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline

Vector = NDArray[np.float64]

OVERSHOOT = 0.05  # γ r_i in units of √n, at most


class Stability(NamedTuple):
    least_p: Vector  # of each row, so far
    limit: Vector  # γ, at most
    overshoot: float  # γ r_i, at most


def new_stability(problem: Any, *, automatic: bool) -> Stability:
    n = problem.n if automatic else 0
    return Stability(np.full(n, math.inf), np.array([math.inf]), max(1.0, OVERSHOOT * math.sqrt(n)))


@inline
def find_limit(stability, parts, table, sampler):
    """Set the limit, where the rows have the table's margins."""
    n, largest = parts.norms2.size, 0.0
    for i in range(n):
        stability.least_p[i] = min(stability.least_p[i], sampler.probability(i))
        ratio = parts.terms.second_in(table, i) * parts.norms2[i] / (n * stability.least_p[i])
        largest = max(largest, ratio)
    stability.limit[0] = stability.overshoot / largest if largest > 0.0 else math.inf
