"""The only driver loop: passes over the data, records, stopping."""

import copy
import enum
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditgrad._frames import as_frame
from banditgrad.problem import Problem, effective_variance, optimal_variance
from banditgrad.registry import make_sampler, make_solver
from banditgrad.samplers import Auto, Sampler, Sampling, Uniform
from banditgrad.solvers import SampledNewton, Solver, automatic_solver
from banditgrad.solvers.base import BAD_INDEX
from banditgrad.solvers.multinomial import MultinomialNewton

# Kernels run for about this long between two looks at the clock and at Ctrl-C.
_SLICE_SECONDS = 0.05

# A run ends far above its least F if it lost this part of its gain, and more than this part of F itself.
LOST, NOISE = 0.25, 0.01
ROUNDING = 1e-9


class Reason(enum.Enum):
    """Why a run stopped, and what to do about it."""

    CONVERGED = "converged: the gradient mapping fell below tol, or to where rounding hides the rest"
    PASSES_DONE = "all passes done; for more accuracy raise passes"
    TIME_LIMIT = "time limit reached; for more accuracy raise time_limit"
    DIVERGED = "diverged: a value was not finite; the best iterate is returned; use a smaller step_size"
    ROSE = 'F rose above its start or far above its least; the best iterate is returned; use a smaller step, or "auto"'
    INTERRUPTED = "interrupted; the best iterate so far is returned"
    CALLBACK = "stopped by the callback"


@dataclass(frozen=True)
class History:
    """What was recorded: one entry per record, the first before any step."""

    passes: NDArray[np.float64]
    seconds: NDArray[np.float64]
    value: NDArray[np.float64]
    effective_variance: NDArray[np.float64] | None = None
    optimal_variance: NDArray[np.float64] | None = None
    uniform_variance: NDArray[np.float64] | None = None

    def to_frame(self) -> Any:
        """A pandas frame: a row for each record, a column for each of the above that was recorded."""
        return as_frame({name: values for name, values in vars(self).items() if values is not None})


@dataclass(frozen=True)
class Result:
    """The outcome of `minimise`.

    Attributes
    ----------
    w : the solution, the best iterate that was recorded, or where the run converged the last one; with an intercept,
        its last entry; for losses of several margins
        a matrix, one column for each, with an intercept its last row
    value : F(w)
    reason : why the run stopped
    passes : rows drawn, divided by n
    seconds : the time of the solver's steps; what comes before the first (compilation, a sampler's tables, the
        gradients that `Saga` begins with) and records do not count
    history : what was recorded
    sampling : the sampler's final state
    solver : the solver that ran: what "auto" took
    gap : a certificate, computed when asked for: `value` is at most so much above the minimum; see `Problem.gap`
    """

    w: NDArray[np.float64] = field(repr=False)
    value: float
    reason: Reason
    passes: float
    seconds: float
    history: History = field(repr=False)
    sampling: Sampling = field(repr=False)
    solver: Solver = field(repr=False)
    _problem: Problem | None = field(default=None, repr=False)

    @property
    def converged(self) -> bool:
        return self.reason is Reason.CONVERGED

    @cached_property
    def gap(self) -> float:
        if self._problem is None:
            raise AttributeError("A result that was pickled knows its problem no more: use problem.gap(result.w).")
        return self._problem.gap(self.w)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_problem": None}  # the data are not the result's


@dataclass(frozen=True)
class Progress:
    """What a callback is given after each record."""

    passes: float
    seconds: float
    value: float
    w: NDArray[np.float64] = field(repr=False)
    variances: Callable[[], tuple[float, float, float]] | None = field(default=None, repr=False)
    """Computes, at about the cost of F, the effective, the least possible and the uniform variance as of now."""


def minimise(
    problem: Problem,
    solver: Solver | str = "auto",
    sampler: Sampler | Sampling | str = "auto",
    *,
    passes: float = 50,
    seed: Any = None,
    w0: ArrayLike | None = None,
    tol: float = 0.0,
    time_limit: float | None = None,
    record_every: float = 1.0,
    record_variance: bool = False,
    callback: Callable[[Progress], Any] | None = None,
    progress: bool = False,
) -> Result:
    """Minimise F(w) = (1/n) Σ φ_i(w) + λ r(w).

    Parameters
    ----------
    problem : Problem
    solver : Solver or str
        `Saga`, `Sgd`, `Sqn`, ... or your own, or a name: "saga", "proxsvrg", ...; "auto" is `SampledNewton`, or
        `ProxSvrg` for long dense rows of very different length, for penalties without a closed form and for losses
        without `second_derivative`. Neither has a step to choose.
    sampler : Sampler or str
        `Mabs`, or "mabs", is the paper's; "auto" is `Auto`, adaptive where it pays and uniform where it does not, or
        `Uniform` where that would be the same, as for `SampledNewton` with the squared loss, few rows or like ones. The
        `sampling` of an earlier `Result` over the same rows goes on from a copy with what it has learned.
        Solvers draw ahead, in blocks of 128 rows, or n/64 if these are fewer, or one batch if that is more: a draw does
        not know the feedback of up to two blocks before it yet, and the sampling of the result not that of the last.
    passes : float
        How many times n rows to draw at most, in whole steps; 0 compiles and returns w0. Full gradients of snapshot
        methods come on top.
    seed : int, SeedSequence or numpy Generator, optional
        The same seed gives the same bits.
    w0 : array, optional
        Where to start; zero unless given.
    tol : float
        Stop when `Problem.relative_optimality` is at most tol: the norm of the gradient mapping relative to what it is
        at zero, wherever the run starts, and to √F. A solver with a model of F, `SampledNewton`, goes on while that
        promised its last step more than tol² F. Looked at with every record.
    time_limit : float, optional
        Seconds of solver work after which to stop. With it, or with tol, the length of the run is not known beforehand,
        and samplers are told so.
    record_every : float
        Passes between two records. Recording does not change the iterates, nor does it count in `seconds`.
    record_variance : bool
        Whether to record the effective variance of the solver's estimator, the least possible one and that of uniform
        sampling, at the same points.
    callback : callable, optional
        Called after each record but the first with a `Progress`; a true answer stops the run.
    progress : bool
        Whether to show a progress bar, if the output is a terminal.
    """
    _check(problem, passes, tol, time_limit, record_every)
    problem.check_rows()
    chosen_solver: Solver = _chosen(solver, Solver, lambda: automatic_solver(problem), make_solver, "solver")
    chosen_solver = _for_margins(chosen_solver, problem) if problem.vector else chosen_solver
    _expect_penalty(chosen_solver, problem)
    automatic_sampler = Auto if chosen_solver.draws(problem) else Uniform
    chosen_sampler = _resumed(sampler, problem) or _chosen(sampler, Sampler, automatic_sampler, make_sampler, "sampler")
    open_ended = time_limit is not None or tol > 0.0
    run = _Run(problem, chosen_solver, chosen_sampler, passes, seed, w0, record_variance, open_ended)
    reason = Reason.PASSES_DONE
    try:
        with _progress_bar(progress, run.total_steps) as show:
            reason = run.go(tol, time_limit, record_every, callback, show)
    except KeyboardInterrupt:
        if not run.records:  # nothing to keep
            raise
        reason = Reason.INTERRUPTED
    return run.result(reason)


class _Run:
    """One run: its state, its clock and its records."""

    def __init__(
        self,
        problem: Problem,
        solver: Solver,
        sampler: Sampler | Sampling,
        passes: float,
        seed: Any,
        w0: ArrayLike | None,
        record_variance: bool,
        open_ended: bool,
    ) -> None:
        self.problem, self.solver, self.record_variance = problem, solver, record_variance
        self.rows_per_step = solver.rows_per_step(problem)
        least = 1 if passes > 0.0 else 0
        self.total_steps = max(least, math.ceil(passes * problem.n / self.rows_per_step - 1e-6))
        w = np.zeros(problem.dimension) if w0 is None else problem.check_point(w0).copy()
        if not np.isfinite(w).all():
            raise ValueError("w0 has a NaN or an infinity.")
        if problem.form is not None and not problem.form.plain:
            w[: problem.penalised] = np.clip(w[: problem.penalised], problem.form.lower, problem.form.upper)
        bounds = problem.gradient_bounds
        sampler_seed, solver_seed = _two_seeds(seed)
        if isinstance(sampler, Sampling):
            self.sampling = copy.deepcopy(sampler)
        else:
            self.sampling = sampler.start(
                problem.n,
                horizon=None if open_ended else max(1, self.total_steps * self.rows_per_step),
                seed=sampler_seed,
                smoothness=problem.smoothness,
                bounds=None if bounds is None else (bounds / problem.n) ** 2,
            )
        self.state = solver.start(problem, w, solver_seed)
        solver.advance(problem, self.state, self.sampling.state, 0)  # compiles, so that it does not count
        problem.compile()
        self.steps, self.seconds, self.slice = 0, 0.0, 16
        self.records: list[tuple[float, ...]] = []
        self.best_w, self.best_value = w.copy(), math.inf

    @property
    def passes(self) -> float:
        return self.steps * self.rows_per_step / self.problem.n

    def go(self, tol: float, time_limit: float | None, record_every: float, callback: Any, show: Any) -> Reason:
        self.record()
        interval = max(1, round(record_every * self.problem.n / self.rows_per_step))
        while self.steps < self.total_steps:
            stop = min(self.steps + interval, self.total_steps)
            while self.steps < stop:
                if not self.advance(stop - self.steps):
                    return Reason.DIVERGED
                show(self.steps, self.records[-1][2])
                if time_limit is not None and self.seconds >= time_limit:
                    break
            w, value = self.record()
            if not math.isfinite(value):
                return Reason.DIVERGED
            if callback is not None and callback(self.progress(w, value)):
                return Reason.CALLBACK
            if time_limit is not None and self.seconds >= time_limit:
                return Reason.TIME_LIMIT
            if self.solver.finished(self.state) or self.converged(w, value, tol):
                return Reason.CONVERGED
        return Reason.PASSES_DONE

    def advance(self, steps: int) -> bool:
        """A slice of at most `steps` steps; False if it met a number that is not finite."""
        steps = min(steps, self.slice)
        begin = time.perf_counter()
        done = self.solver.advance(self.problem, self.state, self.sampling.state, steps)
        elapsed = time.perf_counter() - begin
        if done == BAD_INDEX:
            who = type(self.sampling.sampler).__name__
            raise IndexError(f"{who} drew an index outside 0..{self.problem.n - 1}: a fault in the sampler.")
        self.steps += done
        self.seconds += elapsed
        self.slice = max(1, min(2 * self.slice, int(steps * _SLICE_SECONDS / max(elapsed, 1e-9))))
        return done == steps

    def record(self) -> tuple[NDArray[np.float64], float]:
        w = self.solver.iterate(self.problem, self.state)
        value = self.value(w)
        entry: tuple[float, ...] = (self.passes, self.seconds, value)
        if self.record_variance:
            entry += self.variances()
        self.records.append(entry)
        if value <= self.best_value:
            self.best_w, self.best_value = w, value
        return w, value

    def progress(self, w: NDArray[np.float64], value: float) -> Progress:
        return Progress(self.passes, self.seconds, value, self.problem.shaped(w.copy()), self.variances)

    def variances(self) -> tuple[float, float, float]:
        a = self.solver.feedback(self.problem, self.state)
        effective = effective_variance(a, self.sampling.probabilities())
        return effective, optimal_variance(a), float(a.sum()) * self.problem.n

    def value(self, w: NDArray[np.float64]) -> float:
        known = self.solver.known(self.problem, self.state)
        return self.problem.value(w) if known is None else known.value

    def converged(self, w: NDArray[np.float64], value: float, tol: float) -> bool:
        """Whether w meets tol; this work counts."""
        if tol == 0.0:
            return False
        begin = time.perf_counter()
        known = self.solver.known(self.problem, self.state)
        told = (None, 0.0) if known is None else (known.gradient, known.predicted)
        optimality = self.problem.relative_optimality(w, value, *told)
        self.seconds += time.perf_counter() - begin
        return optimality <= tol

    def result(self, reason: Reason) -> Result:
        w = self.solver.iterate(self.problem, self.state)
        value = self.value(w)
        if not math.isfinite(value):
            reason = Reason.DIVERGED
        elif reason in (Reason.PASSES_DONE, Reason.TIME_LIMIT) and self.rose(value):
            reason = Reason.ROSE
        # what was shown to converge is the last iterate, even if rounding or a large tol make another the best
        if reason is not Reason.CONVERGED and not value <= self.best_value:
            w, value = self.best_w, self.best_value
        columns = [np.array(column) for column in zip(*self.records, strict=True)] or [np.empty(0)] * 3
        history = History(*columns)
        w = self.problem.shaped(w)
        return Result(w, value, reason, self.passes, self.seconds, history, self.sampling, self.solver, self.problem)

    def rose(self, value: float) -> bool:
        """Whether a run that ends with this F ends above its start, or far above its least."""
        start, best = self.records[0][2], self.best_value
        far = max(LOST * (start - best), NOISE * abs(best))
        return value > start + ROUNDING * abs(start) or value - best > far


def _two_seeds(seed: Any) -> list[np.random.SeedSequence]:
    """Independent seeds for sampler and solver."""
    if isinstance(seed, np.random.Generator):
        seed = np.random.SeedSequence(seed.integers(0, 2**63, size=4).tolist())
    if not isinstance(seed, np.random.SeedSequence):
        return [np.random.SeedSequence(seed, spawn_key=(k,)) for k in range(2)]
    # not by spawn, which would change what the user holds
    return [np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, k)) for k in range(2)]


def _resumed(sampler: Any, problem: Problem) -> Sampling | None:
    """The sampling of an earlier run, to go on with."""
    if not isinstance(sampler, Sampling):
        return None
    if sampler.n != problem.n:
        raise ValueError(f"The sampling given is over {sampler.n} rows, and the problem has {problem.n}.")
    return sampler


def _chosen(value: Any, kind: type, automatic: Callable[[], Any], by_name: Callable[[str], Any], role: str) -> Any:
    """What the user gave, also by name, or our choice for "auto"."""
    if isinstance(value, str):
        return automatic() if value == "auto" else by_name(value)
    if not isinstance(value, kind):
        remedy = f" Did you mean {value.__name__}(...)?" if isinstance(value, type) else ""
        raise TypeError(f"minimise expects {role} to be a {kind.__name__} or a name, got {value!r}.{remedy}")
    return value


def _for_margins(solver: Solver, problem: Problem) -> Solver:
    """The solver that does the given one's work where a row has several margins."""
    if isinstance(solver, SampledNewton):
        return MultinomialNewton()
    if solver.takes_several_margins:
        return solver
    raise TypeError(
        f"{solver!r} takes losses of one margin, and {problem.loss} has {problem.margins}. Use a solver whose "
        'takes_several_margins is true, as that of all in the package, or "auto".'
    )


def _expect_penalty(solver: Solver, problem: Problem) -> None:
    """A penalty of vectors must not be taken coordinate by coordinate."""
    if not (hasattr(problem.penalty, "prox") or solver.takes_vector_penalties):
        raise TypeError(
            f"{solver!r} takes penalties of one coordinate at a time, and {type(problem.penalty).__name__} is one of "
            'vectors. Use a solver whose takes_vector_penalties is true, as that of all in the package, or "auto".'
        )


def _check(problem: Any, passes: float, tol: float, time_limit: float | None, record_every: float) -> None:
    if not isinstance(problem, Problem):
        raise TypeError(f"minimise expects a Problem first, got {type(problem).__name__}.")
    if not 0.0 <= passes < math.inf:
        raise ValueError(f"minimise expects passes to be finite and not negative, got {passes!r}.")
    if not 0.0 < record_every < math.inf:
        raise ValueError(f"minimise expects record_every to be positive and finite, got {record_every!r}.")
    if not 0.0 <= tol < math.inf:
        raise ValueError(f"minimise expects tol to be finite and not negative, got {tol!r}.")
    if time_limit is not None and not time_limit > 0.0:
        raise ValueError(f"minimise expects time_limit to be positive, got {time_limit!r}.")


@contextmanager
def _progress_bar(wanted: bool, total: int) -> Iterator[Callable[[int, float], None]]:
    if not (wanted and sys.stderr.isatty()):
        yield lambda steps, value: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("minimising"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        TextColumn("F = {task.fields[value]:.6g}"),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total, value=math.nan)
        yield lambda steps, value: bar.update(task, completed=steps, value=value)
