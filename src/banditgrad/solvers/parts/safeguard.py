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
from banditgrad.objective import mean_term

WATCH = np.dtype(
    [
        ("best_value", "f8"),  # the least F at a check
        ("limit", "f8"),  # the longest step allowed
        ("until", "i8"),  # steps until the next check
        ("gap", "i8"),  # steps between the last two
        ("calm", "i8"),  # steps without a rise since the limit was last changed,
        ("patience", "i8"),  # and how many must be for it to be relaxed
    ]
)

RISE = 0.05  # how much F may rise, relative to its value: stochastic methods are not monotone
LEAP = 0.5  # and how much between two checks that are due: single iterates vary more than snapshots
RETREAT = 8.0  # by how much a step that led nowhere is shortened
RELAX = 2.0
LONGEST_GAP = 4  # passes between two checks: one costs a fifth of a pass or so


class Safeguard(NamedTuple):
    penalty: Any
    penalised: int
    best: NDArray[np.float64]  # w of the least F
    watch: NDArray[np.void]  # one WATCH record


def new_safeguard(problem: Any, w: NDArray[np.float64]) -> Safeguard:
    watch = np.array([(problem.value(w), math.inf, problem.n, problem.n, 0, problem.n)], WATCH)
    return Safeguard(problem.penalty, problem.penalised, w.copy(), watch)


@inline
def objective(parts, scratch, safeguard, w):
    """F(w)."""
    return mean_term(parts, scratch, w) + safeguard.penalty.total_cost(w, safeguard.penalised)


@inline
def approve(safeguard, w, value, steps, gamma):
    """Whether to go on from w, where F is `value`, `steps` after the last check; if not, it goes back."""
    watch = safeguard.watch[0]
    if not (value < math.inf and value <= watch.best_value + RISE * abs(watch.best_value)):
        go_back(safeguard, w, gamma)
        return False
    if value <= watch.best_value:
        watch.best_value = value
        for j in range(w.size):
            safeguard.best[j] = w[j]
    watch.calm += steps
    if watch.calm >= watch.patience:
        watch.calm = 0
        watch.limit *= RELAX
    return True


@inline
def go_back(safeguard, w, gamma):
    """w ← the best point, and steps shorter than γ."""
    watch = safeguard.watch[0]
    watch.limit = gamma / RETREAT
    watch.calm = 0
    watch.patience *= 2
    for j in range(w.size):
        w[j] = safeguard.best[j]


@inline
def check_later(safeguard, gap):
    """Have the next check after so many steps."""
    safeguard.watch[0].gap = gap
    safeguard.watch[0].until = gap
