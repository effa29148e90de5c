"""What the estimators on Dask share: a fit from collections, and predictions that stay lazy."""

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from banditgrad.dask.backend import current_backend
from banditgrad.dask.checkpoint import Checkpoint
from banditgrad.dask.descent import Shape
from banditgrad.dask.partitions import Facts, Partition, Summary, Task, as_blocks, is_collection, summarise
from banditgrad.dask.rounds import Held, Limits, Run, carry_out, status
from banditgrad.linear_model.base import by_margin
from banditgrad.losses import margins_of
from banditgrad.minimise import Reason
from banditgrad.registry import GROUPED, make_penalty, make_sampler, make_solver, name_of
from banditgrad.solvers import ProxSvrg
from banditgrad.solvers.parts.step_size.smoothness import check_step_size

Vector = NDArray[np.float64]

NAMED = ("auto", "proxsvrg")
OTHERWISE = ", or accept this with a larger tol."
MOST_NUMBERS = 1000  # of which a Hessian is sent: half of it takes 4 MB
ATTRIBUTES = ("classes_", "coef_", "intercept_", "n_iter_", "solver_", "objective_", "history_",
              "effective_variance_ratio_", "n_features_in_", "feature_names_in_")  # fmt: skip


class OnDask:
    """Mixed into the local estimators: `fit` and predictions for dask collections."""

    _local_kind: Any

    def _set_parameters(self, given: dict[str, Any]) -> None:
        """The constructor's parameters, of which the local estimator has all but two."""
        own = {name: given[name] for name in ("time_limit", "checkpoint")}
        super().__init__(**{name: given[name] for name in self._get_param_names() if name not in own})
        self.__dict__.update(own)

    def _check_on_dask(self) -> None:
        self._check_parameters()
        if not math.isfinite(self._loss().curvature()):
            raise ValueError(
                f'On Dask steps go by a bound on the curvature of the loss, and loss="{self.loss}" has none. Fit it '
                "with the local estimator."
            )
        if self.solver not in NAMED and type(self.solver) is not ProxSvrg:
            raise ValueError(f'On Dask there is one solver, "proxsvrg"; got solver={self.solver!r}. Pass "auto".')
        limit = self.time_limit
        if limit is not None and (not isinstance(limit, Real) or isinstance(limit, bool) or not float(limit) > 0.0):
            raise ValueError(f"time_limit must be a positive number of seconds or None, got {limit!r}.")
        if not (self.checkpoint is None or isinstance(self.checkpoint, (str, Path))):
            raise TypeError(f"checkpoint must be the path of a file or None, got {self.checkpoint!r}.")
        if isinstance(self.solver, ProxSvrg):
            make_solver(self.solver, self.step_size)  # refuses a step of the estimator's own beside the solver's
            if self.solver.snapshot != ProxSvrg().snapshot:
                raise ValueError(f"On Dask snapshots join all partitions; got snapshot={self.solver.snapshot!r}.")
        check_step_size(self, self._step_size)

    @property
    def _step_size(self) -> Any:
        return self.solver.step_size if isinstance(self.solver, ProxSvrg) else self.step_size

    def _load(self, X: Any, y: Any, sample_weight: Any, classify: bool) -> tuple[Any, list[Any], list[Summary]]:
        """The backend, the blocks it holds and what is in them."""
        backend = current_backend()
        blocks = backend.load(as_blocks(X, y, sample_weight))
        summaries = backend.each(summarise, blocks, classify)
        rows, widths = sum(each.rows for each in summaries), {each.features for each in summaries}
        if rows == 0:
            raise ValueError("X has no rows in any partition.")
        if len(widths) > 1:
            raise ValueError(f"The partitions of X must have the same features, got {sorted(widths)} of them.")
        self.n_features_in_ = widths.pop()
        names = np.asarray(X.columns, dtype=object) if isinstance(X, dd.DataFrame) else np.zeros(0, object)
        if names.size and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return backend, blocks, summaries

    def _penalty_on_dask(self) -> Any:
        if self.penalty in GROUPED:
            raise ValueError(f"On Dask penalty is l1, l2, elasticnet or None, got {self.penalty!r}.")
        return make_penalty(self.penalty, self.alpha, self.l1_ratio)

    def _task(self, positive: Any, labels: Any = (), label_weights: Vector | None = None) -> Task:
        return Task(
            loss=self._loss(),
            penalty=self._penalty_on_dask(),
            fit_intercept=bool(self.fit_intercept),
            positive=positive,
            labels=np.asarray(labels),
            label_weights=label_weights,
            sampler=make_sampler(self.sampler),
            step_size=self._step_size,
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
        )

    def _fit_blocks(self, backend: Any, blocks: list[Any], task: Task) -> None:
        """Minimise one problem per label that is positive, or the only one."""
        partitions = backend.make(Partition, blocks, task)
        blocks.clear()  # partitions hold the rows from here on
        facts = backend.each(Partition.facts, partitions)
        total = sum(each.weight for each in facts)
        if not total > 0.0:
            raise ValueError("sample_weight must not be all zero.")
        shares = [each.weight / total for each in facts]
        used = [k for k, share in enumerate(shares) if share > 0.0]
        held = Held(backend, [partitions[k] for k in used], [shares[k] for k in used])
        d, width = self.n_features_in_, margins_of(task.loss)
        shape = _shape(task, d, shares, facts)
        problems = 1 if task.positive is None else len(task.positive)
        checkpoint = None if self.checkpoint is None else Checkpoint(self.checkpoint, task, d)
        starts = None if checkpoint is None else checkpoint.read()
        if starts is None and self.warm_start:
            starts = self._as_starts(self._starts(d, width if task.classes else problems))
        if starts is None:
            starts = np.zeros((problems, (d + task.fit_intercept) * width))
        limits = Limits(self.max_iter, self.tol or 0.0, math.inf if self.time_limit is None else self.time_limit)
        runs = [Run(shape, np.ravel(start), limits) for start in starts]
        with status(bool(self.verbose)) as show:
            carry_out(runs, held, self.callback, show, checkpoint)
        self._keep_runs(runs)
        self._keep_rows(backend, partitions, [each.rows for each in facts], shares, runs)
        self._tell(runs)

    def _keep_runs(self, runs: Sequence[Run]) -> None:
        self._keep_solution(by_margin([run.w for run in runs]))
        self.n_iter_ = max(1, max(run.descent.rounds for run in runs))
        self.solver_ = name_of(ProxSvrg)
        self.objective_ = np.array([run.descent.here.value for run in runs])
        self.history_ = [run.history for run in runs]
        self.bytes_per_round_ = float(max(history.bytes[-1] for history in self.history_) / self.n_iter_)
        ratios = [adaptive / uniform if uniform > 0.0 else 1.0 for adaptive, uniform in (run.noise for run in runs)]
        self.effective_variance_ratio_ = float(np.mean(ratios))

    def _keep_rows(
        self, backend: Any, partitions: Sequence[Any], rows: Sequence[int], shares: Sequence[float], runs: Sequence[Run]
    ) -> None:
        """A number per row, as dask arrays: where the rows are."""

        def per_row(function: Callable[..., Any], arguments: Sequence[Any]) -> da.Array:
            each = zip(partitions, arguments, rows, strict=True)
            return da.concatenate(
                [da.from_delayed(backend.later(function, p, a), (n,), float) for p, a, n in each if n]
            )

        self.sampling_probabilities_ = per_row(Partition.probabilities, shares)
        norms = per_row(Partition.gradient_norms, [np.array([run.descent.here.w for run in runs])] * len(rows))
        mean = norms.mean()
        self.importance_ = da.where(mean > 0.0, norms / da.where(mean > 0.0, mean, 1.0), 1.0)

    def _tell(self, runs: Sequence[Run]) -> None:
        name = type(self).__name__
        if self.verbose:
            for k, run in enumerate(runs):
                print(f"{name}, problem {k + 1} of {len(runs)}: F = {run.descent.here.value:.6g} after "
                      f"{run.descent.rounds} rounds, {run.history.seconds[-1]:.2f} s; {run.reason.value}")  # fmt: skip
        for message in self._endings(runs):
            warnings.warn(f"{name} {message}", ConvergenceWarning, stacklevel=4)

    def _endings(self, runs: Sequence[Run]) -> Iterator[str]:
        """What there is to say of runs that ended before they were done."""
        by_reason = {reason: [run for run in runs if run.reason is reason] for reason in Reason}
        if by_reason[Reason.INTERRUPTED]:
            yield "was interrupted; it holds what was reached."
        late = by_reason[Reason.TIME_LIMIT]
        if any(run.descent.rounds == 0 for run in late):
            yield (
                f"reached time_limit={self.time_limit:g} seconds before its first round was over: the coefficients are "
                "those it started from. Raise time_limit."
            )
        elif self.tol and any(run.distance > self.tol for run in late):
            yield f"reached time_limit={self.time_limit:g} seconds{self._left(late)} Raise time_limit{OTHERWISE}"
        if self.tol and (short := by_reason[Reason.PASSES_DONE]):
            yield (
                f"made max_iter={self.max_iter} rounds{self._left(short)} Scale the features, shuffle the rows between "
                f"partitions, raise max_iter or alpha{OTHERWISE}"
            )
        if stalled := [run for run in runs if run.stalled]:
            yield f"found no step that makes F fall{self._left(stalled)} Scale the features, raise alpha{OTHERWISE}"

    def _left(self, runs: Sequence[Run]) -> str:
        worst = max(run.distance for run in runs)
        return f" and the relative optimality is {worst:.1e}, above tol={self.tol:g}."

    def local(self) -> Any:
        """The fitted model as an estimator of `banditgrad.linear_model`, which needs no Dask to predict."""
        check_is_fitted(self)
        kind = self._local_kind
        model = kind(**{name: getattr(self, name) for name in kind._get_param_names()})
        for name in ATTRIBUTES:
            if hasattr(self, name):
                setattr(model, name, getattr(self, name))
        return model

    def _each_block(self, X: Any, method: str, kind: Any, columns: int) -> Any:
        """What the local model's method gives for every block of a collection, lazily; at once for anything else."""
        model = self.local()
        if not is_collection(X):
            return getattr(model, method)(X)
        if X.ndim != 2:
            raise ValueError(f"X must be two-dimensional, got a {type(X).__name__} of {X.ndim} dimensions.")
        model.callback = None  # the graph takes what predictions need, and a callback may not be fit to travel
        vars(model).pop("history_", None)
        predict = getattr(model, method)
        empty = np.empty((0, columns) if columns else (0,), dtype=kind)
        if isinstance(X, dd.DataFrame):
            return X.map_partitions(_predict_rows, predict, empty, meta=empty)
        X = X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X
        shape = {"chunks": (X.chunks[0], (columns,))} if columns else {"drop_axis": 1}
        return X.map_blocks(_predict_rows, predict, empty, dtype=kind, meta=empty, **shape)

    def __getstate__(self) -> dict[str, Any]:
        """Without what only the cluster holds, so that a model can be pickled and sent anywhere."""
        return {name: value for name, value in super().__getstate__().items() if not isinstance(value, da.Array)}


def _shape(task: Task, d: int, shares: Sequence[float], facts: Sequence[Facts]) -> Shape:
    """What rounds go by, of all partitions together."""
    width, each = margins_of(task.loss), [(share, fact) for share, fact in zip(shares, facts, strict=True) if share]
    curvatures = np.sum([share * fact.curvatures for share, fact in each], axis=0)
    tells = any(hasattr(task.loss, name) for name in ("second_derivative", "curve_parts"))
    return Shape(
        *task.penalty.shrinkage(),
        penalised=d * width,
        smoothness=sum(share * fact.smoothness for share, fact in each),
        curvatures=np.repeat(curvatures, width),
        hessian=tells and d * width <= MOST_NUMBERS,
        form=(-1, width) if task.classes else (-1,),
    )


def _predict_rows(X: Any, predict: Callable[[Any], Any], empty: NDArray[Any]) -> Any:
    return predict(X) if X.shape[0] else empty
