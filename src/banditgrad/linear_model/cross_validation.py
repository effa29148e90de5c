"""Estimators that choose the strength of their penalty by cross-validation."""

import math
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, RegressorMixin, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from banditgrad._frames import as_frame
from banditgrad._names import shown
from banditgrad.linear_model.availability import available_if
from banditgrad.linear_model.base import BanditLinearModel, by_margin
from banditgrad.linear_model.classifier import BanditClassifier, expect_probabilities
from banditgrad.linear_model.regressor import BanditRegressor
from banditgrad.linear_model.scoring import score_by_margins
from banditgrad.minimise import Reason
from banditgrad.path import COUNT, Follower, alpha_grid, decreasing
from banditgrad.registry import WITH_RATIO, make_solver

Vector = NDArray[np.float64]

ROUGH = 100.0  # times tol: how near the fits come that are only scored, unless that is too far to tell
ROUGHEST = 1e-3


@dataclass(frozen=True)
class ValidationPath:
    """Models and their scores along a path of penalties, strongest first.

    Attributes
    ----------
    l1_ratio : the share of the l1 norm
    alphas : the strengths
    scores : array of shape (alphas, folds), on the rows that were held out
    coefs : list of arrays like `coef_`, fitted to all rows
    intercepts : list of arrays like `intercept_`
    """

    l1_ratio: float
    alphas: Vector
    scores: Vector = field(repr=False)
    coefs: list[Vector] = field(repr=False)
    intercepts: list[Vector] = field(repr=False)

    @property
    def mean_scores(self) -> Vector:
        return np.asarray(self.scores.mean(axis=1))

    @property
    def standard_errors(self) -> Vector:
        """Of the mean scores, from the spread over the folds."""
        folds = self.scores.shape[1]
        return np.asarray(self.scores.std(axis=1, ddof=1 if folds > 1 else 0) / math.sqrt(folds))

    @property
    def nonzeros(self) -> NDArray[np.int64]:
        """How many coefficients are not zero, at each strength."""
        return np.array([np.count_nonzero(coef) for coef in self.coefs])

    def to_frame(self) -> Any:
        """A pandas frame with a row for each strength: alpha, mean score, standard error, non-zeros."""
        return as_frame(
            {
                "alpha": self.alphas,
                "mean_score": self.mean_scores,
                "standard_error": self.standard_errors,
                "nonzeros": self.nonzeros,
            }
        )

    @property
    def best(self) -> int:
        """The position of the highest mean score; of equal ones, that of the strongest penalty."""
        return int(np.argmax(self.mean_scores))

    @property
    def one_standard_error(self) -> int:
        """The position of the strongest penalty whose mean score is within a standard error of the highest."""
        least = self.mean_scores[self.best] - self.standard_errors[self.best]
        return int(np.flatnonzero(self.mean_scores >= least)[0])


class _Fits:
    """The problems of one set of rows, one per target, followed along a path."""

    def __init__(self, model: BanditLinearModel, X: Any, y: Any, weights: Any, tol: float, seed: Any) -> None:
        solver = make_solver(model.solver, model.step_size)
        self.scaling = model._scaling(X, weights)
        X = self.scaling.apply(X)
        self.followers = [
            Follower(
                model._problem(X, target, weights, scaling=self.scaling),
                solver,
                model.sampler,
                passes=model.max_iter,
                tol=tol,
                seed=s,
            )
            for target, s in zip(model._targets(y), seed.spawn(len(model._targets(y))), strict=True)
        ]
        self.unfinished = 0

    @property
    def w(self) -> Vector:
        return np.array([follower.w for follower in self.followers])

    @property
    def plain_w(self) -> Vector:
        """The minimisers in the units of the columns, one row per margin."""
        return self.scaling.back(by_margin(self.w))

    def minimise(self, alpha: float, shift: Vector | float = 0.0, **options: Any) -> Vector:
        """The minimisers, one per target; `shift` is how far those of other rows have moved since the last."""
        starts = self.w + shift
        results = [f.minimise(alpha, w0, **options) for f, w0 in zip(self.followers, starts, strict=True)]
        self.unfinished += any(result.reason is Reason.PASSES_DONE for result in results)
        return self.w


class BanditCV(MetaEstimatorMixin, BaseEstimator):
    """Base of the two: a path on all rows, and beside it one for each fold."""

    _plain: type[BanditLinearModel]

    def _model(self) -> BanditLinearModel:
        """The plain estimator with the parameters that it shares with this one."""
        shared = self._plain().get_params().keys() & self.get_params(deep=False).keys() - {"l1_ratio", "n_jobs"}
        return self._plain(**{name: getattr(self, name) for name in shared})

    def _with_ratio(self, model: BanditLinearModel, l1_ratio: float) -> BanditLinearModel:
        """Another like it, that knows the data's features and classes as well."""
        other = clone(model)
        vars(other).update({name: value for name, value in vars(model).items() if name.endswith("_")})
        return other.set_params(l1_ratio=l1_ratio) if self.penalty in WITH_RATIO else other

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Any:
        """Choose alpha, and l1_ratio if there are several, by cross-validation; then fit to all rows."""
        model = self._model()
        X, y = model._check_data(X, y)
        self._check_choices()
        self.n_features_in_ = model.n_features_in_
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_
        given = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
        folds = list(check_cv(self.cv, y, classifier=is_classifier(self)).split(X, y))
        ratios = np.atleast_1d(self.l1_ratio) if self.penalty in WITH_RATIO else np.array([float(self.penalty == "l1")])
        models = [self._with_ratio(model, float(ratio)) for ratio in ratios]
        self.paths_ = [self._follow(each, float(r), X, y, given, folds) for each, r in zip(models, ratios, strict=True)]
        self._choose(model, X, y, given)
        return self

    def _check_choices(self) -> None:
        if self.penalty is None:
            raise ValueError("Without a penalty there is no alpha to choose: fit the plain estimator.")
        if self.selection not in ("best", "1se"):
            raise ValueError(f'selection must be "best" or "1se", got {shown(self.selection)}.')
        if self.patience is not None and not self.patience >= 1:
            raise ValueError(f"patience must be at least 1, or None, got {shown(self.patience)}.")

    def _follow(
        self, model: BanditLinearModel, l1_ratio: float, X: Any, y: Any, weights: Any, folds: Sequence[Any]
    ) -> ValidationPath:
        """Down the path, all rows first: where their minimiser moves, those of the folds move as well."""
        tol = model.tol or 0.0
        rough = max(tol, min(ROUGH * tol, ROUGHEST))
        state = check_random_state(self.random_state).randint(2**31 - 1)
        seeds = np.random.SeedSequence(state).spawn(len(folds) + 1)
        whole = _Fits(model, X, y, model._weights(y, weights), rough, seeds[0])
        grid = self._grid(whole)
        parts = [
            _Fold(self._with_ratio(model, l1_ratio), self.scoring, X, y, weights, train, test, rough, seed)
            for (train, test), seed in zip(folds, seeds[1:], strict=True)
        ]
        scores, coefs, intercepts = [], [], []
        with ThreadPoolExecutor(min(effective_n_jobs(self.n_jobs), len(parts))) as pool:
            for alpha in grid:
                before = whole.w
                now = whole.minimise(alpha)
                scores.append(list(pool.map(lambda part, a=alpha, s=now - before: part.score(a, s), parts)))
                model._keep_solution(whole.plain_w)
                coefs.append(model.coef_)
                intercepts.append(model.intercept_)
                if self._has_peaked(np.array(scores).mean(axis=1)):
                    break
        self._warn(sum(part.fits.unfinished for part in parts) + whole.unfinished)
        return ValidationPath(l1_ratio, grid[: len(scores)], np.array(scores), coefs, intercepts)

    def _grid(self, whole: _Fits) -> Vector:
        if not isinstance(self.alphas, (int, np.integer)):
            return decreasing(self.alphas)
        grids = [alpha_grid(follower.problem, int(self.alphas), self.eps) for follower in whole.followers]
        return max(grids, key=lambda grid: float(grid[0]))

    def _has_peaked(self, means: Vector) -> bool:
        """Whether the last `patience` strengths have all scored lower than one before them."""
        if self.patience is None or len(means) <= self.patience:
            return False
        return bool(means[-self.patience :].max() < means[: -self.patience].max())

    def _warn(self, unfinished: int) -> None:
        if unfinished:
            warnings.warn(
                f"{type(self).__name__}: {unfinished} fits along the path made max_iter={self.max_iter} passes before "
                "they met tol. Scale the features (standardize=True), raise max_iter, or end the path sooner (eps).",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _choose(self, model: BanditLinearModel, X: Any, y: Any, weights: Any) -> None:
        self.path_ = max(self.paths_, key=lambda path: path.mean_scores[path.best])
        k = self.path_.best if self.selection == "best" else self.path_.one_standard_error
        self.alpha_, self.l1_ratio_ = float(self.path_.alphas[k]), self.path_.l1_ratio
        self.best_score_ = float(self.path_.mean_scores[k])
        best = self._with_ratio(model, self.l1_ratio_).set_params(alpha=self.alpha_, warm_start=True)
        best.coef_, best.intercept_ = self.path_.coefs[k], self.path_.intercepts[k]
        best.fit(X, y, weights)
        if hasattr(self, "feature_names_in_"):
            best.feature_names_in_ = self.feature_names_in_
        self.best_estimator_ = best.set_params(warm_start=False)
        self.coef_, self.intercept_, self.n_iter_ = best.coef_, best.intercept_, best.n_iter_

    def predict(self, X: Any) -> Any:
        """What the chosen model predicts for each row."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)


class _Fold:
    """A fold: fits to its training rows, and the rows that it is scored on."""

    def __init__(
        self,
        model: BanditLinearModel,
        scoring: Any,
        X: Any,
        y: Any,
        weights: Any,
        train: Any,
        test: Any,
        tol: float,
        seed: Any,
    ) -> None:
        given = None if weights is None else weights[train]
        self.fits = _Fits(model, X[train], y[train], model._weights(y[train], given), tol, seed)
        self.X, self.y, self.model = X[test], y[test], model
        self.weights = {} if weights is None else {"sample_weight": weights[test]}
        self.scorer = check_scoring(model, scoring)
        self.by_margins = score_by_margins(model, scoring, self.y, self.weights.get("sample_weight"))
        if hasattr(model, "feature_names_in_"):
            del model.feature_names_in_  # its rows are arrays here

    def score(self, alpha: float, shift: Vector) -> float:
        self.fits.minimise(alpha, shift)
        w, d = self.fits.plain_w, self.X.shape[1]
        if self.by_margins is not None:
            return self.by_margins(self.X @ w[:, :d].T + w[:, d:].sum(axis=1))
        self.model._keep_solution(w)
        return float(self.scorer(self.model, self.X, self.y, **self.weights))


class BanditClassifierCV(ClassifierMixin, BanditCV):
    """`BanditClassifier` with alpha chosen by cross-validation along a path.

    The path goes from the strongest penalty that matters down. At each strength all rows are fitted first, from the
    minimiser of the one before; then each fold, from its own minimiser moved as that of all rows has moved.

    Parameters
    ----------
    loss, penalty, penalty_factor, positive, bounds, groups, solver, sampler, step_size, max_iter, fit_intercept,
    standardize, multi_class, class_weight, random_state
        As in `BanditClassifier`.
    alphas : int or list
        How many strengths, at equal ratios from `banditgrad.path.alpha_max` down, or the strengths themselves.
    eps : float or None
        The weakest strength over the strongest; None is 1e-3 with an l1 norm and 1e-6 without.
    l1_ratio : float or list
        The share, or the shares to choose from, of the l1 norm in the elastic net.
    cv : int, splitter or iterable
        The folds, as in scikit-learn: a number asks for so many, stratified.
    scoring : str, callable or None
        As in scikit-learn; None is the accuracy.
    selection : "best" or "1se"
        The highest mean score, or the strongest penalty within one standard error of it.
    patience : int or None
        End the path when the last `patience` mean scores are all below an earlier one. None: never.
    tol : float or None
        That of the chosen model. The fits along the path, which are only scored, stop at a hundred times as much.
    n_jobs : int or None
        Threads, one fold each; -1 is one per core.

    Attributes
    ----------
    alpha_, l1_ratio_ : what was chosen
    best_score_ : its mean score over the folds
    path_ : `ValidationPath` with that l1_ratio: alphas, scores, coefs, intercepts, nonzeros
    paths_ : list of `ValidationPath`, one for each l1_ratio
    best_estimator_ : `BanditClassifier` fitted to all rows
    classes_, coef_, intercept_, n_iter_ : those of `best_estimator_`
    """

    def __init__(
        self,
        loss: str = "log_loss",
        *,
        penalty: str = "l2",
        alphas: int | ArrayLike = COUNT,
        eps: float | None = None,
        l1_ratio: float | Sequence[float] = 0.5,
        penalty_factor: ArrayLike | None = None,
        positive: bool = False,
        bounds: Any = None,
        groups: Any = None,
        cv: Any = None,
        scoring: str | Callable[..., float] | None = None,
        selection: str = "best",
        patience: int | None = 10,
        solver: Any = "auto",
        sampler: Any = "auto",
        step_size: float | str = "auto",
        max_iter: int = 1000,
        tol: float | None = 1e-6,
        fit_intercept: bool = True,
        standardize: bool = False,
        multi_class: str = "auto",
        class_weight: dict[Any, float] | str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alphas = alphas
        self.eps = eps
        self.l1_ratio = l1_ratio
        self.penalty_factor = penalty_factor
        self.positive = positive
        self.bounds = bounds
        self.groups = groups
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.patience = patience
        self.solver = solver
        self.sampler = sampler
        self.step_size = step_size
        self.max_iter = max_iter
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs

    _plain = BanditClassifier

    @property
    def classes_(self) -> NDArray[Any]:
        return self.best_estimator_.classes_

    def decision_function(self, X: Any) -> Vector:
        """<x, w> + b, positive for the second class; with more classes, a column for each."""
        check_is_fitted(self)
        return self.best_estimator_.decision_function(X)

    @available_if(expect_probabilities)
    def predict_proba(self, X: Any) -> Vector:
        """The probability of each class."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    @available_if(expect_probabilities)
    def predict_log_proba(self, X: Any) -> Vector:
        """The logarithms of `predict_proba`."""
        check_is_fitted(self)
        return self.best_estimator_.predict_log_proba(X)


class BanditRegressorCV(RegressorMixin, BanditCV):
    """`BanditRegressor` with alpha chosen by cross-validation along a path.

    Parameters and attributes are those of `BanditClassifierCV`, without classes; `loss`, `epsilon`, `quantile` and
    `power` are as in `BanditRegressor`. Scores are R², or D² of the loss, unless `scoring` says otherwise.
    """

    def __init__(
        self,
        loss: str = "squared_error",
        *,
        penalty: str = "l2",
        alphas: int | ArrayLike = COUNT,
        eps: float | None = None,
        l1_ratio: float | Sequence[float] = 0.5,
        penalty_factor: ArrayLike | None = None,
        positive: bool = False,
        bounds: Any = None,
        groups: Any = None,
        cv: Any = None,
        scoring: str | Callable[..., float] | None = None,
        selection: str = "best",
        patience: int | None = 10,
        epsilon: float = 0.1,
        quantile: float = 0.5,
        power: float = 1.5,
        solver: Any = "auto",
        sampler: Any = "auto",
        step_size: float | str = "auto",
        max_iter: int = 1000,
        tol: float | None = 1e-6,
        fit_intercept: bool = True,
        standardize: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alphas = alphas
        self.eps = eps
        self.l1_ratio = l1_ratio
        self.penalty_factor = penalty_factor
        self.positive = positive
        self.bounds = bounds
        self.groups = groups
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.patience = patience
        self.epsilon = epsilon
        self.quantile = quantile
        self.power = power
        self.solver = solver
        self.sampler = sampler
        self.step_size = step_size
        self.max_iter = max_iter
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.random_state = random_state
        self.n_jobs = n_jobs

    _plain = BanditRegressor
