"""The race itself: one worker process per contender, one contender running at a time, minima over rounds.

A contender has a ladder of efforts. In its first turn it climbs, a few rungs at a time, until it reaches the finest
accuracy or its time is up, and then searches between the rungs for the least effort that reaches each accuracy. In
every later turn it repeats the rungs that count. Each fit is a fresh one. The value F(w) is taken here, by
`Problem.value`, and not by the contender.

Its time is up when a fit takes longer than `budget` seconds, or `patience` times what the fastest so far needed for
the finest accuracy: whoever is so far behind is not first anywhere.
"""

import ctypes
import math
import multiprocessing
import os
import signal
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from race.clock import timed
from race.contenders import Contender
from race.optimum import Optimum
from race.problems import Task

TARGETS = (1e-3, 1e-4, 1e-6, 1e-8)
STRIDE = 4  # rungs at a time on the way up
STALE = 6  # strides without a better value, after which to give up
LEAST_BUDGET = 1.0  # seconds; patience is for long runs
KEEP_BELOW = 200e6  # bytes of data up to which workers live through all rounds, each with its own copy


class Fit(NamedTuple):
    """One fit: its rung on the ladder, processor and wall seconds, and F(w) − F*."""

    rung: int
    cpu: float
    wall: float
    distance: float


class Limits(NamedTuple):
    rounds: int = 3
    budget: float = 20.0
    patience: float = 5.0


class Failed(Exception):
    """A contender that cannot go on, and why."""


class Worker:
    """A contender in a process of its own: forked, so that it has the data, and able to crash alone."""

    def __init__(self, contender: Contender, task: Task, patience: float) -> None:
        context = multiprocessing.get_context("fork")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, contender, task), daemon=True)
        self.process.start()
        theirs.close()
        self._receive(patience)

    def fit(self, rung: int, patience: float) -> tuple[float, float, np.ndarray]:
        self.connection.send(rung)
        return self._receive(patience)

    def _receive(self, patience: float) -> Any:
        try:
            if not self.connection.poll(patience):
                raise Failed(f"no answer in {patience:.0f} s")
            answer = self.connection.recv()
        except (EOFError, ConnectionError):
            self.process.join(5)
            raise Failed(f"its process ended with {self.process.exitcode}") from None
        if isinstance(answer, str):
            raise Failed(answer)
        return answer

    def close(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def _serve(connection: Any, contender: Contender, task: Task) -> None:
    """In the worker: warm up, then a fit for every rung that is asked for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # compiled peers write to it whatever they are told
    os.dup2(nowhere, 2)
    warnings.simplefilter("ignore")
    try:
        contender.prepare(task.head())(contender.ladder[len(contender.ladder) // 2])
        fit = contender.prepare(task)
        fit(contender.ladder[0])  # what depends on the size is compiled, and caches are warm
        connection.send(None)
        while True:
            rung = connection.recv()
            cpu, wall, w = timed(fit, contender.ladder[rung])
            connection.send((cpu, wall, np.asarray(w, dtype=np.float64)))
    except EOFError:
        pass
    except Exception as error:
        connection.send(f"{type(error).__name__}: {error}"[:300])


@dataclass
class Entry:
    """A contender in the race for one task, and its fits."""

    contender: Contender
    task: Task
    distance: Callable[[np.ndarray], float]
    limits: Limits
    fits: list[Fit] = field(default_factory=list)
    note: str = ""
    cutoff: float = math.inf  # the seconds of the fit after which its time was up; infinity if it stopped for itself
    worker: Worker | None = None

    def turn(self, first: bool, leader: float) -> None:
        """One turn; `leader` is the least time so far to the finest accuracy."""
        if self.note and not self.fits:
            return
        budget = min(self.limits.budget, max(LEAST_BUDGET, self.limits.patience * leader))
        try:
            self.worker = self.worker or Worker(self.contender, self.task, 60.0 + 4.0 * self.limits.budget)
            if first:
                self._search(budget)
            else:
                for rung in sorted({fit.rung for fit in map(self.best, TARGETS) if fit is not None}):
                    self.fit(rung, budget)
        except Failed as failure:
            self.note = str(failure)
            self.close()
        if self.task.nbytes > KEEP_BELOW:
            self.close()

    def fit(self, rung: int, budget: float) -> Fit:
        assert self.worker is not None
        cpu, wall, w = self.worker.fit(rung, 10.0 + 5.0 * budget)
        finite = w.shape == (self.task.d,) and np.isfinite(w).all()
        self.fits.append(Fit(rung, cpu, wall, self.distance(w) if finite else math.inf))
        return self.fits[-1]

    def best(self, target: float, seconds: str = "cpu") -> Fit | None:
        """The fastest fit with F − F* ≤ target."""
        reached = [fit for fit in self.fits if fit.distance <= target]
        return min(reached, key=lambda fit: getattr(fit, seconds), default=None)

    def _search(self, budget: float) -> None:
        self._climb(budget)
        for target in TARGETS:
            above = min((fit.rung for fit in self.fits if fit.distance <= target), default=None)
            if above is None:
                return
            below = max((fit.rung for fit in self.fits if fit.rung < above), default=-1)
            while above - below > 1:
                middle = (above + below) // 2
                if self.fit(middle, budget).distance <= target:
                    above = middle
                else:
                    below = middle

    def _climb(self, budget: float) -> None:
        least, stale = math.inf, 0
        last = len(self.contender.ladder) - 1
        for rung in [*range(0, last, STRIDE), last]:
            fit = self.fit(rung, budget)
            stale = 0 if fit.distance < 0.99 * least else stale + 1
            least = min(least, fit.distance)
            if fit.distance <= TARGETS[-1] or stale == STALE:
                break
            if fit.cpu > budget:
                self.cutoff = fit.cpu
                break

    def close(self) -> None:
        if self.worker is not None:
            self.worker.close()
            self.worker = None


def race(
    task: Task,
    contenders: Iterable[Contender],
    optimum: Optimum,
    limits: Limits,
    tell: Callable[[str], Any] = lambda text: None,
) -> list[Entry]:
    """Every contender that solves the task, after all rounds."""
    problem = task.problem()
    problem.value(np.zeros(task.d))

    def distance(w: np.ndarray) -> float:
        return problem.value(w) - optimum.value

    entries = [Entry(c, task, distance, limits) for c in contenders if task.kind in c.solves]
    try:
        for round_ in range(limits.rounds):
            for entry in entries:
                tell(f"{task.name}, round {round_ + 1}: {entry.contender.name}")
                times = [fit.cpu for other in entries if (fit := other.best(TARGETS[-1])) is not None]
                entry.turn(round_ == 0, min(times, default=math.inf))
    finally:
        for entry in entries:
            entry.close()
        _give_back_memory()
    return entries


def _give_back_memory() -> None:
    """Freed data of the last task should not stand in the way of the next."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
