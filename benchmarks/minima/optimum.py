"""F*, certified: by a duality gap, or where that is loose by a second opinion; by nobody if there is not the time."""

import time
from dataclasses import dataclass

import numpy as np

import banditgrad as bg
from minima.fits import PASSES
from minima.problems import Case
from second_opinion import second_opinion

TIGHT = 1e-7  # relative to F: a gap that leaves no doubt at 1e-6
FLOOR = 1e-12  # relative to F(w0): F* may be as good as nothing
SEED = 1000  # of a run that is none of the fits
SECONDS = 300.0


@dataclass(frozen=True)
class Optimum:
    """The least F known, a lower bound from duality, and what certifies that the minimum is not much lower."""

    set: str
    kind: str
    value: float
    bound: float
    by: str  # "gap", "second opinion" or "nobody"

    @property
    def certified(self) -> bool:
        return self.by != "nobody"


def find(case: Case, seconds: float = SECONDS) -> Optimum:
    problem, deadline = case.problem, time.monotonic() + seconds
    result = bg.minimise(problem, passes=PASSES, seed=SEED, callback=lambda progress: time.monotonic() >= deadline)
    value, bound, by = result.value, max(result.value - result.gap, 0.0), "nobody"  # no loss is negative
    enough = FLOOR * problem.value(np.zeros(problem.dimension))
    for start in (result.w, np.zeros(problem.dimension)):
        if by == "nobody" and value - bound > TIGHT * value + enough:
            w, doubt = second_opinion(case.X, case.y, problem, start, deadline)
            other = problem.value(w)
            value, bound = min(value, other), max(bound, other - problem.gap(w))
            by = "second opinion" if doubt <= TIGHT * value + enough else "nobody"
    by = "gap" if value - bound <= TIGHT * value + enough else by
    return Optimum(case.data.name, case.kind.name, float(value), float(bound), by)
