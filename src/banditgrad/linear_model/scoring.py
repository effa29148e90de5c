"""The usual scores from margins: what scikit-learn's scorers return, without their checks of input that was checked.

A path of a hundred strengths with five folds asks for five hundred scores; beside a warm-started fit each would take
as long again.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

LEAST = float(np.finfo(np.float64).eps)  # of a probability, as in `sklearn.metrics.log_loss`


def score_by_margins(model: Any, scoring: Any, y: NDArray[Any], weights: Any) -> Callable[[Vector], float] | None:
    """Margins, one column each, of the rows with these labels → score; None where only scikit-learn knows how."""
    if hasattr(model, "classes_"):
        numbers = np.searchsorted(model.classes_, y)
        if scoring in (None, "accuracy"):
            return lambda z: _mean(_predicted(z) == numbers, weights)
        if (
            scoring == "neg_log_loss"
            and model.loss == "log_loss"
            and (model.classes_.size == 2 or model._is_multinomial)
        ):
            return lambda z: -_mean(_log_losses(z, numbers), weights)
    elif model.loss == "squared_error":
        if scoring == "neg_mean_squared_error":
            return lambda z: -_mean((y - z[:, 0]) ** 2, weights)
        spread = _mean((y - _mean(y, weights)) ** 2, weights)
        if scoring in (None, "r2") and y.size > 1 and spread > 0.0:
            return lambda z: 1.0 - _mean((y - z[:, 0]) ** 2, weights) / spread
    return None


def _predicted(z: Vector) -> NDArray[np.int64]:
    return z.argmax(axis=1) if z.shape[1] > 1 else (z[:, 0] > 0).astype(np.int64)


def _log_losses(z: Vector, numbers: NDArray[np.int64]) -> Vector:
    if z.shape[1] == 1:
        losses = np.logaddexp(0.0, np.where(numbers == 1, -z[:, 0], z[:, 0]))
    else:
        highest = z.max(axis=1)
        losses = np.log(np.exp(z - highest[:, None]).sum(axis=1)) + highest - z[np.arange(len(z)), numbers]
    return np.clip(losses, -np.log1p(-LEAST), -np.log(LEAST))


def _mean(values: Any, weights: Any) -> float:
    return float(np.average(values, weights=weights))
