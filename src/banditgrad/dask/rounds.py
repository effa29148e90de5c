"""The rounds of all problems of a fit at once: one exchange with the partitions serves every problem that wants one."""

import math
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad.dask.checkpoint import Checkpoint
from banditgrad.dask.descent import Descent, Evaluate, Probe, Shape
from banditgrad.dask.partitions import Partition
from banditgrad.dask.subspace import Point
from banditgrad.minimise import History, Progress, Reason

Vector = NDArray[np.float64]
Exchange = Generator[Any, Any, Any]


@dataclass(frozen=True)
class RoundHistory(History):
    """As `History`, with an entry per round, the first before any; `passes` are rows drawn over rows held.

    `bytes` were sent and received until then, by all problems together: arguments and answers of the tasks on
    partitions, without what Dask adds to them.
    """

    rounds: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    bytes: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))


class Limits(NamedTuple):
    """When to stop."""

    rounds: int
    tol: float  # as `Problem.relative_optimality`
    seconds: float


class Held(NamedTuple):
    """The partitions that have rows: what the backend holds, and their shares of all weight."""

    backend: Any
    partitions: list[Any]
    shares: list[float]

    def ask(self, requests: dict[int, Any]) -> list[Vector]:
        """The answers to requests by problem, over all partitions."""
        return list(self.backend.total(Partition.answer, self.partitions, self.shares, requests))


class Phase(Enum):
    """Where a run is: AT_ZERO → (AT_START →) ROUNDS → (LAST_STEP →) ENDED; a limit ends it in any of them."""

    AT_ZERO = "F at w = 0, which distances go by"
    AT_START = "F where a warm start begins"
    ROUNDS = "rounds"
    LAST_STEP = "a last proximal step, for coordinates that an l1 norm holds at zero"
    ENDED = "nothing left to ask"


class Run:
    """One problem on its way: its `phase`, what it asks next, `request`, until it has ended, and its records.

    What a phase asks is a generator of `Descent`'s, an *exchange*, that yields requests and takes answers.
    """

    phase: Phase
    request: Any

    def __init__(self, shape: Shape, start: Vector, limits: Limits) -> None:
        self.descent, self.reason = Descent(shape), Reason.INTERRUPTED
        self.noise = np.zeros(2)  # sums over the rounds: of the estimator as it is, and under uniform sampling
        self.passes = 0.0  # rows drawn, in passes over the data; partitions count by their weight
        self.stalled = False  # whether F fell no more although the gradient is above tol
        self._start, self._limits, self._origin = start, limits, (math.inf, math.inf)
        self._records: list[tuple[float, ...]] = []
        self._enter(Phase.AT_ZERO, self.descent.evaluate(np.zeros_like(start)))

    @property
    def distance(self) -> float:
        """As `Problem.relative_optimality`, from the partitions' sums."""
        here = self.descent.here
        return relative_optimality(self.descent.optimality(here), here.value, *self._origin)

    @property
    def w(self) -> Vector:
        """The best point, as users have it."""
        return self.descent.here.w.reshape(self.descent.shape.form)

    @property
    def started(self) -> bool:
        return bool(self._records)

    @property
    def history(self) -> RoundHistory:
        passes, seconds, value, rounds, sent = (np.array(column) for column in zip(*self._records, strict=True))
        return RoundHistory(passes, seconds, value, rounds=rounds.astype(np.int64), bytes=sent.astype(np.int64))

    def take(self, answer: Vector, seconds: float, sent: int, callback: Callable[[Progress], Any] | None) -> None:
        """Go on with an answer to `request`."""
        found = self._advance(self._read(answer))
        if self.phase is Phase.AT_ZERO and found is not None:
            self._leave_zero(found)
        elif self.phase is Phase.AT_START and found is not None:
            self._begin(found if math.isfinite(found.value) else self._zero)
        if self.phase is Phase.ROUNDS and len(self._records) <= self.descent.rounds:
            self._record(seconds, sent)
            self._judge(seconds, callback)
        elif self.phase is Phase.ROUNDS and seconds >= self._limits.seconds:
            self._end(Reason.TIME_LIMIT)
        elif self.phase is Phase.LAST_STEP:
            self._record(seconds, sent)
            if self.request is None:
                self.phase = Phase.ENDED

    def _enter(self, phase: Phase, exchange: Exchange) -> None:
        self.phase, self._exchange = phase, exchange
        self.request = next(exchange, None)

    def _read(self, answer: Vector) -> Any:
        """What the partitions summed, as the exchange wants it; loops are counted on the way."""
        if isinstance(self.request, Evaluate):
            return float(answer[0]), answer[1:]
        if isinstance(self.request, Probe):
            return answer
        self.noise += answer[:2]
        self.passes += float(answer[2])
        return answer[3:]

    def _advance(self, content: Any) -> Any:
        """The next request; None, and what the exchange found, where it is over."""
        try:
            self.request = self._exchange.send(content)
        except StopIteration as over:
            self.request = None
            return over.value
        return None

    def _leave_zero(self, zero: Point) -> None:
        if not math.isfinite(zero.value):
            raise ValueError(f"F is {zero.value} at w = 0, where every fit begins. Scale the targets.")
        self._zero, self._origin = zero, (self.descent.optimality(zero), zero.value)
        if self._start.any() and self._origin[0] > 0.0:  # or zero is the minimiser
            self._enter(Phase.AT_START, self.descent.evaluate(self._start))
        else:
            self._begin(zero)

    def _begin(self, first: Point) -> None:
        self._enter(Phase.ROUNDS, self.descent.go(first))

    def _record(self, seconds: float, sent: int) -> None:
        descent = self.descent
        self._records.append((self.passes, seconds, descent.here.value, descent.rounds, sent))

    def _judge(self, seconds: float, callback: Callable[[Progress], Any] | None) -> None:
        """Whether to stop after a round."""
        descent, here = self.descent, self.descent.here
        if self.request is None:  # nothing left to gain
            self.stalled = 0.0 < self._limits.tol < self.distance
            self._end(Reason.CONVERGED)
        elif self._limits.tol > 0.0 and self.distance <= self._limits.tol:
            self._end(Reason.CONVERGED)
        elif descent.rounds >= self._limits.rounds:
            self._end(Reason.PASSES_DONE)
        elif seconds >= self._limits.seconds:
            self._end(Reason.TIME_LIMIT)
        elif descent.rounds > 0 and callback is not None:
            progress = Progress(self.passes, seconds, here.value, self.w.copy())
            if callback(progress):
                self._end(Reason.CALLBACK)

    def _end(self, reason: Reason) -> None:
        self.reason, self.request = reason, None
        if reason in (Reason.CONVERGED, Reason.PASSES_DONE) and self.descent.shape.l1 > 0.0:
            self._enter(Phase.LAST_STEP, self.descent.polish())
        else:
            self.phase = Phase.ENDED


def relative_optimality(norm: float, value: float, norm_at_zero: float, value_at_zero: float) -> float:
    """What `tol` bounds, as in `Problem.relative_optimality`: with o for the norm,

    max( o(w) / o(0),  min( o(w) / √F(w), √(F(w) / F(0)) ) )
    """
    left = min(_ratio(norm, math.sqrt(abs(value))), math.sqrt(_ratio(abs(value), abs(value_at_zero))))
    return max(_ratio(norm, norm_at_zero), left)


def _ratio(a: float, b: float) -> float:
    """a / b for numbers that are not negative; 0 / 0 is 0."""
    return a / b if b > 0.0 else (math.inf if a > 0.0 else 0.0)


def carry_out(
    runs: Sequence[Run],
    held: Held,
    callback: Callable[[Progress], Any] | None,
    show: Callable[[str], Any],
    checkpoint: Checkpoint | None = None,
) -> None:
    """Go on with all runs until each has ended, and write down where they are after every round. Ctrl-C ends them
    there, unless they have not begun."""
    rounds = 0
    begin, sent_before = time.perf_counter(), held.backend.bytes_moved
    try:
        while requests := {c: run.request for c, run in enumerate(runs) if run.request is not None}:
            answers = held.ask(requests)
            seconds, sent = time.perf_counter() - begin, held.backend.bytes_moved - sent_before
            for c, answer in zip(requests, answers, strict=True):
                runs[c].take(answer, seconds, sent, callback)
            show(_words(runs, seconds))
            if checkpoint and all(run.started for run in runs) and (done := _rounds(runs)) > rounds:
                rounds = done
                checkpoint.write([run.descent.here.w for run in runs])
    except KeyboardInterrupt:
        if not all(run.started for run in runs):
            raise


def _rounds(runs: Sequence[Run]) -> int:
    """Of all of them, with the last steps of those that make one."""
    return sum(run.descent.rounds + (run.phase is Phase.ENDED) for run in runs)


def _words(runs: Sequence[Run], seconds: float) -> str:
    begun = [run for run in runs if run.started]
    value = sum(run.descent.here.value for run in begun)
    rounds = max((run.descent.rounds for run in begun), default=0)
    left = sum(run.request is not None for run in runs)
    return f"round {rounds}, F = {value:.6g}, {seconds:.1f} s" + (f", {left} problems left" if len(runs) > 1 else "")


@contextmanager
def status(wanted: bool) -> Iterator[Callable[[str], Any]]:
    """A line that tells how far the rounds are, on a terminal; nothing elsewhere."""
    if not (wanted and sys.stderr.isatty()):
        yield lambda words: None
        return
    from rich.console import Console

    with Console(stderr=True).status("beginning") as line:
        yield line.update
