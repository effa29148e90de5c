"""The simplest adaptive rule: p follows a moving average of each item's gradient norms, mixed with uniform."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad.samplers.base import Sampler, Setup
from banditgrad.samplers.floors import EvenFloor
from banditgrad.samplers.mixed import cold, equal_weights, expect_memory, expect_share, mixed, warm
from banditgrad.samplers.weighted import WeightedSampler


@mixed
class EmaNormState(NamedTuple):
    weighted: WeightedSampler
    floor_of: EvenFloor
    stream: NDArray[np.uint64]
    unit: NDArray[np.float64]  # the mean of a_i over the warm-up
    warm_up: NDArray[np.void]
    theta: float
    memory: float

    def learn(self, k, p_i, a_i):
        if warm(self, p_i, a_i):
            norm = math.sqrt(a_i / self.unit[0])
            average = self.memory * self.weighted.weight_at(k) + (1.0 - self.memory) * norm
            self.weighted.put_in(k, max(average, 1e-150))  # a weight cannot be zero


@dataclass(frozen=True)
class EmaNorm(Sampler):
    """p_i = (1 - θ) m_i / Σ m + θ/n,  m_i ← memory · m_i + (1 - memory) · √a_i  whenever i is drawn.

    The baseline of adaptive sampling: no bound, no horizon, no theorem. `RecentNorm` averages squares, forgets faster
    and mixes more.

    Parameters
    ----------
    theta : float
        θ, the share of uniform draws.
    memory : float
        How much of the past a new observation leaves.

    References
    ----------
    Alain, Lamb, Sankar, Courville and Bengio, "Variance Reduction in SGD by Distributed Importance Sampling",
    arXiv:1511.06481, 2015, who smooth stale norms with a constant.
    """

    theta: float = 0.2
    memory: float = 0.9

    def __post_init__(self) -> None:
        expect_share(self, "theta", self.theta)
        expect_memory(self, self.memory)

    def state(self, setup: Setup) -> Any:
        return EmaNormState(**equal_weights(setup), **cold(setup.n), theta=float(self.theta), memory=float(self.memory))
