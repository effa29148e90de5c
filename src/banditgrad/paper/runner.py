"""Computes what is missing, in threads, and keeps every outcome as soon as it is there.

The order is by repeat, not by panel: broken off at any time, all panels have been run about equally often.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

from banditgrad.paper.store import Results
from banditgrad.paper.tasks import Outcome, Task


@dataclass(frozen=True)
class Plan:
    """The tasks of each panel, and what they will cost."""

    panels: Mapping[str, Sequence[Task]]
    missing: Sequence[Task]
    alone: Sequence[Task]  # of these, the ones that measure time and must run when nothing else does
    prices: Mapping[Task, float]  # seconds that each missing task will take

    @property
    def seconds(self) -> float:
        return sum(self.prices.values())

    def duration(self, workers: int) -> float:
        """Seconds until all is done."""
        serial = sum(self.prices[task] for task in self.alone)
        return serial + (self.seconds - serial) / workers


@dataclass(frozen=True)
class State:
    """How far the work is."""

    tasks_done: int
    tasks: int
    panels_done: int
    panels: int
    share: float  # of the cost
    elapsed: float

    @property
    def rate(self) -> float:
        return self.tasks_done / self.elapsed if self.elapsed > 0.0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """None before anything can be said, and when all is done."""
        unknown = self.share == 0.0 or self.tasks_done == self.tasks
        return None if unknown else self.elapsed * (1.0 - self.share) / self.share


def plan(panels: Mapping[str, Sequence[Task]], results: Results, say: Callable[[str], None]) -> Plan:
    """Find what is missing, and try one task of each kind for a moment to know how long all will take."""
    distinct = list(dict.fromkeys(task for tasks in panels.values() for task in tasks))
    missing = [task for task in distinct if results.find(task) is None]
    missing.sort(key=lambda task: getattr(task, "seed", -1))  # stable; tasks without a seed, such as optima, come first
    rates: dict[object, float] = {}
    for task in missing:
        if task.kind() not in rates:
            say(f"trying {' '.join(str(part) for part in _words(task.kind()))}")
            rates[task.kind()] = task.trial(results.cases)
    prices = {task: rates[task.kind()] * task.units(results.cases) for task in missing}
    alone = [task for task in missing if getattr(task, "alone", False)]
    return Plan(panels, missing, alone, prices)


def _words(kind: object) -> tuple[object, ...]:
    return kind if isinstance(kind, tuple) else (kind,)


def carry_out(plan: Plan, results: Results, workers: int, show: Callable[[State], None], sweep: Any = None) -> None:
    """Compute and keep what is missing. Interrupted, it lets go of what is under way and keeps the rest.

    A `sweep` computes on a cluster what may run together with other tasks, but for those that say `here`.
    """
    count = _Count(plan, show)
    together = [task for task in plan.missing if task not in set(plan.alone)]
    if sweep is not None:
        away = [task for task in together if not getattr(task, "here", False)]
        together = [task for task in together if getattr(task, "here", False)]
        names = {name for task in away if (name := getattr(task, "case", None))}
        cases = {name: results.cases[name] for name in names}  # the data, which workers may not have
        for k, outcome in sweep.as_done(work_on, cases, away):
            results.keep(away[k], outcome)
            count.finished(away[k])
    stop = threading.Event()

    def compute(task: Task) -> Task:
        outcome: Outcome = task.work(results.cases, stop)
        results.keep(task, outcome)
        return task

    with ThreadPoolExecutor(workers) as pool:
        try:
            for future in as_completed([pool.submit(compute, task) for task in together]):
                count.finished(future.result())
            for task in plan.alone:
                count.finished(pool.submit(compute, task).result())
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


def work_on(cases: Any, task: Any) -> Outcome:
    """A task's work where nothing can break it off."""
    outcome: Outcome = task.work(cases, threading.Event())
    return outcome


class _Count:
    def __init__(self, plan: Plan, show: Callable[[State], None]) -> None:
        self._plan, self._show, self._begin = plan, show, time.monotonic()
        self._done, self._paid, self._total = 0, 0.0, plan.seconds
        waiting = set(plan.missing)
        self._left = {name: {task for task in tasks if task in waiting} for name, tasks in plan.panels.items()}
        self._tell()

    def finished(self, task: Task) -> None:
        self._done += 1
        self._paid += self._plan.prices[task]
        for tasks in self._left.values():
            tasks.discard(task)
        self._tell()

    def _tell(self) -> None:
        share = min(1.0, self._paid / self._total) if self._total > 0.0 else 1.0
        panels_done = sum(not tasks for tasks in self._left.values())
        elapsed = time.monotonic() - self._begin
        self._show(State(self._done, len(self._plan.missing), panels_done, len(self._left), share, elapsed))
