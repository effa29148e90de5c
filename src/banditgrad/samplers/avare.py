"""Avare: at every draw the p that would be best for the norms last seen, among those with p >= ε_t.

p = argmin Σ ĝ_i² / p_i = max(ε_t, c ĝ_i),    ĝ_i ← √a_i on drawing i,    ε_t falling like t^(-1/3)
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline
from banditgrad.samplers.base import Sampler, Setup
from banditgrad.samplers.floors import EvenFloor
from banditgrad.samplers.mixed import cold, equal_weights, mixed, warm
from banditgrad.samplers.renewal import check_alpha, far_off, fill_again, truncate
from banditgrad.samplers.weighted import WeightedSampler, fill

LEVEL = np.dtype([("floor", "f8"), ("scale", "f8"), ("updates", "i8"), ("renew_at", "i8")])  # ε and c; draws learnt


@mixed
class AvareState(NamedTuple):
    weighted: WeightedSampler  # max(ε, c ĝ)
    floor_of: EvenFloor
    stream: NDArray[np.uint64]
    unit: NDArray[np.float64]  # the mean of a_i over the warm-up
    warm_up: NDArray[np.void]
    norms: NDArray[np.float64]  # ĝ
    scratch: NDArray[np.float64]
    level: NDArray[np.void]
    theta: float  # 0: nothing is mixed in
    alpha: float

    def learn(self, k, p_i, a_i):
        if warm(self, p_i, a_i):
            level = self.level[0]
            norm = min(math.sqrt(a_i / self.unit[0]), 1e100)
            self.norms[self.weighted.entries[k].id] = norm
            self.weighted.put_in(k, max(level.floor, level.scale * norm))
            level.updates += 1
            if level.updates >= level.renew_at or far_off(self.weighted):
                _renew(self)


@inline
def _renew(state):
    level, n = state.level[0], state.norms.size
    level.floor = state.alpha / n * (1.0 + level.updates / n) ** (-1.0 / 3.0)
    level.renew_at = level.updates + n
    largest = 0.0
    for i in range(n):
        state.scratch[i] = state.norms[i]
        largest = max(largest, state.norms[i])
    if largest > 0.0:
        level.scale = truncate(state.scratch, level.floor)
        fill_again(state.weighted, state.scratch)


@dataclass(frozen=True)
class Avare(Sampler):
    """p_i = max(ε_t, c ĝ_i), where ĝ_i is the gradient norm when i was last drawn and ε_t = α/n · (1 + t/n)^(-1/3).

    Parameters
    ----------
    alpha : float
        n times the least probability at the start; it falls with the cube root of the passes.

    Notes
    -----
    Published for SGD with steps falling as 1/t, for which its dynamic regret is O(T^(2/3)); its first norms come from
    a pass over all items. Here they are the mean of √n + 16 uniform draws.

    References
    ----------
    El Hanchi and Stephens, "Adaptive Importance Sampling for Finite-Sum Optimization and Sampling with Decreasing
    Step-Sizes", NeurIPS 2020.
    """

    alpha: float = 0.5

    def __post_init__(self) -> None:
        check_alpha(self, self.alpha)

    def state(self, setup: Setup) -> Any:
        n, fields = setup.n, equal_weights(setup)
        fill(fields["weighted"], np.full(n, 1.0 / n))
        return AvareState(
            **fields,
            **cold(n),
            norms=np.ones(n),
            scratch=np.zeros(n),
            level=np.array([(self.alpha / n, 1.0 / n, 0, n)], LEVEL),
            theta=0.0,
            alpha=float(self.alpha),
        )
