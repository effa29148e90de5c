"""One epoch of a batch sampler."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from banditgrad.torch.base import AdaptiveBatchSampler


class Epoch(Iterator[list[int]]):
    """One epoch's batches. It begins with the first batch, and can be saved as StatefulDataLoader asks for it."""

    def __init__(self, sampler: "AdaptiveBatchSampler") -> None:
        self._sampler = sampler
        self._position: int | None = None
        self._length = 0  # asked once: it asks torch.distributed
        self._last = -1
        self._waiting: list[int] = []

    def __next__(self) -> list[int]:
        if self._position is None:
            self._position, self._last = self._sampler._begin()
            self._waiting = self._sampler._waiting(self._last)
        self._length = self._length or len(self._sampler)
        if self._position >= self._length:
            raise StopIteration
        self._last = self._waiting.pop(0) if self._waiting else self._sampler._draw(self._position)
        self._position += 1
        return self._sampler._indices_of(self._last).tolist()

    def state_dict(self) -> dict[str, Any]:
        return {"position": self._position, "last": self._last}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        if saved["position"] is not None:
            self._position, self._last = saved["position"], saved["last"]
            self._sampler._go_on(self._position, self._last)
            self._waiting = self._sampler._waiting(self._last)
