"""MABS that forgets: fixed share (Herbster and Warmuth 1998; Exp3.S of Auer et al. 2002) on the paper's bandit.

    on drawing i:  w_i ← w_i · exp(min(x, 1)),  x = δ a_i / p_i³,    then for all j:  w_j ← w_j + β W / n

so that an item whose gradient grows again is found within some 1/β draws, however small its weight has become. In O(1):
w_j = v_j + s, of which only the drawn v_i and the common s change, and

    p_j = (1 - η) w_j / W + η/n = (1 - θ) v_j / V + θ/n,    θ = 1 - (1 - η) / (1 + r),    r = n s / V.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import float_bits
from banditgrad.samplers.base import Sampler, Setup
from banditgrad.samplers.buckets import exponent, mantissa
from banditgrad.samplers.floors import EvenFloor
from banditgrad.samplers.mixed import equal_weights, expect_share, mixed
from banditgrad.samplers.weighted import WeightedSampler

MEMORY = np.dtype([("common", "f8"), ("moment", "f8"), ("updates", "i8")])  # r; the estimate of mean(a²); draws learnt
MOST = 1e100  # of r: all else is forgotten long before


@mixed
class ForgettingMabsState(NamedTuple):
    weighted: WeightedSampler  # the v
    floor_of: EvenFloor
    stream: NDArray[np.uint64]
    memory: NDArray[np.void]
    eta: float
    rate: float  # δ n³ √mean(a²)
    window: int  # 1/β

    def floor_share(self):
        return 1.0 - (1.0 - self.eta) / (1.0 + self.memory[0].common)

    def learn(self, k, p_i, a_i):
        memory, n = self.memory[0], self.weighted.where.size
        n_p = n * p_i
        memory.updates += 1
        square = min(min(a_i, 1e150) ** 2 / n_p, 1e300)  # its mean is mean(a²)
        memory.moment += (square - memory.moment) / min(memory.updates, self.window)
        x = self.rate * a_i / (math.sqrt(memory.moment) * n_p**3) if a_i > 0.0 else 0.0
        V = 1.0 / self.weighted.unit_share()
        gain = (self.weighted.weight_in(k) + memory.common * V / n) * math.expm1(min(x, 1.0))
        if gain > 0.0:
            bits = float_bits(self.weighted.weight_in(k) + gain)
            self.weighted.store(np.int64(k), mantissa(bits), exponent(bits) + self.weighted.buckets[0].base)
        growth = 1.0 + gain / V  # of V
        memory.common = min((memory.common + (growth + memory.common) / self.window) / growth, MOST)


@dataclass(frozen=True)
class ForgettingMabs(Sampler):
    """`Mabs` for a_i that change over time: what was learnt fades within a window, which slides.

    Parameters
    ----------
    eta : float
        η, the share of uniform draws: the variance is at most 1/η times that of uniform sampling.
    window : int, optional
        1/β, over how many draws weights fade, and the T of the paper's δ; 10 n unless given.

    References
    ----------
    Herbster and Warmuth, "Tracking the Best Expert", Machine Learning 32, 1998. Auer, Cesa-Bianchi, Freund and
    Schapire, "The Nonstochastic Multiarmed Bandit Problem", SIAM Journal on Computing 32, 2002, section 8.
    """

    eta: float = 0.4
    window: int | None = None

    def __post_init__(self) -> None:
        expect_share(self, "eta", self.eta)
        if self.window is not None and not (1 <= self.window < math.inf and self.window == int(self.window)):
            raise ValueError(f"ForgettingMabs expects window to be a whole number of at least 1, got {self.window!r}.")

    def state(self, setup: Setup) -> Any:
        n = setup.n
        window = 10 * n if self.window is None else int(self.window)
        return ForgettingMabsState(
            **equal_weights(setup),
            memory=np.zeros(1, MEMORY),
            eta=float(self.eta),
            rate=self.eta**2 * math.sqrt(n * math.log(n) / window),
            window=window,
        )
