"""Losses φ(z, y) of a margin z = <x_i, w> and a target y: value and derivative in z, scalar in, scalar out.

A loss is a NamedTuple with the methods of `Loss`. Its `value` and `derivative` are plain Python that also runs inside
compiled loops; the rest is asked once, from Python.
"""

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import bridge, part


@bridge
class Loss(Protocol):
    """What a loss offers to compiled loops."""

    def value(self, z: float, y: float) -> float:
        """φ(z, y)."""
        ...

    def derivative(self, z: float, y: float) -> float:
        """∂φ/∂z."""
        ...


@bridge
class TwiceDifferentiable(Protocol):
    """What a loss may offer as well; where it does not, its curvature bound stands in."""

    def second_derivative(self, z: float, y: float) -> float:
        """∂²φ/∂z², or one of its limits at a kink of the derivative."""
        ...


@bridge
class Expandable(Protocol):
    """What a loss may offer where all three at once cost less than one by one."""

    def expansion(self, z: float, y: float) -> tuple[float, float, float]:
        """φ, ∂φ/∂z and ∂²φ/∂z²."""
        ...


class Smoothable(Protocol):
    """What a loss may offer that is straight almost everywhere: there the second derivative tells nothing."""

    def width(self) -> float:
        """How far apart the residuals z - y are between which most of its slope changes."""
        ...

    def smoothed(self, width: float) -> Any:
        """The same loss, or one of its kind, whose slope changes as much over this larger width."""
        ...


class LossTraits(Protocol):
    """What a loss tells about itself in Python; `check_targets` may be left out."""

    def curvature(self) -> float:
        """An upper bound on the second derivative, so that L_i = curvature · ‖x_i‖²."""
        ...

    def slope_bound(self) -> float:
        """An upper bound on |derivative|, or infinity."""
        ...


def _expect_signs(loss: Any, y: NDArray[np.float64]) -> None:
    labels = np.unique(y)
    if not np.isin(labels, (-1.0, 1.0)).all():
        got = ", ".join(f"{label:g}" for label in labels[:5]) + (", ..." if labels.size > 5 else "")
        remedy = " Pass 2*y - 1." if set(labels) == {0.0, 1.0} else " Encode the two classes as -1 and +1."
        raise ValueError(f"{type(loss).__name__} expects labels -1 and +1, got {{{got}}}.{remedy}")


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
        _expect_signs(self, y)

    def validate(self):
        _expect_positive(self, "scale", self.scale)


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
        _expect_signs(self, y)

    def validate(self):
        _expect_positive(self, "margin", self.margin)


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
        _expect_positive(self, "scale", self.scale)


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
        _expect_positive(self, "delta", self.delta)
        _expect_positive(self, "scale", self.scale)


def _expect_positive(owner: Any, name: str, value: float) -> None:
    if not 0.0 < value < math.inf:
        raise ValueError(f"{type(owner).__name__} expects a positive, finite {name}, got {value!r}.")
