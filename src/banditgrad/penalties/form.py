"""What is known of a penalty beyond its proximal step, for those who make a model of F or a certificate:

    λ r(w) = Σ_j l1_j |w_j| + (l2_j/2) w_j² + Σ_b μ_b ‖w_b‖,   lower <= w <= upper,

with bounds or groups, not both.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad.penalties.checking import has_closed_form
from banditgrad.penalties.weighted import SLACK

Vector = NDArray[np.float64]
Indices = NDArray[np.int64]


class Form(NamedTuple):
    l1: Vector
    l2: Vector
    lower: Vector
    upper: Vector
    members: Indices  # coordinates, group by group
    begins: Indices  # of groups, in members
    norms: Vector  # the μ_b

    @property
    def plain(self) -> bool:
        """Whether there are neither bounds nor groups."""
        return not (self.norms.size or np.isfinite(self.lower).any() or np.isfinite(self.upper).any())

    @property
    def numbers(self) -> int:
        return int(self.l1.size)

    @property
    def free(self) -> NDArray[np.bool_]:
        """The coordinates without a penalty."""
        free = (self.l1 == 0.0) & (self.l2 == 0.0)
        free[self.members[np.repeat(self.norms > 0.0, np.diff(self.begins))]] = False
        return np.asarray(free)

    @property
    def has_kinks(self) -> bool:
        """Whether it sets coordinates to zero."""
        return bool(self.l1.any() or self.norms.any())

    def least_strength(self, g: Vector) -> float:
        """Times the penalty, for which zero is the minimiser where the slope is g, but for what is not penalised."""
        grouped = np.zeros(g.size, bool)
        grouped[self.members] = True
        alone = ~grouped & (self.l1 > 0.0)
        alone &= np.where(g > 0.0, self.lower, self.upper) != 0.0
        largest = float(np.max(np.abs(g[alone]) / self.l1[alone], initial=0.0))
        for b in range(self.norms.size):
            j = self.members[self.begins[b] : self.begins[b + 1]]
            largest = max(largest, _least(np.abs(g[j]), self.l1[j], float(self.norms[b])))
        return largest

    def conjugate(self, g: Vector, w: Vector) -> tuple[float, float]:
        """By how much to shrink g so that (λr)*(-g) is finite, and then that and λ r(w); infinite where that needs
        zero."""
        l1, l2, h = self.l1, self.l2, -g
        bound = np.where(h > 0.0, self.upper, -self.lower)  # how far the coordinate can go where h draws it
        excess = np.maximum(np.abs(h) - l1, 0.0)
        grouped = np.zeros(h.size, bool)
        grouped[self.members] = True
        hard = ~grouped & (l2 == 0.0) & (excess > 0.0) & np.isinf(bound)
        s = float(np.min(l1[hard] / np.abs(h[hard]), initial=1.0))
        for b in range(self.norms.size):
            j = self.members[self.begins[b] : self.begins[b + 1]]
            s = min(s, _most(np.abs(h[j]), l1[j], float(self.norms[b])))
        if s == 0.0:
            return s, math.inf
        excess = np.where(grouped | hard, 0.0, np.maximum(s * np.abs(h) - l1, 0.0))
        some = excess > 0.0
        with np.errstate(divide="ignore"):
            far = np.minimum(excess[some] / l2[some], bound[some])  # where the supremum is
        total = float(np.sum(excess[some] * far - 0.5 * l2[some] * far**2))
        return s, total + self.cost(w)

    def cost(self, w: Vector) -> float:
        """λ r(w)."""
        if np.any(w < (1.0 + SLACK) * self.lower) or np.any(w > (1.0 + SLACK) * self.upper):
            return math.inf
        norms = np.sqrt(np.add.reduceat(w[self.members] ** 2, self.begins[:-1])) if self.norms.size else self.norms
        return float(self.l1 @ np.abs(w) + 0.5 * (self.l2 * w) @ w + self.norms @ norms)


def _most(h: Vector, l1: Vector, norm: float) -> float:
    """The largest s <= 1 with ‖(s h - l1)₊‖ <= norm, by bisection."""
    if float(np.linalg.norm(np.maximum(h - l1, 0.0))) <= norm:
        return 1.0
    if not l1.any():
        return norm / float(np.linalg.norm(h))
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        inside = float(np.linalg.norm(np.maximum(middle * h - l1, 0.0))) <= norm
        low, high = (middle, high) if inside else (low, middle)
    return low


def _least(h: Vector, l1: Vector, norm: float) -> float:
    """The least s with ‖(h - s l1)₊‖ <= s · norm, by bisection; zero where only infinity would do."""
    if norm == 0.0 and not l1.all():
        return 0.0
    low, high = 0.0, float(np.linalg.norm(h)) / norm if norm > 0.0 else float(np.max(h / l1, initial=0.0))
    for _ in range(60 if l1.any() else 0):
        middle = 0.5 * (low + high)
        enough = float(np.linalg.norm(np.maximum(h - middle * l1, 0.0))) <= middle * norm
        low, high = (low, middle) if enough else (middle, high)
    return high


def form_of(penalty: Any, numbers: int) -> Form | None:
    """Of a penalty on so many numbers; None of one that does not tell."""
    none, nothing = np.zeros(0, np.int64), np.zeros(0)
    lower, upper = np.full(numbers, -math.inf), np.full(numbers, math.inf)
    if hasattr(penalty, "blocks"):
        groups, norms, l1 = penalty.blocks()
        return Form(np.full(numbers, l1), np.zeros(numbers), lower, upper, groups.members, groups.begins, norms)
    if hasattr(penalty, "bounds"):
        (lower, upper), penalty = penalty.bounds(), penalty.penalty
    kind: Any = type(penalty)
    if not has_closed_form(kind):
        return None
    strengths = penalty.shrinkage()
    if strengths is None:
        return None
    l1, l2 = (np.broadcast_to(np.asarray(value, np.float64), numbers).copy() for value in strengths)
    return Form(l1, l2, lower, upper, none, none, nothing)
