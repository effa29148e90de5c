"""Uniform sampling, p_i = 1/n: what every adaptive sampler is measured against."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._random import uniform_index
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


@dataclass(frozen=True)
class Uniform(Sampler):
    """p_i = 1/n, with replacement."""

    def state(self, setup: Setup) -> Any:
        return UniformState(setup.stream, setup.n)
