"""The step of a variance-reduced solver: given, or found while running.

How long a step may be depends on 𝓛 in  E‖ĝ_c‖² <= 𝓛 <E ĝ_c, w - w̃>,  where ĝ_c = (∇φ_i(w) - ∇φ_i(w̃_i)) / (n p_i) is
the part of the estimator that varies. Each draw shows both sides: for a linear model they are
slope-change² ‖x_i‖² / (n p_i)²  and  slope-change · margin-change / (n p_i), the latter taken as slope-change² over the
largest second derivative met on the way, so that a loss that levels off in between does not look flat. Their sums
over a block of n/8 draws give 𝓛, which is never above max L_i / (n p_i) and follows the sampler, the data and the
curvature where w is. A larger 𝓛 counts at once, a smaller one only by and by: a block may have missed the rows that
matter. The step is safety / 𝓛.

What is measured is 𝓛 along w - w̃. In directions in which nothing moves, as near the minimum in most, it may be many
times larger; a step beyond 2/𝓛 makes them grow with every draw of the rows that know them, until they show. So every
draw is looked at before its step is made, and no move that would outdo all others is made with the step as it was.

A snapshot that is the mean of its bin's iterates forgives longer steps than the last iterate or a table does. On six
problems (logistic, squared hinge and least squares, τ from 1 to 700; 5, 15 and 30 passes, one seed) with `Uniform`,
`Mabs` and `RecentNorm`, 0.4, 0.6, 0.8, 1.0 and 1.2 were tried for the mean: 0.8 and 1.0 were ahead on most and F never
rose, at 1.2 it did once. For last iterates 0.6 was ahead of 0.8 and 1.0 on most, for SAGA 0.4 of 1.2: both have 0.4.
So has the first bin of all: the iterates' F varies by about γ 𝓛 / 2 times F(w̃) - F*, several times that where one
direction has all the noise, and then w̃ is still w0.
`guard` sees to what can still go wrong.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline
from banditgrad.schedules import Constant

SAFETY = 0.4
SAFETY_OF_MEANS = 0.8
FORGET = 0.85  # how much of the former 𝓛 counts after a block that shows a smaller one
FEWEST = 64  # draws from which 𝓛 is taken
GROWTH = 2.0  # at most, from one setting to the next: rows that were not drawn yet may know better
BRAKE = 2.0  # a step longer than BRAKE / 𝓛 diverges and is shortened at once, others when it is due

BURST = 100.0  # times the energy of a whole block before in a part of one: F may have risen

ENERGY, PRODUCT, LARGEST, BEFORE = 0, 1, 2, 3  # indices into `sums`: both sides over the block so far; 𝓛; the energy of
# the block before, or zero
COUNT, EVERY = 0, 1  # indices into `clock`


class Pace(NamedTuple):
    step: NDArray[np.float64]  # γ
    sums: NDArray[np.float64]
    clock: NDArray[np.int64]
    safety: float  # γ 𝓛
    caution: NDArray[np.float64]  # a factor of it
    automatic: bool


def new_pace(problem: Any, step_size: Any, *, means: bool) -> Pace:
    """The given step, or a safe one to begin with: SAFETY / max L_i. `means`: whether snapshots are means."""
    safety = SAFETY_OF_MEANS if means else SAFETY
    automatic = isinstance(step_size, str)
    if automatic:
        largest = float(problem.smoothness.max())
        step = SAFETY / largest if largest > 0.0 else 1.0
    else:
        step = float(step_size)
    clock = np.array([0, max(FEWEST, problem.n // 8)])
    return Pace(np.array([step]), np.zeros(4), clock, safety, np.ones(1), automatic)


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
    pace.sums[ENERGY] += energy
    pace.sums[PRODUCT] += product


@inline
def brake(pace, drift, rows, i, wait, energy, product):
    """Shorten the step at once if that of this draw of row i, which is drawn every `wait` steps, would displace the row
    so far beyond w̃_i that it adds more to the mean of the products than there is."""
    step, sums = pace.step[0], pace.sums
    if product > 0.0 and energy * step > BRAKE * product:
        overshoot = energy * step / product  # the row's margin changes by so many times its distance
        if overshoot * energy * step * (pace.clock[COUNT] + 1) > wait * sums[PRODUCT]:
            sums[LARGEST] = max(energy / product, sums[LARGEST])
            _set_step(pace, drift, rows, i, pace.caution[0] * pace.safety / sums[LARGEST])


@inline
def keep_pace(pace, drift, rows, i, limit):
    """Set the step anew at the end of a block, or at once where it turns out far too long; row i was drawn last."""
    pace.clock[COUNT] += 1
    sums, count = pace.sums, pace.clock[COUNT]
    too_long = count >= FEWEST and sums[ENERGY] * pace.step[0] > BRAKE * sums[PRODUCT]
    if not (too_long or count >= pace.clock[EVERY]):
        return
    if sums[ENERGY] > 0.0 and sums[PRODUCT] > 0.0:
        sums[LARGEST] = max(sums[ENERGY] / sums[PRODUCT], FORGET * sums[LARGEST])
        step = min(pace.caution[0] * pace.safety / sums[LARGEST], GROWTH * pace.step[0], limit)
        _set_step(pace, drift, rows, i, step)
    before = max(sums[ENERGY] * pace.clock[EVERY] / count, 0.5 * sums[BEFORE])  # a new bin begins with little
    new_block(pace)
    sums[BEFORE] = before


@inline
def shorten(pace, drift, limit):
    """Make the step at most `limit`; every coordinate is up to date."""
    if limit < pace.step[0]:
        pace.step[0] = limit
        drift.change_step(limit)


@inline
def bursts(pace):
    """Whether the energy is suddenly far above that of the block before; said once until it rises as much again."""
    sums = pace.sums
    if sums[ENERGY] <= BURST * sums[BEFORE] or sums[BEFORE] == 0.0:
        return False
    sums[BEFORE] = sums[ENERGY]
    return True


@inline
def _set_step(pace, drift, rows, i, step):
    if step > 0.0 and step < math.inf:
        drift.keep_row(rows, i)
        drift.arrive(pace.step[0])  # at most one step size between two visits of a coordinate
        pace.step[0] = step
        drift.change_step(step)


@inline
def new_block(pace):
    """Forget what the block showed so far."""
    pace.clock[COUNT] = 0
    pace.sums[ENERGY] = 0.0
    pace.sums[PRODUCT] = 0.0
    pace.sums[BEFORE] = 0.0
