"""Newton's method for losses of several margins, such as `Softmax`:

    W ← argmin_U <∇f(W), U - W> + ½ <U - W, M (U - W)> + λ r(U),    M the Hessian, or an importance sample of its rows

No matrix of all numbers of W is made: M = Σ_i c_i ∇²φ_i ⊗ x_i x_i' is known by its products, and the minimiser found by
conjugate gradients. Far from the minimiser few rows show the way: W first descends on samples of growing size.
"""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from banditgrad import margins
from banditgrad.solvers.base import Known, Solver
from banditgrad.solvers.multinomial.descent import Descent
from banditgrad.solvers.multinomial.look import Look, take
from banditgrad.solvers.newton.blocks import expect_form
from banditgrad.solvers.newton.quadratic import one_blas_thread

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

GROWTH = 8  # of the samples, the last of which has n / 8 rows
FEWEST, PER_FEATURE = 256, 10  # rows of a sample: in all, and for each feature
STEPS = 8  # on one sample at most
NOISE = 2.0  # times F p/m, the order of a sample's own error: what promises less is not worth a step on it
HOLD = 0.1  # a ridge on samples, for features that they have hardly seen


class State:
    """Where a run is: at `W`; before the first look at all rows while `descent` is None."""

    def __init__(self, problem: Any, W: Matrix, seed: Any) -> None:
        self.W, self.descent = W, cast(Descent | None, None)
        self.stream = np.random.default_rng(seed)


@dataclass(frozen=True, eq=False)
class MultinomialNewton(Solver):
    """`SampledNewton` for losses of several margins, which takes its place there. One step counts as one pass.

    Takes the package's penalties, and your own that tell their form, and losses that offer
    `curve_product` and `curve_parts`.
    """

    @property
    def takes_several_margins(self) -> bool:
        return True

    @property
    def takes_vector_penalties(self) -> bool:
        return True

    def rows_per_step(self, problem: Any) -> int:
        return int(problem.n)

    def draws(self, problem: Any) -> bool:
        return False  # rows of samples are drawn by what they add to the Hessian

    def start(self, problem: Any, w: Vector, seed: Any) -> State:
        loss = type(problem.loss).__name__
        if not problem.vector:
            raise TypeError(f"MultinomialNewton takes losses of several margins, got {loss}. Use SampledNewton.")
        expect_form(problem, f"Newton's method for {loss}")
        if not (hasattr(problem.loss, "curve_product") and hasattr(problem.loss, "curve_parts")):
            raise TypeError(f"Newton's method asks {loss} for curve_product and curve_parts, which it does not have.")
        return State(problem, problem.shaped(w), seed)

    def advance(self, problem: Any, state: State, sampler: Any, steps: int) -> int:
        with one_blas_thread:
            if steps == 0:
                _compile(problem)
            for done in range(steps):
                if state.descent is None:
                    state.descent = _begin(problem, state)
                elif not state.descent.settled:
                    state.descent.step()
                state.W = state.descent.W
                if not np.isfinite(state.descent.value):
                    return done
        return steps

    def iterate(self, problem: Any, state: State) -> Vector:
        return state.W.reshape(-1).copy()

    def finished(self, state: State) -> bool:
        return state.descent is not None and state.descent.settled

    def feedback(self, problem: Any, state: State) -> Vector:
        if state.descent is None:
            return super().feedback(problem, state)
        return state.descent.feedback(problem.parts.norms2)

    def known(self, problem: Any, state: State) -> Known | None:
        return state.descent


def _begin(problem: Any, state: State) -> Descent:
    """Come near the minimiser and look at all rows."""
    start = state.W
    if not start.any():
        approach(problem, state)
    descent = Descent(problem, Look(problem), state.W, state.stream, sampled=True)
    if state.W is not start and not descent.value <= problem.value(start):  # samples led nowhere
        descent = Descent(problem, Look(problem), start, state.stream, sampled=True)
    return descent


def approach(problem: Any, state: State) -> None:
    """Descend on samples of growing size."""
    for m in sample_sizes(problem.n, problem.shape[0]):
        _descend(problem, state, m)


def _descend(problem: Any, state: State, m: int) -> None:
    """On a sample of m rows."""
    chosen = np.sort(state.stream.choice(problem.n, m, replace=False))
    descent = Descent(problem, Look(problem, chosen), state.W, state.stream, sampled=False, hold=HOLD)
    for _ in range(STEPS):
        descent.step()
        if descent.settled or descent.predicted < NOISE * abs(descent.value) * len(state.W) / m:
            break
    if np.isfinite(descent.value):
        state.W = descent.W


def sample_sizes(n: int, p: int) -> list[int]:
    sizes: list[int] = []
    m = n // GROWTH
    while m >= max(FEWEST, PER_FEATURE * p):
        sizes.insert(0, m)
        m //= GROWTH
    return sizes


def _compile(problem: Any) -> None:
    """All that is compiled, run on no rows."""
    none, nothing, no_scales = np.zeros(0, np.int64), np.zeros((0, problem.margins)), np.zeros(0)
    W, column = np.zeros(problem.shape), np.zeros((problem.shape[0], 1))
    sampled = Look(problem, none)
    margins.compile(problem.parts, W)
    for rows in (problem.parts.rows, take(problem.parts.rows, none)):
        curvature = sampled.take_all()._replace(rows=rows)
        curvature.product(W, W)
        curvature.diagonals()
        margins.multiply(rows, W, nothing)
        margins.add_transposed(rows, nothing, W)
        margins.add_squares_transposed(rows, nothing, W)
        margins.add_squares_transposed(rows, nothing[:, :1], column)
        margins.multiply_squares(rows, column, nothing[:, :1])
    margins.expand(problem.parts.terms, nothing, nothing, no_scales)
