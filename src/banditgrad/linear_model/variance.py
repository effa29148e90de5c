"""What sampling bought over a run: the variance of the solver's estimator beside that of uniform sampling.

A look at it costs about as much as a look at F, and the ratio jumps about: so looks are ever further apart, and each
stands for the passes since the one before. Of 100 passes 18 are looked at.
"""

import math

import numpy as np

from banditgrad.minimise import Progress

APART = 1.25  # the passes at one look over those at the last


class VarianceRatio:
    """The mean over one run of `minimise`, whose callback is to call `after`."""

    def __init__(self) -> None:
        self._looks: list[tuple[float, float]] = []  # passes since the last look, and the ratio
        self._last, self._next = 0.0, 1.0

    def after(self, progress: Progress) -> None:
        """Take a look if it is time."""
        if progress.passes < self._next or progress.variances is None:
            return
        with np.errstate(over="ignore", invalid="ignore"):  # of a run that has diverged
            effective, _, uniform = progress.variances()
        if 0.0 < uniform < math.inf:
            self._looks.append((progress.passes - self._last, effective / uniform))
        self._last, self._next = progress.passes, APART * progress.passes

    @property
    def mean(self) -> float:
        """Over the passes; 1 where there was no variance."""
        total = sum(passes for passes, _ in self._looks)
        return sum(passes * ratio for passes, ratio in self._looks) / total if total > 0.0 else 1.0
