"""The step of a variance-reduced solver: given, or found while running.

How long a step may be depends on 𝓛 in  E‖ĝ_c‖² <= 𝓛 <E ĝ_c, w - w̃>,  where ĝ_c = (∇φ_i(w) - ∇φ_i(w̃_i)) / (n p_i) is
the part of the estimator that varies. Each draw shows both sides: for a linear model they are
slope-change² ‖x_i‖² / (n p_i)²  and  slope-change · margin-change / (n p_i), the latter taken as slope-change² over the
largest second derivative met on the way, so that a loss that levels off in between does not look flat. Their sums
over about the last n draws give 𝓛, which is never above max L_i / (n p_i), follows the sampler, the data and the
curvature where w is, and rises when a step is too long, because what then grows soon dominates both sums. The step is
SAFETY / 𝓛.

SAFETY was tried as 0.3, 0.4 and 0.5, one seed each, on six problems (logistic, squared hinge and least squares, τ from
1 to 700): no run diverged and none of the three is best everywhere. 0.5 is ahead on badly scaled columns, 0.3 for SAGA
with `RecentNorm` where rows differ 700-fold. Uniform sampling is slow there with any of them. `guard` sees to what can
still go wrong.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline
from banditgrad.schedules import Constant

SAFETY = 0.4
GROWTH = 2.0  # at most, from one setting to the next: rows that were not drawn yet may know better
BRAKE = 4.0  # a step longer than BRAKE / 𝓛 is shortened at once, others when it is due

ENERGY, PRODUCT = 0, 1  # indices into `sums`
COUNT, EVERY = 0, 1  # indices into `clock`


class Pace(NamedTuple):
    step: NDArray[np.float64]  # γ
    sums: NDArray[np.float64]
    clock: NDArray[np.int64]
    forget: float
    automatic: bool


def new_pace(problem: Any, step_size: Any) -> Pace:
    """The given step, or a safe one to begin with: SAFETY / max L_i."""
    automatic = isinstance(step_size, str)
    if automatic:
        largest = float(problem.smoothness.max())
        step = SAFETY / largest if largest > 0.0 else 1.0
    else:
        step = float(step_size)
    clock = np.array([0, max(64, problem.n // 8)])
    return Pace(np.array([step]), np.zeros(2), clock, 1.0 - 1.0 / problem.n, automatic)


def check_step_size(owner: Any, step_size: Any) -> None:
    """A positive number or "auto"."""
    if isinstance(step_size, str) and step_size == "auto":
        return
    if isinstance(step_size, (str, tuple)) or step_size is None:
        name = type(owner).__name__
        raise TypeError(f'{name} expects step_size to be a positive number or "auto", got {step_size!r}.')
    Constant(float(step_size))


@inline
def largest_curve(terms, i, z0, z1, change):
    """The largest of φ_i'' at both margins and of the slope of its derivative between them."""
    curve = max(terms.curve(i, z0), terms.curve(i, z1))
    return max(curve, change / (z1 - z0)) if z1 != z0 else curve


@inline
def note(pace, energy, product):
    """Take down what a draw shows of both sides."""
    pace.sums[ENERGY] = pace.forget * pace.sums[ENERGY] + energy
    pace.sums[PRODUCT] = pace.forget * pace.sums[PRODUCT] + product


@inline
def keep_pace(pace, drift, limit):
    """Set the step anew when it is due, or at once where it turns out far too long."""
    pace.clock[COUNT] += 1
    energy, product = pace.sums[ENERGY], pace.sums[PRODUCT]
    due = pace.clock[COUNT] >= pace.clock[EVERY]
    if energy > 0.0 and product > 0.0 and (due or energy * pace.step[0] > BRAKE * product):
        step = min(SAFETY * product / energy, GROWTH * pace.step[0], limit)
        if step > 0.0 and step < math.inf:
            drift.arrive(pace.step[0])  # at most one step size between two visits of a coordinate
            pace.step[0] = step
            drift.change_step(step)
    if due:
        pace.clock[COUNT] = 0
