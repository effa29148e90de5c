"""Newton's method on the rows in view: model, minimiser, line search."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditgrad.solvers.newton import costs
from banditgrad.solvers.newton.view import View

Vector = NDArray[np.float64]

WORK = 2.0  # of a sample of the Hessian, in units of a look at all rows in view
MOST = 0.5  # a sample of a larger share of the rows becomes all of them: the exact Hessian needs no other help
STALE = 0.1  # a step that promises more than this share of what the one before did has not come near the minimum
KEPT = 0.75  # of what a model promised: one that kept less, without coming near, saw too few rows
DECREASE = 1e-4  # a step must gain this share of what the model promises
SHORTEST = 2.0**-30
CAUTION = 0.02  # the least curvature assumed after a step had to be cut short, as a share of the loss's largest
ROUNDING = 1e-14  # of a sum over the rows, relative
SETTLED = 1e-24  # times F: a model that curves less along its step ends the run, with a gradient of some 1e-12


class Descent:
    """Steps that make F fall, from a point that was looked at.

    Attributes
    ----------
    w, value, gradient : the point, F there and ∇f there
    promised : how much the last step would have gained had the model been right
    kept : the share of it that the step gained
    settled : whether no step makes F fall any more
    """

    def __init__(self, problem: Any, view: View, curvature: Any, w: Vector, *, hold: float = 0.0) -> None:
        """With `hold`, F has a ridge more: hold · Σ_k b_k ‖x_i‖² / m at this w, for m rows."""
        l1, l2 = problem.shrinkage
        penalised = np.arange(w.size) < problem.d
        self.l1, self.l2 = np.where(penalised, l1, 0.0), np.where(penalised, l2, 0.0)
        lengths = costs.entries(problem, None if view.all else view.chosen)
        self.view, self.curvature = view, curvature
        self.share = WORK * costs.look(lengths) / self.curvature.cost(problem, lengths)
        if self.share > MOST:
            self.share = max(self.share, 1.0)
        else:
            view.diagonal = np.zeros(w.size)
        self.most_curved = _most_curved(problem, view)
        self.caution, self.promised, self.kept, self.settled = 0.0, np.inf, 1.0, False
        self.w = w
        view.look(w)
        self.l2 += hold * float(view.bends @ view.norms2) / view.size
        self.value = view.value + self.penalty(w)

    @property
    def gradient(self) -> Vector:
        return self.view.gradient

    def penalty(self, w: Vector) -> float:
        return float(self.l1 @ np.abs(w) + 0.5 * (self.l2 * w) @ w)

    def step(self, tol: float) -> None:
        """One step, the model minimised to tol."""
        bends = self.view.bends
        if self.caution > 0.0:
            bends = np.maximum(bends, self.caution * self.most_curved)
        self.curvature.move(bends, self.share)
        v, curve = self.curvature.minimise(self.gradient, self.w, self.l1, self.l2, tol)
        shed = self.penalty(self.w) - self.penalty(self.w + v)
        before, self.promised = self.promised, shed - float(self.gradient @ v) - 0.5 * curve
        if self.promised > STALE * before and self.kept < KEPT:
            self.share *= 2.0
        scale = abs(self.value)
        if curve > SETTLED * scale or self.promised > ROUNDING * scale:  # the curve knows no cancellation
            self._search(v)
        else:
            self.settled = True

    def _search(self, v: Vector) -> None:
        """Go to w + v, or as far towards it as F falls; what F cannot tell from rounding is let through."""
        w, before, t = self.w, self.value, 1.0
        value = self.view.look(w + v) + self.penalty(w + v)
        while not self._falls(value, before, t) and t > SHORTEST:
            t *= 0.5
            value = self.view.between(t) + self.penalty(w + t * v)
        if t < 1.0:
            v *= t if t > SHORTEST else 0.0
            value = self.view.look(w + v) + self.penalty(w + v)
            self.settled = t <= SHORTEST and self.caution >= 1.0
        if t <= 0.25:
            self.caution = max(4.0 * self.caution, CAUTION)
        elif t == 1.0:
            self.caution = self.caution / 4.0 if self.caution > 1e-3 else 0.0
        self.w, self.value = w + v, value
        self.kept = (before - value) / self.promised if self.promised > 0.0 else 1.0

    def _falls(self, value: float, before: float, t: float) -> bool:
        return value <= before - DECREASE * t * self.promised + ROUNDING * abs(before)


def _most_curved(problem: Any, view: View) -> Any:
    """Upper bounds on the view's bends."""
    weights = 1.0 / problem.n if view.all else view.weights
    if problem.sample_weight is not None:
        weights = weights * (problem.sample_weight if view.all else problem.sample_weight[view.chosen])
    return float(problem.loss.curvature()) * weights
