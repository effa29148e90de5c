"""Saved states that are cheap to take at every step and stay right when feedback comes later.

A loader with workers asks for the state when a batch is *drawn*, and hands that state out when the batch is
*delivered*; feedback that came in between belongs to it. So a saved state is a copy of the stream, taken now and
then, and the list of what happened since, which goes on growing until the feedback of the next batch arrives.
"""

from collections import deque
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from banditgrad.torch.batch_stream import MAX_OUTSTANDING, BatchStream

# (size, None): a batch was drawn; (number, norms): its feedback came; (MEASURED, numbers): gradients were measured
Event = tuple[int, torch.Tensor | None]
MEASURED = -1


class OpenState(NamedTuple):
    last: int  # the newest batch when the state was taken
    events: list[Event]


class EventLog:
    """Takes part in everything that happens to a stream, so that its state can be saved for O(1) a step."""

    def __init__(self, stream: BatchStream) -> None:
        self.stream = stream
        self._base: dict[str, Any] | None = None  # nothing is written down before a state is asked for
        self._events: list[Event] = []
        self._open: deque[OpenState] = deque(maxlen=MAX_OUTSTANDING)
        self._bytes_since, self._base_bytes = 0, 0

    def draw(self, size: int) -> int:
        number = self.stream.draw(size)
        self._record((size, None), 0)
        return number

    def learn(self, number: int, norms: NDArray[np.float64]) -> None:
        self.stream.learn(number, norms)
        while self._open and self._open[0].last < number:
            self._open.popleft()
        if self._base is not None or self._open:
            self._record((number, torch.from_numpy(norms)), norms.nbytes)

    def measure(self, square: float, product: float, size: int, adaptive: bool) -> None:
        self.stream.measure(square, product, size, adaptive)
        numbers = torch.tensor([square, product, size, adaptive], dtype=torch.float64)
        self._record((MEASURED, numbers), numbers.nbytes)

    def _record(self, event: Event, size: int) -> None:
        for state in self._open:
            state.events.append(event)
        if self._base is not None:
            self._events.append(event)
            self._bytes_since += size + 64
            if self._bytes_since > self._base_bytes:  # a fresh copy is now the shorter story
                self._base, self._events = None, []

    def state_dict(self) -> dict[str, Any]:
        if self._base is None:
            self._base = self.stream.state_dict()
            self._base_bytes = _bytes(self._base)
            self._bytes_since = 0
        events = self._events.copy()
        self._open.append(OpenState(self.stream.drawn - 1, events))
        return {"base": self._base, "events": events}

    def load_state_dict(self, saved: dict[str, Any], last: int) -> list[Event]:
        """Go back to where all feedback up to batch `last` had come; return what happened after that."""
        self.stream.load_state_dict(saved["base"])
        self._base, self._events = None, []
        self._open.clear()
        return self.replay(saved["events"], last)

    def replay(self, events: list[Event], last: int) -> list[Event]:
        """Do again what was done, up to the first feedback for a batch after `last`; return the rest."""
        for done, (number, norms) in enumerate(events):
            if norms is None:
                self.stream.draw(number)
            elif number == MEASURED:
                square, product, size, adaptive = norms.tolist()
                self.stream.measure(square, product, int(size), bool(adaptive))
            elif number > last:
                return events[done:]
            elif number in self.stream.outstanding:
                self.stream.learn(number, norms.numpy())
        return []


def _bytes(state: Any) -> int:
    """Of the tensors in nested dictionaries."""
    if isinstance(state, dict):
        return sum(map(_bytes, state.values()))
    return state.nbytes if isinstance(state, torch.Tensor) else 0
