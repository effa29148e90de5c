"""The clock of the race: processor and wall seconds of one call in this process, all its threads counted."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_paused = [0.0, 0.0]


@contextmanager
def unclocked() -> Iterator[None]:
    """What is done inside does not count: for a peer that compiles anew at every call."""
    cpu, wall = time.process_time(), time.perf_counter()
    try:
        yield
    finally:
        _paused[0] += time.process_time() - cpu
        _paused[1] += time.perf_counter() - wall


def timed(function: Callable[..., Any], *arguments: Any) -> tuple[float, float, Any]:
    """Processor seconds, wall seconds, and what the function returned."""
    _paused[:] = 0.0, 0.0
    cpu, wall = time.process_time(), time.perf_counter()
    result = function(*arguments)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return cpu - _paused[0], wall - _paused[1], result
