"""Uniform sampling, p_i = 1/n: what every adaptive sampler is measured against."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline
from banditgrad._random import fill_bits, index_from, uniform_index
from banditgrad.samplers.base import Sampler, Setup


class UniformState(NamedTuple):
    stream: NDArray[np.uint64]
    n: int

    def draw(self):
        return uniform_index(self.stream, self.n)

    def probability(self, i):
        return 1.0 / self.n

    def update(self, i, p_i, a_i):
        pass

    def draw_many(self, block):
        uniform_draws(self.stream, self.n, block)

    def learn_many(self, block, count):
        pass


@inline
def uniform_draws(stream, n, block):
    """Draw a block, all items equally likely."""
    p = 1.0 / n
    fill_bits(stream, block.bits, block.i.size)
    for t in range(block.i.size):
        block.i[t] = index_from(block.bits[t], stream, n)
        block.p[t] = p


@dataclass(frozen=True)
class Uniform(Sampler):
    """p_i = 1/n, with replacement."""

    def state(self, setup: Setup) -> Any:
        return UniformState(setup.stream, setup.n)
