"""Proximal SVRG (Xiao and Zhang 2014), as the paper runs it: bins of n steps,

w ← prox(w - γ ((∇φ_i(w) - ∇φ_i(w̃)) / (n p_i) + ∇f(w̃)), γ),    w̃ the mean of the previous bin's iterates.
"""

from dataclasses import dataclass
from typing import Any

from banditgrad.solvers.reduced import FixedBins, GeometricBins, Reduced


@dataclass(frozen=True, eq=False)
class ProxSvrg(Reduced):
    """Proximal SVRG with any sampler.

    Parameters
    ----------
    step_size : float or "auto"
        γ; "auto" finds it while running.
    snapshot : "mean" or "last"
        Whether w̃ is the mean of the previous bin's iterates, the paper's definition, or the last of them.
    """

    step_size: Any = "auto"
    snapshot: str = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.snapshot not in ("mean", "last"):
            raise ValueError(f'ProxSvrg expects snapshot="mean" or snapshot="last", got {self.snapshot!r}.')

    def bins(self, problem: Any, gamma: float) -> FixedBins:
        return FixedBins(float(problem.n))

    def wants_mean(self) -> bool:
        return self.snapshot == "mean"


@dataclass(frozen=True, eq=False)
class LSvrg(Reduced):
    """Loopless SVRG (Kovalev, Horváth and Richtárik 2020): w̃ becomes w with probability 1/n at every step.

    Parameters
    ----------
    step_size : float or "auto"
        γ; "auto" finds it while running.
    """

    step_size: Any = "auto"

    def bins(self, problem: Any, gamma: float) -> GeometricBins:
        return GeometricBins(float(problem.n))
