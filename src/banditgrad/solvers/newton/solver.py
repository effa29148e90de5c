"""Newton's method on sampled rows:

    w ← argmin_u <∇f(w), u - w> + ½ <u - w, Ĥ (u - w)> + λ r(u),    Ĥ an importance sample of the Hessian

Far from the minimiser few rows show the way: w first descends on samples of growing size, drawn by the sampler and
weighted by 1/(n p_i), each of which is a small problem of the same kind. From then on a step is one pass in the order
of the rows, for F, ∇f and the φ_i''. The rows of Ĥ are drawn with probability ∝ φ_i'' ‖x_i‖² (Xu, Yang,
Roosta-Khorasani, Ré and Mahoney 2016); the step is proximal (Lee, Sun and Saunders 2014).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditgrad._random import new_stream
from banditgrad.losses import Squared
from banditgrad.solvers.base import BAD_INDEX, Known, Solver
from banditgrad.solvers.newton import costs
from banditgrad.solvers.newton.columns import ColumnCurvature
from banditgrad.solvers.newton.curvature import Curvature
from banditgrad.solvers.newton.descent import Descent
from banditgrad.solvers.newton.matrix_free import RowCurvature
from banditgrad.solvers.newton.quadratic import minimise_quadratic
from banditgrad.solvers.newton.view import View, draw_view, tell

Vector = NDArray[np.float64]

GROWTH = 8  # of the samples, the last of which has n / 8 rows
FEWEST, PER_COORDINATE = 256, 10  # rows of a sample: in all, and for each coordinate of w
STEPS = 8  # on one sample at most
NOISE = 2.0  # times F d/m, the order of a sample's own error: what promises less is not worth a step on it
COARSE, FINE, EXACT = 0.1, 0.01, 1e-5  # how well models are minimised: on samples, on all rows, and where F is a model
HOLD = 0.1  # times the mean curvature times d/m: a ridge on samples, for features that they have hardly seen


class SampledNewtonState:
    """Where a run is: at `w`, on samples still while `descent` is None, else on all rows."""

    def __init__(self, problem: Any, w: Vector, seed: Any) -> None:
        l1, _ = problem.shrinkage
        self.w, self._stream = w, new_stream(seed)
        wide = ColumnCurvature if l1 > 0.0 else RowCurvature
        self._kind = Curvature if costs.matrix_pays(problem) else wide
        self.descent: Descent | None = None
        self.tol = FINE

    def curvature(self, view: View) -> Curvature | RowCurvature:
        return self._kind(view, self._stream)


@dataclass(frozen=True, eq=False)
class SampledNewton(Solver):
    """Proximal Newton steps with an importance-sampled Hessian. One step counts as one pass.

    Rows are read in their order, in memory or mapped to it. Where that is cheap it keeps a matrix of d x d numbers;
    elsewhere conjugate gradients, or with an l1 norm coordinate descent, work on the sampled rows, and d may be large.
    There is no step size.
    Takes penalties with a closed form: `Zero`, `L1`, `SquaredL2`, `ElasticNet`.
    """

    def rows_per_step(self, problem: Any) -> int:
        return int(problem.n)

    def start(self, problem: Any, w: Vector, seed: Any) -> SampledNewtonState:
        if problem.shrinkage is None:
            who = type(problem.penalty).__name__
            raise TypeError(f"SampledNewton takes Zero, L1, SquaredL2 and ElasticNet, got {who}. Use ProxSvrg with it.")
        return SampledNewtonState(problem, w, seed)

    def advance(self, problem: Any, state: SampledNewtonState, sampler: Any, steps: int) -> int:
        if steps == 0:
            _compile(problem, state, sampler)
        for done in range(steps):
            if state.descent is not None:
                if not state.descent.settled:
                    state.descent.step(state.tol)
            elif not _begin(problem, state, sampler):
                return BAD_INDEX
            assert state.descent is not None
            state.w = state.descent.w
            if not np.isfinite(state.descent.value):
                return done
        return steps

    def iterate(self, problem: Any, state: SampledNewtonState) -> Vector:
        return state.w.copy()

    def feedback(self, problem: Any, state: SampledNewtonState) -> Vector:
        return super().feedback(problem, state) if state.descent is None else state.descent.view.feedback()

    def known(self, problem: Any, state: SampledNewtonState) -> Known | None:
        return None if state.descent is None else Known(state.descent.value, state.descent.gradient)


def _begin(problem: Any, state: SampledNewtonState, sampler: Any) -> bool:
    """Come near the minimiser and look at all rows; False where the sampler drew what is not a row."""
    if isinstance(problem.loss, Squared):
        descent = _on_all_rows(problem, state)
        if descent.share >= 1.0:  # the model is F itself: one step is enough, from anywhere
            state.descent, state.tol = descent, EXACT
            descent.step(EXACT)
            return True
    if not approach(problem, state, sampler):
        return False
    state.descent = _on_all_rows(problem, state)
    return True


def _on_all_rows(problem: Any, state: SampledNewtonState) -> Descent:
    view = View(problem)
    return Descent(problem, view, state.curvature(view), state.w)


def approach(problem: Any, state: SampledNewtonState, sampler: Any) -> bool:
    """Descend on samples of growing size; False where the sampler drew what is not a row."""
    d = problem.dimension
    for m in sample_sizes(problem.n, d):
        view = draw_view(problem, sampler, m)
        if view is None:
            return False
        descent = Descent(problem, view, state.curvature(view), state.w, hold=HOLD)
        for _ in range(STEPS):
            if descent.settled or descent.promised < NOISE * abs(descent.value) * d / m:
                break
            descent.step(COARSE)
        if np.isfinite(descent.value):
            state.w = descent.w
            tell(view, sampler)
    return True


def _compile(problem: Any, state: SampledNewtonState, sampler: Any) -> None:
    """All that is compiled, run on no rows."""
    view = draw_view(problem, sampler, 0)
    assert view is not None
    view.look(np.zeros(problem.dimension))
    view.between(0.5)
    tell(view, sampler)
    zeros, one = np.zeros(problem.dimension), np.ones(1)
    curvature = state.curvature(view)
    curvature.move(view.bends, 1.0)
    if isinstance(curvature, RowCurvature):
        curvature.minimise(zeros, zeros, zeros, zeros, 1.0)
    minimise_quadratic(np.eye(1), one, one, one, one, 1.0)


def sample_sizes(n: int, d: int) -> list[int]:
    sizes: list[int] = []
    m = n // GROWTH
    while m >= max(FEWEST, PER_COORDINATE * d):
        sizes.insert(0, m)
        m //= GROWTH
    return sizes
