"""Online stochastic mirror descent on V_e(p) = Σ a_i / p_i over all p >= α/n, with the entropy as mirror map:

    on drawing i:  p_i ← p_i · exp(η a_i / p_i³),    then p ← max(α/n, c p) with Σ p = 1, the closest allowed.

The multiplicative step is that of MABS. What differs is the floor, which MABS mixes in and this projects to: an item at
the floor starts again from there, so that a long past does not hold it down.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline
from banditgrad.samplers.base import Sampler, Setup
from banditgrad.samplers.floors import EvenFloor
from banditgrad.samplers.mixed import equal_weights, mixed
from banditgrad.samplers.renewal import check_alpha, far_off, fill_again, read_weights, truncate
from banditgrad.samplers.weighted import WeightedSampler, fill

FEEDBACK = np.dtype([("moment", "f8"), ("updates", "i8")])  # the estimate of mean(a²), and of how many draws


@mixed
class OsmdState(NamedTuple):
    weighted: WeightedSampler  # p up to a factor, projected when that is far from 1
    floor_of: EvenFloor
    stream: NDArray[np.uint64]
    feedback: NDArray[np.void]
    scratch: NDArray[np.float64]
    theta: float  # 0: nothing is mixed in
    alpha: float
    rate: float

    def learn(self, k, p_i, a_i):
        n_p = self.weighted.where.size * p_i
        x = descent_rate(self.feedback[0], n_p, a_i, self.weighted.where.size) * self.rate / (n_p * n_p * n_p)
        self.weighted.multiply_in(k, math.exp(min(x, 1.0)))
        if far_off(self.weighted):
            project(self.weighted, self.scratch, self.alpha)


@inline
def descent_rate(feedback, n_p, a_i, n):
    """a_i / √(mean(a²) max(t, n)), where mean(a²) is learned."""
    feedback.updates += 1
    square = min(min(a_i, 1e150) ** 2 / n_p, 1e300)  # its mean is mean(a²)
    feedback.moment += (square - feedback.moment) / min(feedback.updates, n)
    return a_i / math.sqrt(feedback.moment * max(feedback.updates, n)) if a_i > 0.0 else 0.0


@inline
def project(weighted, scratch, alpha):
    read_weights(weighted.entries, scratch)
    truncate(scratch, alpha / scratch.size)
    fill_again(weighted, scratch)


def osmd_rate(n: int, alpha: float) -> float:
    """η n³ of the least regret bound, in units of 1 / √(mean(a²) t)."""
    return alpha**2 * math.sqrt(n * math.log(n / alpha))


@dataclass(frozen=True)
class Osmd(Sampler):
    """Mirror descent on the variance: p_i ← p_i exp(η_t a_i / p_i³), projected to p >= α/n.

    Parameters
    ----------
    alpha : float
        n times the least probability: the variance is at most 1.25/α times that of uniform sampling.
    rate : float
        η in units of what is best against a fixed p. Against one that moves a larger rate is, by √(1 + how far it
        moves); `AdaOsmd` tries several at once.

    Notes
    -----
    η_t = rate · α² √(ln(n/α) / (n⁵ t mean(a²))), for t >= n, mean(a²) learned while running, exponents at most 1: no
    horizon and no bound is asked for. `LSvrg` with this sampler is AS-LSVRG (Zhao, Lyu and Kolar 2022).

    References
    ----------
    Zhao, Wang, Wang and Kolar, "Adaptive Client Sampling in Federated Learning via Online Learning with Bandit
    Feedback", arXiv:2112.14332, 2021. Zhao, Lyu and Kolar, "L-SVRG and L-Katyusha with Adaptive Sampling", TMLR 2023.
    """

    alpha: float = 0.4
    rate: float = 1.0

    def __post_init__(self) -> None:
        check_alpha(self, self.alpha)
        if not 0.0 < self.rate < math.inf:
            raise ValueError(f"Osmd expects a positive, finite rate, got {self.rate!r}.")

    def state(self, setup: Setup) -> Any:
        n, fields = setup.n, equal_weights(setup)
        fill(fields["weighted"], np.full(n, 1.0 / n))
        return OsmdState(
            **fields,
            feedback=np.zeros(1, FEEDBACK),
            scratch=np.zeros(n),
            theta=0.0,
            alpha=float(self.alpha),
            rate=self.rate * osmd_rate(n, self.alpha),
        )
