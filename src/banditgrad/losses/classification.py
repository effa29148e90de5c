"""Losses of two classes, y = ±1."""

import math
from typing import NamedTuple

from banditgrad._jit import part
from banditgrad.losses.base import expect_positive, expect_signs


@part
class Logistic(NamedTuple):
    """φ(z, y) = scale · log(1 + exp(-y z)), y = ±1."""

    scale: float = 1.0

    def value(self, z, y):
        m = y * z
        return self.scale * (math.log1p(math.exp(-m)) if m > 0.0 else math.log1p(math.exp(m)) - m)

    def derivative(self, z, y):
        m = y * z
        e = math.exp(-abs(m))
        return -self.scale * y * (e if m > 0.0 else 1.0) / (1.0 + e)

    def second_derivative(self, z, y):
        e = math.exp(-abs(z))
        return self.scale * e / ((1.0 + e) * (1.0 + e))

    def expansion(self, z, y):
        m = y * z
        e = math.exp(-abs(m))
        u = 1.0 + e
        q = 1.0 / u
        log1p = math.log(u) + (e - (u - 1.0)) * q  # of e, also where 1 + e rounds it away
        slope = -y * (e * q if m > 0.0 else q)
        return self.scale * (log1p + max(-m, 0.0)), self.scale * slope, self.scale * e * q * q

    def curvature(self):
        return 0.25 * self.scale

    def slope_bound(self):
        return self.scale

    def check_targets(self, y):
        expect_signs(self, y)

    def validate(self):
        expect_positive(self, "scale", self.scale)


@part
class SquaredHinge(NamedTuple):
    """φ(z, y) = max(0, margin - y z)², y = ±1; without a factor ½, as in the paper."""

    margin: float = 1.0

    def value(self, z, y):
        m = max(0.0, self.margin - y * z)
        return m * m

    def derivative(self, z, y):
        return -2.0 * y * max(0.0, self.margin - y * z)

    def second_derivative(self, z, y):
        return 2.0 if y * z < self.margin else 0.0

    def curvature(self):
        return 2.0

    def slope_bound(self):
        return math.inf

    def check_targets(self, y):
        expect_signs(self, y)

    def validate(self):
        expect_positive(self, "margin", self.margin)
