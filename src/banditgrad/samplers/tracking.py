"""Tracking: p follows the norms last seen, mixed with as much uniform as these were found to be wrong.

With ĝ_i the last norm of item i, Δ_i how far it is off by now, and p = (1 - θ) ĝ/Σĝ + θ/n (docs/theory.md):

    V_e(p) = Σ (ĝ_i + Δ_i)² / p_i <= (Σ ĝ)² / (1 - θ) + n Σ Δ² / θ,    least at θ = √(n Σ Δ²) / (Σ ĝ + √(n Σ Δ²)),

where it is (Σ ĝ + √(n Σ Δ²))². Every draw shows one Δ_i, and Δ_i² / p_i is an unbiased estimate of Σ Δ²: so θ is
learned, in O(1). It stays between LEAST and MOST: the variance is at most 1 / LEAST times that of uniform sampling.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad.samplers.base import Sampler, Setup
from banditgrad.samplers.floors import EvenFloor, UnevenFloor
from banditgrad.samplers.mixed import cold, equal_weights, expect_mix, mixed, warm
from banditgrad.samplers.renewal import total_of
from banditgrad.samplers.weighted import WeightedSampler

LEAST, MOST = 0.1, 0.5
SURPRISE = np.dtype([("square", "f8"), ("updates", "i8"), ("share", "f8")])  # the estimate of mean(Δ²); draws; θ


@mixed
class TrackingState(NamedTuple):
    weighted: WeightedSampler  # ĝ
    floor_of: EvenFloor | UnevenFloor
    stream: NDArray[np.uint64]
    unit: NDArray[np.float64]  # the mean of a_i over the warm-up
    warm_up: NDArray[np.void]
    surprise: NDArray[np.void]

    def floor_share(self):
        return self.surprise[0].share

    def learn(self, k, p_i, a_i):
        if warm(self, p_i, a_i):
            surprise, n = self.surprise[0], self.weighted.where.size
            norm = max(math.sqrt(a_i / self.unit[0]), 1e-150)  # a weight cannot be zero
            wrong = min(norm - self.weighted.weight_at(k), 1e100)
            surprise.updates += 1
            surprise.square += (wrong * wrong / (n * p_i) - surprise.square) / min(surprise.updates, n)
            self.weighted.put_in(k, norm)
            root = math.sqrt(surprise.square)
            surprise.share = min(max(root / (total_of(self.weighted) / n + root), LEAST), MOST)


@dataclass(frozen=True)
class Tracking(Sampler):
    """p_i = (1 - θ) ĝ_i / Σ ĝ + θ q_i, ĝ_i the norm last seen, θ as large as last norms were found to be wrong.

    No horizon, no bounds and no constant to choose. With Δ_i how far ĝ_i is off,

        √V_e(p) <= √(least V_e of any p at that time) + 2 √(n Σ Δ²)

    at the θ that is estimated, and V_e(p) <= 10 times that of uniform sampling at all times; see docs/theory.md.

    Parameters
    ----------
    mix : "uniform", "smoothness" or "blend"
        q_i = 1/n, as in the theorem; q_i ∝ L_i; or half of each.
    """

    mix: str = "uniform"

    def __post_init__(self) -> None:
        expect_mix(self, self.mix)

    def state(self, setup: Setup) -> Any:
        surprise = np.array([(0.0, 0, MOST)], SURPRISE)
        return TrackingState(**equal_weights(setup, self.mix), **cold(setup.n), surprise=surprise)
