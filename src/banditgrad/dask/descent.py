"""The rounds of one problem, as the driver sees them: what to ask of the partitions, and what to make of the answers.

A round is one inner loop on every partition (`local`), started at w with the gradient of the whole, and one evaluation
of F and its gradient at the mean of where the loops came to, which serves the next round as well. F never rises:

1. The mean, completed with what earlier rounds teach (`subspace`), is taken if F is less there.
2. If not, the loops went too far, as they do where partitions are not alike. Between w and that point there is a better
   one if the direction is right: it is looked for, and the next loops are shorter.
3. If not, a proximal gradient step w ← prox(w - ∇f(w)/L, 1/L), completed, then as it is. With L the mean of the L_i,
   which is never less than the smoothness of f, F falls, or w is a minimiser up to rounding.

So the rounds converge whatever the partitions hold; loops on partitions that are alike make them few.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad.dask.subspace import Memory, Point

Vector = NDArray[np.float64]

LONGEST, SHORTEST = 2.0, 1.0 / 16  # inner loops, in passes over the partition
GROWTH, CUT = 2.0, 2.0  # of their length after a good round and after one that went too far
SEARCHES = 2
LEAST, MOST = 0.05, 0.7  # the parts of a step that a search may take


@dataclass(frozen=True)
class Evaluate:
    """Ask for f(w) and ∇f(w)."""

    w: Vector


@dataclass(frozen=True)
class Move:
    """Ask for inner loops from w, where ∇f is `gradient`; `careful`: with shorter steps than before.

    From a w that is `far` partitions may go towards their own minimisers.
    """

    w: Vector
    gradient: Vector
    passes: float
    careful: bool
    far: bool


class Shape(NamedTuple):
    """What the driver knows of a problem: the penalty l1 |w| + l2/2 w² on the first `penalised` coordinates, and L."""

    l1: float
    l2: float
    penalised: int
    smoothness: float


class Descent:
    """One problem's way down. `here` is the best point so far."""

    here: Point

    def __init__(self, shape: Shape) -> None:
        self.shape, self.rounds = shape, 0
        self._memory = Memory(shape.l1, shape.l2, shape.penalised)
        self._length, self._careful = LONGEST, False

    def go(self, start: Point) -> Generator[Any, Any, None]:
        """Yield requests, take their answers, change `here`; ends where nothing is left to gain."""
        self.here = start
        while True:
            better = yield from self._round(self.here)
            self.rounds += 1
            if not better.value < self.here.value:
                return
            self._memory.add(self.here)
            self.here = better

    def look(self, w: Vector) -> Generator[Any, Any, Point]:
        data, gradient = yield Evaluate(w)
        return Point(w, data, data + self.cost(w), gradient)

    def polish(self) -> Generator[Any, Any, None]:
        """A last proximal gradient step: coordinates that an l1 norm should hold at zero, and that means left near it,
        are zero after it."""
        better = yield from self.look(self.shortened())
        if better.value <= self.here.value:
            self.here = better

    def mapping(self, point: Point) -> float:
        """The norm of the gradient mapping, which is zero exactly at a minimiser."""
        return float(np.linalg.norm(point.w - self.shortened(point))) * self._smoothness

    def shortened(self, point: Point | None = None) -> Vector:
        """prox(w - ∇f(w)/L, 1/L)."""
        point, (l1, l2, d, _) = point or self.here, self.shape
        step = 1.0 / self._smoothness
        w = point.w - step * point.gradient
        w[:d] = np.sign(w[:d]) * np.maximum(np.abs(w[:d]) - step * l1, 0.0) / (1.0 + step * l2)
        return w

    def cost(self, w: Vector) -> float:
        """λ r(w)."""
        l1, l2, d, _ = self.shape
        return float(l1 * np.abs(w[:d]).sum() + 0.5 * l2 * (w[:d] @ w[:d]))

    @property
    def _smoothness(self) -> float:
        return self.shape.smoothness if self.shape.smoothness > 0.0 else 1.0

    def _round(self, here: Point) -> Generator[Any, Any, Point]:
        mean = yield Move(here.w, here.gradient, self._length, self._careful, far=not here.w.any())
        self._careful = False
        point = yield from self._completed(here, mean)
        if point.value < here.value:
            self._length = min(GROWTH * self._length, LONGEST)
            return point
        point = yield from self._search(here, point)
        self._length = max(self._length / CUT, SHORTEST)
        if point.value < here.value:
            return point
        self._length, self._careful = max(self._length / CUT**2, SHORTEST), True
        point = yield from self._completed(here, self.shortened(here))
        if not point.value < here.value:
            point = yield from self.look(self.shortened(here))
        return point

    def _completed(self, here: Point, proposed: Vector) -> Generator[Any, Any, Point]:
        """The proposed point, completed with earlier steps; these are forgotten where they led astray."""
        w = self._memory.complete(here, proposed)
        point = yield from self.look(w)
        if w is not proposed and not point.value < here.value:
            self._memory.forget()
        return point

    def _search(self, here: Point, there: Point) -> Generator[Any, Any, Point]:
        """A better point on the way from here to there, where the slopes at both ends put it."""
        for _ in range(SEARCHES):
            if np.isfinite(there.value):
                self._memory.add(there)
            direction = there.w - here.w
            falls, rises = self._slope(here, direction), self._slope(there, direction)
            if not falls < 0.0:
                break
            part = falls / (falls - rises) if rises > falls else 0.5
            there = yield from self.look(here.w + min(max(part, LEAST), MOST) * direction)
            if there.value < here.value:
                break
        return there

    def _slope(self, point: Point, direction: Vector) -> float:
        """The derivative of F at a point along a direction."""
        l1, l2, d, _ = self.shape
        v, u = point.w[:d], direction[:d]
        kinks = np.where(v != 0.0, np.sign(v) * u, np.abs(u)).sum()
        return float(point.gradient @ direction + l1 * kinks + l2 * (v @ u))
