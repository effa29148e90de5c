"""Penalties made of others: with a factor for each feature, and within bounds."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditgrad._jit import part
from banditgrad.penalties.separable import Zero

Vector = NDArray[np.float64]

SLACK = 1e-12  # relative: a mean of points within bounds may leave them by rounding


@part
class Weighted(NamedTuple):
    """Another penalty, of feature j times factors_j; a factor of zero leaves the feature without a penalty.

    `factors` has one number for each feature, or for losses of several margins perhaps one for each number of W.
    """

    penalty: Any
    factors: Any

    def cost(self, w, j):
        return self.factors[j] * self.penalty.cost(w, j)

    def prox(self, w, step, j):
        return self.penalty.prox(w, step * self.factors[j], j)

    def subgradient(self, w, j):
        return self.factors[j] * self.penalty.subgradient(w, j)

    def shrinkage(self):
        inner = self.penalty.shrinkage() if hasattr(self.penalty, "shrinkage") else None
        return None if inner is None else (inner[0] * self.factors, inner[1] * self.factors)

    def over(self, features, margins):
        return self._replace(factors=for_each(self.factors, features, margins, "Weighted", "factors"))

    def prepared(self):
        _expect_separable(self)
        if isinstance(self.penalty, Box):
            raise TypeError("Weighted takes a penalty without bounds: put Box around it, Box(lower, upper, Weighted).")
        return self._replace(factors=as_numbers(self.factors, "Weighted", "factors"))

    def validate(self):
        if not (np.isfinite(self.factors).all() and np.all(self.factors >= 0.0)):
            raise ValueError(f"Weighted expects factors that are finite and not negative, got {self.factors!r}.")


@part
class Box(NamedTuple):
    """Another penalty where lower <= w <= upper, and infinite elsewhere.

    Bounds are numbers, or one number for each feature, with lower <= 0 <= upper; they may be infinite. For losses of
    several margins there may be one for each number of W.
    """

    lower: Any = -math.inf
    upper: Any = math.inf
    penalty: Any = Zero()

    def cost(self, w, j):
        least, most = self.lower[j], self.upper[j]
        inside = (1.0 + SLACK) * least <= w <= (1.0 + SLACK) * most
        return self.penalty.cost(w, j) if inside else np.inf

    def prox(self, w, step, j):
        return min(max(self.penalty.prox(w, step, j), self.lower[j]), self.upper[j])

    def subgradient(self, w, j):
        return self.penalty.subgradient(w, j)

    def bounds(self):
        return self.lower, self.upper

    def over(self, features, margins):
        inner = self.penalty.over(features, margins) if hasattr(self.penalty, "over") else self.penalty
        lower, upper = (
            for_each(values, features, margins, "Box", name)
            for name, values in (("lower", self.lower), ("upper", self.upper))
        )
        return self._replace(lower=lower, upper=upper, penalty=inner)

    def prepared(self):
        _expect_separable(self)
        return self._replace(lower=as_numbers(self.lower, "Box", "lower"), upper=as_numbers(self.upper, "Box", "upper"))

    def validate(self):
        if not (np.all(self.lower <= 0.0) and np.all(self.upper >= 0.0)):
            raise ValueError(f"Box expects lower <= 0 <= upper, got {self.lower!r} and {self.upper!r}.")


def _expect_separable(penalty: Any) -> None:
    who, inner = type(penalty).__name__, penalty.penalty
    if not hasattr(inner, "prox"):
        what = inner.__name__ if isinstance(inner, type) else type(inner).__name__
        raise TypeError(
            f"{who} takes penalties of one coordinate at a time, as L1, SquaredL2 or ElasticNet are, and {what} not. "
            "GroupLasso has weights of its own, and no bounds."
        )


def as_numbers(values: ArrayLike, who: str, name: str) -> Vector:
    """Numbers as an array that compiled code takes; of one number, with one entry."""
    try:
        array = np.ascontiguousarray(np.ravel(np.asarray(values, dtype=np.float64)))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{who} expects {name} to be a number or an array of numbers, got {values!r}.") from error
    if np.isnan(array).any():
        raise ValueError(f"{who}: {name} has a NaN at position {np.flatnonzero(np.isnan(array))[0]}.")
    return array


def for_each(values: Vector, features: int, margins: int, who: str, name: str) -> Vector:
    """One number for each of W, from one for all, for each feature, or for each number."""
    if values.size == features * margins:
        return values
    if values.size == 1:
        return np.full(features * margins, values[0])
    if values.size == features:
        return np.repeat(values, margins)
    numbers = f"{features}" if margins == 1 else f"{features} or {features * margins}"
    raise ValueError(
        f"{who} has {values.size} {name}; the rows have {features} features: pass one number, or {numbers}."
    )
