"""What sampling bought over a run: the variance of the solver's estimator beside that of uniform sampling.

A look at it costs about as much as a look at F, and the ratio jumps about: so looks are ever further apart, with a last
one at the end, and each stands for the passes since the one before. Of 100 passes 18 are looked at; the mean over three
seeds each of `ProxSvrg` and `Saga` was within a quarter of that over all passes, mostly within a tenth.
"""

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from banditgrad.problem import Problem, effective_variance
from banditgrad.samplers import Sampler
from banditgrad.solvers import Solver

APART = 1.25  # the passes at one look over those at the last


class VarianceRatio:
    """Of one run of `minimise`, which is to be given the `solver` and `sampler` of this object."""

    def __init__(self, problem: Problem, solver: Solver, sampler: Sampler) -> None:
        self.problem = problem
        self.solver = _with_start(solver, self._solver_started)
        self.sampler = _with_start(sampler, self._sampler_started)
        self._state: Any = None
        self._sampling: Any = None
        self._looks: list[tuple[float, float]] = []  # passes since the last look, and the ratio
        self._last, self._next = 0.0, 1.0

    def after(self, passes: float) -> None:
        """Take a look if it is time."""
        if passes >= self._next:
            self.look(passes)
            self._next = APART * passes

    def look(self, passes: float) -> None:
        if passes <= self._last:
            return
        with np.errstate(over="ignore", invalid="ignore"):  # of a run that has diverged
            a = self.solver.feedback(self.problem, self._state)
            uniform = self.problem.n * float(a.sum())
        if 0.0 < uniform < math.inf:
            ratio = effective_variance(a, self._sampling.probabilities()) / uniform
            self._looks.append((passes - self._last, ratio))
        self._last = passes

    @property
    def mean(self) -> float:
        """Over the passes; 1 where there was no variance."""
        total = sum(passes for passes, _ in self._looks)
        return sum(passes * ratio for passes, ratio in self._looks) / total if total > 0.0 else 1.0

    def _solver_started(self, state: Any) -> None:
        self._state = state

    def _sampler_started(self, sampling: Any) -> None:
        self._sampling = sampling


def _with_start(part: Any, tell: Callable[[Any], None]) -> Any:
    """A copy whose `start` also tells what it returns: the state that a run changes in place."""

    def start(*args: Any, **kwargs: Any) -> Any:
        started = part.start(*args, **kwargs)
        tell(started)
        return started

    twin = copy.copy(part)
    object.__setattr__(twin, "start", start)  # parts are frozen
    return twin
