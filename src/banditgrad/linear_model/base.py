"""What the estimators share: parameters, data at the door, and one run of `minimise` per one-dimensional target."""

import math
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral, Real
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from banditgrad._names import shown
from banditgrad.linear_model.early_stopping import HeldOut, split_rows
from banditgrad.linear_model.export import to_onnx, to_sklearn
from banditgrad.linear_model.inference import coefficient_table
from banditgrad.linear_model.refusals import refuse_words, what_is_wrong
from banditgrad.linear_model.scaling import Scaling, learn_scaling
from banditgrad.linear_model.stream import new_memory, one_pass, recalled
from banditgrad.linear_model.variance import VarianceRatio
from banditgrad.minimise import Progress, Reason, Result, minimise
from banditgrad.penalties import Zero
from banditgrad.problem import Problem
from banditgrad.registry import (
    CLASSIFICATION_LOSSES,
    GROUPED,
    REGRESSION_LOSSES,
    make_loss,
    make_penalty,
    make_sampler,
    make_solver,
    name_of,
)
from banditgrad.schedules import ShiftedInverseTime
from banditgrad.solvers import ProxSgd, Sgd, Solver

Vector = NDArray[np.float64]

ALPHA = 1e-4  # where neither alpha nor C is given
# Smaller data is worth a copy as float64 with 32-bit indices: fewer kernels to compile.
SMALL_BYTES = 2**26
LOOK_EVERY = 0.2  # seconds between two looks for Ctrl-C while threads work
STREAMING_SOLVERS = ("auto", "sgd", "proxsgd")
# What tells of a run of `minimise` and its rows, and would be out of date after rows of a stream.
OF_A_RUN = ("objective_", "history_", "sampling_probabilities_", "importance_", "effective_variance_ratio_")


class Plan(NamedTuple):
    """How to run `minimise`."""

    solver: Solver | str
    passes: float
    tol: float
    streams: bool = False  # whether the rows are some of many: then the last iterate counts, not the best on these rows


class BanditLinearModel(BaseEstimator):
    """Base of the estimators: a subclass encodes targets and reads coefficients."""

    _losses: tuple[str, ...]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_parameters(self) -> None:
        """Before any work: errors that name the parameter."""
        if self.loss not in self._losses:
            names = " or ".join(f'"{name}"' for name in self._losses)
            other = "BanditRegressor" if self.loss in REGRESSION_LOSSES else "BanditClassifier"
            known = self.loss in (*REGRESSION_LOSSES, *CLASSIFICATION_LOSSES)
            remedy = f" That is a loss of {other}." if known else ""
            raise ValueError(f"{type(self).__name__} expects loss={names}, got {shown(self.loss)}.{remedy}")
        self._expect_number("alpha", 0.0, math.inf)
        self._expect_number("l1_ratio", 0.0, 1.0)
        if getattr(self, "C", None) is not None:
            self._check_c()
        if hasattr(self, "epsilon"):
            self._expect_number("epsilon", 0.0, math.inf)
            self._expect_number("quantile", 0.0, 1.0)
            self._expect_number("power", 1.0, 2.0)
        self._loss()
        self._check_held_out()
        if not isinstance(self.max_iter, Integral) or isinstance(self.max_iter, bool) or self.max_iter < 1:
            raise ValueError(f"max_iter must be a whole number of at least 1, got {shown(self.max_iter)}.")
        if self.tol is not None:
            self._expect_number("tol", 0.0, math.inf)

    def _check_c(self) -> None:
        self._expect_number("C", 0.0, math.inf)
        if not self.C > 0.0:
            raise ValueError(f"C must be above 0, got {shown(self.C)}. For no penalty pass penalty=None.")
        if self.alpha != ALPHA:
            raise ValueError(f"alpha={self.alpha:g} and C={self.C:g} both say how strong the penalty is. Pass one.")

    def _check_held_out(self) -> None:
        if not self.early_stopping:
            return
        self._expect_number("validation_fraction", 0.0, 1.0)
        if not 0.0 < self.validation_fraction < 1.0:
            raise ValueError(f"validation_fraction must lie between 0 and 1, got {shown(self.validation_fraction)}.")
        if not isinstance(self.n_iter_no_change, Integral) or self.n_iter_no_change < 1:
            raise ValueError(
                f"n_iter_no_change must be a whole number of at least 1, got {shown(self.n_iter_no_change)}."
            )

    def _expect_number(self, name: str, least: float, most: float) -> None:
        value = getattr(self, name)
        try:
            number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
        except OverflowError:  # a whole number of hundreds of digits
            number = math.inf
        if not (least <= number <= most and number < math.inf):
            raise ValueError(f"{name} must be a number from {least:g} to {most:g}, got {shown(value)}.")

    def _validate(self, X: Any, y: Any, reset: bool, **options: Any) -> tuple[Any, Any]:
        refuse_masked(X=X, y=y)
        if options.get("y_numeric"):
            refuse_words(type(self).__name__, y)
        try:
            X, y = validate_data(self, X, y, accept_sparse="csr", dtype=_FLOATS, order="C", reset=reset, **options)
        except ValueError:
            wrong = what_is_wrong(type(self).__name__, X)
            if wrong is None:
                raise
            raise ValueError(wrong) from None
        return as_few_kinds(X), y

    def _margins(self, X: Any, offset: ArrayLike | None = None) -> Vector:
        """X w + b, with one column per problem; the offset is added to each."""
        check_is_fitted(self)
        refuse_masked(X=X)
        X = validate_data(self, X, accept_sparse="csr", dtype=_FLOATS, reset=False)
        margins = np.asarray(X @ np.atleast_2d(self.coef_).T + self.intercept_)
        return margins if offset is None else margins + as_offset(offset, X.shape[0])[:, None]

    def summary(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, offset: ArrayLike | None = None
    ) -> Any:
        """A pandas frame with each coefficient, its standard error, z, p-value and, for log-odds, the odds ratio.

        For fits without a penalty, or with l2, of a loss that is a likelihood: "log_loss", "squared_error", "poisson",
        "gamma", "tweedie". X, y and the weights are those of the fit; a weight of 2 counts like the row given twice.
        Without a penalty standard errors are those of maximum likelihood. With l2 they are those of the posterior that
        has the penalty for a prior: coefficients are drawn to zero, and p-values are to be read with care. One against
        the rest, each class has its own rows.
        """
        return coefficient_table(self, X, y, sample_weight, offset)

    def to_sklearn(self) -> Any:
        """A fitted model of scikit-learn's that predicts the same.

        `LogisticRegression` for two classes, `SGDClassifier` for more and for other losses; `LinearRegression`,
        `Ridge`, `Lasso` or `ElasticNet` for squares; `TweedieRegressor`, `QuantileRegressor` or `SGDRegressor` for
        the others.
        """
        return to_sklearn(self)

    def to_onnx(self, path: str | PathLike[str] | None = None, dtype: Any = np.float32) -> Any:
        """The model as ONNX, written to `path` if one is given: pip install "banditgrad[onnx]".

        The graph takes rows "X" of `dtype`, float32 or float64, and gives "prediction", or "label" and "probabilities"
        ("margins" for a loss without any).
        """
        return to_onnx(self, path, dtype)

    def _fit_targets(
        self, X: Any, targets: Sequence[Vector], weights: Vector | None, offset: ArrayLike | None = None
    ) -> None:
        """Minimise one problem per target, from zero or, warm, from where the last fit ended."""
        plan = Plan(make_solver(self.solver, self.step_size), self.max_iter, self.tol or 0.0)
        starts = self._starts(X.shape[1], self._outputs) if self.warm_start else None
        self._run(plan, X, targets, weights, starts, None if offset is None else as_offset(offset, X.shape[0]))
        self.__dict__.pop("_memory", None)  # of a stream that this fit ends
        self.n_seen_ = X.shape[0] * self.n_iter_

    def _stream_targets(self, X: Any, targets: Sequence[Vector], weights: Vector | None) -> None:
        """One pass over the rows of this call: AdaGrad, or proximal SGD where a part of it is asked for."""
        if not (isinstance(self.solver, ProxSgd) or self.solver in STREAMING_SOLVERS):
            names = ", ".join(f'"{name}"' for name in STREAMING_SOLVERS)
            raise ValueError(
                f"partial_fit is stochastic gradient descent: pass solver={names}, got {shown(self.solver)}."
            )
        if not (math.isfinite(self._loss().slope_bound()) or math.isfinite(self._loss().curvature())):
            raise ValueError(
                f'partial_fit steps blindly, which loss="{self.loss}", without a bound on its slope or curvature, does '
                "not forgive. Use fit."
            )
        if self.penalty in GROUPED:
            raise ValueError(
                f"partial_fit steps feature by feature; penalty={shown(self.penalty)} is one of groups. Use fit."
            )
        for name in ("standardize", "early_stopping"):
            if getattr(self, name):
                raise ValueError(f"{name}=True needs all rows at once, which partial_fit never sees. Use fit.")
        if getattr(self, "C", None) is not None:
            raise ValueError("C needs the number of all rows, which partial_fit never sees. Pass alpha, 1 / (n C).")
        seen = getattr(self, "n_seen_", 0)
        starts = self._starts(X.shape[1], self._outputs)
        if all(isinstance(value, str) and value == "auto" for value in (self.solver, self.sampler, self.step_size)):
            self._stream(X, targets, weights, starts, seen)
        else:
            solver = self.solver if isinstance(self.solver, ProxSgd) else ProxSgd(self._falling_step(X, weights, seen))
            self._run(Plan(solver, 1.0, 0.0, streams=True), X, targets, weights, starts)
        self.n_seen_ = seen + X.shape[0]

    def _stream(
        self, X: Any, targets: Sequence[Vector], weights: Vector | None, starts: Vector | None, seen: int
    ) -> None:
        """Every row once, in random order, with steps that remember the gradients of earlier calls."""
        problem, each = self._problem(X, targets[0], weights), np.column_stack(targets)
        w = np.zeros((problem.d + 1, self._outputs))
        if starts is None:
            memory = new_memory(problem.d, self._outputs)
        else:
            w[: starts.shape[1]] = starts.T
            memory = getattr(self, "_memory", None) or recalled(problem, each, w, seen)
        order = check_random_state(self.random_state).permutation(problem.n)
        w, memory = one_pass(problem, each, w, memory, order)
        if not np.isfinite(w).all():
            raise ValueError("partial_fit met numbers too large to compute with. Rescale X and y.")
        for name in OF_A_RUN:
            self.__dict__.pop(name, None)
        self._memory = memory
        self._keep_solution(w.T)
        self.n_iter_, self.solver_ = 1, "adagrad"

    def _falling_step(self, X: Any, weights: Vector | None, seen: int) -> Any:
        """γ_t = 1 / (2 max L_i + μ t), with t counted over all calls, or the given number.

        μ is λ₂ where there is one; else alpha, as in scikit-learn's SGD, so that a stream settles.
        """
        if self.step_size != "auto":
            return self.step_size
        problem = self._problem(X, np.ones(X.shape[0]), weights)  # the labels do not matter
        _, l2 = problem.shrinkage or (0.0, 0.0)
        mu = float(np.min(l2)) or float(self.alpha)
        return ShiftedInverseTime(2.0 * max(float(problem.smoothness.max()), 1e-300) + mu * seen, mu)

    @property
    def _outputs(self) -> int:
        """How many margins a row has, in all problems together: rows of `coef_`."""
        return 1

    def _as_starts(self, coefficients: Any) -> Sequence[Vector] | None:
        """One start per problem, of coefficients with one row per margin."""
        starts: Sequence[Vector] | None = coefficients
        return starts

    def _starts(self, d: int, outputs: int) -> Vector | None:
        """The coefficients so far, one row per margin, if there are any."""
        if not hasattr(self, "coef_"):
            return None
        coef = np.atleast_2d(self.coef_)
        if coef.shape != (outputs, d):
            raise ValueError(
                f"warm_start needs data like that of the last fit, which gave coefficients of shape {coef.shape}; "
                f"here it is {(outputs, d)}. Fit a fresh estimator."
            )
        return np.column_stack([coef, self.intercept_]) if self.fit_intercept else coef.astype(np.float64)

    def _loss(self) -> Any:
        settings = {name: getattr(self, name) for name in ("epsilon", "quantile", "power") if hasattr(self, name)}
        return make_loss(self.loss, **settings)

    def _strength(self, n: int, weights: Vector | None) -> float:
        """The penalty's, for n rows or with such weights: alpha, or 1 / (C Σ s_i)."""
        if getattr(self, "C", None) is None:
            return float(self.alpha)
        return 1.0 / (float(self.C) * (n if weights is None else float(np.sum(weights))))

    def _strata(self, targets: Sequence[Vector]) -> Any:
        """What held-out rows must have the same shares of, if anything."""
        return None

    def _scaling(self, X: Any, weights: Vector | None) -> Scaling:
        return learn_scaling(X, weights, bool(self.fit_intercept)) if self.standardize else Scaling()

    def _penalty(self, d: int, strength: float, scaling: Scaling) -> Any:
        """For d features; bounds are those of coefficients in the columns' own units."""
        settings = {name: getattr(self, name, None) for name in ("penalty_factor", "positive", "bounds", "groups")}
        factors, groups = settings["penalty_factor"], settings["groups"]
        if factors is not None and groups is None:
            factors = each_feature("penalty_factor", factors, d)
        bounds = limits(settings["bounds"], bool(settings["positive"]), d)
        if bounds is not None and scaling.deviation is not None:
            bounds = (bounds[0] * scaling.deviation, bounds[1] * scaling.deviation)
        return make_penalty(self.penalty, strength, self.l1_ratio, factors, bounds, groups)

    def _problem(
        self,
        X: Any,
        target: Vector,
        weights: Vector | None,
        offset: Vector | None = None,
        scaling: Scaling = Scaling(),  # noqa: B008  # a tuple, which nobody can change
    ) -> Problem:
        penalty = self._penalty(X.shape[1], self._strength(X.shape[0], weights), scaling)
        return Problem(X, target, self._loss(), penalty, weights, self.fit_intercept, offset)

    def _run(
        self,
        plan: Plan,
        X: Any,
        targets: Sequence[Vector],
        weights: Vector | None,
        coefficients: Vector | None,
        offset: Vector | None = None,
    ) -> None:
        scaling = self._scaling(X, weights)
        X, starts = scaling.apply(X), self._as_starts(scaling.into(coefficients))
        held_out: list[HeldOut] = []
        if self.early_stopping and not plan.streams:
            X, targets, weights, offset, held_out = self._hold_out(X, targets, weights, offset)
        problems = [self._problem(X, target, weights, offset, scaling) for target in targets]
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=len(problems)).tolist()
        sampler = "auto" if isinstance(self.sampler, str) and self.sampler == "auto" else make_sampler(self.sampler)
        workers = min(effective_n_jobs(self.n_jobs), len(problems))
        stop = threading.Event()
        ratios = [VarianceRatio() for _ in problems]
        last: dict[int, Progress] = {}

        def solve(k: int) -> Result:
            w0 = None if starts is None or _is_solved_by_zero(problems[k]) else starts[k]
            result = minimise(
                problems[k],
                plan.solver,
                sampler,
                passes=plan.passes,
                seed=seeds[k],
                w0=w0,
                tol=plan.tol,
                callback=self._watch(
                    stop, ratios[k], lambda progress: last.update({k: progress}), held_out[k] if held_out else None
                ),
                progress=bool(self.verbose) and workers == 1,
            )
            if plan.streams and k in last and np.isfinite(last[k].value):
                result = replace(result, w=last[k].w, value=last[k].value)
            best_w = held_out[k].best_w if held_out else None
            if best_w is not None:
                result = replace(result, w=best_w, value=problems[k].value(best_w))
            if result.reason is Reason.INTERRUPTED:
                stop.set()
            if self.verbose:
                print(f"{type(self).__name__}, problem {k + 1} of {len(problems)}: F = {result.value:.6g} after "
                      f"{result.passes:.0f} passes, {result.seconds:.2f} s; {result.reason.value}")  # fmt: skip
            return result

        results = _in_threads(solve, len(problems), workers, stop)
        self._keep(problems, results, scaling)
        self.alpha_ = self._strength(X.shape[0], weights)
        if held_out:
            self.validation_loss_ = [np.array(each.losses) for each in held_out]
        self.effective_variance_ratio_ = float(np.mean([ratio.mean for ratio in ratios]))
        if stop.is_set():
            raise KeyboardInterrupt  # the attributes hold what was reached; a search over parameters must end
        self._warn(plan, problems, results)

    def _hold_out(
        self, X: Any, targets: Sequence[Vector], weights: Vector | None, offset: Vector | None
    ) -> tuple[Any, list[Vector], Vector | None, Vector | None, list[HeldOut]]:
        """The rows to fit, and the problems of the others, without a penalty."""
        state = check_random_state(self.random_state).randint(2**31 - 1)
        kept, held = split_rows(X.shape[0], self.validation_fraction, self._strata(targets), state)
        s, o = (None if array is None else np.asarray(array)[held] for array in (weights, offset))
        others = [self._problem(X[held], target[held], s, o).with_penalty(Zero()) for target in targets]
        weights, offset = (None if array is None else np.asarray(array)[kept] for array in (weights, offset))
        held_out = [HeldOut(each, int(self.n_iter_no_change)) for each in others]
        return X[kept], [target[kept] for target in targets], weights, offset, held_out

    def _watch(
        self,
        stop: threading.Event,
        ratio: VarianceRatio,
        keep: Callable[[Progress], None],
        held_out: HeldOut | None = None,
    ) -> Callable[[Progress], bool]:
        def watch(progress: Progress) -> bool:
            keep(progress)
            ratio.after(progress)
            if held_out is not None and held_out.after(progress):
                return True
            return stop.is_set() or (self.callback is not None and bool(self.callback(progress)))

        return watch

    def _keep(self, problems: Sequence[Problem], results: Sequence[Result], scaling: Scaling) -> None:
        self._keep_solution(scaling.back(by_margin([result.w for result in results])))
        self.n_iter_ = max(1, max(math.ceil(result.passes) for result in results))
        self.solver_ = name_of(results[0].solver)
        self.objective_ = np.array([result.value for result in results])
        self.history_ = [result.history for result in results]
        self.sampling_probabilities_ = np.mean([result.sampling.probabilities() for result in results], axis=0)
        each = [problem.gradient_norms(result.w) for problem, result in zip(problems, results, strict=True)]
        norms = np.linalg.norm(each, axis=0)
        self.importance_ = norms / norms.mean() if norms.any() else np.ones_like(norms)

    def _keep_solution(self, w: Vector) -> None:
        """Coefficients and intercepts, one row per margin."""
        d = self.n_features_in_
        self.coef_ = w[:, :d]
        self.intercept_ = w[:, d].copy() if self.fit_intercept else np.zeros(len(w))

    def _warn(self, plan: Plan, problems: Sequence[Problem], results: Sequence[Result]) -> None:
        name = type(self).__name__
        diverged = (Reason.DIVERGED,) if plan.streams else (Reason.DIVERGED, Reason.ROSE)
        if any(result.reason in diverged for result in results):
            warnings.warn(
                f'{name} diverged; the best coefficients met are kept. Pass a smaller step_size, or "auto".',
                ConvergenceWarning,
                stacklevel=5,
            )
        left = [k for k, result in enumerate(results) if result.reason is Reason.PASSES_DONE]
        if plan.tol > 0.0 and left:
            worst = max(problems[k].relative_optimality(results[k].w) for k in left)
            gap = max(results[k].gap for k in left)
            if isinstance(results[0].solver, (Sgd, ProxSgd)):
                remedy = (
                    f'"{self.solver_}" comes near the minimum, not to it: take solver="auto" or "saga" to reach it, or '
                    "accept this with a larger tol, or tol=None."
                )
            else:
                remedy = (
                    "Scale the features (standardize=True), raise max_iter or alpha, or accept this with a larger tol."
                )
            certified = f"; the objective is at most {gap:.1e} above its minimum" if gap < math.inf else ""
            warnings.warn(
                f"{name} made max_iter={self.max_iter} passes and the gradient is {worst:.1e} of what it is at zero, "
                f"above tol={self.tol:g}{certified}. {remedy}",
                ConvergenceWarning,
                stacklevel=5,
            )


def by_margin(solutions: Any) -> Vector:
    """The numbers of each margin in a row: a solution is w, or W with one column per margin."""
    return np.vstack([solution.T for solution in solutions])


def each_feature(name: str, values: Any, d: int, missing: float = math.nan) -> Vector:
    """A number for each feature, from an array or from one number; None is what is said to be missing."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers, one for each feature; got {shown(values)}.") from error
    array = np.where(np.isnan(array), missing, array)
    if array.shape not in ((), (d,)) or np.isnan(array).any():
        got = "a NaN" if np.isnan(array).any() else f"shape {array.shape}"
        raise ValueError(f"{name} must have one number for each of {d} features, got {got}.")
    return np.broadcast_to(array, (d,)).copy()


def limits(bounds: Any, positive: bool, d: int) -> tuple[Vector, Vector] | None:
    """Of each coefficient; None where there are none."""
    if bounds is None and not positive:
        return None
    if bounds is not None and not (isinstance(bounds, (tuple, list)) and len(bounds) == 2):
        raise ValueError(f"bounds must be a pair, (lower, upper), got {shown(bounds)}.")
    lower, upper = (None, None) if bounds is None else bounds
    low, high = each_feature("bounds", lower, d, -math.inf), each_feature("bounds", upper, d, math.inf)
    if not (np.all(low <= 0.0) and np.all(high >= 0.0)):
        raise ValueError(f"bounds must hold zero, lower <= 0 <= upper, got {shown(bounds)}.")
    return (np.maximum(low, 0.0) if positive else low), high


_FLOATS = [np.float64, np.float32]


def refuse_masked(**arrays: Any) -> None:
    """scikit-learn's validation would drop the mask and take what is behind it."""
    for name, array in arrays.items():
        if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
            count = int(np.ma.count_masked(array))
            raise ValueError(
                f"{name} is a masked array in which {count} entries are masked. Fill or remove them first."
            )


def as_weights(sample_weight: ArrayLike | None) -> Any:
    refuse_masked(sample_weight=sample_weight)
    return None if sample_weight is None else np.asarray(sample_weight)


def as_offset(offset: ArrayLike, n: int) -> Vector:
    refuse_masked(offset=offset)
    array = np.asarray(offset, dtype=np.float64)
    if array.shape != (n,) or not np.isfinite(array).all():
        got = f"shape {array.shape}" if array.shape != (n,) else "a NaN or an infinity"
        raise ValueError(f"offset must have shape ({n},), a finite number per row of X, got {got}.")
    return array


def as_few_kinds(X: Any) -> Any:
    """Small data as float64 in C order or CSR with 32-bit indices; large data as it is."""
    if not sp.issparse(X):
        return X.astype(np.float64, copy=False) if X.nbytes <= SMALL_BYTES else X
    if X.nnz * 12 > SMALL_BYTES or max(X.shape) >= 2**31:
        return X
    parts = (X.data.astype(np.float64, copy=False), X.indices.astype(np.int32), X.indptr.astype(np.int32))
    return sp.csr_array(parts, shape=X.shape)


def _is_solved_by_zero(problem: Problem) -> bool:
    return problem.optimality(np.zeros(problem.dimension)) == 0.0


def _in_threads(solve: Callable[[int], Result], count: int, workers: int, stop: threading.Event) -> list[Result]:
    """Kernels release the GIL. On Ctrl-C all runs stop at their next record, and what they reached is returned."""
    if workers == 1:
        return [solve(k) for k in range(count)]
    with ThreadPoolExecutor(workers) as pool, _ctrl_c_sets(stop):
        try:
            runs = [pool.submit(solve, k) for k in range(count)]
            pending: Any = True
            while pending:  # a signal that comes just before a wait without end would not be seen until its end
                done, pending = wait(runs, timeout=LOOK_EVERY, return_when=FIRST_EXCEPTION)
                for run in done:
                    run.result()  # or its exception
            return [run.result() for run in runs]
        except BaseException:
            stop.set()  # the others must end as well
            raise


@contextmanager
def _ctrl_c_sets(stop: threading.Event) -> Iterator[None]:
    """The first Ctrl-C sets `stop`: an exception could break the pool's own book-keeping. The next one is as usual."""
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or usual is not signal.default_int_handler:
        yield
        return

    def first(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, usual)
        stop.set()

    signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
