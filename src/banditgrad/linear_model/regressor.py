"""Linear regression."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_pinball_score, d2_tweedie_score, r2_score

from banditgrad.linear_model.base import ALPHA, BanditLinearModel, Vector, as_weights
from banditgrad.minimise import Progress
from banditgrad.registry import LOG_LINK_LOSSES, REGRESSION_LOSSES
from banditgrad.samplers import Sampler
from banditgrad.solvers import Solver


class BanditRegressor(RegressorMixin, BanditLinearModel):
    """Regression by least squares, of quantiles, counts or amounts, with an elastic net, trained with bandit sampling.

        F(w, b) = Σ_i s_i loss(<x_i, w> + b, y_i) / Σ_i s_i + alpha (l1_ratio ‖w‖₁ + (1 - l1_ratio)/2 ‖w‖²)

    The intercept is not penalised. `alpha` is that of scikit-learn's ``SGDRegressor``, ``ElasticNet``, ``Lasso`` and
    ``PoissonRegressor``; ``Ridge``'s is n times as large.

    Parameters
    ----------
    loss : "squared_error", "huber", "quantile", "poisson", "gamma" or "tweedie"
        ½ (z - y)²; the same up to |z - y| = epsilon and linear from there; the pinball loss, for a quantile of y; or
        half the deviance of counts, y >= 0, of amounts, y > 0, or of sums of amounts, y >= 0, with mean exp(z).
    penalty : "l2", "l1", "elasticnet", "group_lasso", "sparse_group_lasso" or None
        "group_lasso" is alpha Σ_b √d_b ‖w_b‖ over groups b of d_b features, "sparse_group_lasso" is that times
        1 - l1_ratio and alpha l1_ratio ‖w‖₁.
    alpha : float
        The strength of the penalty.
    l1_ratio : float
        The share of the l1 norm in "elasticnet" and "sparse_group_lasso"; other penalties do not look at it.
    penalty_factor, positive, bounds, groups
        As in `BanditClassifier`.
    epsilon : float
        Where Huber's loss becomes linear, in units of y.
    quantile : float
        The quantile that loss="quantile" is for; 0.5 is the median.
    power : float
        The variance of y is in proportion to its mean to this power for loss="tweedie": from 1, that of "poisson", to
        2, that of "gamma".
    solver, sampler, step_size, max_iter, tol, early_stopping, validation_fraction, n_iter_no_change, fit_intercept, \
    standardize, warm_start, random_state, n_jobs, verbose, callback
        As in `BanditClassifier`. n_jobs is there for the common interface: there is one problem to solve.

    Attributes
    ----------
    coef_ : array of shape (d,)
    intercept_ : array of shape (1,)
    alpha_, n_iter_, solver_, objective_, history_, sampling_probabilities_, importance_, effective_variance_ratio_, \
    validation_loss_
        As in `BanditClassifier`.
    """

    _losses = REGRESSION_LOSSES

    def __init__(
        self,
        loss: str = "squared_error",
        *,
        penalty: str | None = "l2",
        alpha: float = ALPHA,
        l1_ratio: float = 0.15,
        penalty_factor: ArrayLike | None = None,
        positive: bool = False,
        bounds: Any = None,
        groups: Any = None,
        epsilon: float = 0.1,
        quantile: float = 0.5,
        power: float = 1.5,
        solver: str | Solver = "auto",
        sampler: str | Sampler = "auto",
        step_size: float | str = "auto",
        max_iter: int = 1000,
        tol: float | None = 1e-6,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        fit_intercept: bool = True,
        standardize: bool = False,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callable[[Progress], Any] | None = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.penalty_factor = penalty_factor
        self.positive = positive
        self.bounds = bounds
        self.groups = groups
        self.epsilon = epsilon
        self.quantile = quantile
        self.power = power
        self.solver = solver
        self.sampler = sampler
        self.step_size = step_size
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, offset: ArrayLike | None = None
    ) -> "BanditRegressor":
        """Fit the model; a `sample_weight` of 2 counts like the row given twice.

        `offset`, a number per row, is added to <x, w> + b: the logarithm of the exposure for counts.
        """
        X, y = self._check_data(X, y)
        self._fit_targets(X, self._targets(y), self._weights(y, sample_weight), offset)
        return self

    def _check_data(self, X: Any, y: Any) -> tuple[Any, Any]:
        self._check_parameters()
        return self._validate(X, y, reset=True, y_numeric=True)

    def _targets(self, y: Any) -> list[Vector]:
        return [np.asarray(y, dtype=np.float64)]

    def _weights(self, y: Any, sample_weight: ArrayLike | None) -> Any:
        return as_weights(sample_weight)

    def partial_fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "BanditRegressor":
        """One pass over these rows, going on from what was fitted before: see `BanditClassifier.partial_fit`."""
        self._check_parameters()
        X, y = self._validate(X, y, reset=not hasattr(self, "coef_"), y_numeric=True)
        self._stream_targets(X, self._targets(y), self._weights(y, sample_weight))
        return self

    def predict(self, X: Any, offset: ArrayLike | None = None) -> Vector:
        """<x, w> + b for each row, with its offset if there is one; exp of it for "poisson", "gamma" and "tweedie"."""
        margins = self._margins(X, offset)[:, 0]
        return np.exp(margins) if self.loss in LOG_LINK_LOSSES else margins

    def score(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, offset: ArrayLike | None = None
    ) -> float:
        """R², or for losses that are deviances or for quantiles D², the share of the deviance that is explained.

        1 is perfect, 0 a constant prediction.
        """
        predicted = self.predict(X, offset)
        if self.loss == "quantile":
            return float(d2_pinball_score(y, predicted, sample_weight=sample_weight, alpha=self.quantile))
        if self.loss in LOG_LINK_LOSSES:
            power = {"poisson": 1.0, "gamma": 2.0}.get(self.loss, self.power)
            return float(d2_tweedie_score(y, predicted, sample_weight=sample_weight, power=power))
        return float(r2_score(y, predicted, sample_weight=sample_weight))

    def _keep_solution(self, w: Vector) -> None:
        super()._keep_solution(w)
        self.coef_ = self.coef_[0]
