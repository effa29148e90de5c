"""Losses of the residual z - y."""

import math
from typing import Any, NamedTuple

from banditgrad._jit import part
from banditgrad.losses.base import expect_positive


@part
class Squared(NamedTuple):
    """φ(z, y) = scale/2 · (z - y)²."""

    scale: float = 1.0

    def value(self, z, y):
        return 0.5 * self.scale * (z - y) ** 2

    def derivative(self, z, y):
        return self.scale * (z - y)

    def second_derivative(self, z, y):
        return self.scale

    def curvature(self):
        return self.scale

    def slope_bound(self):
        return math.inf

    def validate(self):
        expect_positive(self, "scale", self.scale)


@part
class Huber(NamedTuple):
    """φ(z, y) = scale · (½ r² where |r| ≤ delta, else delta (|r| - ½ delta)), with r = z - y."""

    delta: float = 1.35
    scale: float = 1.0

    def value(self, z, y):
        r = abs(z - y)
        return self.scale * (0.5 * r * r if r <= self.delta else self.delta * (r - 0.5 * self.delta))

    def derivative(self, z, y):
        return self.scale * min(max(z - y, -self.delta), self.delta)

    def second_derivative(self, z, y):
        return self.scale if abs(z - y) <= self.delta else 0.0

    def curvature(self):
        return self.scale

    def slope_bound(self):
        return self.scale * self.delta

    def width(self):
        return self.delta

    def smoothed(self, width):
        return Huber(width, self.scale * self.delta / width)

    def validate(self):
        expect_positive(self, "delta", self.delta)
        expect_positive(self, "scale", self.scale)


@part
class Quantile(NamedTuple):
    """φ(z, y) = level · (y - z) where y > z, else (1 - level) · (z - y): the pinball loss, with a kink.

    Its minimiser is a quantile of y: y is below z with probability `level`.
    """

    level: float = 0.5

    def value(self, z, y):
        r = z - y
        return max((1.0 - self.level) * r, -self.level * r)

    def derivative(self, z, y):
        return 1.0 - self.level if z > y else (-self.level if z < y else 0.0)

    def curvature(self):
        return math.inf

    def slope_bound(self):
        return max(self.level, 1.0 - self.level)

    def width(self):
        return 0.0

    def kink(self, y):
        return y

    def smoothed(self, width):
        return SmoothedQuantile(self.level, width)

    def validate(self):
        expect_level(self)


@part
class SmoothedQuantile(NamedTuple):
    """The pinball loss of `Quantile` with a parabola r²/(2 smoothing) of that width in place of its kink, r = z - y.

    It is below the pinball loss by max(level, 1 - level)² smoothing/2 at most.
    """

    level: float = 0.5
    smoothing: float = 1.0

    def value(self, z, y):
        r = z - y
        slope = min(max(r / self.smoothing, -self.level), 1.0 - self.level)
        return slope * (r - 0.5 * self.smoothing * slope)

    def derivative(self, z, y):
        return min(max((z - y) / self.smoothing, -self.level), 1.0 - self.level)

    def second_derivative(self, z, y):
        r = (z - y) / self.smoothing
        return 1.0 / self.smoothing if -self.level <= r <= 1.0 - self.level else 0.0

    def curvature(self):
        return 1.0 / self.smoothing

    def slope_bound(self):
        return max(self.level, 1.0 - self.level)

    def width(self):
        return self.smoothing

    def smoothed(self, width):
        return SmoothedQuantile(self.level, width)

    def validate(self):
        expect_level(self)
        expect_positive(self, "smoothing", self.smoothing)


def expect_level(loss: Any) -> None:
    if not 0.0 < loss.level < 1.0:
        raise ValueError(f"{type(loss).__name__} expects a level between 0 and 1, got {loss.level!r}.")
