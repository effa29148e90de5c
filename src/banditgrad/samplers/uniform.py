"""Uniform sampling, p_i = 1/n: what every adaptive sampler is measured against."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._random import below, biased, peek, skip
from banditgrad.samplers.base import Sampler, Setup


class UniformState(NamedTuple):
    stream: NDArray[np.uint64]
    n: int

    def draw(self):
        n = np.uint64(self.n)
        while True:
            bits = peek(self.stream, 0)
            skip(self.stream, 1)
            if not biased(bits, n):
                return np.int64(below(bits, n))

    def probability(self, i):
        return 1.0 / self.n

    def update(self, i, p_i, a_i):
        pass


@dataclass(frozen=True)
class Uniform(Sampler):
    """p_i = 1/n, with replacement."""

    def state(self, setup: Setup) -> Any:
        return UniformState(setup.stream, setup.n)
