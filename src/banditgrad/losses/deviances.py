"""Half the unit deviances of models with a logarithmic link: y has mean exp(z).

None has a bound on its second derivative. They are zero where exp(z) = y and written in u = z - log y, so that nothing
cancels near there. Where exp(z) is too large for a number they are infinite, which ends no line search.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import part
from banditgrad.losses.base import OVERFLOW, expect_positive


@part
class Poisson(NamedTuple):
    """φ(z, y) = scale · (exp(z) - y - y (z - log y)), y >= 0: counts, or rates with their exposures as weights."""

    scale: float = 1.0

    def value(self, z, y):
        if y == 0.0:
            return self.scale * math.exp(z) if z < OVERFLOW else math.inf
        u = z - math.log(y)
        return self.scale * y * (math.expm1(u) - u) if u < OVERFLOW else math.inf

    def derivative(self, z, y):
        return self.scale * (math.exp(z) - y) if z < OVERFLOW else math.inf

    def second_derivative(self, z, y):
        return self.scale * math.exp(z) if z < OVERFLOW else math.inf

    def curvature(self):
        return math.inf

    def slope_bound(self):
        return math.inf

    def check_targets(self, y):
        expect_not_negative(self, y)

    def validate(self):
        expect_positive(self, "scale", self.scale)


@part
class Gamma(NamedTuple):
    """φ(z, y) = scale · (y exp(-z) - 1 + z - log y), y > 0: amounts whose deviation is in proportion to their mean."""

    scale: float = 1.0

    def value(self, z, y):
        u = z - math.log(y)
        return self.scale * (math.expm1(-u) + u) if -u < OVERFLOW else math.inf

    def derivative(self, z, y):
        return self.scale * (1.0 - y * math.exp(-z)) if -z < OVERFLOW else -math.inf

    def second_derivative(self, z, y):
        return self.scale * y * math.exp(-z) if -z < OVERFLOW else math.inf

    def curvature(self):
        return math.inf

    def slope_bound(self):
        return math.inf

    def check_targets(self, y):
        expect_not_negative(self, y)
        if not (y > 0.0).all():
            remedy = "Tweedie(1.5) takes zeros as well."
            raise ValueError(f"{type(self).__name__} expects y > 0, got 0 at position {y.argmin()}. {remedy}")

    def validate(self):
        expect_positive(self, "scale", self.scale)


@part
class Tweedie(NamedTuple):
    """φ(z, y) = scale · (y exp(-a z) / a + exp(b z) / b - y^b / (a b)), a = power - 1, b = 2 - power, y >= 0.

    Sums of a random number of amounts, such as claims, many of them zero. The variance of y is in proportion to its
    mean to the `power`, between that of `Poisson`, 1, and that of `Gamma`, 2.
    """

    power: float = 1.5
    scale: float = 1.0

    def value(self, z, y):
        a, b = self.power - 1.0, 2.0 - self.power
        if y == 0.0:
            return self.scale * math.exp(b * z) / b if b * z < OVERFLOW else math.inf
        u = z - math.log(y)
        if b * u >= OVERFLOW or -a * u >= OVERFLOW:
            return math.inf
        return self.scale * y**b * (math.expm1(-a * u) / a + math.expm1(b * u) / b)

    def derivative(self, z, y):
        a, b = self.power - 1.0, 2.0 - self.power
        if b * z >= OVERFLOW:
            return math.inf
        if -a * z >= OVERFLOW:
            return -math.inf if y > 0.0 else 0.0
        return self.scale * (math.exp(b * z) - y * math.exp(-a * z))

    def second_derivative(self, z, y):
        a, b = self.power - 1.0, 2.0 - self.power
        if b * z >= OVERFLOW or (-a * z >= OVERFLOW and y > 0.0):
            return math.inf
        steep = a * y * math.exp(-a * z) if y > 0.0 else 0.0
        return self.scale * (b * math.exp(b * z) + steep)

    def curvature(self):
        return math.inf

    def slope_bound(self):
        return math.inf

    def check_targets(self, y):
        expect_not_negative(self, y)

    def validate(self):
        if not 1.0 < self.power < 2.0:
            remedy = "With 1 it is Poisson(), with 2 Gamma()."
            raise ValueError(f"Tweedie expects a power between 1 and 2, got {self.power!r}. {remedy}")
        expect_positive(self, "scale", self.scale)


def expect_not_negative(loss: Any, y: NDArray[np.float64]) -> None:
    if y.min(initial=0.0) < 0.0:
        raise ValueError(f"{type(loss).__name__} expects y >= 0, got {y.min():g} at position {y.argmin()}.")
