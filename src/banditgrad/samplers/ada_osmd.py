"""`Osmd` at several rates at once, and a weighted vote among them: no rate to choose.

    p = Σ_e θ_e p^e,    θ_e ∝ exp(-γ_t Σ_s a_i / (p_i^e p_i)),    γ_t = √(ln E / Σ_s Σ_e θ_e (a_i / (p_i^e p_i))²)

Expert e is `Osmd` with the rate 4^e; all learn from every draw, with the p that it was made with. The vote weighs them
by their variances so far, estimated from the same draws.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import bridge, inline
from banditgrad._random import peek, skip, unit
from banditgrad.samplers.base import Sampler, Setup
from banditgrad.samplers.buckets import BUCKET_INDEX, ENTRY
from banditgrad.samplers.osmd import FEEDBACK, descent_rate, osmd_rate, project
from banditgrad.samplers.renewal import check_alpha, far_off
from banditgrad.samplers.weighted import WeightedSampler, fill

EXPERTS, RATIO = 5, 4.0
VOTE = np.dtype([("rate", "f8"), ("share", "f8"), ("loss", "f8")])  # η's unit, θ_e, and the sum of estimated variances


@bridge
class AdaOsmdState(NamedTuple):
    entries: NDArray[np.void]  # weighted samplers, one a row
    where: NDArray[np.int32]
    buckets: NDArray[np.void]
    total: NDArray[np.float64]
    stream: NDArray[np.uint64]
    votes: NDArray[np.void]
    spread: NDArray[np.float64]  # Σ_s Σ_e θ_e (a_i / (p_i^e p_i))²
    feedback: NDArray[np.void]
    scratch: NDArray[np.float64]
    alpha: float

    def expert(self, e):
        return WeightedSampler(self.entries[e], self.where[e], self.buckets[e : e + 1], self.total[e])

    def draw(self):
        u, e = unit(peek(self.stream, 0)), 0
        skip(self.stream, 1)
        while e + 1 < self.votes.size and u >= self.votes[e].share:
            u -= self.votes[e].share
            e += 1
        return self.expert(e).pick(self.stream, 0.0)

    def probability(self, i):
        p_i = 0.0
        for e in range(self.votes.size):
            p_i += self.votes[e].share * self.expert(e).share(i)
        return p_i

    def update(self, i, p_i, a_i):
        n = self.scratch.size
        n_p = n * p_i
        rate = descent_rate(self.feedback[0], n_p, a_i, n)
        unit_loss = min(a_i / math.sqrt(self.feedback[0].moment), 1e100) if a_i > 0.0 else 0.0
        for e in range(self.votes.size):
            weighted = self.expert(e)
            n_q = n * weighted.share(i)
            loss = unit_loss / (n_q * n_p)
            self.votes[e].loss += loss
            self.spread[0] += self.votes[e].share * loss * loss
            weighted.multiply(i, math.exp(min(self.votes[e].rate * rate / (n_q * n_q * n_p), 1.0)))
            if far_off(weighted):
                project(weighted, self.scratch, self.alpha)
        _vote(self.votes, self.spread[0])

    def statistics(self):
        return {"rate": float(self.votes["share"] @ RATIO ** np.arange(self.votes.size))}

    def faults(self, arrays: dict[str, NDArray[Any]]) -> list[str]:
        names = WeightedSampler._fields
        found = []
        for e in range(EXPERTS):
            rows = {name: arrays[name][e : e + 1] if name == "buckets" else arrays[name][e] for name in names}
            found += self.expert(e).faults(rows)
        shares = arrays["votes"]["share"]
        if not (shares.min() >= 0.0 and abs(shares.sum() - 1.0) < 1e-9):
            found.append("the shares of its experts do not sum to 1")
        return found[:1]


@inline
def _vote(votes, spread):
    """θ, from the sums of losses."""
    if spread > 0.0:
        gamma, least, total = math.sqrt(math.log(votes.size) / spread), math.inf, 0.0
        for e in range(votes.size):
            least = min(least, votes[e].loss)
        for e in range(votes.size):
            votes[e].share = math.exp(-gamma * (votes[e].loss - least))
            total += votes[e].share
        for e in range(votes.size):
            votes[e].share /= total


@dataclass(frozen=True)
class AdaOsmd(Sampler):
    """`Osmd` that finds its rate: five experts with rates from 1 to 256, weighed by their variances so far.

    Five times the memory and more than five times the time of `Osmd`.

    Parameters
    ----------
    alpha : float
        n times the least probability: the variance is at most 1.25/α times that of uniform sampling.

    References
    ----------
    Zhao, Wang, Wang and Kolar, "Adaptive Client Sampling in Federated Learning via Online Learning with Bandit
    Feedback", arXiv:2112.14332, 2021.
    """

    alpha: float = 0.4

    def __post_init__(self) -> None:
        check_alpha(self, self.alpha)

    def state(self, setup: Setup) -> Any:
        n, votes = setup.n, np.zeros(EXPERTS, VOTE)
        votes["rate"] = osmd_rate(n, self.alpha) * RATIO ** np.arange(EXPERTS)
        votes["share"] = 1.0 / EXPERTS
        state = AdaOsmdState(
            entries=np.zeros((EXPERTS, n), ENTRY),
            where=np.zeros((EXPERTS, n), np.int32),
            buckets=np.zeros(EXPERTS, BUCKET_INDEX),
            total=np.zeros((EXPERTS, 2)),
            stream=setup.stream,
            votes=votes,
            spread=np.zeros(1),
            feedback=np.zeros(1, FEEDBACK),
            scratch=np.zeros(n),
            alpha=float(self.alpha),
        )
        for e in range(EXPERTS):
            fill(state.expert(e), np.full(n, 1.0 / n))
        return state
