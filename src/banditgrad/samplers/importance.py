"""Importance sampling with a fixed distribution (Zhao and Zhang 2014), the paper's IS."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditgrad.samplers.base import Sampler, Setup, not_negative
from banditgrad.samplers.weighted import WeightedSampler, fill, new_weighted_sampler


class ImportanceState(NamedTuple):
    weighted: WeightedSampler
    stream: NDArray[np.uint64]

    def draw(self):
        return self.weighted.pick(self.stream, 0.0)

    def probability(self, i):
        return self.weighted.share(i)

    def update(self, i, p_i, a_i):
        pass

    def draw_many(self, block):
        for t in range(block.i.size):
            block.todo[t] = t
        self.weighted.pick_many(self.stream, block, block.i.size)
        self.weighted.read_many(block)

    def learn_many(self, block, count):
        pass


@dataclass(frozen=True, eq=False)
class Importance(Sampler):
    """p_i ∝ a fixed weight, which may be zero for items whose gradient is always zero.

    Parameters
    ----------
    by : "smoothness", "gradient_bound" or array of shape (n,)
        p_i ∝ L_i, the paper's choice; p_i ∝ G_i, a bound on ‖∇φ_i‖; or p_i ∝ the given weights.
    """

    by: str | ArrayLike = "smoothness"

    def __post_init__(self) -> None:
        if isinstance(self.by, str) and self.by not in ("smoothness", "gradient_bound"):
            raise ValueError(
                f'Importance expects by="smoothness", by="gradient_bound" or an array of weights, got {self.by!r}.'
            )

    def state(self, setup: Setup) -> Any:
        weights = self._weights(setup)
        if not weights.max() > 0.0:
            weights = np.ones(setup.n)  # every gradient is zero: any distribution will do
        weighted = new_weighted_sampler(setup.n)
        fill(weighted, weights / weights.max())
        return ImportanceState(weighted, setup.stream)

    def _weights(self, setup: Setup) -> NDArray[np.float64]:
        if not isinstance(self.by, str):
            weights = not_negative(self.by, setup.n, "Importance(by=...)")
            if not weights.max() > 0.0:
                raise ValueError("Importance(by=...) must not be all zero.")
            return weights
        if self.by == "smoothness":
            return require(setup.smoothness, "Importance(by='smoothness')", "smoothness", "the L_i")
        bounds = require(setup.bounds, "Importance(by='gradient_bound')", "bounds", "bounds on the a_i")
        return np.sqrt(bounds)


def require(values: Any, who: str, argument: str, what: str) -> Any:
    """What a sampler was told at its start, or an error that says what to tell it."""
    if values is None:
        raise ValueError(
            f"{who} needs {what}. Pass start(..., {argument}=...). Under minimise they come from the problem; "
            "losses with unbounded slope (Squared, SquaredHinge) have no bounds."
        )
    return values
