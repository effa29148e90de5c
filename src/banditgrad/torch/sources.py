"""Where batches come from: which samples are drawn, as members of which arms, with which probabilities.

An *arm* is what a bandit has a probability for: here a sample, in `groups` a group of them.
"""

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from banditgrad.samplers import Sampling
from banditgrad.torch.deck import Deck
from banditgrad.torch.shuffle import Shuffle


class Draw(NamedTuple):
    """A batch that was drawn: the samples, and the probabilities that their arms were drawn with."""

    i: NDArray[np.int64]
    p: NDArray[np.float64]
    adaptive: bool  # False: from the user's own mixture q, as plain shuffling is for samples


class Source(Protocol):
    """What a `BatchStream` draws from."""

    samples: float  # how many there are, infinite for streams
    sampling: Sampling  # of the arms

    def draw(self, size: int, adaptive: bool) -> Draw: ...

    def pass_size(self, adaptive: bool) -> float:
        """How many draws make a pass without replacement; infinite with."""
        ...

    def arms(self, i: NDArray[np.int64]) -> NDArray[np.int64]:
        """The arms that samples belong to."""
        ...

    def relative(self, arms: NDArray[np.int64]) -> NDArray[np.float64]:
        """q · n, n the number of arms, q the share of an arm in the mean gradient that is to be estimated."""
        ...

    def weights(self, draw: Draw) -> NDArray[np.float64]:
        """What the samples' gradients are multiplied by: q / p."""
        ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, saved: dict[str, Any]) -> None: ...


class SampleSource:
    """Every sample is an arm, q = 1/n: draws from p with replacement, or from a deck made with the p of its time; and
    shuffled passes."""

    def __init__(self, sampling: Sampling, seed: int, replacement: bool = True) -> None:
        self.sampling = sampling
        self.samples: float = sampling.n
        self.shuffle = Shuffle(sampling.n, seed)
        self.deck = None if replacement else Deck(sampling.n, seed)
        self.deck_size = sampling.n
        self._arrays: dict[tuple[int, float], NDArray[np.float64]] = {}

    def draw(self, size: int, adaptive: bool) -> Draw:
        if not adaptive:
            if self.deck is not None:
                self.deck.drop()
            return Draw(self.shuffle.draw(size), self._same(size, 1.0 / self.samples), adaptive=False)
        if self.deck is None:
            return Draw(*self.sampling.draw(size), adaptive=True)
        return Draw(*self.deck.draw(size, self.deck_size, self.sampling.probabilities), adaptive=True)

    def pass_size(self, adaptive: bool) -> float:
        if not adaptive:
            return self.samples
        return math.inf if self.deck is None else self.deck_size

    def arms(self, i: NDArray[np.int64]) -> NDArray[np.int64]:
        return i

    def relative(self, arms: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._same(arms.size, 1.0)

    def _same(self, size: int, value: float) -> NDArray[np.float64]:
        """An array that is not made for every batch, and must not be written to."""
        if (size, value) not in self._arrays:
            self._arrays = {key: array for key, array in self._arrays.items() if key[1] != value}
            self._arrays[size, value] = np.full(size, value)
        return self._arrays[size, value]

    def weights(self, draw: Draw) -> NDArray[np.float64]:
        return 1.0 / (self.samples * draw.p)

    def state_dict(self) -> dict[str, Any]:
        return {"shuffle": self.shuffle.state_dict(), "deck": self.deck.state_dict() if self.deck else {}}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self.shuffle.load_state_dict(saved["shuffle"])
        if self.deck is not None:
            self.deck.load_state_dict(saved["deck"])
