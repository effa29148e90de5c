"""How long a snapshot lasts: a *bin* of steps."""

import math
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import bridge
from banditgrad._random import peek, skip, unit


@bridge
class Bins(Protocol):
    """What tells how long bins are."""

    def bin_length(self, stream: NDArray[np.uint64]) -> int:
        """The number of steps of the next bin, at least 1."""
        ...


class FixedBins(NamedTuple):
    """Always the same number of steps: Prox-SVRG."""

    steps: float

    def bin_length(self, stream):
        return np.int64(self.steps)


class GeometricBins(NamedTuple):
    """A new snapshot with probability 1/mean at every step: loopless SVRG."""

    mean: float

    def bin_length(self, stream):
        u = 1.0 - unit(peek(stream, 0))
        skip(stream, 1)
        if self.mean <= 1.0:
            return np.int64(1)
        return np.int64(1.0 + math.floor(min(math.log(u) / math.log1p(-1.0 / self.mean), 1e15)))


class TruncatedBins(NamedTuple):
    """t of 1..longest with probability ∝ shrink^(longest - t): S2GD."""

    longest: float
    shrink: float

    def bin_length(self, stream):
        u = unit(peek(stream, 0))
        skip(stream, 1)
        m, beta = self.longest, self.shrink
        if beta >= 1.0:
            return np.int64(u * m) + 1
        # P(t <= k) = (β^(m-k) - β^m) / (1 - β^m)
        tail = beta**m
        k = m - math.log(tail + u * (1.0 - tail)) / math.log(beta)
        return np.int64(min(max(math.ceil(k), 1.0), m))
