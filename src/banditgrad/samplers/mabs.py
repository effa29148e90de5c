"""MABS, multi-armed bandit sampling: Algorithm 1 of the paper, and its variants from the appendix.

    p_i = (1 - η) w_i / W + η q_i,    on drawing i:  w_i ← w_i · exp(min(x, 1)),  x = δ a_i / p_i³

with q_i = 1/n (MABS) or q_i ∝ bound_i^(2/5) (MABS2). The proof needs x <= 1; the paper's condition on T implies it,
but fails in the paper's own experiments, hence the clip, which is counted. With the paper's δ,

    x = η²/c · √(n ln n / T) · a_i / √mean(a²) · (n p_i)⁻³,

only ratios a_i / √mean(a²) matter, so feedback may have any common factor when mean(a²) is learned.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditgrad._jit import inline, inline_sum
from banditgrad.samplers.base import Sampler, Setup, not_negative
from banditgrad.samplers.blocks import sub_block
from banditgrad.samplers.floors import EvenFloor, UnevenFloor, mixed_draws, new_floor
from banditgrad.samplers.importance import require
from banditgrad.samplers.weighted import WeightedSampler, equalise, fill_equal, new_weighted_sampler

# indices into `level`
RATE, MOMENT = 0, 1  # x = rate · a_i / (n p_i)³, over √moment where that, the estimate of mean(a²), is learned
# indices into `clock`
UPDATES, CLIPPED, HORIZON = 0, 1, 2


class MabsState(NamedTuple):
    weighted: WeightedSampler
    floor_of: EvenFloor | UnevenFloor
    stream: NDArray[np.uint64]
    level: NDArray[np.float64]
    clock: NDArray[np.int64]
    eta: float
    gain: float  # η²/c · √(n ln n)
    learning: float  # 1.0: mean(a²) is learned; 0.0: the rate has it
    doubling: float  # 1.0: the horizon is not known
    uneven: float  # 1.0: what is learned is mean(a² / (n q)⁴), for MABS2
    reset_every: int  # 0: never

    def draw(self):
        return self.floor_of.mixed_draw(self.weighted, self.stream, self.eta)

    def probability(self, i):
        return (1.0 - self.eta) * self.weighted.share(i) + self.eta * self.floor_of.floor(i)

    def update(self, i, p_i, a_i):
        inverse = 1.0 / (self.weighted.where.size * p_i)
        rate = _learned_rate(self, _square(self, i, inverse, a_i), 1)
        x = _exponent(rate, inverse, a_i)
        self.clock[CLIPPED] += x > 1.0
        self.weighted.multiply(i, _exp(min(x, 1.0)))
        _keep_time(self)

    def draw_many(self, block):
        mixed_draws(self.floor_of, self.weighted, self.stream, self.eta, block)

    def learn_many(self, block, count):
        self.weighted.fetch_many(block, count)
        begin = 0
        while begin < count:  # once, unless the rate changes on the way or the weights are set back
            end = min(begin + _time_left(self), count)
            _learn_block(self, sub_block(block, begin, end))
            _keep_time(self)
            begin = end

    def statistics(self):
        updates = int(self.clock[UPDATES])
        return {
            "updates": updates,
            "clipped": int(self.clock[CLIPPED]),
            "clipped_share": int(self.clock[CLIPPED]) / max(updates, 1),
        }


@inline
def _learn_block(state, block):
    """`update` for all of a block, with the mean(a²) that is known after the last of them."""
    count, clipped = block.i.size, 0
    rate = _learned_rate(state, _sum_of_squares(state, block), count)
    for t in range(count):
        x = _exponent(rate, block.real[t], block.a[t])
        clipped += x > 1.0
        block.other[t] = _exp(min(x, 1.0))
    state.clock[CLIPPED] += clipped
    state.weighted.multiply_many(block, count)


@inline_sum
def _sum_of_squares(state, block):
    """Of a block; `block.real` gets the 1 / (n p_i)."""
    n, total = state.weighted.where.size, 0.0
    for t in range(block.i.size):
        block.real[t] = 1.0 / (n * block.p[t])
        total += _square(state, block.i[t], block.real[t], block.a[t])
    return total


@inline
def _square(state, i, inverse, a_i):
    """a_i² / (n p_i), an unbiased estimate of mean(a²)."""
    if state.uneven != 0.0:
        n_q = state.weighted.where.size * state.floor_of.floor(i)
        a_i = a_i / (n_q * n_q) if a_i > 0.0 else 0.0
    a_i = min(a_i, 1e150)  # its square is finite
    return min(a_i * a_i * inverse, 1e300)


@inline
def _learned_rate(state, total, count):
    """The rate, over √mean(a²) where that is learned: the mean of such estimates over all updates, or about the last n
    of many, to which `count` come now that sum to `total`."""
    level, clock = state.level, state.clock
    clock[UPDATES] += count
    if state.learning == 0.0:
        return level[RATE]
    memory = max(min(clock[UPDATES], state.weighted.where.size), count)
    level[MOMENT] += (total - count * level[MOMENT]) / memory
    return level[RATE] / math.sqrt(level[MOMENT]) if level[MOMENT] > 0.0 else 0.0


@inline
def _exponent(rate, inverse, a_i):
    """x = δ a_i / p_i³, line 5 of Algorithm 1."""
    x = rate * a_i * (inverse * inverse * inverse)
    return x if x > 0.0 else 0.0  # 0 · ∞ is no number


@inline_sum
def _exp(x):
    """e^x for 0 <= x <= 1, to the last digit or two: a plain formula, for vector instructions."""
    h = 0.5 * x
    h2 = h * h
    h4 = h2 * h2
    a = 1.0 + h + h2 * (1.0 / 2.0 + h * (1.0 / 6.0))
    b = 1.0 / 24.0 + h * (1.0 / 120.0) + h2 * (1.0 / 720.0 + h * (1.0 / 5040.0))
    c = 1.0 / 40320.0 + h * (1.0 / 362880.0) + h2 * (1.0 / 3628800.0 + h * (1.0 / 39916800.0))
    d = 1.0 / 479001600.0 + h * (1.0 / 6227020800.0) + h2 * (1.0 / 87178291200.0)
    root = a + h4 * (b + h4 * (c + h4 * d))
    return root * root


@inline
def _time_left(state):
    """How many updates there are until the rate changes or the weights are set back."""
    clock = state.clock
    left = np.int64(2**62)
    if state.doubling != 0.0:
        left = max(clock[HORIZON] - clock[UPDATES], 1)
    if state.reset_every > 0:
        left = min(left, state.reset_every - clock[UPDATES] % state.reset_every)
    return left


@inline
def _keep_time(state):
    clock, weighted = state.clock, state.weighted
    if state.doubling != 0.0 and clock[UPDATES] >= clock[HORIZON]:
        clock[HORIZON] *= 2
        state.level[RATE] = state.gain / math.sqrt(clock[HORIZON])
    if state.reset_every > 0 and clock[UPDATES] % state.reset_every == 0:
        equalise(weighted.entries, weighted.where, weighted.buckets[0], weighted.total)


@dataclass(frozen=True, eq=False)
class Mabs(Sampler):
    """Multi-armed bandit sampling.

    Parameters
    ----------
    eta : float
        η, the share of the mixing distribution; theorem 1 needs η < ½.
    delta : "learned", "bound" or float
        How δ is set: Algorithm 1's (MABS2's, for mix="bounds") with a running estimate of mean(a²); with known bounds
        on the a_i, as the theorems say (`start` gets them from the problem, for the gradients of plain SGD), for any
        mix; or the given number, for which feedback must be the paper's a_i, not a multiple.
    horizon : int, optional
        T, if it is to differ from what the run says. Where neither is known, a guess is doubled, the weights kept.
    relax : float
        The corollary's c: δ is divided by it, which for c >= 1 needs c² fewer draws for a bound about c times larger.
        A c below 1 learns faster than the theorem allows; at 0.1 the variance was mostly lower, at 0.001 it was above
        that of uniform sampling.
    mix : "uniform", "bounds", "smoothness" or array of shape (n,)
        q: uniform; ∝ bound_i^(2/5), which is MABS2; ∝ L_i; or ∝ the given positive weights.
    reset_every : int, optional
        Set all weights back to 1 every so many draws, for a_i that change over time (the paper's last remark).
    """

    eta: float = 0.4
    delta: str | float = "learned"
    horizon: int | None = None
    relax: float = 1.0
    mix: str | ArrayLike = "uniform"
    reset_every: int | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.eta <= 1.0:
            raise ValueError(f"Mabs expects 0 < eta <= 1, got {self.eta!r}. The paper uses 0.4.")
        if isinstance(self.delta, str):
            if self.delta not in ("learned", "bound"):
                raise ValueError(f'Mabs expects delta="learned", delta="bound" or a number, got {self.delta!r}.')
        elif not 0.0 <= self.delta < math.inf:
            raise ValueError(f"Mabs expects a delta that is finite and not negative, got {self.delta!r}.")
        if isinstance(self.mix, str) and self.mix not in ("uniform", "bounds", "smoothness"):
            raise ValueError(
                f'Mabs expects mix="uniform", "bounds", "smoothness" or an array of weights, got {self.mix!r}.'
            )
        if not 0.0 < self.relax < math.inf:
            raise ValueError(f"Mabs expects a positive, finite relax, got {self.relax!r}.")
        for name in ("horizon", "reset_every"):
            value = getattr(self, name)
            if value is not None and not (1 <= value < math.inf and value == int(value)):
                raise ValueError(f"Mabs expects {name} to be a whole number of at least 1, got {value!r}.")

    def state(self, setup: Setup) -> Any:
        n = setup.n
        weighted = new_weighted_sampler(n)
        fill_equal(weighted)
        q = self._mixing_weights(setup)
        known = self.horizon if self.horizon is not None else setup.horizon
        horizon = n if known is None else min(int(known), 2**62)
        gain = self.eta**2 / self.relax * math.sqrt(n * math.log(n))
        rate, doubling = gain / math.sqrt(horizon), float(known is None)
        if not isinstance(self.delta, str):
            rate, doubling = float(self.delta) * float(n) ** 3 / self.relax, 0.0
        elif self.delta == "bound":
            bounds = require(setup.bounds, "Mabs(delta='bound')", "bounds", "bounds on the a_i")
            largest = float(bounds.max())
            root = largest * math.sqrt(_fourth_power_mean(bounds / largest, q)) if largest > 0.0 else 0.0
            gain = gain / root if root > 0.0 else 0.0
            rate = gain / math.sqrt(horizon)
        return MabsState(
            weighted=weighted,
            floor_of=new_floor(q, n),
            stream=setup.stream,
            level=np.array([rate, 0.0]),
            clock=np.array([0, 0, horizon], dtype=np.int64),
            eta=float(self.eta),
            gain=gain,
            learning=float(self.delta == "learned"),
            doubling=doubling,
            uneven=float(isinstance(self.mix, str) and self.mix == "bounds"),
            reset_every=0 if self.reset_every is None else int(self.reset_every),
        )

    def _mixing_weights(self, setup: Setup) -> NDArray[np.float64] | None:
        """q up to a factor; None for uniform."""
        if isinstance(self.mix, str):
            if self.mix == "uniform":
                return None
            if self.mix == "smoothness":
                q = require(setup.smoothness, "Mabs(mix='smoothness')", "smoothness", "the L_i")
            else:
                q = require(setup.bounds, "Mabs(mix='bounds')", "bounds", "bounds on the a_i") ** 0.4
            return q if q.max() > 0.0 else None  # all gradients are zero: any distribution will do
        q = not_negative(self.mix, setup.n, "Mabs(mix=...)")
        if not q.min() > 0.0:
            raise ValueError(f"Mabs(mix=...) must be strictly positive, got {q.min()} at position {q.argmin()}.")
        return q


def _fourth_power_mean(a: NDArray[np.float64], q: NDArray[np.float64] | None) -> float:
    """(1/n) Σ a_i² / (n q_i)⁴: mean(a²) for a uniform q; Σ_i a_i^(2/5) to the fifth over n⁵ for MABS2.

    It bounds Σ_i (a_i / p_i²)², which the δ of the theorem's proof is the best answer to, for any q.
    """
    if q is None:
        return float(np.mean(a**2))  # a is at most 1 here
    used = a > 0.0
    if np.any(q[used] == 0.0):
        return math.inf
    return float(np.sum(a[used] ** 2 / (q[used] / np.mean(q)) ** 4) / a.size)
