"""Never diverge: an automatic step is watched over by F itself.

A row that was not drawn for long can make any estimate of the right step wrong. So F is computed now and then, at
checks that become rarer while all goes well. Where F has risen, or is no number, the run goes back to the best point
seen, with a limit on its step, which is relaxed later.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline
from banditgrad.rows import dot

BEST, LIMIT = 0, 1  # indices into `numbers`: the least F at a check; the longest step allowed
UNTIL, GAP = 0, 1  # indices into `clock`: steps until the next check; steps between the last two

RISE = 0.05  # how much F may rise, relative to its value: stochastic methods are not monotone
RETREAT = 8.0
RELAX = 1.3


class Guard(NamedTuple):
    penalty: Any
    penalised: int
    best: NDArray[np.float64]
    numbers: NDArray[np.float64]
    clock: NDArray[np.int64]


def new_guard(problem: Any, w: NDArray[np.float64]) -> Guard:
    numbers, clock = np.array([problem.value(w), math.inf]), np.array([problem.n, problem.n])
    return Guard(problem.penalty, problem.d, w.copy(), numbers, clock)


@inline
def objective(parts, guard, w):
    """F(w)."""
    n, total, cost = parts.norms2.size, 0.0, 0.0
    for i in range(n):
        total += parts.terms.term(i, dot(parts.rows, i, w))
    for j in range(guard.penalised):
        cost += guard.penalty.cost(w[j])
    return total / n + cost


@inline
def approve(guard, w, value, step):
    """Whether to go on from w, where F is `value`; if not, the step has been limited and w set to the best point."""
    numbers, clock, best = guard.numbers, guard.clock, guard.best
    n = clock[GAP]
    if value < math.inf and value <= numbers[BEST] + RISE * abs(numbers[BEST]):
        if value <= numbers[BEST]:
            numbers[BEST] = value
            for j in range(w.size):
                best[j] = w[j]
        numbers[LIMIT] *= RELAX
        clock[GAP] = n + n // 2
        clock[UNTIL] = clock[GAP]
        return True
    numbers[LIMIT] = step / RETREAT
    for j in range(w.size):
        w[j] = best[j]
    return False
