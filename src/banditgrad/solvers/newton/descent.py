"""Newton's method on a subset of the rows, or on all of them:

    v = argmin_v q(v),   q(v) = <∇f(w), v> + ½ <v, M v> + λ r(w + v)
    w ← w + t v,   t the first of 1, ½, ¼, ... with F(w) - F(w + t v) >= DECREASE · t · predicted

M is an estimate of the Hessian and q(0) - q(v) the predicted decrease. As in trust-region methods, the actual decrease
over the predicted one tells how far to trust the next model: by it more rows are sampled, the model is minimised
better, or rows are assumed to curve more than they do where they are.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditgrad.solvers.newton.blocks import Blocks, new_blocks
from banditgrad.solvers.newton.hessian import HessianMatrix
from banditgrad.solvers.newton.lbfgs import LBFGS
from banditgrad.solvers.newton.subset import RowSubset
from banditgrad.solvers.newton.trust import BAD, CLOSER, GOOD, PATIENCE, STALLED, Trust

Vector = NDArray[np.float64]

DECREASE = 1e-4  # the share of the predicted decrease that a step must gain
RIGHT, MOST_EFFORT = 0.1, 64.0  # a model with a ratio as near to 1, which led no nearer, is minimised better
SHORTEST = 2.0**-30
EXTEND = 1.5  # a step that gains more than so many times what was predicted is tried at twice the length
ROUNDING = 1e-14  # of a sum over the rows, relative
EPSILON = 2.0**-52
PLAIN = 0.99  # of F: a step that gains no more leaves a difference that rounding does not show in
SETTLED = 1e-24  # times F: a <v, M v> that is less ends the run, with a gradient of some 1e-12


class Descent:
    """Steps that make F fall, from a point where F was evaluated.

    Attributes
    ----------
    w, value, gradient : the point, F there and ∇f there
    trust : in the models
    settled : whether no step makes F fall any more
    """

    def __init__(
        self, problem: Any, subset: RowSubset, hessian: Any, share: float, w: Vector, *, full: float, ridge: float = 0.0
    ) -> None:
        """From a sample of the Hessian of this share of the rows, which may grow; `full` is what all of it costs, in
        evaluations of the rows.

        With `ridge`, F has an l2 norm more, for coordinate j of strength ridge · Σ_k h_k e_k / m times the mean square
        of the entries of column j, for m rows with e_k entries and the second derivative h_k at this w.
        """
        self.l1, self.l2, form = np.zeros(w.size), np.zeros(w.size), problem.form
        self.l1[: problem.d], self.l2[: problem.d] = form.l1, form.l2
        self._problem, self.subset, self.hessian, self.share, self._full = problem, subset, hessian, share, full
        if share < 1.0 and not subset.diagonal.size:
            subset.diagonal, subset.point = np.zeros(w.size), None
        self.curvatures = _curvatures(problem, subset)
        self.trust, self.lbfgs, self.settled = Trust(), LBFGS(), False
        self.w, self._evaluated = w, True
        if subset.point is None or not np.array_equal(subset.point, w):
            self._move_subset()
        if ridge > 0.0:
            self.l2 += ridge * subset.entry_curvatures() / subset.size
        self.blocks = None if form.plain else new_blocks(form, self.l2)
        self._penalty, self._next_penalty = self.penalty(w), 0.0  # at w; where the model's minimiser is
        self.value = subset.value + self._penalty

    @property
    def gradient(self) -> Vector:
        self._evaluate()
        return self.subset.gradient

    @property
    def predicted(self) -> float:
        return self.trust.predicted

    def feedback(self) -> Vector:
        """a_i = ‖∇φ_i(w)‖² / n²."""
        self._evaluate()
        self._catch_up()
        return self.subset.feedback()

    def _evaluate(self) -> None:
        """Make up for the evaluation that `step_as_predicted` left out."""
        if not self._evaluated:
            self._evaluated = True
            self.value = self._move_subset() + self._penalty

    def _move_subset(self) -> float:
        """Evaluate it at w: by its Hessian where that is known and the same everywhere."""
        constant = self.hessian.constant and math.isfinite(self.subset.value)
        return self.subset.move(self.w, self.hessian.matrix) if constant else self.subset.evaluate(self.w)

    def _catch_up(self) -> None:
        if self.subset.behind:
            self.subset.evaluate(self.w)

    def penalty(self, w: Vector) -> float:
        """λ r(w)."""
        norms = 0.0 if self.blocks is None else self.blocks.cost(w)
        return norms + float(self.l1 @ np.abs(w) + 0.5 * (self.l2 * w) @ w)

    def _towards(self, v: Vector, t: float = 1.0) -> Vector:
        """w + t v."""
        w = self.w + t * v if t != 1.0 else self.w + v
        return w if self.blocks is None or t > 1.0 else self.blocks.clipped(w)

    def step_as_predicted(self, tol: float) -> None:
        """A first step where F is its own model, with a matrix: the decrease is the predicted one, and F is not
        evaluated before somebody asks for the gradient, unless rounding would show in it."""
        v, _ = self._model(tol)
        terms = float(np.abs(v) @ np.sqrt(np.diag(self.hessian.matrix))) ** 2  # at least |v|' |M| |v|
        if self.predicted < PLAIN * self.value and EPSILON * terms < ROUNDING * self.value:
            self.trust.predictions.append(self.predicted)
            self.w, self.value, self._evaluated = self._towards(v), self.value - self.predicted, False
            self._penalty = self._next_penalty
        else:
            self._search(v)
        self.trust.predicted = 0.0  # the model is F: what it leaves is what the gradient shows

    def step(self, tol: float) -> None:
        """One step, the model minimised to tol."""
        trust, scale, sampled = self.trust, abs(self.value), not self.hessian.exact
        before, vMv_before = trust.predicted, trust.vMv
        v, trust.vMv = self._model(tol)
        trust.predictions.append(trust.predicted)
        self._improve_model(before, scale, sampled)
        trust.idle = 0 if trust.predicted > ROUNDING * scale else trust.idle + 1
        falls = trust.vMv < STALLED * vMv_before
        if not math.isfinite(trust.predicted):
            self._reject_model()
        elif trust.idle == 0:
            self._search(v)
        elif not self.hessian.exact:
            self._take_all_rows()
            trust.vMv = np.inf
        elif trust.caution > 0.0:
            trust.relax_caution()
            trust.vMv = np.inf
        elif trust.idle < PATIENCE and trust.vMv > SETTLED * scale and falls:
            self._search(v)  # the prediction is lost in rounding; <v, M v>, which knows no cancellation, still falls
        elif self._may_fall(scale):
            self._raise_caution()
        else:
            self.settled = True

    def _improve_model(self, before: float, scale: float, sampled: bool) -> None:
        """Take more rows, or all, where steps on samples do not come near the minimum; `sampled` is of the last model.

        Steps that lead nowhere may cost as much as one with all rows, which is taken then: half of all work is lost at
        worst.
        """
        trust = self.trust
        if self.hessian.dropped:
            if trust.slow and trust.predicted > ROUNDING * scale:
                self._take_all_rows()
        elif sampled:
            if trust.too_few_rows(before):
                self.share *= 2.0
            if trust.predicted > STALLED * before:
                trust.wasted += self._cost
            if trust.wasted > self._full:
                self._take_all_rows()
        elif trust.predicted > CLOSER * before and abs(trust.ratio - 1.0) < RIGHT:
            self.hessian.effort = min(2.0 * self.hessian.effort, MOST_EFFORT)

    def _may_fall(self, scale: float) -> bool:
        """Whether F falls by more than rounding along some coordinate, though the model, where all rows are straight,
        does not tell: with o for `Problem.optimality`, by at least o² / 2d along one of them."""
        if not self.subset.all:
            return False
        return self._problem.optimality(self.w, self.gradient) ** 2 > 2.0 * self.w.size * ROUNDING * scale

    def _reject_model(self) -> None:
        """After a model that led nowhere: model all rows, and if it did so already, take none for straight."""
        if self.hessian.exact:
            self.settled = self.trust.caution == 1.0
            self._raise_caution()
        self._take_all_rows()
        self.trust.predicted, self.trust.ratio = np.inf, 1.0

    def _raise_caution(self) -> None:
        if not self.hessian.dropped:
            self.trust.raise_caution()

    def _take_all_rows(self) -> None:
        """The next model is exact."""
        self.trust.exact, self.trust.wasted = True, 0.0
        self.hessian.dropped, self.lbfgs = False, LBFGS()

    def _model(self, tol: float) -> tuple[Vector, float]:
        """v = argmin q and <v, M v>; the predicted decrease is

        q(0) - q(v) = λ r(w) - λ r(w + v) - <∇f(w), v> - ½ <v, M v>.

        With caution c, M is the Hessian of rows whose second derivatives are max(h_k, c · their largest).
        """
        trust, gradient, second_derivatives = self.trust, self.gradient, self.subset.second_derivatives
        cautious = trust.caution > 0.0 and not self.hessian.dropped
        if cautious:
            second_derivatives = np.maximum(second_derivatives, trust.caution * self.curvatures)
        share = self.share if self.blocks is not None else self.hessian.affordable(self.share, self.w, self.l1)
        exact = cautious or trust.exact or share > 1.0
        taken = self.hessian.move(second_derivatives, share, exact=exact)
        trust.exact, self._cost = False, 1.0 + self._full * taken / self.subset.size
        with np.errstate(over="ignore", invalid="ignore"):  # where rows hardly curve, the model's minimiser is far away
            v, vMv = self._model_minimiser(tol)
            self._next_penalty = self.penalty(self._towards(v))
            trust.predicted = self._penalty - self._next_penalty - float(gradient @ v) - 0.5 * vMv
        return v, vMv

    def _model_minimiser(self, tol: float) -> tuple[Vector, float]:
        if self.blocks is not None:
            return self._minimiser_in_blocks(self.blocks, tol)
        if not self.hessian.dropped:
            return self.hessian.minimise(self.gradient, self.w, self.l1, self.l2, tol)
        model = (self.hessian.diagonal + self.l2, self.slope, self.w, self.l1)
        v, vBv = self.lbfgs.minimise(*model, math.sqrt(tol))
        return v, vBv - float((self.l2 * v) @ v)

    def _minimiser_in_blocks(self, blocks: Blocks, tol: float) -> tuple[Vector, float]:
        if not self.hessian.dropped:
            v, vMv = self.hessian.minimise_in_blocks(self.gradient, self.w, blocks, tol)
            return v, float(vMv)
        diagonal = self.hessian.diagonal + self.l2
        v, vBv = self.lbfgs.minimise_in_blocks(diagonal, self.slope, self.w, blocks, math.sqrt(tol))
        return v, vBv - float((self.l2 * v) @ v)

    @property
    def slope(self) -> Vector:
        """The gradient of F but for the l1 norm."""
        return self.gradient + self.l2 * self.w

    def _search(self, v: Vector) -> None:
        """w ← w + t v, with t from a line search by Armijo's rule; what F cannot tell from rounding is let through.

        Up to SHORTEST, t is halved until F(w + t v) <= F(w) - DECREASE · t · predicted; at t = 1, it is doubled instead
        while F falls, where that gained more than EXTEND times what was predicted.
        """
        self._catch_up()
        slope, before, t = self.slope, self.value, 1.0
        value = self.subset.evaluate(self._towards(v)) + self._next_penalty
        while not value <= before - DECREASE * t * self.predicted + ROUNDING * abs(before) and t > SHORTEST:
            t *= 0.5
            value = self.subset.value_along(t) + self.penalty(self._towards(v, t))
        if t == 1.0 and before - value > EXTEND * max(self.predicted, ROUNDING * abs(before)):
            t, value = self._extend(v, value)
        if t != 1.0:
            v = t * v if t > SHORTEST else np.zeros_like(v)
            self._next_penalty = self.penalty(self._towards(v))
            value = self.subset.evaluate(self._towards(v)) + self._next_penalty
        self.w, self.value, self._penalty = self._towards(v), value, self._next_penalty
        self.trust.compare(before - value)
        if not isinstance(self.hessian, HessianMatrix):  # which needs no help
            self.lbfgs.remember(v, self.slope - slope)
        if t <= SHORTEST:
            self._reject_model()
        elif self.trust.ratio < BAD:
            self.trust.failures += self.hessian.exact and self.trust.idle == 0
            self._raise_caution()
        elif self.trust.ratio > GOOD:
            self.trust.earn_boldness()

    def _extend(self, v: Vector, value: float) -> tuple[float, float]:
        """The t > 1 up to which F falls, by doubling: a loss that levels off is straight where the model curves."""
        t = 1.0
        while t < 1.0 / SHORTEST:
            further = self.subset.value_along(2.0 * t) + self.penalty(self._towards(v, 2.0 * t))
            if not further < value:
                break
            t, value = 2.0 * t, further
        return t, value


def _curvatures(problem: Any, subset: RowSubset) -> Any:
    """Bounds on the subset's second derivatives, or where the loss has none, those of a model without features."""
    weights = 1.0 / problem.n if subset.all else subset.weights
    if not problem.bounded_curvature:
        return weights * (problem.curvatures if subset.all else problem.curvatures[subset.chosen])
    if problem.sample_weight is not None:
        weights = weights * (problem.sample_weight if subset.all else problem.sample_weight[subset.chosen])
    return float(problem.loss.curvature()) * weights
