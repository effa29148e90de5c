"""Step sizes γ_t, t = 1, 2, ...: the schedules that the paper's theorems name."""

import math
from numbers import Real
from typing import Any, NamedTuple, Protocol

from banditgrad._jit import bridge, check_part, part


@bridge
class Schedule(Protocol):
    """What a schedule offers to compiled loops."""

    def at(self, t: int) -> float:
        """The step size of step t, counted from 1."""
        ...


@part
class Constant(NamedTuple):
    """γ_t = step."""

    step: float

    def at(self, t):
        return self.step

    def validate(self):
        if not 0.0 < self.step < math.inf:
            raise ValueError(f"step_size must be positive and finite, got {self.step!r}.")


@part
class InverseTime(NamedTuple):
    """γ_t = 2 / (mu t): SGD on a mu-strongly convex F, with `average="linear"` (theorem 2)."""

    mu: float

    def at(self, t):
        return 2.0 / (self.mu * t)

    def validate(self):
        if not 0.0 < self.mu < math.inf:
            raise ValueError(f"InverseTime expects a positive, finite mu, got {self.mu!r}.")


@part
class ShiftedInverseTime(NamedTuple):
    """γ_t = 1 / (alpha + mu t), alpha ≥ L - mu: proximal SGD on a strongly convex, L-smooth f (theorem 3)."""

    alpha: float
    mu: float

    def at(self, t):
        return 1.0 / (self.alpha + self.mu * t)

    def validate(self):
        if not (0.0 <= self.mu < math.inf and 0.0 <= self.alpha < math.inf and self.alpha + self.mu > 0.0):
            raise ValueError(
                f"ShiftedInverseTime expects finite alpha >= 0 and mu >= 0, not both zero, got alpha={self.alpha!r} "
                f"and mu={self.mu!r}."
            )


def as_schedule(step_size: Any) -> Any:
    """A schedule from what users write: a number or a schedule."""
    if isinstance(step_size, Real) and not isinstance(step_size, bool):
        return Constant(float(step_size))
    return check_part(step_size, Schedule, "step_size (a positive number or a schedule)")
