"""A path of easier problems to one on which second derivatives tell too little.

Rows on which a loss is straight add nothing to a model of F, and may begin to curve with any step. Two kinds of path
come from where that happens seldom, and each minimiser on them is near that of the next problem:

- Residuals may be a million times the delta of Huber's loss. Widened to half of the residuals it is least squares on
  these (Madsen and Nielsen 1993).
- The squared hinge with next to no penalty, on classes that can be separated, is a problem of the largest margin: any
  row may stand in the way of a step. With more penalty, the rows that count are curved (Keerthi and DeCoste 2005).

Between changes of the rows that are curved the minimiser moves about in proportion to the width, or the strength.
"""

import abc
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from banditgrad.penalties import ElasticNet, strength_of, with_strength
from banditgrad.solvers.newton.descent import Descent

Vector = NDArray[np.float64]

RATIO = 4.0  # of widths, or strengths, from one problem to the next
NEAR = 1e-2  # of what the curved part, or the penalty, weighs: a step that predicts less came near the minimiser
TOL = 0.1  # how well models are minimised
AT_KINK = 1e-3  # of the mean residual: less tells no width, as that of a class which an intercept alone suits


class Continuation(abc.ABC):
    """The levels of a path and a point on it; at the last level the problem is the one to be minimised.

    Attributes
    ----------
    w : the point
    ended : whether the last level is reached
    """

    def __init__(self, problem: Any, w: Vector, levels: list[float]) -> None:
        self._problem, self._levels, self._before = problem, levels, (w, np.inf)
        self.w, self._descent = w, cast(Descent | None, None)

    @property
    def ended(self) -> bool:
        return len(self._levels) < 2

    @property
    def problem(self) -> Any:
        return self._problem if self.ended else self._easier(self._levels[0])

    @abc.abstractmethod
    def _easier(self, level: float) -> Any:
        """The problem of a level."""

    @abc.abstractmethod
    def _weight(self, descent: Descent) -> float:
        """About how much F at this level changes on the way to the next."""

    def descend(self, begin: Callable[[Any, Vector], Descent]) -> Descent:
        """The descent on the problem of this level, from the point on."""
        self._descent = self._descent or begin(self.problem, self.w)
        return self._descent

    def step(self, begin: Callable[[Any, Vector], Descent]) -> None:
        """A step on the problem of this level; once near its minimiser, to the next."""
        descent = self.descend(begin)
        caution = descent.trust.caution
        descent.step(TOL)
        self.w, cautious = descent.w, max(caution, descent.trust.caution) > 0.0  # then little is predicted anywhere
        if descent.settled or not (cautious or descent.predicted > NEAR * self._weight(descent)):
            self._go_on()

    def _go_on(self) -> None:
        """To the next level, and to where the last two minimisers point, if that is better."""
        (before, easier), w, level = self._before, self.w, self._levels.pop(0)
        self._before, self._descent = (w, level), None
        further = w + (level - self._levels[0]) / (easier - level) * (w - before)
        if self.problem.value(further) < self.problem.value(w):
            self.w = further


class Widths(Continuation):
    """From the width that half of the residuals at w lie within to the loss's own; one level for most losses."""

    def __init__(self, problem: Any, w: Vector) -> None:
        super().__init__(problem, w, _widths(problem, w))

    def _easier(self, level: float) -> Any:
        return self._problem.with_loss(self._problem.loss.smoothed(level))

    def _weight(self, descent: Descent) -> float:
        return float(descent.subset.second_derivatives.sum()) * self._levels[0] ** 2


class Strengths(Continuation):
    """From a penalty so strong that zero is as good as w to the problem's own, as multiples of it."""

    def __init__(self, problem: Any, descent: Descent) -> None:
        w, weight = descent.w, descent.penalty(descent.w)
        most = problem.value(np.zeros_like(w)) / weight if weight > 0.0 else 0.0
        super().__init__(problem, w, _levels(1.0, most))

    @staticmethod
    def suits(problem: Any, descent: Descent) -> bool:
        """Whether there are rows on which the loss is straight, and no other path."""
        if hasattr(problem.loss, "smoothed") or descent.subset.second_derivatives.all():
            return False
        return problem.shrinkage is not None or bool(strength_of(problem.penalty))

    def _easier(self, level: float) -> Any:
        shrinkage, penalty = self._problem.shrinkage, self._problem.penalty
        if shrinkage is None or np.ndim(shrinkage[0]):
            return self._problem.with_penalty(with_strength(penalty, level * strength_of(penalty)))
        l1, l2 = shrinkage
        return self._problem.with_penalty(ElasticNet(level * (l1 + l2), l1 / (l1 + l2)))

    def _weight(self, descent: Descent) -> float:
        return descent.penalty(descent.w)


def _levels(last: float, most: float) -> list[float]:
    """Up to `most`, the largest first."""
    levels = [last]
    while RATIO * levels[0] <= most:
        levels.insert(0, RATIO * levels[0])
    return levels


def _widths(problem: Any, w: Vector) -> list[float]:
    if not hasattr(problem.loss, "smoothed"):
        return [0.0]
    residuals = problem.residuals(w)
    tell = residuals[residuals > AT_KINK * residuals.mean()]
    levels = _levels(float(problem.loss.width()), float(np.median(tell)) if tell.size else 0.0)
    if residuals.min() >= levels[0]:  # as of a hinge at zero: no row would be curved
        levels.insert(0, RATIO * levels[0])
    return levels
