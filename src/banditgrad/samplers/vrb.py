"""VRB, the variance reducer bandit: weights are the root of all feedback so far, estimated without bias."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad.samplers.base import Sampler, Setup
from banditgrad.samplers.floors import EvenFloor, UnevenFloor
from banditgrad.samplers.mixed import cold, equal_weights, expect_mix, expect_share, mixed, warm
from banditgrad.samplers.weighted import WeightedSampler


@mixed
class VrbState(NamedTuple):
    weighted: WeightedSampler
    floor_of: EvenFloor | UnevenFloor
    stream: NDArray[np.uint64]
    unit: NDArray[np.float64]  # the mean of a_i over the warm-up
    warm_up: NDArray[np.void]
    theta: float
    gamma: float

    def learn(self, k, p_i, a_i):
        if warm(self, p_i, a_i):
            w, n = self.weighted.weight_at(k), self.weighted.where.size  # weights are in units of √γ
            self.weighted.put_in(k, math.sqrt(w * w + a_i / (self.unit[0] * self.gamma * n * p_i)))


@dataclass(frozen=True)
class Vrb(Sampler):
    """Variance reducer bandit: p_i = (1 - θ) w_i / W + θ q_i,  w_i² = γ + Σ_{t: i_t = i} a_i^t / p_i^t.

    Parameters
    ----------
    theta : float
        θ, the share of the mixing distribution q.
    gamma : float, optional
        γ in units of n times the mean of the first a_i; 1/θ unless given.
    mix : "uniform", "smoothness" or "blend"
        q_i = 1/n, as published; q_i ∝ L_i; or half of each.

    References
    ----------
    Borsos, Krause and Levy, "Online Variance Reduction for Stochastic Optimization", COLT 2018.
    """

    theta: float = 0.4
    gamma: float | None = None
    mix: str = "uniform"

    def __post_init__(self) -> None:
        expect_share(self, "theta", self.theta)
        expect_mix(self, self.mix)
        if self.gamma is not None and not 0.0 < self.gamma < math.inf:
            raise ValueError(f"Vrb expects a positive, finite gamma, got {self.gamma!r}.")

    def state(self, setup: Setup) -> Any:
        gamma = 1.0 / self.theta if self.gamma is None else float(self.gamma)
        return VrbState(**equal_weights(setup, self.mix), **cold(setup.n), theta=float(self.theta), gamma=gamma)
