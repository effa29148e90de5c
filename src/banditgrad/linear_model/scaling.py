"""Columns brought to one scale for a penalty that treats them alike, and coefficients brought back."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Vector = NDArray[np.float64]


class Scaling(NamedTuple):
    """x'_j = (x_j - centre_j) / deviation_j, and w'_j = deviation_j w_j; None and None leave everything as it is.

    Sparse rows, and those of a model without intercept, have centre 0. Where there is an intercept, which is not
    penalised, the centre does not change the minimiser: b' = b + <centre, w>.
    """

    centre: Vector | None = None
    deviation: Vector | None = None

    def apply(self, X: Any) -> Any:
        """The scaled rows, as a copy."""
        if self.deviation is None or self.centre is None:
            return X
        if sp.issparse(X):
            data = (X.data / self.deviation[X.indices]).astype(X.dtype)
            return sp.csr_array((data, X.indices, X.indptr), shape=X.shape)
        return np.divide(X - self.centre, self.deviation).astype(X.dtype, copy=False)

    def into(self, w: Vector | None) -> Vector | None:
        """Coefficients for scaled columns, one row per problem and the intercept, if there is one, in the end."""
        if self.deviation is None or self.centre is None or w is None:
            return w
        d = self.deviation.size
        scaled = w.copy()
        scaled[:, :d] *= self.deviation
        scaled[:, d:] += (w[:, :d] @ self.centre)[:, None]
        return scaled

    def back(self, w: Vector) -> Vector:
        """Coefficients in the units of the columns as they were."""
        if self.deviation is None or self.centre is None:
            return w
        d = self.deviation.size
        plain = w.copy()
        plain[:, :d] /= self.deviation
        plain[:, d:] -= (plain[:, :d] @ self.centre)[:, None]
        return plain


def learn_scaling(X: Any, weights: Vector | None, centred: bool) -> Scaling:
    """From the weighted mean and standard deviation of each column; one that is constant keeps its scale."""
    s = np.full(X.shape[0], 1.0 / X.shape[0]) if weights is None else np.asarray(weights, np.float64) / np.sum(weights)
    if sp.issparse(X):
        least, most = (np.asarray(end.toarray()).ravel() for end in (X.min(axis=0), X.max(axis=0)))
        return Scaling(np.zeros(X.shape[1]), np.where(least < most, np.sqrt(_sparse_variance(X, s)), 1.0))
    least, most, mean = X.min(axis=0), X.max(axis=0), s @ X
    variance = np.array([s @ np.square(X[:, j] - mean[j], dtype=np.float64) for j in range(X.shape[1])])
    centre = np.where(least < most, mean, least)  # exactly: a constant column becomes zero, and not rounding
    return Scaling(centre if centred else np.zeros(mean.size), np.where(least < most, np.sqrt(variance), 1.0))


def _sparse_variance(X: Any, s: Vector) -> Vector:
    """Zeros that are not stored count."""
    d, by_row = X.shape[1], np.repeat(s, np.diff(X.indptr))
    mean = np.bincount(X.indices, by_row * X.data, minlength=d)
    stored = np.bincount(X.indices, by_row, minlength=d)
    about = np.bincount(X.indices, by_row * (X.data - mean[X.indices]) ** 2, minlength=d)
    return np.asarray(about + np.maximum(1.0 - stored, 0.0) * mean**2)
