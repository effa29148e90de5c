"""A path of smoother problems to one whose loss is straight where most residuals are.

There second derivatives tell nothing: residuals may be a million times the delta of Huber's loss. Widened to half of
the residuals it is least squares on these, and the minimiser of each problem is near that of the next, whose loss is
narrower (Madsen and Nielsen 1993). Between changes of the rows that are curved it moves in proportion to the width.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import kernel
from banditgrad.rows import dot

Vector = NDArray[np.float64]

NARROWING = 4.0  # of the loss from one problem to the next
NEAR = 1e-2  # of what the curved part of a problem can weigh: a step that promises less has come near its minimiser


class Smoothing:
    """The problems from the widest loss, which half of the residuals at w lie within, to the last before the problem
    itself; none for most problems.

    Attributes
    ----------
    problem : the one whose turn it is
    ended : whether there is none
    """

    def __init__(self, problem: Any, w: Vector) -> None:
        self._problem, self._widths, self._before = problem, _widths(problem, w), (w, np.inf)

    @property
    def ended(self) -> bool:
        return not self._widths

    @property
    def problem(self) -> Any:
        return self._problem.with_loss(self._problem.loss.smoothed(self._widths[0])) if self._widths else self._problem

    def near(self, predicted: float, bends: Vector) -> bool:
        """Whether a step that gained so much by its model came near the minimiser."""
        return not predicted > NEAR * float(bends.sum()) * self._widths[0] ** 2

    def narrow(self, w: Vector) -> Vector:
        """Go on to the next problem from w, which is near the minimiser of this one; where to start on it."""
        (before, wider), width = self._before, self._widths.pop(0)
        self._before = (w, width)
        narrower = self._widths[0] if self._widths else float(self._problem.loss.width())
        further = w + (width - narrower) / (wider - width) * (w - before)
        return further if self.problem.value(further) < self.problem.value(w) else w


def _widths(problem: Any, w: Vector) -> list[float]:
    """Of the losses, the widest first."""
    if not hasattr(problem.loss, "smoothed"):
        return []
    residuals, widths, width = np.empty(problem.n), list[float](), float(problem.loss.width())
    _residuals(problem.parts, w, residuals)
    half = float(np.median(residuals))
    while NARROWING * width <= half:
        width *= NARROWING
        widths.insert(0, width)
    return widths


@kernel
def _residuals(parts, w, out):
    """|<x_i, w> - y_i|."""
    zero = True
    for j in range(w.size):
        zero = zero and w[j] == 0.0
    for i in range(out.size):
        out[i] = abs((0.0 if zero else dot(parts.rows, i, w)) - parts.terms.targets[i])
