"""Penalties λ r(w) = Σ_j cost(w_j): separable, so that one coordinate at a time is all a solver asks for."""

import math
from typing import Any, NamedTuple, Protocol

from banditgrad._jit import bridge, part


@bridge
class Penalty(Protocol):
    """What a penalty offers to compiled loops.

    A penalty of the form l1 |w| + l2/2 w² may also offer, to Python, ``shrinkage() -> (l1, l2)``: on sparse rows its
    steps are then applied lazily, in closed form. Any other penalty is applied to every coordinate at every step.
    """

    def cost(self, w: float) -> float:
        """The penalty of one coordinate."""
        ...

    def prox(self, w: float, step: float) -> float:
        """argmin_u  step · cost(u) + ½ (u - w)²."""
        ...

    def subgradient(self, w: float) -> float:
        """One sub-gradient of the cost; 0 at a kink."""
        ...


@part
class Zero(NamedTuple):
    """No penalty."""

    strength: float = 0.0  # compiled code needs every part to hold a number

    def cost(self, w):
        return 0.0

    def prox(self, w, step):
        return w

    def subgradient(self, w):
        return 0.0

    def shrinkage(self):
        return 0.0, 0.0

    def validate(self):
        if self.strength != 0.0:
            raise ValueError(f"Zero has no strength, got {self.strength!r}. Use L1 or SquaredL2.")


@part
class L1(NamedTuple):
    """strength · ‖w‖₁."""

    strength: float

    def cost(self, w):
        return self.strength * abs(w)

    def prox(self, w, step):
        return math.copysign(max(abs(w) - step * self.strength, 0.0), w)

    def subgradient(self, w):
        return math.copysign(self.strength, w) if w != 0.0 else 0.0

    def shrinkage(self):
        return self.strength, 0.0

    def validate(self):
        _expect_strength(self)


@part
class SquaredL2(NamedTuple):
    """strength/2 · ‖w‖²."""

    strength: float

    def cost(self, w):
        return 0.5 * self.strength * w * w

    def prox(self, w, step):
        return w / (1.0 + step * self.strength)

    def subgradient(self, w):
        return self.strength * w

    def shrinkage(self):
        return 0.0, self.strength

    def validate(self):
        _expect_strength(self)


@part
class ElasticNet(NamedTuple):
    """strength · (l1_ratio ‖w‖₁ + (1 - l1_ratio)/2 ‖w‖²), as in scikit-learn."""

    strength: float
    l1_ratio: float = 0.5

    def cost(self, w):
        return self.strength * (self.l1_ratio * abs(w) + 0.5 * (1.0 - self.l1_ratio) * w * w)

    def prox(self, w, step):
        s = step * self.strength
        return math.copysign(max(abs(w) - s * self.l1_ratio, 0.0), w) / (1.0 + s * (1.0 - self.l1_ratio))

    def subgradient(self, w):
        kink = math.copysign(self.l1_ratio, w) if w != 0.0 else 0.0
        return self.strength * (kink + (1.0 - self.l1_ratio) * w)

    def shrinkage(self):
        return self.strength * self.l1_ratio, self.strength * (1.0 - self.l1_ratio)

    def validate(self):
        _expect_strength(self)
        if not 0.0 <= self.l1_ratio <= 1.0:
            raise ValueError(f"ElasticNet expects an l1_ratio between 0 and 1, got {self.l1_ratio!r}.")


def _expect_strength(penalty: Any) -> None:
    if not 0.0 <= penalty.strength < math.inf:
        name = type(penalty).__name__
        raise ValueError(f"{name} expects a strength that is finite and not negative, got {penalty.strength!r}.")
