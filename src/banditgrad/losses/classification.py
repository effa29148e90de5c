"""Losses of two classes, y = ±1."""

import math
from typing import NamedTuple

from banditgrad._jit import part
from banditgrad.losses.base import OVERFLOW, expect_positive, expect_signs

RARE = -8.0  # margins below which the first terms of a series in exp(z) are all that counts


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


@part
class Hinge(NamedTuple):
    """φ(z, y) = max(0, margin - y z), y = ±1: that of support vector machines, with a kink."""

    margin: float = 1.0

    def value(self, z, y):
        return max(0.0, self.margin - y * z)

    def derivative(self, z, y):
        return -y if y * z < self.margin else 0.0

    def curvature(self):
        return math.inf

    def slope_bound(self):
        return 1.0

    def width(self):
        return 0.0

    def kink(self, y):
        return self.margin * y

    def smoothed(self, width):
        return SmoothedHinge(width, self.margin)

    def check_targets(self, y):
        expect_signs(self, y)

    def validate(self):
        expect_positive(self, "margin", self.margin)


@part
class SmoothedHinge(NamedTuple):
    """The hinge m = max(0, margin - y z), y = ±1, with m²/(2 smoothing) where m < smoothing and m - smoothing/2 beyond.

    It is below the hinge by smoothing/2 at most.
    """

    smoothing: float = 0.5
    margin: float = 1.0

    def value(self, z, y):
        m = max(0.0, self.margin - y * z)
        return 0.5 * m * m / self.smoothing if m < self.smoothing else m - 0.5 * self.smoothing

    def derivative(self, z, y):
        return -y * min(max(0.0, self.margin - y * z) / self.smoothing, 1.0)

    def second_derivative(self, z, y):
        m = self.margin - y * z
        return 1.0 / self.smoothing if 0.0 < m < self.smoothing else 0.0

    def curvature(self):
        return 1.0 / self.smoothing

    def slope_bound(self):
        return 1.0

    def width(self):
        return self.smoothing

    def smoothed(self, width):
        return SmoothedHinge(width, self.margin)

    def check_targets(self, y):
        expect_signs(self, y)

    def validate(self):
        expect_positive(self, "smoothing", self.smoothing)
        expect_positive(self, "margin", self.margin)


@part
class ModifiedHuber(NamedTuple):
    """φ(z, y) = max(0, 1 - y z)² where y z >= -reach, and straight on below, y = ±1; scikit-learn's has reach 1."""

    reach: float = 1.0

    def value(self, z, y):
        m = y * z
        gap = max(0.0, 1.0 - m)
        return gap * gap if m >= -self.reach else (1.0 + self.reach) * (1.0 - self.reach - 2.0 * m)

    def derivative(self, z, y):
        return -2.0 * y * min(max(0.0, 1.0 - y * z), 1.0 + self.reach)

    def second_derivative(self, z, y):
        m = y * z
        return 2.0 if -self.reach <= m < 1.0 else 0.0

    def curvature(self):
        return 2.0

    def slope_bound(self):
        return 2.0 * (1.0 + self.reach)

    def check_targets(self, y):
        expect_signs(self, y)

    def validate(self):
        expect_positive(self, "reach", self.reach)


@part
class ComplementaryLogLog(NamedTuple):
    """φ(z, y) = -scale · log P(y), y = ±1, with P(y = -1) = exp(-exp(z)): whether an event came at a rate of exp(z)."""

    scale: float = 1.0

    def value(self, z, y):
        rate = math.exp(z) if z < OVERFLOW else math.inf
        if y < 0.0:
            return self.scale * rate
        if z < RARE:
            return self.scale * ((0.5 - rate / 24.0) * rate - z)
        return -self.scale * math.log(-math.expm1(-rate))

    def derivative(self, z, y):
        rate = math.exp(z) if z < OVERFLOW else math.inf
        if y < 0.0:
            return self.scale * rate
        if z < RARE:
            return self.scale * ((0.5 - rate / 12.0) * rate - 1.0)
        return -self.scale * rate / math.expm1(rate) if rate < OVERFLOW else 0.0

    def second_derivative(self, z, y):
        rate = math.exp(z) if z < OVERFLOW else math.inf
        if y < 0.0:
            return self.scale * rate
        if z < RARE:
            return self.scale * (0.5 - rate / 6.0) * rate
        if rate >= OVERFLOW:
            return 0.0
        e = math.expm1(rate)
        odds = rate / e
        return self.scale * odds * (odds + rate - 1.0)

    def curvature(self):
        return math.inf

    def slope_bound(self):
        return math.inf

    def check_targets(self, y):
        expect_signs(self, y)

    def validate(self):
        expect_positive(self, "scale", self.scale)
