"""F*, certified by a duality gap from the margins, so that wide data take part too.

The point comes from whoever comes nearest: the default solver, Newton steps in plain NumPy on the exact Hessian, L-BFGS
where F is smooth. The gap of `Problem.gap` holds for any point, whoever found it. For L1 on columns of very different
size it is loose, as it shrinks all slopes for the sake of one column; then it is told what the next Newton step would
gain, which those steps in plain NumPy say of themselves.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.optimize

import banditgrad as bg
from banditgrad._files import write_atomically
from race.problems import Task, fingerprint
from second_opinion import second_opinion

ENOUGH = 1e-10  # a gap that leaves no doubt at F − F* = 1e-8
PASSES, TOL, SECONDS = 500, 1e-9, 20.0


class Optimum(NamedTuple):
    """The least value found, how far at most it is above the true one, and what says so."""

    value: float
    doubt: float
    by: str = "a duality gap"

    def certifies(self, target: float) -> bool:
        """Whether F − F* ≤ target can be told."""
        return self.doubt <= 0.1 * target

    def __str__(self) -> str:
        return f"F* = {self.value:.9g}, certified by {self.by} of {self.doubt:.1e}"


def certified_optimum(task: Task, cache: Path | None = None) -> Optimum:
    """F* and its gap, from the cache if it has them for these very data."""
    known = json.loads(cache.read_text()) if cache is not None and cache.exists() else {}
    key = fingerprint(task)
    if key not in known:
        known[key] = {"task": task.name, **compute(task)._asdict()}
        if cache is not None:
            write_atomically(cache, json.dumps(known, indent=1).encode())
    return Optimum(*(known[key][name] for name in Optimum._fields))


def compute(task: Task) -> Optimum:
    """The least value and the highest lower bound of all candidates, until the two are close."""
    problem, value, bound, least = task.problem(), np.inf, -np.inf, np.inf
    for w, promise in candidates(task, problem):
        here = problem.value(w)
        value, bound, least = min(value, here), max(bound, here - problem.gap(w)), min(least, promise)
        if value - bound <= ENOUGH:
            return Optimum(value, max(0.0, value - bound))
    gap = Optimum(value, value - bound)
    return min(gap, Optimum(value, least, "a Newton step's promise"), key=lambda optimum: optimum.doubt)


def candidates(task: Task, problem: bg.Problem) -> Iterator[tuple[np.ndarray, float]]:
    """Points, and what the next step from there promises, if it is known."""
    w = bg.minimise(problem, passes=PASSES, tol=TOL, time_limit=SECONDS, seed=1000).w
    yield w, np.inf
    if len(task.shape) == 1:
        yield second_opinion(task.X, task.y, problem, w)
    if task.kind.endswith("l2"):
        w = _lbfgs(task, problem, w)
        yield w, np.inf
    for seed in (1001, 1002):
        w = bg.minimise(problem, passes=PASSES, time_limit=SECONDS, seed=seed, w0=w).w
        yield w, np.inf


def _lbfgs(task: Task, problem: bg.Problem, start: np.ndarray) -> np.ndarray:
    def value_and_gradient(w):
        return problem.value(w), problem.gradient(w) + task.strength * w

    options = {"maxiter": 300, "maxfun": 600, "maxcor": 20, "ftol": 0.0, "gtol": 1e-12}
    return scipy.optimize.minimize(
        value_and_gradient, start.ravel(), jac=True, method="L-BFGS-B", options=options
    ).x.reshape(task.shape)
