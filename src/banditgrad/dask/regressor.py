"""Linear regression on dask collections."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from banditgrad.dask.backend import thread_given_back
from banditgrad.dask.fitting import OnDask
from banditgrad.linear_model import regressor as local
from banditgrad.minimise import Progress
from banditgrad.samplers import Sampler
from banditgrad.solvers import Solver


class BanditRegressor(OnDask, local.BanditRegressor):
    """`banditgrad.linear_model.BanditRegressor` for rows that do not fit one machine: the same minimiser.

    Parameters
    ----------
    loss, penalty, alpha, l1_ratio, epsilon, sampler, step_size, tol, fit_intercept, warm_start, random_state
        As in the local estimator.
    solver, max_iter, n_jobs, verbose, callback, time_limit, checkpoint
        As in `banditgrad.dask.BanditClassifier`.

    Attributes
    ----------
    coef_, intercept_ : as in the local estimator
    n_iter_, objective_, history_, bytes_per_round_, sampling_probabilities_, importance_, effective_variance_ratio_
        As in `banditgrad.dask.BanditClassifier`.
    """

    _local_kind = local.BanditRegressor

    def __init__(
        self,
        loss: str = "squared_error",
        *,
        penalty: str | None = "l2",
        alpha: float = 1e-4,
        l1_ratio: float = 0.15,
        epsilon: float = 0.1,
        solver: str | Solver = "auto",
        sampler: str | Sampler = "auto",
        step_size: float | str = "auto",
        max_iter: int = 1000,
        tol: float | None = 1e-4,
        fit_intercept: bool = True,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callable[[Progress], Any] | None = None,
        time_limit: float | None = None,
        checkpoint: str | Path | None = None,
    ) -> None:
        self._set_parameters(locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> "BanditRegressor":
        """Fit a dask array (of dense or CSR blocks) or dataframe; y and `sample_weight` are partitioned like X."""
        self._check_on_dask()
        if offset is not None:
            raise ValueError("On Dask there are no offsets. Fit rows with offsets with the local BanditRegressor.")
        with thread_given_back():
            backend, blocks, _ = self._load(X, y, sample_weight, classify=False)
            self._fit_blocks(backend, blocks, self._task(None))
        return self

    def predict(self, X: Any, offset: Any = None) -> Any:
        """<x, w> + b for each row, lazily for a collection."""
        return self._each_block(X, "predict", float, 0)
