"""A given sequence of draws, to hold one run beside another or beside a plain loop."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditgrad.samplers.base import Sampler, Setup, not_negative


class ReplayState(NamedTuple):
    indices: NDArray[np.int64]
    weights: NDArray[np.float64]
    position: NDArray[np.int64]

    def draw(self):
        k = self.position[0]
        self.position[0] = k + 1 if k + 1 < self.indices.size else 0
        return self.indices[k]

    def probability(self, i):
        return self.weights[i]

    def update(self, i, p_i, a_i):
        pass

    def faults(self, arrays: dict[str, NDArray[Any]]) -> list[str]:
        inside = (arrays["indices"] >= 0) & (arrays["indices"] < arrays["weights"].size)
        sound = inside.all() and 0 <= arrays["position"][0] < arrays["indices"].size
        return [] if sound else ["its indices are out of range"]


@dataclass(frozen=True, eq=False)
class Replay(Sampler):
    """Draws the given indices in the given order, again from the start when they are used up.

    Parameters
    ----------
    indices : array of whole numbers
        What to draw.
    p : array of shape (n,), optional
        The probabilities to report; uniform unless given.
    """

    indices: ArrayLike
    p: ArrayLike | None = None

    def state(self, setup: Setup) -> Any:
        given = np.asarray(self.indices)
        if given.size and given.dtype.kind not in "iu":
            raise ValueError(f"Replay expects whole numbers, got {given.dtype}.")
        indices = np.array(given, dtype=np.int64)
        if indices.ndim != 1 or indices.size == 0 or not (indices.min() >= 0 and indices.max() < setup.n):
            raise ValueError(f"Replay expects a list of indices from 0 to {setup.n - 1}, got {self.indices!r}.")
        p = np.full(setup.n, 1.0 / setup.n) if self.p is None else not_negative(self.p, setup.n, "Replay(p=...)")
        return ReplayState(indices, p.copy(), np.zeros(1, np.int64))
