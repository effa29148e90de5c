"""Two later rules under the same protocol: VRB and recency-weighted norms.

Both put weights on gradient norms themselves, so they need to know how large a typical norm is: they draw uniformly
during a short warm-up of √n + 16 draws, whose mean feedback is the unit from then on.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline
from banditgrad.samplers.base import Sampler, Setup
from banditgrad.samplers.urn import Urn, empty_urn, fill


class VrbState(NamedTuple):
    urn: Urn
    stream: NDArray[np.uint64]
    unit: NDArray[np.float64]  # the mean of a_i over the warm-up
    clock: NDArray[np.int64]  # draws of the warm-up: made, to make
    theta: float
    gamma: float

    def draw(self):
        return self.urn.pick(self.stream, self.theta)

    def probability(self, i):
        return (1.0 - self.theta) * self.urn.share(i) + self.theta / self.urn.where.size

    def update(self, i, p_i, a_i):
        n = self.urn.where.size
        if _warm(self, a_i / (n * p_i)):
            w = self.urn.weight(i)  # weights are in units of √γ
            self.urn.put(i, math.sqrt(w * w + a_i / (self.unit[0] * self.gamma * n * p_i)))


class RecentNormState(NamedTuple):
    urn: Urn
    stream: NDArray[np.uint64]
    unit: NDArray[np.float64]
    clock: NDArray[np.int64]
    theta: float
    memory: float

    def draw(self):
        return self.urn.pick(self.stream, self.theta)

    def probability(self, i):
        return (1.0 - self.theta) * self.urn.share(i) + self.theta / self.urn.where.size

    def update(self, i, p_i, a_i):
        if _warm(self, a_i / (self.urn.where.size * p_i)):
            w = self.urn.weight(i)
            self.urn.put(i, math.sqrt(self.memory * w * w + (1.0 - self.memory) * a_i / self.unit[0]))


@inline
def _warm(state, unbiased):
    """Whether the warm-up is over; until then, average the feedback. A warm-up of zeros goes on."""
    if state.clock[0] >= state.clock[1] and state.unit[0] > 0.0:
        return True
    state.clock[0] += 1
    state.unit[0] += (unbiased - state.unit[0]) / state.clock[0]
    return False


@dataclass(frozen=True)
class Vrb(Sampler):
    """Variance reducer bandit: p_i = (1 - θ) w_i / W + θ/n,  w_i² = γ + Σ_{t: i_t = i} a_i^t / p_i^t.

    Parameters
    ----------
    theta : float
        θ, the share of the uniform distribution.
    gamma : float, optional
        γ in units of n times the mean of the first a_i; 1/θ unless given.

    References
    ----------
    Borsos, Krause and Levy, "Online Variance Reduction for Stochastic Optimization", COLT 2018.
    """

    theta: float = 0.4
    gamma: float | None = None

    def __post_init__(self) -> None:
        _expect_share(self, "theta", self.theta)
        if self.gamma is not None and not 0.0 < self.gamma < math.inf:
            raise ValueError(f"Vrb expects a positive, finite gamma, got {self.gamma!r}.")

    def state(self, setup: Setup) -> Any:
        gamma = 1.0 / self.theta if self.gamma is None else float(self.gamma)
        return VrbState(**_common(setup), theta=float(self.theta), gamma=gamma)


@dataclass(frozen=True)
class RecentNorm(Sampler):
    """p_i = (1 - θ) ĝ_i / Σ ĝ + θ/n,  ĝ_i² ← memory · ĝ_i² + (1 - memory) · a_i  whenever i is drawn.

    Parameters
    ----------
    theta : float
        θ, the share of the uniform distribution; below 0.1 the rule is unstable.
    memory : float
        How much of the past a new observation leaves.

    References
    ----------
    In the spirit of Avare: El Hanchi and Stephens, "Adaptive Importance Sampling for Finite-Sum Optimization and
    Sampling with Decreasing Step-Sizes", NeurIPS 2020.
    """

    theta: float = 0.4
    memory: float = 0.5

    def __post_init__(self) -> None:
        _expect_share(self, "theta", self.theta)
        if not 0.0 <= self.memory < 1.0:
            raise ValueError(f"RecentNorm expects 0 <= memory < 1, got {self.memory!r}.")

    def state(self, setup: Setup) -> Any:
        return RecentNormState(**_common(setup), theta=float(self.theta), memory=float(self.memory))


def _common(setup: Setup) -> dict[str, Any]:
    urn = empty_urn(setup.n)
    fill(urn, np.ones(setup.n))
    clock = np.array([0, math.isqrt(setup.n) + 16])
    return {"urn": urn, "stream": setup.stream, "unit": np.zeros(1), "clock": clock}


def _expect_share(sampler: Sampler, name: str, value: float) -> None:
    if not 0.0 < value <= 1.0:
        raise ValueError(f"{type(sampler).__name__} expects 0 < {name} <= 1, got {value!r}.")
