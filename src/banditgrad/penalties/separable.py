"""Penalties λ r(w) = Σ_j cost(w_j, j): separable, so that one coordinate at a time is all a solver asks for."""

import math
from typing import Any, NamedTuple, Protocol

from banditgrad._jit import bridge, default, part


@bridge
class Penalty(Protocol):
    """What a penalty offers to compiled loops; j is the number of the coordinate.

    A penalty of the form l1 |w| + l2/2 w² may also offer, to Python, ``shrinkage() -> (l1, l2)``: on sparse rows its
    steps are then applied lazily, in closed form. Any other penalty is applied to every coordinate at every step.
    """

    def cost(self, w: float, j: int) -> float:
        """The penalty of coordinate j."""
        ...

    def prox(self, w: float, step: float, j: int) -> float:
        """argmin_u  step · cost(u, j) + ½ (u - w)²."""
        ...

    def subgradient(self, w: float, j: int) -> float:
        """One sub-gradient of the cost; 0 at a kink."""
        ...

    # What loops over all coordinates ask for, of the first d: an intercept is not penalised.

    @default
    def total_cost(self, w, d):
        """λ r(w)."""
        total = 0.0
        for j in range(d):
            total += self.cost(w[j], j)
        return total

    @default
    def prox_all(self, w, step, d):
        """w ← argmin_u  step · λ r(u) + ½ ‖u - w‖²."""
        for j in range(d):
            w[j] = self.prox(w[j], step, j)

    @default
    def prox_each(self, w, steps, d):
        """Likewise with a step for each coordinate."""
        for j in range(d):
            w[j] = self.prox(w[j], steps[j], j)

    @default
    def add_subgradient(self, w, scale, out, d):
        """out += scale · a sub-gradient of λ r at w; out may be w."""
        for j in range(d):
            out[j] += scale * self.subgradient(w[j], j)


@part
class Zero(NamedTuple):
    """No penalty."""

    strength: float = 0.0  # compiled code needs every part to hold a number

    def cost(self, w, j):
        return 0.0

    def prox(self, w, step, j):
        return w

    def subgradient(self, w, j):
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

    def cost(self, w, j):
        return self.strength * abs(w)

    def prox(self, w, step, j):
        return math.copysign(max(abs(w) - step * self.strength, 0.0), w)

    def subgradient(self, w, j):
        return math.copysign(self.strength, w) if w != 0.0 else 0.0

    def shrinkage(self):
        return self.strength, 0.0

    def validate(self):
        _expect_strength(self)


@part
class SquaredL2(NamedTuple):
    """strength/2 · ‖w‖²."""

    strength: float

    def cost(self, w, j):
        return 0.5 * self.strength * w * w

    def prox(self, w, step, j):
        return w / (1.0 + step * self.strength)

    def subgradient(self, w, j):
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

    def cost(self, w, j):
        return self.strength * (self.l1_ratio * abs(w) + 0.5 * (1.0 - self.l1_ratio) * w * w)

    def prox(self, w, step, j):
        s = step * self.strength
        return math.copysign(max(abs(w) - s * self.l1_ratio, 0.0), w) / (1.0 + s * (1.0 - self.l1_ratio))

    def subgradient(self, w, j):
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
