"""Recency-weighted norms: p follows what each item's gradient norm was when it was last drawn."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad.samplers.base import Sampler, Setup
from banditgrad.samplers.floors import EvenFloor, UnevenFloor
from banditgrad.samplers.mixed import cold, equal_weights, expect_memory, expect_mix, expect_share, mixed, warm
from banditgrad.samplers.weighted import WeightedSampler


@mixed
class RecentNormState(NamedTuple):
    weighted: WeightedSampler
    floor_of: EvenFloor | UnevenFloor
    stream: NDArray[np.uint64]
    unit: NDArray[np.float64]  # the mean of a_i over the warm-up
    warm_up: NDArray[np.void]
    theta: float
    memory: float

    def learn(self, k, p_i, a_i):
        if warm(self, p_i, a_i):
            w = self.weighted.weight_at(k)
            square = self.memory * w * w + (1.0 - self.memory) * a_i / self.unit[0]
            self.weighted.put_in(k, max(math.sqrt(square), 1e-150))  # a weight cannot be zero


@dataclass(frozen=True)
class RecentNorm(Sampler):
    """p_i = (1 - θ) ĝ_i / Σ ĝ + θ q_i,  ĝ_i² ← memory · ĝ_i² + (1 - memory) · a_i  whenever i is drawn.

    Parameters
    ----------
    theta : float
        θ, the share of the mixing distribution q; below 0.1 the rule is unstable.
    memory : float
        How much of the past a new observation leaves.
    mix : "uniform", "smoothness" or "blend"
        q_i = 1/n; q_i ∝ L_i, with which the safe step of a solver follows the mean of the L_i, not the largest; or half
        of each, which keeps the table of SAGA fresh as well.

    Notes
    -----
    An exponential moving average of squared gradient norms, one per item and advanced when the item is drawn. With
    memory 0 it is p ∝ the last norm seen, which Avare (El Hanchi and Stephens 2020) bounds from below where this mixes;
    with θ near 1 it is the smoothed stale norms of Alain et al. (2015). No regret bound is claimed.

    References
    ----------
    El Hanchi and Stephens, "Adaptive Importance Sampling for Finite-Sum Optimization and Sampling with Decreasing
    Step-Sizes", NeurIPS 2020. Alain, Lamb, Sankar, Courville and Bengio, "Variance Reduction in SGD by Distributed
    Importance Sampling", arXiv:1511.06481, 2015.
    """

    theta: float = 0.4
    memory: float = 0.5
    mix: str = "uniform"

    def __post_init__(self) -> None:
        expect_share(self, "theta", self.theta)
        expect_mix(self, self.mix)
        expect_memory(self, self.memory)

    def state(self, setup: Setup) -> Any:
        return RecentNormState(
            **equal_weights(setup, self.mix), **cold(setup.n), theta=float(self.theta), memory=float(self.memory)
        )
