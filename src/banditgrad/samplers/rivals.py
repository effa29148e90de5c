"""Two later rules under the same protocol: VRB and recency-weighted norms.

Both put weights on gradient norms themselves, so they need to know how large a typical norm is: they draw uniformly
during a short warm-up of √n + 16 draws, whose mean feedback is the unit from then on.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import bridge, inline
from banditgrad.samplers.base import Sampler, Setup
from banditgrad.samplers.floors import EvenFloor, UnevenFloor, mixed_draws, new_floor
from banditgrad.samplers.importance import require
from banditgrad.samplers.weighted import WeightedSampler, fill, new_weighted_sampler


@bridge
class Learner(Protocol):
    """What the two have in common."""

    def learn(self, k, p_i, a_i):
        """Learn a_i of the item in entry k of the weighted sampler."""


class VrbState(NamedTuple):
    weighted: WeightedSampler
    floor_of: EvenFloor | UnevenFloor
    stream: NDArray[np.uint64]
    unit: NDArray[np.float64]  # the mean of a_i over the warm-up
    clock: NDArray[np.int64]  # draws of the warm-up: made, to make
    theta: float
    gamma: float

    def draw(self):
        return self.floor_of.mixed_draw(self.weighted, self.stream, self.theta)

    def probability(self, i):
        return (1.0 - self.theta) * self.weighted.share(i) + self.theta * self.floor_of.floor(i)

    def update(self, i, p_i, a_i):
        self.learn(np.uint64(self.weighted.where[i]), p_i, a_i)

    def learn(self, k, p_i, a_i):
        n = self.weighted.where.size
        if _warm(self, a_i / (n * p_i)):
            w = self.weighted.weight_at(k)  # weights are in units of √γ
            self.weighted.put_in(k, math.sqrt(w * w + a_i / (self.unit[0] * self.gamma * n * p_i)))

    def draw_many(self, block):
        mixed_draws(self.floor_of, self.weighted, self.stream, self.theta, block)

    def learn_many(self, block, count):
        _learn_each(self, block, count)


class RecentNormState(NamedTuple):
    weighted: WeightedSampler
    floor_of: EvenFloor | UnevenFloor
    stream: NDArray[np.uint64]
    unit: NDArray[np.float64]
    clock: NDArray[np.int64]
    theta: float
    memory: float

    def draw(self):
        return self.floor_of.mixed_draw(self.weighted, self.stream, self.theta)

    def probability(self, i):
        return (1.0 - self.theta) * self.weighted.share(i) + self.theta * self.floor_of.floor(i)

    def update(self, i, p_i, a_i):
        self.learn(np.uint64(self.weighted.where[i]), p_i, a_i)

    def learn(self, k, p_i, a_i):
        if _warm(self, a_i / (self.weighted.where.size * p_i)):
            w = self.weighted.weight_at(k)
            square = self.memory * w * w + (1.0 - self.memory) * a_i / self.unit[0]
            self.weighted.put_in(k, max(math.sqrt(square), 1e-150))  # a weight cannot be zero

    def draw_many(self, block):
        mixed_draws(self.floor_of, self.weighted, self.stream, self.theta, block)

    def learn_many(self, block, count):
        _learn_each(self, block, count)


@inline
def _learn_each(state, block, count):
    state.weighted.fetch_many(block, count)
    for t in range(count):
        state.learn(state.weighted.find(block.i[t], block.entry[t]), block.p[t], block.a[t])


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
        _expect_share(self, "theta", self.theta)
        _expect_mix(self, self.mix)
        if self.gamma is not None and not 0.0 < self.gamma < math.inf:
            raise ValueError(f"Vrb expects a positive, finite gamma, got {self.gamma!r}.")

    def state(self, setup: Setup) -> Any:
        gamma = 1.0 / self.theta if self.gamma is None else float(self.gamma)
        return VrbState(**_common(setup, self.mix), theta=float(self.theta), gamma=gamma)


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

    References
    ----------
    In the spirit of Avare: El Hanchi and Stephens, "Adaptive Importance Sampling for Finite-Sum Optimization and
    Sampling with Decreasing Step-Sizes", NeurIPS 2020.
    """

    theta: float = 0.4
    memory: float = 0.5
    mix: str = "uniform"

    def __post_init__(self) -> None:
        _expect_share(self, "theta", self.theta)
        _expect_mix(self, self.mix)
        if not 0.0 <= self.memory < 1.0:
            raise ValueError(f"RecentNorm expects 0 <= memory < 1, got {self.memory!r}.")

    def state(self, setup: Setup) -> Any:
        return RecentNormState(**_common(setup, self.mix), theta=float(self.theta), memory=float(self.memory))


def _common(setup: Setup, mix: str) -> dict[str, Any]:
    weighted = new_weighted_sampler(setup.n)
    fill(weighted, np.ones(setup.n))
    clock = np.array([0, math.isqrt(setup.n) + 16])
    q = None
    if mix != "uniform":
        q = require(setup.smoothness, f"mix={mix!r}", "smoothness", "the L_i")
        q = q if q.max() > 0.0 else None
        if mix == "blend" and q is not None:
            q = q / q.mean() + 1.0
    return {
        "weighted": weighted,
        "floor_of": new_floor(q, setup.n),
        "stream": setup.stream,
        "unit": np.zeros(1),
        "clock": clock,
    }


def _expect_mix(sampler: Sampler, mix: str) -> None:
    if mix not in ("uniform", "smoothness", "blend"):
        raise ValueError(f'{type(sampler).__name__} expects mix="uniform", "smoothness" or "blend", got {mix!r}.')


def _expect_share(sampler: Sampler, name: str, value: float) -> None:
    if not 0.0 < value <= 1.0:
        raise ValueError(f"{type(sampler).__name__} expects 0 < {name} <= 1, got {value!r}.")
