"""Importance sampling without replacement: an epoch's draws are made at once, and dealt in batches.

Of T draws, item i gets ⌊T p_i⌋ or ⌈T p_i⌉, T p_i in the mean, by systematic rounding: the numbers T p_i are laid end to
end, in random order, and every whole number after a random offset is a draw (Madow 1949). With p = 1/n and T = n it is
a permutation; with T < n and p as learned it is dataset pruning without bias, since 1/(n p_i) weights what is left.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

ONE = 2**32  # T p_i in whole numbers of 1/ONE, so that sums are exact


class Deck:
    """Decks of draws, one after the other; the k-th depends on the seed, k, and the p that it was made with."""

    def __init__(self, n: int, seed: int) -> None:
        self.n, self.seed = n, seed
        self.made, self.position = 0, 0
        self._p: NDArray[np.float64] | None = None  # of the deck that is dealt from
        self._cards = np.empty(0, np.int64)

    def draw(
        self, size: int, total: int, probabilities: Callable[[], NDArray[np.float64]]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The next items and their probabilities; a new deck, of `total` cards, is made where one is at its end."""
        i, p = np.empty(size, np.int64), np.empty(size)
        filled = 0
        while filled < size:
            if self.position == self._cards.size or self._p is None:
                self._p, self.position, self.made = probabilities(), 0, self.made + 1
                self._cards = self._make(self._p, total)
            taken = min(size - filled, self._cards.size - self.position)
            cards = self._cards[self.position : self.position + taken]
            i[filled : filled + taken], p[filled : filled + taken] = cards, self._p[cards]
            filled, self.position = filled + taken, self.position + taken
        return i, p

    def drop(self) -> None:
        """Leave the rest: the next draw makes a new deck."""
        self._p, self._cards, self.position = None, np.empty(0, np.int64), 0

    def _make(self, p: NDArray[np.float64], total: int) -> NDArray[np.int64]:
        random = np.random.default_rng([self.seed, self.made, 1])  # not those of `Shuffle`
        order = random.permutation(self.n)
        ends = np.cumsum(np.rint(p[order] * (total / p.sum() * ONE)).astype(np.int64))
        ends[-1] = total * ONE
        whole = (ends + random.integers(ONE)) // ONE
        cards = np.repeat(order, np.diff(whole, prepend=0))
        random.shuffle(cards)
        return cards

    def state_dict(self) -> dict[str, Any]:
        p = np.empty(0) if self._p is None else self._p
        numbers = {"seed": self.seed, "made": self.made, "position": self.position, "total": self._cards.size}
        return {**numbers, "p": torch.from_numpy(p)}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self.drop()
        self.seed, self.made = saved["seed"], saved["made"]
        if saved["total"]:
            self._p = saved["p"].cpu().numpy()
            self._cards, self.position = self._make(self._p, saved["total"]), saved["position"]
