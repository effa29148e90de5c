"""S2GD, semi-stochastic gradient descent (Konečný and Richtárik 2013):

as SVRG, but a bin has t steps, t of 1..m with probability ∝ (1 - ν γ)^(m - t), and w̃ is its last iterate.
"""

import math
from dataclasses import dataclass
from typing import Any

from banditgrad.solvers.parts.bins import TruncatedBins
from banditgrad.solvers.svrg import SnapshotMethod


@dataclass(frozen=True, eq=False)
class S2gd(SnapshotMethod):
    """S2GD with any sampler, and a proximal step where there is a penalty.

    Parameters
    ----------
    step_size : float or "auto"
        γ; "auto" finds it while running.
    inner : int, optional
        m, the largest number of steps of a bin; n unless given.
    nu : float
        ν, a lower bound on the strong convexity; 0 makes all lengths equally likely. With an automatic step, lengths
        go by the γ it begins with.
    """

    step_size: Any = "auto"
    inner: int | None = None
    nu: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inner is not None and not self.inner >= 1:
            raise ValueError(f"S2gd expects inner to be at least 1, got {self.inner!r}.")
        if not 0.0 <= self.nu < math.inf:
            raise ValueError(f"S2gd expects a nu that is finite and not negative, got {self.nu!r}.")

    def bins(self, problem: Any, gamma: float) -> TruncatedBins:
        longest = problem.n if self.inner is None else int(self.inner)
        return TruncatedBins(float(longest), max(1.0 - self.nu * gamma, 1e-12))
