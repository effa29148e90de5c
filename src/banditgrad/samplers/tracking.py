"""Tracking: p follows the norms seen last, mixed with as much uniform as these were found to be wrong.

Let g_i = √a_i / the mean of all √a, ĝ_i what is remembered of it, Δ_i = g_i - ĝ_i, and p = (1 - θ) ĝ/Σĝ + θ/n. Then

    V_e(p) ∝ Σ (ĝ_i + Δ_i)² / p_i <= (Σ ĝ)² / (1 - θ) + n Σ Δ² / θ,

which is least, (Σ ĝ + √(n Σ Δ²))², at θ = √(n Σ Δ²) / (Σ ĝ + √(n Σ Δ²)). Every draw shows one Δ_i, and Δ_i² / p_i is an
unbiased estimate of Σ Δ²: so θ is learned, in O(1). docs/theory.md has the theorem.

Norms are measured in units of their mean over the last few hundred draws: those of a variance-reduced solver rise and
fall by orders of magnitude, all together, which says nothing of how items compare.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad.samplers.base import Sampler, Setup
from banditgrad.samplers.floors import EvenFloor, UnevenFloor
from banditgrad.samplers.mixed import equal_weights, expect_mix, mixed
from banditgrad.samplers.renewal import total_of
from banditgrad.samplers.weighted import WeightedSampler

LEAST = 0.2  # of θ: the variance is at most 1 / LEAST times that of uniform sampling
MEMORY = 0.5  # how much of ĝ_i² a new observation leaves
LEVEL_OVER = 512  # draws that the unit of the norms is a mean of
# the mean of √a; the estimate of mean(Δ²); θ; draws learnt
SURPRISE = np.dtype([("level", "f8"), ("square", "f8"), ("share", "f8"), ("updates", "i8")])


@mixed
class TrackingState(NamedTuple):
    weighted: WeightedSampler  # ĝ
    floor_of: EvenFloor | UnevenFloor
    stream: NDArray[np.uint64]
    surprise: NDArray[np.void]

    def floor_share(self):
        return self.surprise[0].share

    def learn(self, k, p_i, a_i):
        surprise, n = self.surprise[0], self.weighted.where.size
        norm, n_p = math.sqrt(a_i), n * p_i
        surprise.updates += 1
        surprise.level += (norm / n_p - surprise.level) / min(surprise.updates, LEVEL_OVER)
        if surprise.level > 0.0:
            g, before = norm / surprise.level, self.weighted.weight_at(k)
            wrong = (g - before) ** 2 / n_p
            surprise.square += (wrong - surprise.square) / min(surprise.updates, n)
            self.weighted.put_in(k, max(math.sqrt(MEMORY * before * before + (1.0 - MEMORY) * g * g), 1e-150))
            root = math.sqrt(surprise.square)
            surprise.share = max(root / (total_of(self.weighted) / n + root), LEAST)

    def statistics(self):
        return {"uniform_share": float(self.surprise[0]["share"])}


@dataclass(frozen=True)
class Tracking(Sampler):
    """p_i = (1 - θ) ĝ_i / Σ ĝ + θ q_i, with ĝ_i the norms seen last and θ as large as these were found to be wrong.

    No horizon, no bounds and no constant to choose. With Δ_i how far ĝ_i is off now, both over the mean norm,

        √V_e(p) <= √(the least V_e of any p now) + 2 √(n Σ Δ²)

    for the θ that is estimated, and at all times V_e(p) <= 5 times that of uniform sampling.

    Parameters
    ----------
    mix : "uniform", "smoothness" or "blend"
        q_i = 1/n, as in the theorem; q_i ∝ L_i; or half of each.
    """

    mix: str = "uniform"

    def __post_init__(self) -> None:
        expect_mix(self, self.mix)

    def state(self, setup: Setup) -> Any:
        return TrackingState(**equal_weights(setup, self.mix), surprise=np.array([(0.0, 0.0, 0.5, 0)], SURPRISE))
