"""InfoBatch (Qin et al., "InfoBatch: Lossless Training Speed Up by Unbiased Dynamic Data Pruning", ICLR 2024), from the
paper's description.

Of the samples whose last loss is below the mean, a share r is left out of the epoch, and the gradients of the others of
these are multiplied by 1/(1 - r). The last epochs, from δ of all on, take all samples.
"""

import math
from collections.abc import Iterator

import numpy as np
import torch


class InfoBatch:
    """A batch sampler, and the weights of the samples; `update` takes losses."""

    def __init__(self, n: int, batch_size: int, epochs: int, ratio: float = 0.5, delta: float = 0.875, seed: int = 0):
        self.batch_size, self.epochs, self.ratio, self.delta = batch_size, epochs, ratio, delta
        self.losses = np.ones(n)
        self.epoch = 0  # how many have begun
        self._weights = np.ones(n)
        self._order = np.arange(n)
        self._random = np.random.default_rng(seed)

    def __len__(self) -> int:
        """Batches of the epoch that has begun."""
        return math.ceil(self._order.size / self.batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        self._weights[:] = 1.0
        kept = np.arange(self.losses.size)
        if self.epoch < self.delta * self.epochs:
            below = np.flatnonzero(self.losses < self.losses.mean())
            stay = self._random.permutation(below)[: below.size - int(self.ratio * below.size)]
            self._weights[stay] = 1.0 / (1.0 - self.ratio)
            kept = np.setdiff1d(kept, np.setdiff1d(below, stay))
        self.epoch += 1
        self._order = self._random.permutation(kept)
        for begin in range(0, self._order.size, self.batch_size):
            yield self._order[begin : begin + self.batch_size].tolist()

    def weights(self, idx: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(self._weights[idx.numpy()]).float()

    def update(self, idx: torch.Tensor, losses: torch.Tensor) -> None:
        self.losses[idx.numpy()] = losses.detach().numpy()
