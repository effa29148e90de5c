"""The rounds of one problem, as the driver sees them: what to ask of the partitions, and what to make of the answers.

A round is one inner loop on every partition (`local`), started at w with the gradient of the whole, and one evaluation
of F and its gradient at the mean of where the loops came to, which serves the next round as well. F never rises:

1. The mean, completed with what earlier rounds teach (`subspace`), is taken if F is less there.
2. If not, the loops went too far, as they do where partitions are not alike or features are far from orthogonal. Where
   features are few, this round and all later ones are then proximal Newton steps, with the Hessian of all partitions:
   how rows lie in partitions does not matter to these. They also take over from loops that have crawled for long. Where
   features are many, the next loops are shorter.
3. If F is not less after the step, there is a better point between w and there if the direction is right: it is looked
   for.
4. If not, a proximal gradient step w ← prox(w - ∇f(w)/L, 1/L), completed, then as it is. With L the mean of the L_i,
   which is never less than the smoothness of f, F falls, or w is a minimiser up to rounding.

So the rounds converge whatever the partitions hold; loops on partitions that are alike make them few.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad.dask.subspace import Point, Subspace
from banditgrad.solvers.newton.quadratic import minimise_quadratic
from banditgrad.solvers.newton.trust import CAUTION, Trust

Vector = NDArray[np.float64]

LONGEST, SHORTEST = 2.0, 1.0 / 16  # inner loops, in passes over the partition
LOOPS = 10  # rounds after which they crawl, though F falls
GROWTH, CUT = 2.0, 2.0  # of their length after a good round and after one that went too far
PARTS = 2.0 ** -np.arange(1.0, 17.0)  # of a step that went too far, among which the best is taken
MODEL_TOL = 1e-3  # how well models of F are minimised, which costs no exchange


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


@dataclass(frozen=True)
class Curve:
    """Ask for the Hessian of f at w, half of it, from samples of the rows that are `effort` times the usual size.

    No φ_i'' counts as less than `caution` times the loss's largest.
    """

    w: Vector
    effort: float
    caution: float


@dataclass(frozen=True)
class Probe:
    """Ask for f at w + part · direction, for each of `parts`."""

    w: Vector
    direction: Vector
    parts: Vector


class Shape(NamedTuple):
    """What the driver knows of a problem: the penalty l1 |w| + l2/2 w² on the first `penalised` coordinates, L, bounds
    on the second derivatives ∂²f/∂w_j², and whether the Hessian is there to be asked for."""

    l1: float
    l2: float
    penalised: int
    smoothness: float
    curvatures: Vector
    hessian: bool
    form: tuple[int, ...] = (-1,)  # of w as users have it


class Descent:
    """One problem's way down. `here` is the best point so far."""

    here: Point

    def __init__(self, shape: Shape) -> None:
        self.shape, self.rounds = shape, 0
        self._subspace = Subspace(shape.l1, shape.l2, shape.penalised)
        self._length, self._careful = LONGEST, False
        self._newton, self._effort, self._trust = False, 1.0, Trust(careless=CAUTION, most=np.inf)

    def go(self, start: Point) -> Generator[Any, Any, None]:
        """Yield requests, take their answers, change `here`; ends where nothing is left to gain."""
        self.here = start
        while True:
            better = yield from self._round(self.here)
            self.rounds += 1
            if not better.value < self.here.value:
                return
            self._subspace.add(self.here)
            self.here = better

    def evaluate(self, w: Vector) -> Generator[Any, Any, Point]:
        data, gradient = yield Evaluate(w)
        return Point(w, data, data + self.cost(w), gradient)

    def polish(self) -> Generator[Any, Any, None]:
        """A last proximal gradient step: coordinates that an l1 norm should hold at zero, and that means left near it,
        are zero after it."""
        better = yield from self.evaluate(self.shortened())
        if better.value <= self.here.value:
            self.here = better

    def optimality(self, point: Point) -> float:
        """As `Problem.optimality`: the norm of the gradient mapping in units in which all columns curve alike."""
        h = np.where(self.shape.curvatures > 0.0, self.shape.curvatures, 1.0)
        return float(np.linalg.norm(np.sqrt(h) * (point.w - self._gradient_step(point, 1.0 / h))))

    def shortened(self, point: Point | None = None) -> Vector:
        """prox(w - ∇f(w)/L, 1/L)."""
        point = point or self.here
        return self._gradient_step(point, np.full(point.w.size, 1.0 / self._smoothness))

    def _gradient_step(self, point: Point, steps: Vector) -> Vector:
        """prox(w - steps · ∇f(w), steps), with a step per coordinate."""
        l1, l2, d = self.shape[:3]
        w = point.w - steps * point.gradient
        w[:d] = np.sign(w[:d]) * np.maximum(np.abs(w[:d]) - steps[:d] * l1, 0.0) / (1.0 + steps[:d] * l2)
        return w

    def cost(self, w: Vector) -> float:
        """λ r(w)."""
        l1, l2, d = self.shape[:3]
        with np.errstate(over="ignore"):  # a point where F is infinite is not taken
            return float(l1 * np.abs(w[:d]).sum() + 0.5 * l2 * (w[:d] @ w[:d]))

    @property
    def _smoothness(self) -> float:
        return self.shape.smoothness if self.shape.smoothness > 0.0 else 1.0

    def _round(self, here: Point) -> Generator[Any, Any, Point]:
        self._newton |= self.shape.hessian and self.rounds >= LOOPS
        point = None if self._newton else (yield from self._loops(here))
        if point is None:
            point = yield from self._newton_step(here)
        if not point.value < here.value:
            point = yield from self._completed(here, self.shortened(here))
        if not point.value < here.value:
            point = yield from self.evaluate(self.shortened(here))
        return point

    def _loops(self, here: Point) -> Generator[Any, Any, Point | None]:
        """To where the inner loops lead; None where they went too far and Newton's method can take over."""
        mean = yield Move(here.w, here.gradient, self._length, self._careful, far=not here.w.any())
        self._careful = False
        point = yield from self._completed(here, mean)
        if point.value < here.value:
            self._length = min(GROWTH * self._length, LONGEST)
            return point
        self._newton = self.shape.hessian
        if self._newton:
            return None
        point, _ = yield from self._search(here, point)
        self._length = max(self._length / CUT, SHORTEST)
        if not point.value < here.value:
            self._length, self._careful = max(self._length / CUT**2, SHORTEST), True
        return point

    def _newton_step(self, here: Point) -> Generator[Any, Any, Point]:
        trust = self._trust
        half = yield Curve(here.w, self._effort, trust.caution)
        before = trust.predicted
        proposed, trust.predicted = self._model_minimiser(here, half)
        point = yield from self.evaluate(proposed)
        if not point.value < here.value:
            point, part = yield from self._search(here, point)
            if part <= 0.25:
                trust.raise_caution()
            return point
        trust.relax_caution()
        trust.compare(here.value - point.value)
        if trust.too_few_rows(before):
            self._effort *= 2.0
        return point

    def _model_minimiser(self, here: Point, half: Vector) -> tuple[Vector, float]:
        """Where F's quadratic model is least, and the decrease it predicts: q(0) - q(v), as in `newton.descent`."""
        H = unpacked(half, here.w.size)
        penalised = np.arange(here.w.size) < self.shape.penalised
        l1, l2 = np.where(penalised, self.shape.l1, 0.0), np.where(penalised, self.shape.l2, 0.0)
        v = minimise_quadratic(H, here.gradient, here.w, l1, l2, MODEL_TOL)
        shed = self.cost(here.w) - self.cost(here.w + v)
        return here.w + v, shed - float(here.gradient @ v) - 0.5 * float(v @ H @ v)

    def _completed(self, here: Point, proposed: Vector) -> Generator[Any, Any, Point]:
        """The proposed point, completed with earlier steps; these are forgotten where they led astray."""
        w = self._subspace.complete(here, proposed)
        point = yield from self.evaluate(w)
        if w is not proposed and not point.value < here.value:
            self._subspace.forget()
        return point

    def _search(self, here: Point, there: Point) -> Generator[Any, Any, tuple[Point, float]]:
        """The best of some points on the way from here to there, and which part of the way it is."""
        if np.isfinite(there.value):
            self._subspace.add(there)
        direction = there.w - here.w
        data = yield Probe(here.w, direction, PARTS)
        values = data + [self.cost(here.w + part * direction) for part in PARTS]
        part = PARTS[np.argmin(np.where(np.isnan(values), np.inf, values))]
        point = yield from self.evaluate(here.w + part * direction)
        return point, float(part)


def packed(matrix: Vector) -> Vector:
    """The half of a symmetric matrix that tells all."""
    return np.asarray(matrix[np.tril_indices(matrix.shape[0])])


def unpacked(half: Vector, d: int) -> Vector:
    matrix = np.zeros((d, d))
    matrix[np.tril_indices(d)] = half
    return matrix + np.tril(matrix, -1).T
