"""Ending a fit when rows that were held out are no longer fitted better."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditgrad.minimise import Progress
from banditgrad.problem import Problem

Vector = NDArray[np.float64]
Rows = NDArray[np.int64]


class HeldOut:
    """The mean loss of one problem's held-out rows, pass by pass, and the w where it was least."""

    def __init__(self, problem: Problem, patience: int) -> None:
        self.problem, self.patience = problem, patience
        self.losses: list[float] = []
        self.best_w: Vector | None = None

    def after(self, progress: Progress) -> bool:
        """Look; true when the last `patience` passes brought nothing."""
        loss = self.problem.value(progress.w)
        if loss < min(self.losses, default=math.inf):
            self.best_w = progress.w
        self.losses.append(loss)
        return len(self.losses) - 1 - int(np.argmin(self.losses)) >= self.patience


def split_rows(n: int, fraction: float, strata: Any, random_state: Any) -> tuple[Rows, Rows]:
    """Rows to fit and rows to hold out, each with the same shares of the strata if there are any."""
    from sklearn.model_selection import train_test_split

    kept, held = train_test_split(np.arange(n), test_size=fraction, random_state=random_state, stratify=strata)
    return np.sort(kept), np.sort(held)
