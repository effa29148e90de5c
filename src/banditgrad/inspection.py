"""Is bandit sampling worth it on these data? Measured, not guessed: variances at the start and after a short run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditgrad.minimise import Progress, Reason, minimise
from banditgrad.problem import Problem
from banditgrad.registry import name_of
from banditgrad.samplers import Auto
from banditgrad.solvers import ProxSvrg, automatic_solver

NOT_WORTH_IT = 1.5  # times less variance than uniform sampling, below which a gain is not worth the trouble


@dataclass(frozen=True)
class Gain:
    """How many times less variance than uniform sampling: with p ∝ L_i, and with the best p there is."""

    importance: float
    perfect: float

    @property
    def saved(self) -> float:
        """The share of uniform sampling's variance that perfect sampling saves."""
        return 1.0 - 1.0 / self.perfect


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
    value : F after the short run, which made `passes` passes
    solver : the name of the solver that "auto" is on these data
    """

    row_norms: tuple[float, float, float, float]
    tau: float
    at_zero: Gain
    near_optimum: Gain
    reduced: float
    reduced_had: float
    value: float
    passes: float
    solver: str

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
        if self.worth == "no":
            return (
                "Bandit sampling is not worth it here: rows matter alike, and even perfect sampling would be worth "
                f"only {self.offered:.1f} times the draws. Use the uniform sampler."
            )
        offer = (
            f"a perfect sampler is worth {self.near_optimum.perfect:.1f} times the draws to SGD near the optimum and "
            f"{self.reduced:.1f} times to ProxSvrg"
        )
        if self.worth == "yes":
            return (
                f"Bandit sampling is worth it here: {offer}, of which the auto sampler had {self.reduced_had:.1f}. "
                f"Use the auto sampler with {self._solvers}."
            )
        return (
            f"Bandit sampling may help a little here: {offer}, but the auto sampler had only {self.reduced_had:.1f} of "
            "it in a short run. Use the auto sampler, which is uniform where adapting does not pay, with "
            f"{self._solvers}."
        )

    @property
    def _solvers(self) -> str:
        """The stochastic solver, and the automatic one where that is another."""
        if self.solver == name_of(ProxSvrg):
            return "proxsvrg"
        return f"proxsvrg, or leave the solver at auto, which is {self.solver} here and makes few draws"


def inspect(
    problem: Problem, *, passes: float = 15, seed: Any = 0, callback: Callable[[Progress], Any] | None = None
) -> Inspection:
    """Look at the rows, and at the variance of gradient estimators at w = 0 and after a short run of ProxSvrg."""
    norms = np.sqrt(problem.parts.norms2)
    run = minimise(
        problem, ProxSvrg(), Auto(), passes=passes, seed=seed, tol=1e-6, record_variance=True, callback=callback
    )
    if run.reason is Reason.INTERRUPTED:
        raise KeyboardInterrupt
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
        value=run.value,
        passes=run.passes,
        solver=name_of(automatic_solver(problem)),
    )


def _gain(problem: Problem, w: Any) -> Gain:
    uniform = problem.effective_variance(w, np.full(problem.n, 1.0 / problem.n))
    best = problem.optimal_variance(w)
    L = problem.smoothness
    if not (best > 0.0 and L.max() > 0.0):
        return Gain(1.0, 1.0)
    return Gain(uniform / problem.effective_variance(w, L / L.sum()), uniform / best)
