"""Never diverge: an automatic step is watched over by F itself.

A row that was not drawn for long can make any estimate of the right step wrong. So F is looked at, with every snapshot,
whose gradient tells it as well, or where there are none at checks a few passes apart. Where F has risen, or is no
number, the run goes back to the best point seen, with a limit on its step. The limit is relaxed later, each time it was
needed more slowly. A draw far beyond those before it, which may have thrown w away, has F looked at, too.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline
from banditgrad.rows import dot

BEST, LIMIT = 0, 1  # indices into `numbers`: the least F at a check; the longest step allowed
UNTIL, GAP = 0, 1  # indices into `clock`: steps until the next check; steps between the last two
CALM, PATIENCE = (
    2,
    3,
)  # steps without a rise since the limit was last changed, and how many must be for it to be relaxed

RISE = 0.05  # how much F may rise, relative to its value: stochastic methods are not monotone
LEAP = 0.5  # and how much between two checks that are due: single iterates vary more than snapshots
RETREAT = 8.0
RELAX = 2.0
LONGEST_GAP = 4  # passes between two checks: one costs a fifth of a pass or so


class Guard(NamedTuple):
    penalty: Any
    penalised: int
    best: NDArray[np.float64]
    numbers: NDArray[np.float64]
    clock: NDArray[np.int64]


def new_guard(problem: Any, w: NDArray[np.float64]) -> Guard:
    numbers, clock = np.array([problem.value(w), math.inf]), np.array([problem.n, problem.n, 0, problem.n])
    return Guard(problem.penalty, problem.d, w.copy(), numbers, clock)


@inline
def penalty_cost(guard, w):
    """λ r(w)."""
    cost = 0.0
    for j in range(guard.penalised):
        cost += guard.penalty.cost(w[j])
    return cost


@inline
def objective(parts, guard, w):
    """F(w)."""
    n, total = parts.norms2.size, 0.0
    for i in range(n):
        total += parts.terms.term(i, dot(parts.rows, i, w))
    return total / n + penalty_cost(guard, w)


@inline
def approve(guard, w, value, steps, step):
    """Whether to go on from w, where F is `value`, `steps` after the last check; if not, the step has been limited and
    w set to the best point."""
    numbers, clock, best = guard.numbers, guard.clock, guard.best
    if value < math.inf and value <= numbers[BEST] + RISE * abs(numbers[BEST]):
        if value <= numbers[BEST]:
            numbers[BEST] = value
            for j in range(w.size):
                best[j] = w[j]
        clock[CALM] += steps
        if clock[CALM] >= clock[PATIENCE]:
            clock[CALM] = 0
            numbers[LIMIT] *= RELAX
        return True
    numbers[LIMIT] = step / RETREAT
    clock[CALM] = 0
    clock[PATIENCE] *= 2
    for j in range(w.size):
        w[j] = best[j]
    return False
