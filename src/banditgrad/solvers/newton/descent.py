"""Newton's method on the rows in view: model, minimiser, line search."""

import math
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditgrad.solvers.newton.memory import Memory
from banditgrad.solvers.newton.view import View

Vector = NDArray[np.float64]

STALE = 0.1  # a step that promises more than this share of what the one before did has not come near the minimum
NOWHERE = 0.5  # a step that promises more than this share of what the one before did has come no nearer
PATIENCE = 8  # steps without a sample: if the last promises more than STALE of the first, they do not come near
KEPT = 0.75  # of what a model predicted: one that kept less, without coming near, saw too few rows
DECREASE = 1e-4  # a step must gain this share of what the model promises
BAD, GOOD = 0.25, 0.75  # of what a model predicted: one that kept less was too bold, one that kept more may be bolder
RIGHT, MOST_EFFORT = 0.1, 64.0  # a model that kept its promise up to this, and came no nearer, is minimised better
SHORTEST = 2.0**-30
EXTEND = 1.5  # a step that gains more than so many times what was predicted is tried at twice the length
CAUTION = 0.02  # the least curvature assumed after a step had to be cut short, as a share of the loss's largest
ROUNDING = 1e-14  # of a sum over the rows, relative
EPSILON = 2.0**-52
PLAIN = 0.99  # of F: a step that gains no more leaves a difference that rounding does not show in
SETTLED = 1e-24  # times F: a model that curves less along its step ends the run, with a gradient of some 1e-12


class Descent:
    """Steps that make F fall, from a point that was looked at.

    Attributes
    ----------
    w, value, gradient : the point, F there and ∇f there
    predicted : how much the last step would have gained had the model been right
    kept : the share of it that the step gained
    settled : whether no step makes F fall any more
    cuts : how many steps kept next to nothing of what a model of all rows promised
    """

    def __init__(
        self, problem: Any, view: View, curvature: Any, share: float, w: Vector, *, full: float, hold: float = 0.0
    ) -> None:
        """From a sample of the Hessian of this share of the rows, which may grow; `full` is what all of it costs, in
        looks at the rows.

        With `hold`, F has a ridge more, for coordinate j: hold · Σ_k b_k e_k / m times the mean square of the entries
        of column j, for m rows with e_k entries each and b_k at this w.
        """
        l1, l2 = problem.shrinkage
        penalised = np.arange(w.size) < problem.d
        self.l1, self.l2 = np.where(penalised, l1, 0.0), np.where(penalised, l2, 0.0)
        self._problem, self.view, self.curvature, self.share, self._full = problem, view, curvature, share, full
        self._curve, self._idle = np.inf, 0  # of the last model along its step; steps that promise only rounding
        self._exact, self._lost = False, 0.0  # whether the next model is; what slow steps on samples have cost
        if share < 1.0:
            view.diagonal = np.zeros(w.size)
        self.most_curved = _most_curved(problem, view)
        self.memory, self._promises = Memory(), deque[float](maxlen=PATIENCE + 1)
        self.caution, self.predicted, self.kept, self.settled, self.cuts = 0.0, np.inf, 1.0, False, 0
        self.w, self._looked = w, True
        view.look(w)
        if hold > 0.0:
            self.l2 += hold * view.entry_curvatures() / view.size
        self.value = view.value + self.penalty(w)

    @property
    def gradient(self) -> Vector:
        self._look()
        return self.view.gradient

    def feedback(self) -> Vector:
        """a_i = ‖∇φ_i(w)‖² / n²."""
        self._look()
        return self.view.feedback()

    def _look(self) -> None:
        """Make up for the look that `jump` left out."""
        if not self._looked:
            self._looked = True
            self.value = self.view.look(self.w) + self.penalty(self.w)

    @property
    def near(self) -> bool:
        """Whether the last step came near the minimum, as Newton's do where F is like its models."""
        return len(self._promises) > 1 and self._promises[-1] <= STALE * self._promises[-2]

    def penalty(self, w: Vector) -> float:
        return float(self.l1 @ np.abs(w) + 0.5 * (self.l2 * w) @ w)

    def jump(self, tol: float) -> None:
        """A first step where F is its own model, with a matrix: it gains what was predicted, and the rows are not
        looked at before somebody asks for the gradient, unless rounding would show in F."""
        v, _ = self._model(tol)
        terms = float(np.abs(v) @ np.sqrt(np.diag(self.curvature.matrix))) ** 2  # at least |v|' |M| |v|
        if self.predicted < PLAIN * self.value and EPSILON * terms < ROUNDING * self.value:
            self._promises.append(self.predicted)
            self.w, self.value, self._looked = self.w + v, self.value - self.predicted, False
        else:
            self._search(v)
        self.predicted = 0.0  # the model is F: what it leaves is what the gradient shows

    def step(self, tol: float) -> None:
        """One step, the model minimised to tol."""
        before, scale, sampled = self.predicted, abs(self.value), not self.curvature.exact
        v, curve = self._model(tol)
        self._promises.append(self.predicted)
        self._judge_samples(before, scale, sampled)
        self._idle = 0 if self.predicted > ROUNDING * scale else self._idle + 1
        falls, self._curve = curve < NOWHERE * self._curve, curve
        if not math.isfinite(self.predicted):
            self._beware()
        elif self._idle == 0:
            self._search(v)
        elif not self.curvature.exact:
            self._take_all_rows()
            self._curve = np.inf
        elif self.caution > 0.0:
            self._relax_caution()
            self._curve = np.inf
        elif self._idle < PATIENCE and curve > SETTLED * scale and falls:
            self._search(v)  # the promise is lost in rounding, the curve, which knows no cancellation, still falls
        elif self._may_fall(scale):
            self._raise_caution()
        else:
            self.settled = True

    def _judge_samples(self, before: float, scale: float, sampled: bool) -> None:
        """Take more rows, or all, where steps on samples do not come near the minimum; `sampled` is of the last model.

        Steps that lead nowhere may cost as much as one with all rows, which is taken then: half of all work is lost at
        worst.
        """
        if self.curvature.dropped:
            slow = len(self._promises) > PATIENCE and self.predicted > STALE * self._promises[0]
            if slow and self.predicted > ROUNDING * scale:
                self._take_all_rows()
        elif sampled:
            if self.predicted > STALE * before and self.kept < KEPT:
                self.share *= 2.0
            if self.predicted > NOWHERE * before:
                self._lost += self._cost
            if self._lost > self._full:
                self._take_all_rows()
        elif self.predicted > STALE * before and abs(self.kept - 1.0) < RIGHT:
            self.curvature.effort = min(2.0 * self.curvature.effort, MOST_EFFORT)

    def _may_fall(self, scale: float) -> bool:
        """Whether F falls by more than rounding along some coordinate, though the model, where all rows are straight,
        does not tell: with o for `Problem.optimality`, by at least o² / 2d along one of them."""
        if not self.view.all:
            return False
        return self._problem.optimality(self.w, self.gradient) ** 2 > 2.0 * self.w.size * ROUNDING * scale

    def _beware(self) -> None:
        """After a model that led nowhere: model all rows, and if it did so already, take none for straight."""
        if self.curvature.exact:
            self.settled = self.caution == 1.0
            self._raise_caution()
        self._take_all_rows()
        self.predicted, self.kept = np.inf, 1.0

    def _raise_caution(self) -> None:
        if not self.curvature.dropped:
            self.caution = min(max(4.0 * self.caution, CAUTION), 1.0)

    def _relax_caution(self) -> None:
        self.caution = self.caution / 4.0 if self.caution > 1e-3 else 0.0

    def _take_all_rows(self) -> None:
        """The next model is exact."""
        self._exact, self._lost = True, 0.0
        self.curvature.dropped, self.memory = False, Memory()

    def _model(self, tol: float) -> tuple[Vector, float]:
        """The step v that the model here promises most of, and how much the model of f curves along it."""
        gradient, bends = self.gradient, self.view.bends
        wary = self.caution > 0.0 and not self.curvature.dropped
        if wary:
            bends = np.maximum(bends, self.caution * self.most_curved)
        taken = self.curvature.move(bends, self.share, exact=wary or self._exact or self.share > 1.0)
        self._exact, self._cost = False, 1.0 + self._full * taken / self.view.size
        with np.errstate(over="ignore", invalid="ignore"):  # where rows hardly curve, the model's minimiser is far away
            v, curve = self._model_minimiser(tol)
            shed = self.penalty(self.w) - self.penalty(self.w + v)
            self.predicted = shed - float(gradient @ v) - 0.5 * curve
        return v, curve

    def _model_minimiser(self, tol: float) -> tuple[Vector, float]:
        """v, and how much the model of f curves along it."""
        if not self.curvature.dropped:
            return self.curvature.minimise(self.gradient, self.w, self.l1, self.l2, tol)
        model = (self.curvature.diagonal + self.l2, self.slope, self.w, self.l1)
        v, curve = self.memory.minimise(*model, math.sqrt(tol))
        return v, curve - float((self.l2 * v) @ v)

    @property
    def slope(self) -> Vector:
        """The gradient of F but for the l1 norm."""
        return self.gradient + self.l2 * self.w

    def _search(self, v: Vector) -> None:
        """Go to w + v, or as far towards it as F falls; what F cannot tell from rounding is let through."""
        w, slope, before, t = self.w, self.slope, self.value, 1.0
        value = self.view.look(w + v) + self.penalty(w + v)
        while not self._falls(value, before, t) and t > SHORTEST:
            t *= 0.5
            value = self.view.between(t) + self.penalty(w + t * v)
        if t == 1.0 and before - value > EXTEND * max(self.predicted, ROUNDING * abs(before)):
            t, value = self._extend(v, value)
        if t != 1.0:
            v = t * v if t > SHORTEST else np.zeros_like(v)
            value = self.view.look(w + v) + self.penalty(w + v)
        self.w, self.value = w + v, value
        self.kept = (before - value) / self.predicted if self.predicted > 0.0 else 1.0
        self.memory.note(v, self.slope - slope)
        if t <= SHORTEST:
            self._beware()
        elif self.kept < BAD:
            self.cuts += self.curvature.exact and self._idle == 0
            self._raise_caution()
        elif self.kept > GOOD:
            self._relax_caution()

    def _extend(self, v: Vector, value: float) -> tuple[float, float]:
        """The t > 1 up to which F falls, by doubling: a loss that levels off is straight where the model curves."""
        t = 1.0
        while t < 1.0 / SHORTEST:
            further = self.view.between(2.0 * t) + self.penalty(self.w + 2.0 * t * v)
            if not further < value:
                break
            t, value = 2.0 * t, further
        return t, value

    def _falls(self, value: float, before: float, t: float) -> bool:
        return value <= before - DECREASE * t * self.predicted + ROUNDING * abs(before)


def _most_curved(problem: Any, view: View) -> Any:
    """Upper bounds on the view's bends, or where the loss has none, bends of a model without features."""
    weights = 1.0 / problem.n if view.all else view.weights
    if not problem.bounded_curvature:
        return weights * (problem.curvatures if view.all else problem.curvatures[view.chosen])
    if problem.sample_weight is not None:
        weights = weights * (problem.sample_weight if view.all else problem.sample_weight[view.chosen])
    return float(problem.loss.curvature()) * weights
