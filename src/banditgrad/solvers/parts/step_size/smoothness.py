"""The step of a variance-reduced solver: given, or found while running.

How long a step may be depends on 𝓛 in  E‖ĝ_c‖² <= 𝓛 <E ĝ_c, w - w̃>,  where ĝ_c = (∇φ_i(w) - ∇φ_i(w̃_i)) / (n p_i) is
the part of the estimator that varies. Each draw shows both sides: for a linear model they are
slope-change² ‖x_i‖² / (n p_i)²  and  slope-change · margin-change / (n p_i), the latter taken as slope-change² over the
largest second derivative met on the way, so that a loss that levels off in between does not look flat. Their sums
over an interval of n/8 draws give 𝓛, which is never above max L_i / (n p_i) and follows the sampler, the data and the
curvature where w is. A larger 𝓛 counts at once, a smaller one only by and by: an interval may have missed the rows
that matter. The step is safety / 𝓛.

What is measured is 𝓛 along w - w̃. In directions in which nothing moves, as near the minimum in most, it may be many
times larger; a step beyond 2/𝓛 makes them grow with every draw of the rows that know them, until they show. So every
draw is looked at before its step is made, and no move that would outdo all others is made with the step as it was.
Between two draws of row i, a random τ passes, of mean 1 in units of 1 / p_i, in which ∇f(w̃) pulls. With a = γ r_i
(`stability`) and w̃ as it is, its displacement is multiplied by 1 - a and stays within bounds up to a = 2. In a table,
where w̃_i is w as of the last draw, x⁺ = x - a τ x₋, then less a (x⁺ - x₋): in mean square this grows from a = 0.62 on.

A snapshot that is the mean of its bin's iterates forgives longer steps than the last iterate or a table does. On six
problems (logistic, squared hinge and least squares, τ from 1 to 700; 5, 15 and 30 passes, one seed) with `Uniform`,
`Mabs` and `RecentNorm`, 0.4, 0.6, 0.8, 1.0 and 1.2 were tried for the mean: 0.8 and 1.0 were ahead on most and F never
rose, at 1.2 it did once. For last iterates 0.6 was ahead of 0.8 and 1.0 on most, for SAGA 0.4 of 1.2: both have 0.4.
So has the first bin of all: the iterates' F varies by about γ 𝓛 / 2 times F(w̃) - F*, several times that where one
direction has all the noise, and then w̃ is still w0.
`safeguard` sees to what can still go wrong.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline
from banditgrad.schedules import Constant

SAFETY = 0.4
SAFETY_OF_MEANS = 0.8
FORGET = 0.85  # how much of the former 𝓛 counts after an interval that shows a smaller one
FEWEST = 64  # draws from which 𝓛 is taken
GROWTH = 2.0  # at most, from one setting to the next: rows that were not drawn yet may know better
BRAKE = 2.0  # a step longer than BRAKE / 𝓛 diverges and is shortened at once, others when it is due
BRAKE_OF_TABLES = 0.6  # the same, for a row whose own w̃_i moves with each of its draws

BURST = 100.0  # times the energy of a whole interval before in a part of one: F may have risen

MEASURED = np.dtype(
    [
        ("energy", "f8"),  # both sides of the inequality, over the interval so far
        ("product", "f8"),
        ("draws", "i8"),  # of the interval so far
        ("smoothness", "f8"),  # 𝓛
        ("energy_before", "f8"),  # of the interval before, or zero
        ("caution", "f8"),  # a factor of `safety`
    ]
)


class SmoothnessRule(NamedTuple):
    """γ = caution · safety / 𝓛, or as it is given; the iterate has γ itself."""

    automatic: bool
    safety: float  # γ 𝓛
    brake: float  # γ r_i of a row, at most, where it is most of what there is
    interval: int  # draws after which γ is set anew
    measured: NDArray[np.void]  # one MEASURED record


def smoothness_rule(problem: Any, step_size: Any, *, means: bool, table: bool = False) -> SmoothnessRule:
    """`means`: whether snapshots are means; `table`: whether each w̃_i moves when i is drawn."""
    measured = np.zeros(1, MEASURED)
    measured["caution"] = 1.0
    safety = SAFETY_OF_MEANS if means else SAFETY
    brake = BRAKE_OF_TABLES if table else BRAKE
    return SmoothnessRule(isinstance(step_size, str), safety, brake, max(FEWEST, problem.n // 8), measured)


def first_step(problem: Any, step_size: Any) -> float:
    """The given step, or a safe one to begin with: SAFETY / max L_i."""
    if not isinstance(step_size, str):
        return float(step_size)
    largest = float(problem.smoothness.max())
    return SAFETY / largest if largest > 0.0 else 1.0


def check_step_size(owner: Any, step_size: Any) -> None:
    """A positive number or "auto"."""
    if isinstance(step_size, str) and step_size == "auto":
        return
    if isinstance(step_size, (str, tuple)) or step_size is None:
        name = type(owner).__name__
        raise TypeError(f'{name} expects step_size to be a positive number or "auto", got {step_size!r}.')
    Constant(float(step_size))


@inline
def measure(rule, iterate, parts, i, p_i, energy, product):
    """Take down what a draw of row i shows of both sides, and shorten the step at once if it would displace the row so
    far beyond w̃_i, until it is drawn again, that it adds more to the mean of the products than there is."""
    seen, gamma = rule.measured[0], iterate.clock[0].gamma
    seen.energy += energy
    seen.product += product
    if product > 0.0 and energy * gamma > rule.brake * product:
        overshoot = energy * gamma / product  # the row's margin changes by so many times its distance
        if overshoot * energy * gamma * (seen.draws + 1) > 1.0 / p_i * seen.product:
            seen.smoothness = max(energy / product, seen.smoothness)
            _set_step(iterate, parts, i, seen.caution * rule.safety / seen.smoothness)


@inline
def set_step(rule, iterate, parts, i, limit):
    """Set the step anew at the end of an interval, or at once where it turns out far too long; row i was drawn last."""
    seen, gamma = rule.measured[0], iterate.clock[0].gamma
    seen.draws += 1
    too_long = seen.draws >= FEWEST and seen.energy * gamma > BRAKE * seen.product
    if not (too_long or seen.draws >= rule.interval):
        return
    if seen.energy > 0.0 and seen.product > 0.0:
        seen.smoothness = max(seen.energy / seen.product, FORGET * seen.smoothness)
        _set_step(iterate, parts, i, min(seen.caution * rule.safety / seen.smoothness, GROWTH * gamma, limit))
    # an interval after a new snapshot begins with little
    before = max(seen.energy * rule.interval / seen.draws, 0.5 * seen.energy_before)
    new_interval(rule)
    seen.energy_before = before


@inline
def _set_step(iterate, parts, i, gamma):
    if gamma > 0.0 and gamma < math.inf:
        parts.terms.note_row_of(parts.rows, iterate, i)
        iterate.flush()  # at most one step size between two visits of a coordinate
        iterate.change_step(gamma)


@inline
def bursts(rule):
    """Whether the energy is suddenly far above that of the interval before; said once until it rises as much again."""
    seen = rule.measured[0]
    if seen.energy <= BURST * seen.energy_before or seen.energy_before == 0.0:
        return False
    seen.energy_before = seen.energy
    return True


@inline
def new_interval(rule):
    """Forget what the interval showed so far."""
    seen = rule.measured[0]
    seen.draws = 0
    seen.energy = 0.0
    seen.product = 0.0
    seen.energy_before = 0.0
