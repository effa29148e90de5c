"""Is bandit sampling worth it on these data? Measured, not guessed: variances at the start and after a short run."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from banditgrad.minimise import Progress, Reason, Result, minimise
from banditgrad.problem import Problem
from banditgrad.registry import name_of
from banditgrad.samplers import Auto, Uniform
from banditgrad.solvers import ProxSvrg, automatic_solver

NOT_WORTH_IT = 1.5  # times less variance than uniform sampling, below which a gain is not worth the trouble
NEAR = 1e-3  # of F(0) - F*: what counts as near the best fit
LONGEST = 50  # passes that the automatic solver may make


@dataclass(frozen=True)
class Gain:
    """How many uniform draws one is worth, by the variance it leaves: with p ∝ L_i, and with the best p there is."""

    importance: float
    perfect: float

    @property
    def saved(self) -> float:
        """The share of uniform sampling's variance that perfect sampling saves."""
        return 1.0 - 1.0 / self.perfect


class Race(NamedTuple):
    """How long a solver with a sampler took to within 0.1 % of the best fit; infinite where it did not get there."""

    solver: str
    sampler: str
    seconds: float
    passes: float


@dataclass(frozen=True)
class Inspection:
    """What `inspect` found.

    Attributes
    ----------
    row_norms : the least, the median, the 99th percentile and the largest ‖x_i‖
    tau : max L_i / mean L_i
    at_zero, near_optimum : gains for the gradients of plain SGD, at w = 0 and after the short run
    reduced : the gain that perfect sampling offered to ProxSvrg's estimator, the median over the short run
    reduced_had : the part of it that `Auto` had
    half : the share of the rows whose gradients, near the optimum, make up half of all
    value : F after the short run, which made `passes` passes
    solver : the name of the solver that "auto" is on these data
    races : that solver, and ProxSvrg with the auto and the uniform sampler: the time each took
    """

    row_norms: tuple[float, float, float, float]
    tau: float
    at_zero: Gain
    near_optimum: Gain
    reduced: float
    reduced_had: float
    half: float
    value: float
    passes: float
    solver: str
    races: list[Race]

    @property
    def offered(self) -> float:
        """The larger of the gains that a perfect sampler offers, near the optimum and to ProxSvrg."""
        return max(self.near_optimum.perfect, self.reduced)

    @property
    def worth(self) -> str:
        """One of yes, a little and no; what was had counts for more than what a perfect sampler offers."""
        if self.offered < NOT_WORTH_IT:
            return "no"
        return "yes" if self.reduced_had >= NOT_WORTH_IT else "a little"

    @property
    def sampler(self) -> str:
        return "uniform" if self.worth == "no" else "auto"

    @property
    def advice(self) -> str:
        """The recommendation in plain words."""
        return f"{self._of_draws} {self._of_time}"

    @property
    def _of_draws(self) -> str:
        if self.worth == "no":
            return (
                "Bandit sampling is not worth it here: rows matter alike, and a perfectly chosen row is worth only "
                f"{self.offered:.1f} drawn at random. Use the uniform sampler."
            )
        uneven = f"near the best fit, {_percent(self.half)} of the rows hold half of what there is to learn"
        if self.worth == "yes":
            return (
                f"Bandit sampling is worth it here for solvers that draw rows: {uneven}. A row that the auto sampler "
                f"drew was worth {self.reduced_had:.3g} drawn at random, a perfectly chosen one {self.reduced:.3g}."
            )
        return (
            f"Bandit sampling may help a little here: {uneven}, and a perfectly chosen row is worth {self.offered:.3g} "
            f"drawn at random, but one that the auto sampler drew was worth only {self.reduced_had:.1f} in a short run."
        )

    @property
    def _of_time(self) -> str:
        """Which solver to take: the fastest, or the default where it was about as fast."""
        default, best = self.races[0], min(self.races, key=lambda race: race.seconds)
        if best.seconds == math.inf:
            return (
                "No solver came within 0.1 % of the best fit in the short run: scale the columns, or raise its passes."
            )
        if default.seconds <= 1.2 * best.seconds:
            took = _seconds(default.seconds)
            return f"Take the defaults: {default.solver} was within 0.1 % of the best fit after {took}."
        return (
            f"{best.solver} with the {best.sampler} sampler was the fastest to 0.1 % of the best fit: "
            f"{_seconds(best.seconds)}, where {default.solver}, the default, took {_seconds(default.seconds)}."
        )


def inspect(
    problem: Problem, *, passes: float = 15, seed: Any = 0, callback: Callable[[Progress], Any] | None = None
) -> Inspection:
    """Look at the rows, at the variance of gradient estimators at w = 0 and after a short run of ProxSvrg, and at how
    long it and the automatic solver take."""
    norms = np.sqrt(problem.parts.norms2)
    options: dict[str, Any] = {"seed": seed, "tol": 1e-6, "callback": callback}
    automatic = automatic_solver(problem)
    run = _finished(minimise(problem, ProxSvrg(), Auto(), passes=passes, record_variance=True, **options))
    runs = {("proxsvrg", "auto"): run}
    runs["proxsvrg", "uniform"] = _finished(minimise(problem, ProxSvrg(), Uniform(), passes=passes, **options))
    if name_of(automatic) != name_of(ProxSvrg):
        first = _finished(minimise(problem, automatic, passes=max(passes, LONGEST), **options))
        runs = {(name_of(automatic), "auto"): first, **runs}
    history = run.history
    assert history.effective_variance is not None
    assert history.optimal_variance is not None
    assert history.uniform_variance is not None
    used = history.optimal_variance > 0.0
    offered = history.uniform_variance[used] / history.optimal_variance[used]
    had = history.uniform_variance[used] / history.effective_variance[used]
    return Inspection(
        row_norms=(float(norms.min()), float(np.median(norms)), float(np.quantile(norms, 0.99)), float(norms.max())),
        tau=problem.tau,
        at_zero=_gain(problem, np.zeros(problem.dimension)),
        near_optimum=_gain(problem, run.w),
        reduced=float(np.median(offered)) if used.any() else 1.0,
        reduced_had=float(np.median(had)) if used.any() else 1.0,
        half=_half(problem.gradient_norms(run.w)),
        value=run.value,
        passes=run.passes,
        solver=name_of(automatic),
        races=_races(runs),
    )


def _finished(run: Result) -> Result:
    if run.reason is Reason.INTERRUPTED:
        raise KeyboardInterrupt
    return run


def _races(runs: dict[tuple[str, str], Result]) -> list[Race]:
    best = min(run.value for run in runs.values())
    races = []
    for (solver, sampler), run in runs.items():
        history = run.history
        near = np.flatnonzero(history.value - best <= NEAR * (history.value[0] - best))
        at = int(near[0]) if near.size else None
        seconds, passes = (math.inf, math.inf) if at is None else (history.seconds[at], history.passes[at])
        races.append(Race(solver, sampler, float(seconds), float(passes)))
    return races


def _half(norms: Any) -> float:
    """The least share of the rows that holds half of the sum."""
    total = np.cumsum(np.sort(norms)[::-1])
    return float(np.searchsorted(total, 0.5 * total[-1]) + 1) / norms.size if total[-1] > 0.0 else 0.5


def _percent(share: float) -> str:
    return f"{share:.1%}" if share >= 1e-3 else f"{100.0 * share:.1g}%"


def _seconds(value: float) -> str:
    if value == math.inf:
        return "longer than the run"
    return f"{value:.2g} s" if value >= 1e-3 else f"{1e3 * value:.1g} ms"


def _gain(problem: Problem, w: Any) -> Gain:
    uniform = problem.effective_variance(w, np.full(problem.n, 1.0 / problem.n))
    best = problem.optimal_variance(w)
    L = problem.smoothness
    if not (best > 0.0 and L.max() > 0.0):
        return Gain(1.0, 1.0)
    return Gain(uniform / problem.effective_variance(w, L / L.sum()), uniform / best)
