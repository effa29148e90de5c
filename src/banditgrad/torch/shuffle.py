"""Sampling without replacement: one random permutation after the other."""

import numpy as np
from numpy.typing import NDArray


class Shuffle:
    """An endless row of permutations of 0..n-1, drawn in batches of any size.

    The k-th permutation depends on the seed and k alone, so that a saved state is three numbers. It takes at most
    4 bytes per item, from the first batch on.
    """

    def __init__(self, n: int, seed: int) -> None:
        self.n, self.seed = n, seed
        self.passes, self.position = 0, 0
        self._order: NDArray[np.integer] | None = None

    def draw(self, size: int) -> NDArray[np.int64]:
        batch = np.empty(size, np.int64)
        filled = 0
        while filled < size:
            if self.position == self.n:
                self.passes, self.position, self._order = self.passes + 1, 0, None
            taken = min(size - filled, self.n - self.position)
            batch[filled : filled + taken] = self._permutation()[self.position : self.position + taken]
            filled, self.position = filled + taken, self.position + taken
        return batch

    def _permutation(self) -> NDArray[np.integer]:
        if self._order is None:
            self._order = np.arange(self.n, dtype=np.min_scalar_type(-self.n))
            np.random.default_rng([self.seed, self.passes]).shuffle(self._order)
        return self._order

    def state_dict(self) -> dict[str, int]:
        return {"seed": self.seed, "passes": self.passes, "position": self.position}

    def load_state_dict(self, saved: dict[str, int]) -> None:
        self.seed, self.passes, self.position = saved["seed"], saved["passes"], saved["position"]
        self._order = None
