"""What a loss is: a function φ(z, y) of a margin z = <x_i, w> and a target y, scalar in, scalar out.

A loss is a NamedTuple with the methods of `Loss`. Its `value` and `derivative` are plain Python that also runs inside
compiled loops; the rest is asked once, from Python. A loss of several margins has the methods of `VectorLoss` instead.
"""

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import bridge

OVERFLOW = 709.0  # exp of more may be too large for a number


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


@bridge
class VectorLoss(Protocol):
    """What a loss φ(z, y) of several margins z = W'x offers to compiled loops instead; to Python also `margins`."""

    def value(self, z: Any, y: float) -> float:
        """φ(z, y), z an array."""
        ...

    def derivatives(self, z: Any, y: float, out: Any) -> float:
        """Write ∇φ(z, y) to `out` and return φ(z, y)."""
        ...


@bridge
class VectorCurvature(Protocol):
    """What it may offer as well, for Newton's method."""

    def curve_product(self, z: Any, slopes: Any, y: float, v: Any, out: Any) -> None:
        """Write ∇²φ(z, y) v to `out`, which may be v itself; `slopes` is ∇φ(z, y)."""
        ...

    def curve_parts(self, z: Any, slopes: Any, y: float, a: Any, b: Any) -> None:
        """Write a and b with ∇²φ(z, y) = diag(a) - b b'."""
        ...


class Smoothable(Protocol):
    """What a loss may offer that is straight almost everywhere: there the second derivative tells nothing."""

    def width(self) -> float:
        """How far apart the residuals z - y are between which most of its slope changes; 0 for a kink."""
        ...

    def smoothed(self, width: float) -> Any:
        """The same loss, or one of its kind, whose slope changes as much over this larger width.

        Of a loss with a kink, one that is nowhere above it.
        """
        ...


class Kinked(Smoothable, Protocol):
    """What a loss with a kink may offer, that is straight on both sides of it and zero there: then it has a gap."""

    def kink(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """The margins at which the slope jumps."""
        ...


class LossTraits(Protocol):
    """What a loss tells about itself in Python; `check_targets` may be left out."""

    def curvature(self) -> float:
        """An upper bound on the second derivative, so that L_i = curvature · ‖x_i‖²; infinite where there is none.

        Then `second_derivative` tells what it is where a run is; a loss that has none either has kinks.
        """
        ...

    def slope_bound(self) -> float:
        """An upper bound on |derivative|, or infinity."""
        ...


class VectorTraits(LossTraits, Protocol):
    """What a loss of several margins tells: its bounds are on the norms of ∇²φ and ∇φ."""

    def margins(self) -> int:
        """How many there are."""
        ...


def margins_of(loss: Any) -> int:
    """The number of margins a loss is a function of."""
    return int(loss.margins()) if hasattr(loss, "margins") else 1


def has_kinks(loss: Any) -> bool:
    """Whether the derivative jumps, so that it tells nothing of how near the minimiser is."""
    return not math.isfinite(loss.curvature()) and not hasattr(loss, "second_derivative")


def can_be_smoothed(loss: Any) -> bool:
    """Whether a loss with kinks offers what `Kinked` says."""
    return hasattr(loss, "smoothed") and hasattr(loss, "kink")


def expect_signs(loss: Any, y: NDArray[np.float64]) -> None:
    if not (np.abs(y) == 1.0).all():
        labels = np.unique(y)
        got = ", ".join(f"{label:g}" for label in labels[:5]) + (", ..." if labels.size > 5 else "")
        remedy = " Pass 2*y - 1." if set(labels) == {0.0, 1.0} else " Encode the two classes as -1 and +1."
        raise ValueError(f"{type(loss).__name__} expects labels -1 and +1, got {{{got}}}.{remedy}")


def expect_positive(owner: Any, name: str, value: float) -> None:
    if not 0.0 < value < math.inf:
        raise ValueError(f"{type(owner).__name__} expects a positive, finite {name}, got {value!r}.")
