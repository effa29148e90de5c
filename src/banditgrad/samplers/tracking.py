"""Tracking: p follows the norms seen last, mixed with as much uniform as lowers the variance most.

    p = (1 - θ) ĝ/Σĝ + θ q,    on drawing i:  ĝ_i² ← (ĝ_i² + g_i²) / 2,    θ ← θ - γ h  kept in [LEAST, 1]

with g_i = √a_i over the mean of all √a. V_e(p) is convex in θ, and every draw shows an unbiased estimate of its slope,

    h = g_i² (s_i - n q_i) / (n p_i m_i²),    s_i = n ĝ_i/Σĝ,    m_i = (1 - θ) s_i + θ n q_i,

where p_i is that of the draw. The step is γ = (1 - LEAST) / √(2 Σ h²), the sum over this bin of n draws and the one
before. So in every bin V_e is about as low as with the best θ for it, uniform sampling included: docs/theory.md.

Norms are measured in units of their mean over the last few hundred draws: those of a variance-reduced solver rise and
fall by orders of magnitude, all together, which says nothing of how items compare.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline
from banditgrad.samplers.base import Sampler, Setup
from banditgrad.samplers.floors import EvenFloor, UnevenFloor
from banditgrad.samplers.mixed import equal_weights, expect_mix, mixed
from banditgrad.samplers.renewal import total_of
from banditgrad.samplers.weighted import WeightedSampler

LEAST = 0.2  # of θ: the variance is at most 1 / LEAST times that of uniform sampling
MEMORY = 0.5  # how much of ĝ_i² a new observation leaves
LEVEL_OVER = 512  # draws that the unit of the norms is a mean of
SHORTEST = 512  # draws of a bin
# the mean of √a; θ; Σ h² of the last bin and of this one; draws learnt, and after how many the bin ends
SLOPES = np.dtype(
    [("level", "f8"), ("share", "f8"), ("before", "f8"), ("here", "f8"), ("updates", "i8"), ("end", "i8")]
)


@mixed
class TrackingState(NamedTuple):
    weighted: WeightedSampler  # ĝ
    floor_of: EvenFloor | UnevenFloor
    stream: NDArray[np.uint64]
    slopes: NDArray[np.void]

    def floor_share(self):
        return self.slopes[0].share

    def learn(self, k, p_i, a_i):
        slopes, n = self.slopes[0], self.weighted.where.size
        norm, n_p = math.sqrt(a_i), n * p_i
        if slopes.level > 0.0:
            g, before = norm / slopes.level, self.weighted.weight_at(k)
            floor = n * self.floor_of.floor(self.weighted.entries[k].id)
            s = before * n / total_of(self.weighted)
            _descend(slopes, g, s, floor, n_p, n)
            self.weighted.put_in(k, max(math.sqrt(MEMORY * before * before + (1.0 - MEMORY) * g * g), 1e-150))
        slopes.updates += 1
        slopes.level += (norm / n_p - slopes.level) / min(slopes.updates, LEVEL_OVER)

    def statistics(self):
        return {"uniform_share": float(self.slopes[0]["share"])}


@inline
def _descend(slopes, g, s, floor, n_p, n):
    """A step of θ down the slope of V_e that a draw shows."""
    m = (1.0 - slopes.share) * s + slopes.share * floor
    h = min(g * g, 1e100) * (s - floor) / (n_p * m * m)
    if slopes.updates >= slopes.end:
        slopes.before, slopes.here, slopes.end = slopes.here, 0.0, slopes.updates + max(n, SHORTEST)
    slopes.here += h * h
    if slopes.here > 0.0:
        step = (1.0 - LEAST) / math.sqrt(2.0 * (slopes.before + slopes.here))
        slopes.share = min(max(slopes.share - step * h, LEAST), 1.0)


@dataclass(frozen=True)
class Tracking(Sampler):
    """p_i = (1 - θ) ĝ_i / Σ ĝ + θ q_i, with ĝ_i the norms seen last and θ learned: what lowers the variance most.

    No horizon, no bounds and no constant to choose. In every n draws the variance is about as low as with any θ from
    0.2 to 1 that is held fixed meanwhile: as low as that of uniform sampling, for one, and

        √V_e(p) <= √1.25 (√(the least V_e of any p now) + 2 √(n Σ Δ²)),    Δ_i: how far ĝ_i is off,

    for the best of them. At no time is it more than 5 times that of uniform sampling.

    Parameters
    ----------
    mix : "uniform", "smoothness" or "blend"
        q_i = 1/n, as in the theorems; q_i ∝ L_i; or half of each.
    """

    mix: str = "uniform"

    def __post_init__(self) -> None:
        expect_mix(self, self.mix)

    def state(self, setup: Setup) -> Any:
        slopes = np.array([(0.0, 0.5, 0.0, 0.0, 0, max(setup.n, SHORTEST))], SLOPES)
        return TrackingState(**equal_weights(setup, self.mix), slopes=slopes)
