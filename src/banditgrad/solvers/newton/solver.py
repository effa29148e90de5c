"""Newton's method on sampled rows:

    w ← argmin_u <∇f(w), u - w> + ½ <u - w, Ĥ (u - w)> + λ r(u),    Ĥ an importance sample of the Hessian

Far from the minimiser few rows show the way: w first descends on samples of growing size, drawn by the sampler and
weighted by 1/(n p_i), each of which is a small problem of the same kind; or, where rows are too few for that, by sweeps
in the dual. From then on a step is one pass in the order of the rows, for F, ∇f and the φ_i''. The rows of Ĥ are drawn
with probability ∝ φ_i'' ‖x_i‖² (Xu, Yang, Roosta-Khorasani, Ré and Mahoney 2016); the step is proximal (Lee, Sun and
Saunders 2014). Where features are many and a sample tells no more of the Hessian than its diagonal does, Ĥ is that
diagonal and what the last steps have shown.
"""

import enum
import math
from collections import deque
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import compile_once
from banditgrad._random import new_stream
from banditgrad.losses import Squared, has_kinks
from banditgrad.samplers.auto import begins_uniform
from banditgrad.solvers.base import BAD_INDEX, Known, Solver
from banditgrad.solvers.newton.blocks import expect_form, new_blocks
from banditgrad.solvers.newton.columns import HessianColumns
from banditgrad.solvers.newton.continuation import Continuation, Strengths, Widths
from banditgrad.solvers.newton.costs import MOST, OVERHEAD, Costs, evaluation
from banditgrad.solvers.newton.descent import Descent
from banditgrad.solvers.newton.dual import Dual
from banditgrad.solvers.newton.hessian import HessianMatrix
from banditgrad.solvers.newton.kinks import SmoothedDescent, without_kinks
from banditgrad.solvers.newton.lbfgs import LBFGS
from banditgrad.solvers.newton.matrix_free import HessianRows
from banditgrad.solvers.newton.quadratic import minimise_quadratic
from banditgrad.solvers.newton.subset import RowSubset, draw_subset, report

Vector = NDArray[np.float64]

WORK = 2.0  # of a sample of the Hessian, in units of an evaluation of all its rows
WORTH_SAMPLING = 4.0 * OVERHEAD  # an evaluation of all rows that costs less is as fast as several of samples
GROWTH = 8  # of the samples, the last of which has n / 8 rows
FEWEST, PER_COORDINATE = 256, 10  # rows of a sample: in all, and for each coordinate of w
STEPS = 8  # on one sample at most
NOISE = 2.0  # times F d/m, the order of a sample's own error: what predicts less is not worth a step on it
COARSE, FINE, EXACT = 0.1, 0.01, 1e-5  # how well models are minimised: far away or on samples, near, where F is a model
STUCK = 4  # steps on all rows that hardly moved, on rows some of which are straight: a path may come nearer
RIDGE = 0.1  # times the mean curvature times d/m: of a ridge on samples, for features that they have hardly seen


class Phase(enum.Enum):
    """What the next step of a run is."""

    PATH = "a step on an easier problem"  # before START, where the loss has widths, or once between two ROWS
    DUAL = "about a pass of coordinate ascent in the dual"
    SAMPLES = "steps on samples of growing size, then START"
    START = "the first evaluation of all rows"
    QUADRATIC = "START, and a step where F is a model of itself"
    ROWS = "a Newton step on all rows"


class SampledNewtonState:
    """A run: it begins in any phase and ends in ROWS, with a descent on all rows, from a w that the others came to."""

    def __init__(self, problem: Any, w: Vector, seed: Any) -> None:
        self.w, self.problem, self._stream = w, problem, new_stream(seed)
        self.costs, self.path = Costs(problem), cast(Continuation, Widths(problem, w))
        self.dual: Dual | None = None
        self.descent: Descent | None = None
        self.phase = self._first_phase()
        if self.phase is Phase.DUAL:
            self.dual = Dual(problem, self._stream)
        self.tol, self.near = FINE, self.phase is Phase.QUADRATIC  # near: models are worth minimising well
        self.strengthened = False  # whether the path of `Strengths` was tried
        self.carried: Descent | None = None  # of the run before this one

    def carry(self, last: "SampledNewtonState") -> None:
        """Begin with what a run with another penalty knows of the same rows: where they were evaluated last, and the
        Hessian, as far as it is a matrix."""
        if last.descent is None or last.problem.parts is not self.problem.parts or not self.path.ended:
            return
        self.carried = last.descent
        hessian = self.carried.hessian
        hessian.constant = _is_quadratic(self.problem) and isinstance(hessian, HessianMatrix) and hessian.whole
        self.phase, self.dual = Phase.QUADRATIC if _is_quadratic(self.problem) else Phase.START, None
        self.descent = self.begin(self.carried.subset)

    def _first_phase(self) -> Phase:
        problem, cold = self.problem, not self.w.any()
        if not self.path.ended:
            return Phase.PATH
        if _is_quadratic(problem):
            return Phase.DUAL if cold and Dual.leads(problem) and not self.costs.matrix_pays() else Phase.QUADRATIC
        if _first_samples(problem):
            return Phase.SAMPLES if cold else Phase.START  # samples would lead away from where it is warm
        return Phase.DUAL if cold and Dual.suits(problem) and not self.costs.matrix_pays() else Phase.START

    def step(self, sampler: Any) -> bool:
        """The step of this phase; False where the sampler drew an index out of range."""
        match self.phase:
            case Phase.PATH:
                self._step_on_path()
            case Phase.DUAL:
                self._sweep()
            case Phase.ROWS:
                self._step_on_rows()
            case Phase.SAMPLES | Phase.START | Phase.QUADRATIC:
                start = np.zeros_like(self.w) if self.dual is not None else self.w
                if self.phase is Phase.SAMPLES and not approach(self.problem, self, sampler):
                    return False
                self._start(start)
        return True

    def _step_on_path(self) -> None:
        """w moves only if nothing better is known."""
        path = self.path
        path.step(self.begin_anew)
        if self.descent is None:
            self.w = path.w
        elif path.ended:
            descent = self.begin(RowSubset(path.problem), path.w)
            if descent.value < self.descent.value:
                self.descent, self.w = descent, descent.w
        if path.ended:
            self.phase = Phase.START if self.descent is None else Phase.ROWS

    def _sweep(self) -> None:
        assert self.dual is not None
        self.dual.step()
        self.w = self.dual.w
        if self.dual.ended:
            self.phase = Phase.QUADRATIC if _is_quadratic(self.problem) else Phase.START

    def _start(self, start: Vector) -> None:
        """On all rows from w, or from `start` if samples or the dual led nowhere."""
        descent, quadratic = self.descent or self.begin(RowSubset(self.problem)), self.phase is Phase.QUADRATIC
        if self.w is not start and not descent.value <= self.problem.value(start):
            self.w = start
            descent = self.begin(RowSubset(self.problem))
        elif self.dual is not None:
            self.near = self.dual.near or quadratic
        self.descent, self.dual, self.phase = descent, None, Phase.ROWS
        if quadratic and descent.share >= 1.0:  # one step is enough
            self.tol = EXACT
            if isinstance(descent.hessian, HessianMatrix):
                descent.step_as_predicted(EXACT)
            else:
                descent.step(EXACT)
        elif quadratic and descent.hessian.exact_pays(descent.subset.second_derivatives, descent.share):
            descent.share = 1.0
        self.w = descent.w

    def _step_on_rows(self) -> None:
        """Where these do not come near the minimum, a path may."""
        descent = self.descent
        assert descent is not None
        if not descent.settled:
            descent.step(self.tol if self.near or descent.trust.near else COARSE)
        self.w, stuck = descent.w, descent.trust.failures >= STUCK
        if stuck and not self.strengthened and Strengths.suits(self.problem, descent):
            self.path, self.strengthened = Strengths(self.problem, descent), True
            self.phase = self.phase if self.path.ended else Phase.PATH

    @property
    def known(self) -> Descent | Dual | None:
        """What knows F and its gradient at w."""
        return self.dual if self.dual is not None and self.dual.begun else self.descent

    @property
    def led_nowhere(self) -> bool:
        """Whether w is that of a dual that has not come below F(0) yet: then the iterate is still zero."""
        dual = self.dual
        return dual is not None and dual.begun and not dual.value <= self.problem.value(np.zeros_like(self.w))

    def kind(self, size: int) -> type[HessianMatrix] | type[HessianRows]:
        """The estimate of the Hessian that suits so many rows."""
        if self.costs.matrix_pays(size / self.problem.n):
            return HessianMatrix
        form = self.problem.form
        return HessianColumns if form.l1.any() or not form.plain else HessianRows

    def share(self, size: int) -> float:
        """Of so many rows, the share to sample the Hessian from; 1 for the Hessian itself, infinite for that at every
        step, since it costs next to nothing."""
        cost = self.kind(size).cost(self.costs)
        if cost * size / self.problem.n <= OVERHEAD:
            return np.inf
        share = WORK * self.costs.evaluation / cost
        return share if share <= MOST else 1.0

    def compile(self, sampler: Any, sizes: list[int]) -> None:
        """All that a run calls that begins with samples of these sizes."""
        form = self.problem.form
        kinds = tuple({(self.kind(m), self.share(m) <= 1.0) for m in (*sizes, self.problem.n)})
        drawn_from, with_l1 = (sampler,) if sizes else (), bool(form.l1.any())
        deciding = (self.problem.parts, drawn_from, kinds, with_l1, self.dual is not None, form.plain)
        compile_once(_compile, deciding, self.problem, drawn_from, kinds, with_l1, self.dual)

    def begin(self, subset: RowSubset, w: Vector | None = None, problem: Any = None, *, ridge: float = 0.0) -> Descent:
        kind, share = self.kind(subset.size), self.share(subset.size)
        full, w = kind.cost(self.costs) / self.costs.evaluation, self.w if w is None else w
        known = None if self.carried is None or subset is not self.carried.subset else self.carried.hessian
        hessian = known if kind is HessianMatrix and known is not None else kind(subset, self._stream)
        return Descent(problem or self.problem, subset, hessian, share, w, full=full, ridge=ridge)

    def begin_anew(self, problem: Any, w: Vector) -> Descent:
        """On all rows of a problem that differs in its loss or penalty."""
        return self.begin(RowSubset(problem), w, problem)


@dataclass(frozen=True, eq=False)
class SampledNewton(Solver):
    """Proximal Newton steps with an importance-sampled Hessian. One step counts as one pass.

    Rows are read in their order, in memory or mapped to it. Where that is cheap it keeps a matrix of d x d numbers;
    elsewhere conjugate gradients, or with an l1 norm coordinate descent, work on the sampled rows, and d may be large;
    or, where samples tell too little, on the pairs of L-BFGS. Sparse rows with `SquaredL2` that are too many for a
    matrix and fewer than 80 times the features begin with sweeps in the dual, in random order (least squares only with
    a penalty beside which rows are short); about n rows of them count as one pass, too. There is no step size.
    Takes the package's penalties, and your own that tell their form by `shrinkage`, `bounds` or `blocks`. Losses with a
    kink, `Hinge` and `Quantile`, are approached by smoothed ones, down to a billionth of the scale of their residuals.
    """

    @property
    def takes_several_margins(self) -> bool:
        return True  # `MultinomialNewton` takes its place

    @property
    def takes_vector_penalties(self) -> bool:
        return True

    def rows_per_step(self, problem: Any) -> int:
        return int(problem.n)

    def draws(self, problem: Any) -> bool:
        return len(_first_samples(problem)) > 0 and not begins_uniform(problem.smoothness)  # and draws too few to adapt

    def start(self, problem: Any, w: Vector, seed: Any) -> SampledNewtonState:
        expect_form(problem, "SampledNewton")
        return SampledNewtonState(without_kinks(problem), w, seed)

    def advance(self, problem: Any, state: SampledNewtonState, sampler: Any, steps: int) -> int:
        if steps == 0:
            state.compile(sampler, _first_samples(state.problem))
        for done in range(steps):
            if not state.step(sampler):
                return BAD_INDEX
            if state.descent is not None and not math.isfinite(state.descent.value):
                return done
        return steps

    def iterate(self, problem: Any, state: SampledNewtonState) -> Vector:
        return np.zeros_like(state.w) if state.led_nowhere else state.w.copy()

    def finished(self, state: SampledNewtonState) -> bool:
        return state.phase is Phase.ROWS and state.descent is not None and state.descent.settled

    def feedback(self, problem: Any, state: SampledNewtonState) -> Vector:
        return super().feedback(problem, state) if state.known is None else state.known.feedback()

    def known(self, problem: Any, state: SampledNewtonState) -> Known | None:
        if has_kinks(problem.loss):
            descent = state.path.descend(state.begin_anew) if state.phase is Phase.PATH else state.descent
            return None if descent is None else SmoothedDescent(problem, descent)
        return None if state.led_nowhere else state.known


class Continued(SampledNewton):
    """Runs for one penalty after the other: each begins with what the last one knew of the rows."""

    def __init__(self) -> None:
        self._states: deque[SampledNewtonState] = deque(maxlen=1)

    def draws(self, problem: Any) -> bool:
        return not self._states and super().draws(problem)

    def start(self, problem: Any, w: Vector, seed: Any) -> SampledNewtonState:
        state = super().start(problem, w, seed)
        for last in self._states:
            state.carry(last)
        self._states.append(state)
        return state


def _is_quadratic(problem: Any) -> bool:
    """Whether F, but for an l1 norm, is a model of itself, that holds from anywhere."""
    return isinstance(problem.loss, Squared)


def _first_samples(problem: Any) -> list[int]:
    """The sizes of the samples to descend on first."""
    if _is_quadratic(problem) or evaluation(problem) < WORTH_SAMPLING:
        return []
    return sample_sizes(problem.n, problem.dimension)


def approach(problem: Any, state: SampledNewtonState, sampler: Any) -> bool:
    """Descend on samples of growing size; False where the sampler drew an index out of range."""
    d = problem.dimension
    for m in sample_sizes(problem.n, d):
        subset = draw_subset(problem, sampler, m)
        if subset is None:
            return False
        descent = state.begin(subset, ridge=RIDGE)
        for _ in range(STEPS):
            if descent.settled or descent.predicted < NOISE * abs(descent.value) * d / m:
                break
            descent.step(COARSE)
        if np.isfinite(descent.value):
            state.w = descent.w
            report(subset, sampler)
    return True


def _compile(problem: Any, drawn_from: tuple[Any, ...], kinds: tuple[Any, ...], with_l1: bool, dual: Any) -> None:
    """Run all on no rows."""
    subset = RowSubset(problem, np.zeros(0, np.int64), np.zeros(0))
    subset.evaluate(np.zeros(problem.dimension))
    subset.value_along(0.5)
    for sampler in drawn_from:
        draw_subset(problem, sampler, 0)
        report(subset, sampler)
        subset.entry_curvatures()
    if dual is not None:
        dual.compile()
    zeros, one = np.zeros(problem.dimension), np.ones(1)
    for kind, sampled in kinds:
        hessian = kind(subset, new_stream(0))
        hessian.move(subset.second_derivatives, 0.5, exact=not sampled)
        if not problem.form.plain:
            blocks = new_blocks(problem.form, zeros)
            hessian.minimise_in_blocks(zeros, zeros, blocks, 1.0)
            LBFGS().minimise_in_blocks(zeros, zeros, zeros, blocks, 1.0)
        elif isinstance(hessian, HessianRows):
            hessian.minimise(zeros, zeros, zeros, zeros, 1.0)
            LBFGS().minimise(zeros, zeros, zeros, zeros, 1.0)
        else:
            if sampled:
                hessian.sample.scale(subset.second_derivatives, zeros)
            for l1 in (0.0, 1.0) if with_l1 else (0.0,):
                minimise_quadratic(np.eye(1), one, one, l1 * one, one, 1.0)


def sample_sizes(n: int, d: int) -> list[int]:
    sizes: list[int] = []
    m = n // GROWTH
    while m >= max(FEWEST, PER_COORDINATE * d):
        sizes.insert(0, m)
        m //= GROWTH
    return sizes
