"""The race itself: one worker process per contender and seed, one running at a time, minima over rounds.

A contender has a ladder of efforts. In its first turn it climbs, a few rungs at a time, until it reaches the finest
accuracy or its time is up, and then searches between the rungs for the least effort that reaches each accuracy. In
every later turn it repeats the rungs that count. Each fit is a fresh one. The value F(w) is taken here, by
`Problem.value`, and not by the contender.

Its time is up when a fit takes longer than `budget` seconds, or, but for our own, `patience` times what the fastest so
far needed for the finest accuracy: whoever is so far behind is not first anywhere. For the same reason a peer has no
further rounds and seeds that is, at every accuracy, slower than we are by more than `FAR`.
"""

import ctypes
import math
import multiprocessing
import os
import signal
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from race.clock import timed
from race.contenders import OURS, Contender
from race.optimum import Optimum
from race.problems import Task

TARGETS = (1e-3, 1e-4, 1e-6, 1e-8)
STRIDE = 4  # rungs at a time on the way up
STALE = 4  # strides without a better value, after which to give up
LEAST_BUDGET = 0.1  # seconds; patience is for long runs
FAR = 3.0
SHORT, OFTEN = 0.01, 10  # seconds: a fit is repeated at once until so much is spent, so many times; the fastest counts
START = 180.0  # seconds that a worker may take to convert the data, to compile and for a first fit
KEEP_BELOW = 200e6  # bytes of data up to which workers live through all rounds, each with its own copy


class Fit(NamedTuple):
    """One fit: its rung on the ladder, processor and wall seconds, and F(w) − F*."""

    rung: int
    cpu: float
    wall: float
    distance: float


class Limits(NamedTuple):
    rounds: int = 3
    seeds: int = 3
    budget: float = 20.0
    patience: float = 5.0


class Failed(Exception):
    """A contender that cannot go on, why, and how long it was waited for."""

    def __init__(self, why: str, seconds: float = math.inf) -> None:
        super().__init__(why)
        self.seconds = seconds


class Worker:
    """A contender in a process of its own: forked, so that it has the data, and able to crash alone."""

    def __init__(self, contender: Contender, task: Task, seed: int, patience: float) -> None:
        context = multiprocessing.get_context("fork")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, contender, task, seed), daemon=True)
        self.process.start()
        theirs.close()
        try:
            self._receive(patience)
        except Failed:
            self.close()
            raise

    def fit(self, rung: int, patience: float) -> tuple[float, float, np.ndarray]:
        return self._receive(patience, rung)

    def _receive(self, patience: float, rung: int | None = None) -> Any:
        """The answer: to the rung, or that it is ready."""
        try:
            if rung is not None:
                self.connection.send(rung)
            if not self.connection.poll(patience):
                raise Failed(f"no answer in {patience:.0f} s", patience)
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


def _serve(connection: Any, contender: Contender, task: Task, seed: int) -> None:
    """In the worker: warm up, then a fit for every rung that is asked for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # compiled peers write to it whatever they are told
    os.dup2(nowhere, 2)
    warnings.simplefilter("ignore")
    try:
        contender.fit(task.head(), seed)(contender.ladder[len(contender.ladder) // 2])
        fit = contender.fit(task, seed)
        fit(contender.ladder[0])  # what depends on the size is compiled, and caches are warm
        connection.send(None)
        while True:
            rung = connection.recv()
            connection.send(_fastest(fit, contender.ladder[rung]))
    except EOFError:
        pass
    except Exception as error:
        connection.send(f"{type(error).__name__}: {error}"[:300])


def _fastest(fit: Callable[[Any], Any], effort: Any) -> tuple[float, float, np.ndarray]:
    """Processor and wall seconds, of several fits where they are short, and w."""
    cpu, wall, w = timed(fit, effort)
    spent, repeats = wall, 1
    while spent < SHORT and repeats < OFTEN:
        again = timed(fit, effort)
        cpu, wall = min(cpu, again[0]), min(wall, again[1])
        spent, repeats = spent + again[1], repeats + 1
    return cpu, wall, np.asarray(w, dtype=np.float64)


@dataclass
class Entry:
    """A contender with one seed in the race for one task, and its fits."""

    contender: Contender
    seed: int
    task: Task
    distance: Callable[[np.ndarray], float]
    limits: Limits
    targets: Sequence[float] = TARGETS  # those that F* is known well enough for
    fits: list[Fit] = field(default_factory=list)
    note: str = ""
    cutoff: float = math.inf  # the seconds of the fit after which its time was up; infinity if it stopped for itself
    worker: Worker | None = None

    def turn(self, first: bool, leader: float) -> None:
        """One turn; `leader` is the least time so far to the finest accuracy."""
        budget = min(self.limits.budget, max(LEAST_BUDGET, self.limits.patience * leader))
        try:
            if first:
                self._search(budget)
            else:
                for rung in sorted({fit.rung for fit in map(self.best, self.targets) if fit is not None}):
                    self.fit(rung, budget)
        except Failed as failure:  # it did not even begin
            self.note = str(failure)
        if self.task.nbytes > KEEP_BELOW:
            self.close()

    def fit(self, rung: int, budget: float) -> Fit:
        """One fit; where it fails it is as if it took forever, and the next has a new process."""
        self.worker = self.worker or Worker(self.contender, self.task, self.seed, START)
        try:
            cpu, wall, w = self.worker.fit(rung, 10.0 + 5.0 * budget)
            finite = w.shape == self.task.shape and np.isfinite(w).all()
            self.fits.append(Fit(rung, cpu, wall, self.distance(w) if finite else math.inf))
        except Failed as failure:
            self.note = f"with effort {self.contender.ladder[rung]:.3g}: {failure}"
            self.fits.append(Fit(rung, failure.seconds, failure.seconds, math.inf))
            self.close()
        return self.fits[-1]

    def best(self, target: float, seconds: str = "cpu") -> Fit | None:
        """The fastest fit with F − F* ≤ target."""
        reached = [fit for fit in self.fits if fit.distance <= target]
        return min(reached, key=lambda fit: getattr(fit, seconds), default=None)

    def far_behind(self, ours: Sequence["Entry"]) -> bool:
        """At every accuracy."""
        for target in self.targets:
            mine = self.best(target)
            times = [fit.cpu if (fit := entry.best(target)) else math.inf for entry in ours]
            if mine is not None and mine.cpu <= FAR * max(times, default=math.inf):
                return False
        return True

    def _search(self, budget: float) -> None:
        self._climb(budget)
        for target in self.targets:
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
            if fit.distance <= self.targets[-1] or stale == STALE:
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
    import sklearn.linear_model  # noqa: F401  # before workers are forked: most contenders need it, and it takes a second

    problem = task.problem()

    def distance(w: np.ndarray) -> float:
        return problem.value(w) - optimum.value

    targets = [target for target in TARGETS if optimum.certifies(target)]
    if not targets:
        return []
    entries = [
        Entry(c, seed, task, distance, limits, targets)
        for seed in range(limits.seeds)
        for c in contenders
        if task.kind in c.solves and (c.takes_seed or seed == 0)
    ]
    entries.sort(key=lambda entry: entry.contender.name != OURS)
    ours = [entry for entry in entries if entry.contender.name == OURS]
    try:
        for round_ in range(limits.rounds):
            for entry in entries:
                namesake = next(e for e in entries if e.contender is entry.contender)
                if (round_ > 0 or entry.seed > 0) and entry not in ours and namesake.far_behind(ours):
                    entry.close()
                    continue
                tell(f"{task.name}, round {round_ + 1}: {entry.contender.name}")
                times = [fit.cpu for other in entries if (fit := other.best(targets[-1])) is not None]
                entry.turn(round_ == 0, math.inf if entry in ours else min(times, default=math.inf))
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
