"""Bregman geometries for proximal SGD: the function ψ whose divergence measures the length of a step, section 3.2."""

from typing import NamedTuple

from banditgrad._jit import part


@part
class Euclidean(NamedTuple):
    """ψ(w) = ½ ‖w‖²: the usual proximal step."""

    scale: float = 1.0  # compiled code needs every part to hold a number

    def validate(self):
        if self.scale != 1.0:
            raise ValueError(f"Euclidean has no scale, got {self.scale!r}. Change the step size.")


@part
class PNorm(NamedTuple):
    """ψ(w) = ½ ‖w‖_p², 1 < p <= 2: for sparse solutions in many dimensions; (p - 1)-strongly convex in ‖·‖_p."""

    p: float

    def validate(self):
        if not 1.0 < self.p <= 2.0:
            raise ValueError(f"PNorm expects 1 < p <= 2, got {self.p!r}.")
