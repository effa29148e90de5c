"""What a task is, a piece of work whose outcome is kept, and the most common one: a run of `minimise`."""

import math
import threading
import time
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import banditgrad as bg
from banditgrad.paper.cases import Cases
from banditgrad.paper.scale import BOUND, TENFOLD

Outcome = dict[str, Any]  # what JSON can hold

SOLVERS = {"SGD": bg.Sgd, "Prox-SVRG": bg.ProxSvrg, "SAGA": bg.Saga, "S2GD": bg.S2gd, "SQN": bg.Sqn}
SAMPLERS = {
    "uniform": bg.Uniform(),
    "IS": bg.Importance(),
    "MABS": bg.Mabs(),
    BOUND: bg.Mabs(delta="bound"),
    TENFOLD: bg.Mabs(relax=0.1),
    "VRB": bg.Vrb(),
    "RecentNorm": bg.RecentNorm(),
}


class Stopped(Exception):
    """The work was broken off because the program ends; there is no outcome."""


class Task(Protocol):
    """Work with an outcome that depends on nothing but its settings, the data and the code."""

    def settings(self) -> dict[str, Any]:
        """All that the outcome depends on besides data and code, in words and numbers."""
        ...

    def data(self, cases: Cases) -> str:
        """The hash of the data."""
        ...

    def work(self, cases: Cases, stop: threading.Event) -> Outcome:
        """Do it; raise `Stopped` soon after `stop` is set."""
        ...

    def kind(self) -> Hashable:
        """Tasks of one kind take a time in proportion to their `units`."""
        ...

    def units(self, cases: Cases) -> float: ...

    def trial(self, cases: Cases) -> float:
        """Seconds per unit, from a short trial, which also compiles."""
        ...


@dataclass(frozen=True)
class Run:
    """One run of a solver with a sampler: F at evenly spaced records, and the effective variance if wanted."""

    case: str
    solver: str
    options: tuple[tuple[str, Any], ...]
    sampler: str
    draws: int  # T, counted in rows
    records: int = 1  # besides the one before any step
    variance: bool = False
    seed: int = 0

    def settings(self) -> dict[str, Any]:
        return {
            "case": self.case,
            "solver": repr(self._solver()),
            "sampler": f"{self.sampler}: {SAMPLERS[self.sampler]!r}",
            "draws": self.draws,
            "records": self.records,
            "variance": self.variance,
            "seed": self.seed,
        }

    def data(self, cases: Cases) -> str:
        return cases[self.case].data_hash

    def work(self, cases: Cases, stop: threading.Event) -> Outcome:
        result = self._minimise(cases, stop)
        history, diverged = result.history, result.reason is bg.Reason.DIVERGED
        missing = [math.inf] * (self.records + 1 - history.value.size)
        outcome: Outcome = {"value": _diverged_from(history.value.tolist()) + missing}
        if self.variance:
            last = history.effective_variance[-1] if history.effective_variance is not None else math.nan
            outcome["variance"] = math.inf if diverged else float(last)
        if "clipped_share" in (statistics := result.sampling.statistics()):
            outcome["clipped"] = statistics["clipped_share"]
        return outcome

    def kind(self) -> Hashable:
        return self.case.partition("=")[0], self.solver, self.options, self.sampler

    def units(self, cases: Cases) -> float:
        """Draws; a record costs about a quarter of a pass."""
        return self.draws + 0.25 * cases[self.case].problem.n * (self.records + 2)

    def trial(self, cases: Cases) -> float:
        n, batch = cases[self.case].problem.n, dict(self.options).get("batch_size", 1)
        short = replace(
            self, draws=max(1, min(self.draws, max(n // 4, 3000), 400 * batch if batch > 1 else n)), records=1
        )
        never = threading.Event()
        replace(short, draws=batch).work(cases, never)  # compiles
        seconds = []
        for _ in range(2):  # the first may still have something to load
            begin = time.perf_counter()
            short.work(cases, never)
            seconds.append(time.perf_counter() - begin)
        return min(seconds) / short.units(cases)

    def _solver(self) -> Any:
        return SOLVERS[self.solver](**dict(self.options))

    def _minimise(self, cases: Cases, stop: threading.Event) -> bg.Result:
        problem = cases[self.case].problem
        passes = self.draws / problem.n
        result = bg.minimise(
            problem,
            self._solver(),
            SAMPLERS[self.sampler],
            passes=passes,
            seed=self.seed,
            record_every=passes / self.records,
            record_variance=self.variance,
            callback=lambda progress: stop.is_set(),
        )
        ended(result)
        return result


def ended(result: bg.Result) -> None:
    """Raise if the run was broken off."""
    if result.reason is bg.Reason.INTERRUPTED:
        raise KeyboardInterrupt
    if result.reason is bg.Reason.CALLBACK:
        raise Stopped


def _diverged_from(values: list[float]) -> list[float]:
    """The values, infinite where they are not a number."""
    return [value if math.isfinite(value) else math.inf for value in values]
