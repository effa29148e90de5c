"""Newton's method on sampled rows:

    w ← argmin_u <∇f(w), u - w> + ½ <u - w, Ĥ (u - w)> + λ r(u),    Ĥ an importance sample of the Hessian

Far from the minimiser few rows show the way: w first descends on samples of growing size, drawn by the sampler and
weighted by 1/(n p_i), each of which is a small problem of the same kind; or, where rows are too few for that, by sweeps
in the dual. From then on a step is one pass in the order of the rows, for F, ∇f and the φ_i''. The rows of Ĥ are drawn
with probability ∝ φ_i'' ‖x_i‖² (Xu, Yang, Roosta-Khorasani, Ré and Mahoney 2016); the step is proximal (Lee, Sun and
Saunders 2014). Where features are many and a sample tells no more of the Hessian than its diagonal does, Ĥ is that
diagonal and what the last steps have shown.
"""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from banditgrad._random import new_stream
from banditgrad.losses import Squared, has_kinks
from banditgrad.solvers.base import BAD_INDEX, Known, Solver
from banditgrad.solvers.newton.columns import ColumnCurvature
from banditgrad.solvers.newton.continuation import Continuation, Strengths, Widths
from banditgrad.solvers.newton.costs import OVERHEAD, Costs
from banditgrad.solvers.newton.curvature import Curvature
from banditgrad.solvers.newton.descent import Descent
from banditgrad.solvers.newton.dual import Dual
from banditgrad.solvers.newton.kinks import SmoothedDescent, without_kinks
from banditgrad.solvers.newton.matrix_free import RowCurvature
from banditgrad.solvers.newton.memory import Memory
from banditgrad.solvers.newton.quadratic import minimise_quadratic
from banditgrad.solvers.newton.view import View, draw_view, tell

Vector = NDArray[np.float64]

WORK = 2.0  # of a sample of the Hessian, in units of a look at all rows in view
MOST = 0.5  # a sample of a larger share of the rows becomes all of them: the exact Hessian needs no other help
GROWTH = 8  # of the samples, the last of which has n / 8 rows
FEWEST, PER_COORDINATE = 256, 10  # rows of a sample: in all, and for each coordinate of w
STEPS = 8  # on one sample at most
NOISE = 2.0  # times F d/m, the order of a sample's own error: what promises less is not worth a step on it
COARSE, FINE, EXACT = 0.1, 0.01, 1e-5  # how well models are minimised: far away or on samples, near, where F is a model
STUCK = 4  # steps on all rows that hardly moved, on rows some of which are straight: a path may come nearer
HOLD = 0.1  # times the mean curvature times d/m: a ridge on samples, for features that they have hardly seen


class SampledNewtonState:
    """Where a run is: at `w`; in the dual while there is a `dual`; on easier problems while there is a `path`; else
    before the first look at all rows while `descent` is None."""

    def __init__(self, problem: Any, w: Vector, seed: Any) -> None:
        self.w, self.problem, self._stream = w, problem, new_stream(seed)
        self.costs = Costs(problem)
        self.quadratic = _is_quadratic(problem)
        self.descent: Descent | None = None
        self.path, self.followed = cast(Continuation | None, None), False  # the second: one that began on the way
        self.follow(Widths(problem, w))
        self.samples = _first_samples(problem) if self.path is None else []
        few = not self.quadratic and not _first_samples(problem) and not self.costs.matrix_pays()
        suits = few and self.path is None and Dual.suits(problem) and not w.any()
        self.dual = Dual(problem, self._stream) if suits else None
        self.tol, self.near = FINE, self.quadratic  # near: models are worth minimising well

    @property
    def seen(self) -> Descent | Dual | None:
        """What knows F and its gradient at the iterate."""
        return self.dual if self.dual is not None and self.dual.begun else self.descent

    def follow(self, path: Continuation) -> None:
        self.path = None if path.ended else path

    @property
    def led_nowhere(self) -> bool:
        """Whether w is that of a dual that has not come below F(0) yet: then the iterate is still zero."""
        dual = self.dual
        return dual is not None and dual.begun and not dual.value <= self.problem.value(np.zeros_like(self.w))

    def kind(self, size: int) -> type[Curvature] | type[RowCurvature]:
        """The estimate of the Hessian that suits so many rows."""
        if self.costs.matrix_pays(size / self.problem.n):
            return Curvature
        l1, _ = self.problem.shrinkage
        return ColumnCurvature if l1 > 0.0 else RowCurvature

    def share(self, size: int) -> float:
        """Of so many rows, the share to sample the Hessian from; 1 for the Hessian itself, infinite for that at every
        step, since it costs next to nothing."""
        cost = self.kind(size).cost(self.costs)
        if cost * size / self.problem.n <= OVERHEAD:
            return np.inf
        share = WORK * self.costs.look / cost
        return share if share <= MOST else 1.0

    def begin(self, view: View, w: Vector | None = None, problem: Any = None, *, hold: float = 0.0) -> Descent:
        kind, share = self.kind(view.size), self.share(view.size)
        full, w = kind.cost(self.costs) / self.costs.look, self.w if w is None else w
        return Descent(problem or self.problem, view, kind(view, self._stream), share, w, full=full, hold=hold)

    def begin_anew(self, problem: Any, w: Vector) -> Descent:
        """On all rows of a problem that differs in its loss or penalty."""
        return self.begin(View(problem), w, problem)


@dataclass(frozen=True, eq=False)
class SampledNewton(Solver):
    """Proximal Newton steps with an importance-sampled Hessian. One step counts as one pass.

    Rows are read in their order, in memory or mapped to it. Where that is cheap it keeps a matrix of d x d numbers;
    elsewhere conjugate gradients, or with an l1 norm coordinate descent, work on the sampled rows, and d may be large;
    or, where samples tell too little, on the pairs of L-BFGS. Sparse rows with `SquaredL2` that are too many for a
    matrix and fewer than 80 times the features begin with sweeps in the dual, in random order; about n rows of them
    count as one pass, too. There is no step size.
    Takes penalties with a closed form: `Zero`, `L1`, `SquaredL2`, `ElasticNet`. Losses with a kink, `Hinge` and
    `Quantile`, are approached by smoothed ones, down to a billionth of the scale of their residuals.
    """

    @property
    def takes_several_margins(self) -> bool:
        return True  # `MultinomialNewton` takes its place

    def rows_per_step(self, problem: Any) -> int:
        return int(problem.n)

    def draws(self, problem: Any) -> bool:
        return len(_first_samples(problem)) > 0

    def start(self, problem: Any, w: Vector, seed: Any) -> SampledNewtonState:
        if problem.shrinkage is None:
            who = type(problem.penalty).__name__
            raise TypeError(f"SampledNewton takes Zero, L1, SquaredL2 and ElasticNet, got {who}. Use ProxSvrg with it.")
        return SampledNewtonState(without_kinks(problem), w, seed)

    def advance(self, problem: Any, state: SampledNewtonState, sampler: Any, steps: int) -> int:
        problem = state.problem
        if steps == 0:
            _compile(problem, state, sampler)
        for done in range(steps):
            if state.dual is not None and not state.dual.ended:
                state.dual.step()
                state.w = state.dual.w
                continue
            if state.path is not None:
                _step_along(state.path, state)
                continue
            if state.descent is not None:
                _step(problem, state, state.descent)
            elif not _begin(problem, state, sampler):
                return BAD_INDEX
            assert state.descent is not None
            state.w = state.descent.w
            if not np.isfinite(state.descent.value):
                return done
        return steps

    def iterate(self, problem: Any, state: SampledNewtonState) -> Vector:
        return np.zeros_like(state.w) if state.led_nowhere else state.w.copy()

    def finished(self, state: SampledNewtonState) -> bool:
        return state.path is None and state.descent is not None and state.descent.settled

    def feedback(self, problem: Any, state: SampledNewtonState) -> Vector:
        return super().feedback(problem, state) if state.seen is None else state.seen.feedback()

    def known(self, problem: Any, state: SampledNewtonState) -> Known | None:
        if has_kinks(problem.loss):
            descent = state.descent if state.path is None else state.path.descend(state.begin_anew)
            return None if descent is None else SmoothedDescent(problem, descent)
        return None if state.led_nowhere else state.seen


def _is_quadratic(problem: Any) -> bool:
    """Whether F, but for an l1 norm, is a model of itself, that holds from anywhere."""
    return isinstance(problem.loss, Squared)


def _first_samples(problem: Any) -> list[int]:
    """The sizes of the samples to descend on first."""
    return [] if _is_quadratic(problem) else sample_sizes(problem.n, problem.dimension)


def _step(problem: Any, state: SampledNewtonState, descent: Descent) -> None:
    """A step on all rows; where these do not come near the minimum, a path may."""
    if not descent.settled:
        descent.step(state.tol if state.near or descent.near else COARSE)
    if descent.cuts >= STUCK and not state.followed and Strengths.suits(problem, descent):
        state.followed = True
        state.follow(Strengths(problem, descent))


def _step_along(path: Continuation, state: SampledNewtonState) -> None:
    """A step on an easier problem; w moves only if nothing better is known."""
    path.step(state.begin_anew)
    if state.descent is None:
        state.w = path.w
    elif path.ended:
        descent = state.begin(View(path.problem), path.w)
        if descent.value < state.descent.value:
            state.descent, state.w = descent, descent.w
    state.follow(path)


def _begin(problem: Any, state: SampledNewtonState, sampler: Any) -> bool:
    """Come near the minimiser and look at all rows; False where the sampler drew what is not a row."""
    start = np.zeros(problem.dimension) if state.dual is not None else state.w
    warm = state.dual is None and bool(state.w.any())  # samples would lead away again
    if state.samples and not warm and not approach(problem, state, sampler):
        return False
    descent = state.begin(View(problem))
    if state.w is not start and not descent.value <= problem.value(start):  # samples or the dual led nowhere
        state.w = start
        descent = state.begin(View(problem))
    elif state.dual is not None:
        state.near = state.dual.near
    state.descent, state.dual = descent, None
    if state.quadratic and descent.share >= 1.0:  # one step is enough
        state.tol = EXACT
        if isinstance(descent.curvature, Curvature):
            descent.jump(EXACT)
        else:
            descent.step(EXACT)
    elif state.quadratic and descent.curvature.pays_in_full(descent.view.bends, descent.share):
        descent.share = 1.0
    return True


def approach(problem: Any, state: SampledNewtonState, sampler: Any) -> bool:
    """Descend on samples of growing size; False where the sampler drew what is not a row."""
    d = problem.dimension
    for m in sample_sizes(problem.n, d):
        view = draw_view(problem, sampler, m)
        if view is None:
            return False
        descent = state.begin(view, hold=HOLD)
        for _ in range(STEPS):
            if descent.settled or descent.predicted < NOISE * abs(descent.value) * d / m:
                break
            descent.step(COARSE)
        if np.isfinite(descent.value):
            state.w = descent.w
            tell(view, sampler)
    return True


def _compile(problem: Any, state: SampledNewtonState, sampler: Any) -> None:
    """All that is compiled, run on no rows; `approach` too, which others than `_begin` may call on any loss."""
    view = View(problem, np.zeros(0, np.int64), np.zeros(0))
    sizes = sample_sizes(problem.n, problem.dimension)
    if sizes:
        draw_view(problem, sampler, 0)
        tell(view, sampler)
    if state.dual is not None:
        state.dual.compile()
    view.look(np.zeros(problem.dimension))
    view.between(0.5)
    view.entry_curvatures()
    zeros, one = np.zeros(problem.dimension), np.ones(1)
    for kind in {state.kind(m) for m in (*sizes, problem.n)}:
        curvature = kind(view, new_stream(0))
        curvature.move(view.bends, 0.5)
        if isinstance(curvature, RowCurvature):
            curvature.minimise(zeros, zeros, zeros, zeros, 1.0)
            Memory().minimise(zeros, zeros, zeros, zeros, 1.0)
        else:
            curvature.sample.scale(view.bends, zeros)
            minimise_quadratic(np.eye(1), one, one, one, one, 1.0)


def sample_sizes(n: int, d: int) -> list[int]:
    sizes: list[int] = []
    m = n // GROWTH
    while m >= max(FEWEST, PER_COORDINATE * d):
        sizes.insert(0, m)
        m //= GROWTH
    return sizes
