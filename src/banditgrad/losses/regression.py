"""Losses of the residual z - y."""

import math
from typing import NamedTuple

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
