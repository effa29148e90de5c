"""Minimisers along a path of penalties, from the strongest that matters down, each fit starting from the last."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from banditgrad.minimise import Result, minimise
from banditgrad.penalties import Box, Form, Zero, strength_of, with_strength
from banditgrad.problem import Problem
from banditgrad.samplers import Sampler, Sampling
from banditgrad.solvers import SampledNewton, Solver, automatic_solver
from banditgrad.solvers.newton import Continued

Vector = NDArray[np.float64]

COUNT = 100
# The weakest penalty of a grid over the strongest. An l1 norm has chosen most features by 1e-3 of what removes them
# all; ridge acts on each direction once it is below the curvature there, and these spread over more decades.
L1_RANGE, L2_RANGE = 1e-3, 1e-6


@dataclass(frozen=True)
class Path:
    """Minimisers for a decreasing sequence of penalties.

    Attributes
    ----------
    alphas : the strengths of the penalty, decreasing
    results : one `Result` for each
    """

    alphas: Vector
    results: list[Result] = field(repr=False)

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    @property
    def w(self) -> Vector:
        """The minimisers, one row for each strength."""
        return np.array([result.w for result in self.results])

    @property
    def values(self) -> Vector:
        """F at each of them."""
        return np.array([result.value for result in self.results])

    @property
    def nonzeros(self) -> NDArray[np.int64]:
        """How many coordinates of each are not zero."""
        return np.array([np.count_nonzero(result.w) for result in self.results])

    @property
    def passes(self) -> float:
        """Passes over the data, in all."""
        return sum(result.passes for result in self.results)

    @property
    def seconds(self) -> float:
        """Seconds of solver work, in all."""
        return sum(result.seconds for result in self.results)


def path(
    problem: Problem,
    alphas: int | ArrayLike = COUNT,
    solver: Solver | str = "auto",
    sampler: Sampler | str = "auto",
    *,
    passes: float = 1000,
    tol: float = 1e-6,
    seed: Any = None,
    callback: Callable[[float, Result], Any] | None = None,
) -> Path:
    """Minimise the problem for many strengths of its penalty.

    Each fit starts where the last one ended, with what its sampler has learned.

    Parameters
    ----------
    problem : Problem
        With an `L1`, `SquaredL2`, `ElasticNet` or own penalty that has a `strength`; the path takes others instead.
    alphas : int or array
        The strengths; a number asks for so many of `alpha_grid`.
    solver, sampler, passes, tol, seed
        As in `minimise`; `passes` and `tol` are those of each fit.
    callback : callable, optional
        Called after each fit with its strength and its `Result`; a true answer ends the path there.
    """
    grid = alpha_grid(problem, int(alphas)) if isinstance(alphas, (int, np.integer)) else decreasing(alphas)
    follower = Follower(problem, solver, sampler, passes=passes, tol=tol, seed=seed)
    results: list[Result] = []
    for alpha in grid:
        results.append(follower.minimise(alpha))
        if callback is not None and callback(alpha, results[-1]):
            break
    return Path(grid[: len(results)], results)


class Follower:
    """A problem whose penalty changes: each minimisation starts from the last minimiser, `w`, and goes on with its
    sampler unless another start is given."""

    def __init__(
        self,
        problem: Problem,
        solver: Solver | str = "auto",
        sampler: Sampler | str = "auto",
        *,
        passes: float,
        tol: float,
        seed: Any = None,
    ) -> None:
        _expect_strength(problem)
        self.problem, self.w = problem, null_model(problem)
        self._options = {"passes": passes, "tol": tol}
        self._solver: Any = automatic_solver(problem) if isinstance(solver, str) and solver == "auto" else solver
        carries_over = type(self._solver) is SampledNewton and not problem.vector
        self._runs: Any = Continued() if carries_over else self._solver
        self._sampler: Any = sampler
        self._seeds = np.random.SeedSequence(seed) if not isinstance(seed, np.random.SeedSequence) else seed

    def minimise(self, alpha: float, w0: Vector | None = None, **options: Any) -> Result:
        self.problem = self.problem.with_penalty(with_strength(self.problem.penalty, float(alpha)))
        (seed,) = self._seeds.spawn(1)
        start = self.w if w0 is None else w0
        if self._runs is self._solver:
            result = minimise(self.problem, self._runs, self._sampler, seed=seed, w0=start, **(self._options | options))
            self.w, self._sampler = result.w, result.sampling
            return result
        idle = isinstance(self._sampler, Sampling) and not self._runs.draws(self.problem)
        sampler = "auto" if idle else self._sampler  # one that is not asked need not be copied
        result = minimise(self.problem, self._runs, sampler, seed=seed, w0=start, **(self._options | options))
        sampling = self._sampler if isinstance(self._sampler, Sampling) and idle else result.sampling
        self.w, self._sampler = result.w, sampling
        return replace(result, solver=self._solver, sampling=sampling)


def alpha_max(problem: Problem) -> float:
    """The strongest penalty worth a look.

    With an l1 norm, the least strength at which all coefficients are zero: max_j |∂_j f| there over `l1_ratio`. With
    norms of groups likewise; features without a penalty do not count.
    With a ridge alone none is ever zero; it is the mean of the L_i, which no direction's curvature exceeds, so that
    every coefficient is less than half of what it would be without a penalty.
    """
    _expect_strength(problem)
    unit = problem.with_penalty(with_strength(problem.penalty, 1.0)).form
    if unit is None:
        raise TypeError(f"alpha_max does not know {type(problem.penalty).__name__}. Give alphas yourself.")
    if unit.has_kinks:
        largest = unit.least_strength(np.ravel(problem.gradient(_free_model(problem, unit)))[: problem.penalised])
    else:
        largest = float(np.mean(problem.smoothness))
    return largest if largest > 0.0 else 1.0


def alpha_grid(problem: Problem, count: int = COUNT, smallest: float | None = None) -> Vector:
    """`count` strengths from `alpha_max` down to `smallest` times it, at equal ratios.

    `smallest` is 1e-3 with an l1 norm and 1e-6 for a ridge unless given.
    """
    if count < 1:
        raise ValueError(f"alphas must be at least one, got {count}.")
    largest = alpha_max(problem)
    if smallest is None:
        unit = problem.with_penalty(with_strength(problem.penalty, 1.0)).form
        smallest = L1_RANGE if unit is not None and unit.has_kinks else L2_RANGE
    if not 0.0 < smallest < 1.0:
        raise ValueError(f"The smallest alpha over the largest must lie between 0 and 1, got {smallest!r}.")
    return np.asarray(np.geomspace(largest, smallest * largest, count))


def decreasing(alphas: ArrayLike) -> Vector:
    """The strengths a user gave, checked and sorted."""
    grid = np.asarray(alphas, dtype=np.float64)
    if grid.ndim != 1 or grid.size == 0 or not np.all(np.isfinite(grid) & (grid >= 0.0)):
        raise ValueError(f"alphas must be a list of finite numbers that are not negative, got {alphas!r}.")
    return np.sort(grid)[::-1]


def null_model(problem: Problem) -> Vector:
    """w with all coefficients zero, and the best intercept, or intercepts, if there is one."""
    w = np.zeros(problem.shape)
    if problem.fit_intercept:
        nothing, targets = sp.csr_array((problem.n, 1)), problem.parts.terms.targets
        alone = Problem(nothing, targets, problem.loss, Zero(), problem.sample_weight, True, problem.offset)
        w[-1] = minimise(alone, passes=100, tol=1e-10, seed=0).w[-1]
    return w


def _free_model(problem: Problem, unit: Form) -> Vector:
    """With the best coefficients of features that have no penalty, all others zero."""
    if not unit.free.any():
        return null_model(problem)
    room = np.where(unit.free, np.inf, 0.0)
    bounded = problem.with_penalty(Box(np.maximum(unit.lower, -room), np.minimum(unit.upper, room)))
    return minimise(bounded, passes=100, tol=1e-10, seed=0).w


def _expect_strength(problem: Problem) -> None:
    penalty = problem.penalty
    strength = None if isinstance(penalty, Zero) else strength_of(penalty)
    if strength is None or isinstance(getattr(penalty, "penalty", None), Zero) or not math.isfinite(strength):
        raise TypeError(
            f"A path needs a penalty with a strength, got {penalty!r}. Use L1, SquaredL2 or ElasticNet, "
            "or give your own penalty a field of that name."
        )
