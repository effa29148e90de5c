"""Newton's method on the rows in view: a sample of the Hessian, the minimiser of the model, a line search.

To each ∇²φ_i a multiple of the identity is added while F is less curved than its models are (Levenberg and Marquardt).
Row i is in the sample with probability π_i = min(1, rate · c_i tr(∇²φ_i) Σ_j x_ij² / h_j), and then counts 1/π_i times;
h is the diagonal of the Hessian, summed over the margins, and holds what the sample has seen too little of.
"""

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditgrad import margins
from banditgrad.rows import Dense
from banditgrad.solvers.multinomial.blocks import minimise_blocks
from banditgrad.solvers.multinomial.look import Curvature, Look
from banditgrad.solvers.multinomial.matrix import hessian_among
from banditgrad.solvers.multinomial.model import Found, Model, minimise_model
from banditgrad.solvers.multinomial.preconditioner import Preconditioner
from banditgrad.solvers.newton.blocks import new_blocks

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

SHARE = 0.2  # of the rows: ten products with them are two looks at all
CHEAP = 2e8  # multiply-adds of a look, some 0.1 s: where it costs no more, all rows are taken at every step
MOST = 0.6  # a sample of a larger share becomes all rows
STALE, NOWHERE = 0.1, 0.5  # a step that promises more than this share of what the one before did came not near, nowhere
KEPT = 0.75  # of what a model predicted: one that kept less, without coming near, saw too few rows
DECREASE = 1e-4  # a step must gain this share of what the model promises
EXTEND = 1.5  # a step that gains more than so many times what was predicted is tried at twice the length
SHORTEST = 2.0**-30
ROUNDING = 1e-14  # of a sum over the rows, relative
COARSE, FINE, FINEST = 0.3, 0.1, 1e-3  # how well models are minimised: on samples, near, and nearer as steps converge
BAD, GOOD = 0.25, 0.75  # of what a model predicted: one that kept less was too bold, one that kept more may be bolder
# Curvature that is added to each row's in all directions, as a share of the loss's largest: at first, where all classes
# are as likely and each curves by 1/K at most; after a step that had to be cut short; and the least that counts.
FIRST_CAUTION, CAUTION, LEAST_CAUTION = 0.1, 0.02, 1e-3
FAR = 0.1  # of F: a step that promises more starts far away
STALE_AFTER = 1.5  # times as many products as at first: the preconditioner is out of date
PATIENCE = 4  # steps that promise no more than rounding shows before a run is settled
MOST_EFFORT = 64.0


class Descent:
    """Steps that make F fall, from a point that was looked at.

    Attributes
    ----------
    W, value, gradient : the point, F there and ∇f there
    predicted : how much the last step would have gained had the model been right
    settled : whether no step makes F fall any more
    """

    def __init__(
        self, problem: Any, look: Look, W: Matrix, stream: np.random.Generator, *, sampled: bool, hold: float = 0.0
    ) -> None:
        form = problem.form
        self.l1, self.l2 = _of_rows(form.l1, problem), _of_rows(form.l2, problem)
        self._look, self._stream = look, stream
        self.W, self.predicted, self.kept, self.settled = W, np.inf, 1.0, False
        self._promises, self._idle, self._lost, self._effort = deque[float](maxlen=2), 0, 0.0, 1.0
        self._preconditioner: Preconditioner | None = None
        self._caution = 0.0 if W.any() else FIRST_CAUTION
        self._most_curved = float(problem.loss.curvature()) if np.isfinite(problem.loss.curvature()) else 0.0
        self._usual = 0  # products that the first model with it took
        look.at(W)
        look.see_gradient()
        entries = look.rows.matrix.size if isinstance(look.rows, Dense) else look.rows.data.size
        self._cost = 4.0 * max(entries, look.size) * problem.margins  # of a look, in multiply-adds
        self.share = SHARE if sampled and self._cost > CHEAP else 1.0
        self.balanced = self.l2.shape[1] == 1 and _sum_to_zero(look.slopes)
        if self.balanced and form.plain and not self.l1.any() and W.any():
            self.W = W - W.mean(axis=1, keepdims=True)  # the same margins but for a number, and the least ridge
            look.at(self.W)
            look.see_gradient()
        if hold > 0.0:
            self.l2 = self.l2 + hold * _ridge_of_rare(look)
        self._blocks = None if form.plain else new_blocks(form, np.broadcast_to(self.l2, W.shape).ravel())
        self.value = look.value + self.penalty(self.W)

    @property
    def gradient(self) -> Matrix:
        return self._look.gradient

    def feedback(self, norms2: Vector) -> Vector:
        """a_i = ‖∇φ_i(W)‖² / n²."""
        norms = np.linalg.norm(self._look.scales[:, None] * self._look.slopes, axis=1)
        return np.asarray(norms**2 * norms2)

    def penalty(self, W: Matrix) -> float:
        norms = 0.0 if self._blocks is None else self._blocks.cost(W.ravel())
        return norms + float(np.sum(self.l1 * np.abs(W)) + 0.5 * np.vdot(self.l2 * W, W))

    def _towards(self, V: Matrix, t: float = 1.0) -> Matrix:
        """W + t V."""
        W = self.W + V if t == 1.0 else self.W + t * V
        return W if self._blocks is None or t > 1.0 else self._blocks.clipped(W.ravel()).reshape(W.shape)

    def step(self) -> None:
        before, scale = self.predicted, abs(self.value)
        tol = self._accuracy()
        V, curve, exact = self._model(tol)
        shed = self.penalty(self.W) - self.penalty(self._towards(V))
        self.predicted = shed - float(np.vdot(self.gradient, V)) - 0.5 * curve
        if not np.isfinite(self.predicted):
            V, self.predicted = np.zeros_like(V), 0.0
        self._judge(before, exact)
        self._idle = 0 if self.predicted > ROUNDING * scale else self._idle + 1
        if self._idle > 0 and not exact:
            self._take_all_rows()
        elif self._idle > 0 and self._caution > 0.0:
            self._caution = 0.0
        elif self._idle > PATIENCE:
            self.settled = True
        else:
            self._search(V)

    def _accuracy(self) -> float:
        """Of the next model's minimiser: the better, the faster steps on all rows converge."""
        if self.share < 1.0 or self._far or not self._promises:
            return COARSE
        before, last = (self._promises[0], self._promises[-1])
        ratio = max(last, 0.0) / before if before > 0.0 else 0.0  # rounding may leave a promise below zero
        return max(FINEST, min(FINE, ratio**0.5)) / self._effort

    @property
    def _far(self) -> bool:
        """Whether F is less like its models than they need be minimised well."""
        return not self.predicted < FAR * abs(self.value)

    def _judge(self, before: float, exact: bool) -> None:
        """More rows, or all, or a better minimiser, where steps do not come near the minimum."""
        self._promises.append(self.predicted)
        if exact:
            if self._caution == 0.0 and self.predicted > STALE * before and abs(self.kept - 1.0) < STALE:
                self._effort = min(2.0 * self._effort, MOST_EFFORT)
            return
        if self.predicted > STALE * before and self.kept < KEPT:
            self.share *= 2.0
        if self.predicted > NOWHERE * before:
            self._lost += 1.0
        if self._lost > 2.0 or self.share > MOST:
            self._take_all_rows()

    def _take_all_rows(self) -> None:
        self.share = 1.0

    def _model(self, tol: float) -> tuple[Matrix, float, bool]:
        """The step, how much the model of f curves along it, and whether the model was of all rows."""
        look = self._look
        exact = self.share >= 1.0
        curvature, lacking = (look.take_all(), 0.0) if exact else sample_rows(look, self.share, self._stream)
        curvature = curvature._replace(added=self._caution * self._most_curved)
        held = np.maximum(self.l2 + lacking, 0.0)
        if self._preconditioner is None:
            matrices = not (self.l1.any() or self._blocks is not None or (self._far and self._cost > CHEAP))
            self._preconditioner = Preconditioner(curvature, held, self._cost, self._stream, matrices=matrices)
        preconditioner = self._preconditioner

        def product(V: Matrix) -> Matrix:
            out = held * V
            curvature.product(V, out)
            return out

        def among(working: Any) -> Matrix:
            M = hessian_among(curvature, working)
            M[np.diag_indices(working.size)] += np.broadcast_to(held - self.l2, self.W.shape).ravel()[working]
            return M

        model = Model(among, product, preconditioner, preconditioner.curvatures, self.balanced)
        slope = self.gradient + self.l2 * self.W
        if self._blocks is None:
            found = minimise_model(model, slope, self.W, self.l1, self.l2, tol, self._effort)
        else:
            found = Found(*minimise_blocks(model, slope, self.W, self._blocks, tol, self._effort))
        self._judge_preconditioner(found.products)
        return found.V, found.curve - float(np.vdot(self.l2 * found.V, found.V)), exact

    def _judge_preconditioner(self, products: int) -> None:
        """Make another for the next step where this one is of no use any more, or is none of matrices."""
        assert self._preconditioner is not None
        self._usual = self._usual or products
        if not self._preconditioner.matrices or products > STALE_AFTER * self._usual:
            self._preconditioner, self._usual = None, 0

    def _search(self, V: Matrix) -> None:
        """Go to W + V, or as far towards it as F falls; what F cannot tell from rounding is let through."""
        look, before, t = self._look, self.value, 1.0
        value = look.at(self._towards(V)) + self.penalty(self._towards(V))
        while not self._falls(value, before, t) and t > SHORTEST:
            t *= 0.5
            value = look.stretch(0.5) + self.penalty(self._towards(V, t))
        if t == 1.0 and before - value > EXTEND * max(self.predicted, ROUNDING * abs(before)):
            t, value = self._extend(V, value)
        if t <= SHORTEST:
            t = 0.0
            look.at(self.W)
            value = look.value + self.penalty(self.W)
            self._beware()
        self.W, self.value = self._towards(V, t), value
        self.kept = (before - value) / self.predicted if self.predicted > 0.0 else 1.0
        look.see_gradient()
        if self.kept < BAD:
            self._caution = min(max(4.0 * self._caution, CAUTION), 1.0)
        elif self.kept > GOOD:
            self._caution = self._caution / 8.0 if self._caution > LEAST_CAUTION else 0.0

    def _extend(self, V: Matrix, value: float) -> tuple[float, float]:
        """The t > 1 up to which F falls, by doubling: a loss that levels off is straight where the model curves."""
        t = 1.0
        while t < 1.0 / SHORTEST:
            further = self._look.stretch(2.0) + self.penalty(self._towards(V, 2.0 * t))
            if not further < value:
                self._look.stretch(0.5)
                break
            t, value = 2.0 * t, further
        return t, value

    def _falls(self, value: float, before: float, t: float) -> bool:
        return value <= before - DECREASE * t * self.predicted + ROUNDING * abs(before)

    def _beware(self) -> None:
        """After a model along whose step F did not fall: model all rows; if it did so already, there is no more."""
        self.settled = self.share >= 1.0
        self._take_all_rows()


def sample_rows(look: Look, share: float, stream: np.random.Generator) -> tuple[Curvature, Matrix]:
    """Some rows, and what they lack of the Hessian's diagonal, for each margin the same."""
    trace = look.take_all().diagonals().sum(axis=1)
    total = np.zeros((len(look.gradient), 1))
    margins.add_squares_transposed(look.rows, trace[:, None], total)
    units = np.zeros((look.size, 1))
    margins.multiply_squares(look.rows, 1.0 / np.where(total > 0.0, total, np.inf), units)
    score = trace * units[:, 0]
    chances = _chances(score, share)
    chosen = np.flatnonzero(stream.random(look.size) < chances)
    factors = 1.0 / chances[chosen]
    sample = look.take(chosen, look.scales[chosen] * factors)
    seen = np.zeros_like(total)
    margins.add_squares_transposed(sample.rows, (trace[chosen] * factors)[:, None], seen)
    return sample, np.maximum(total - seen, 0.0) / look.gradient.shape[1]


def _of_rows(values: Vector, problem: Any) -> Matrix:
    """For each row of W, or where they differ within rows for each number."""
    W = np.zeros(problem.shape)
    W[: problem.d] = values.reshape(problem.d, -1)
    return W[:, :1].copy() if (W[:, :1] == W).all() else W


def _sum_to_zero(slopes: Matrix) -> bool:
    """Whether adding a number to all margins of a row changes nothing, as with `Softmax`."""
    sums, sizes = np.abs(slopes.sum(axis=1)), np.abs(slopes).sum(axis=1)
    return bool((sums <= 1e-12 * sizes).all())


def _chances(score: Vector, share: float) -> Vector:
    """min(1, rate · score), with a rate such that they sum to a share of the rows."""
    chances, sure = np.full(score.size, share), np.zeros(score.size, bool)
    while True:
        left = float(score[~sure].sum())
        if not left > 0.0:
            return chances
        rate = max(share * score.size - float(sure.sum()), 0.0) / left
        chances = np.where(sure, 1.0, np.minimum(1.0, rate * score))
        if (chances >= 1.0).sum() == sure.sum():
            return chances
        sure = chances >= 1.0


def _ridge_of_rare(look: Look) -> Matrix:
    """For each feature, the curvature that a row spreads over its entries times the mean square of the feature's."""
    trace = look.take_all().diagonals().sum(axis=1)
    squares, p = np.zeros((len(look.gradient), 1)), len(look.gradient)
    margins.add_squares_transposed(look.rows, np.ones((look.size, 1)), squares)
    if isinstance(look.rows, Dense):
        lengths, counts = np.full(look.size, p), np.full(p, look.size)
    else:
        lengths = np.diff(look.rows.indptr)
        counts = np.bincount(look.rows.indices.astype(np.int64), minlength=p)
    each = float(trace @ lengths) / look.size / look.gradient.shape[1]
    return np.asarray(each * squares / np.maximum(counts, 1)[:, None])
