"""What earlier rounds teach: F on the span of the steps made so far, from gradients that are known anyway.

Where f is nearly quadratic, ∇f at earlier points tells the curvature along S = (w_j - w): H S ≈ Y = (∇f(w_j) - ∇f(w)).
A step D that the partitions propose is completed with the c that makes w + D + S c the best of its kind,

    min_c  <∇f(w), S c> + <Y c, D> + ½ <S c, Y c> + λ r(w + D + S c),

so that what was gained along S is not lost again. For partitions that are alike this saves a few rounds; for those that
are not it makes the difference between a crawl and the pace of a conjugate gradient method.
"""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

POINTS = 8  # that are remembered
NEARLY = 0.1  # of the second-order term: how large the third-order one may be where f counts as quadratic
REWEIGHTINGS = 20  # of the l1 norm, taken as a weighted square
SMALLEST = 1e-8  # of the largest coordinate: below it a coordinate counts as zero


class Point(NamedTuple):
    """A point where the partitions have been asked for value and gradient."""

    w: Vector
    data: float  # f(w)
    value: float  # F(w)
    gradient: Vector  # ∇f(w)


class Subspace:
    """The span of steps between the last few points; `l1` and `l2` penalise all coordinates but the intercept."""

    def __init__(self, l1: float, l2: float, penalised: int) -> None:
        self._l1, self._l2, self._penalised = l1, l2, penalised
        self._points: deque[Point] = deque(maxlen=POINTS)

    def add(self, point: Point) -> None:
        self._points.append(point)

    def forget(self) -> None:
        self._points.clear()

    def complete(self, here: Point, proposed: Vector) -> Vector:
        """The proposed point plus the best combination of earlier steps."""
        S, Y = _secants(here, (point for point in self._points if _quadratic_between(here, point)))
        if S.shape[1] == 0 or not np.isfinite(proposed).all():
            return proposed
        penalised, base = S[: self._penalised], proposed[: self._penalised]
        curvature = 0.5 * (S.T @ Y + Y.T @ S) + self._l2 * (penalised.T @ penalised)
        slope = S.T @ here.gradient + Y.T @ (proposed - here.w) + self._l2 * (penalised.T @ base)
        if self._l1 == 0.0:
            return np.asarray(proposed + S @ _least(curvature, slope))
        c, floor = np.zeros(S.shape[1]), max(SMALLEST * float(np.abs(base).max()), np.finfo(float).tiny)
        for _ in range(REWEIGHTINGS):  # |u| <= u² / (2 |v|) + |v| / 2, with equality at u = v
            weight = self._l1 / np.maximum(np.abs(base + penalised @ c), floor)
            reweighted = curvature + penalised.T @ (weight[:, None] * penalised)
            c = _least(reweighted, slope + penalised.T @ (weight * base))
        return np.asarray(proposed + S @ c)


def _quadratic_between(here: Point, there: Point) -> bool:
    """Whether the trapezoid rule for f between two points is right up to a small part of the second-order term."""
    step = there.w - here.w
    second_order = 0.5 * (step @ (there.gradient - here.gradient))
    error = there.data - here.data - 0.5 * (step @ (there.gradient + here.gradient))
    return bool(second_order > 0.0 and abs(error) <= NEARLY * second_order)


def _secants(here: Point, points: Iterable[Point]) -> tuple[Vector, Vector]:
    """S and Y, a column per point, with the columns of S of length one."""
    steps = [(point.w - here.w, point.gradient - here.gradient) for point in points]
    scaled = [(s / np.linalg.norm(s), y / np.linalg.norm(s)) for s, y in steps]
    empty = np.zeros((here.w.size, 0))
    S, Y = (np.column_stack(columns) for columns in zip(*scaled, strict=True)) if scaled else (empty, empty)
    return S, Y


def _least(curvature: Vector, slope: Vector) -> Vector:
    """argmin_c <slope, c> + ½ <c, curvature c>, over the directions whose curvature is known well."""
    sizes, directions = np.linalg.eigh(curvature)
    known = directions[:, sizes > 1e-10 * sizes[-1]]
    return np.asarray(-known @ ((known.T @ slope) / sizes[sizes > 1e-10 * sizes[-1]]))
