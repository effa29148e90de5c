"""Linear classification."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from banditgrad._names import shown
from banditgrad.linear_model.availability import available_if
from banditgrad.linear_model.base import ALPHA, BanditLinearModel, Vector, as_weights
from banditgrad.losses import Softmax
from banditgrad.minimise import Progress
from banditgrad.registry import CLASSIFICATION_LOSSES, MULTI_CLASS, make_solver
from banditgrad.samplers import Sampler
from banditgrad.solvers import Solver


class BanditClassifier(ClassifierMixin, BanditLinearModel):
    """Logistic regression or a linear SVM, trained with bandit sampling.

        F(w, b) = Σ_i s_i loss(<x_i, w> + b, y_i) / Σ_i s_i + alpha (l1_ratio ‖w‖₁ + (1 - l1_ratio)/2 ‖w‖²)

    With more than two classes and "log_loss" it is multinomial logistic regression: the loss is log Σ_k exp(z_k) - z_y
    of margins z = W'x + b, one for each class, and the norms are sums over all numbers of W. Other losses take the
    classes one against the rest. The intercept is not penalised. `alpha` is that of scikit-learn's ``SGDClassifier``.
    In terms of the C of ``LogisticRegression`` and ``LinearSVC`` it is ``1 / (n C)``, with n the number of rows or the
    sum of their weights.

    Parameters
    ----------
    loss : "log_loss", "squared_hinge", "hinge" or "modified_huber"
        log(1 + exp(-y z)); max(0, 1 - y z)², without a factor ½; max(0, 1 - y z); or the second where y z >= -1, and
        -4 y z below.
    penalty : "l2", "l1", "elasticnet", "group_lasso", "sparse_group_lasso" or None
        "group_lasso" is alpha Σ_b √d_b ‖w_b‖ over groups b of d_b features, "sparse_group_lasso" is that times
        1 - l1_ratio and alpha l1_ratio ‖w‖₁.
    alpha : float
        The strength of the penalty.
    C : float or None
        For those used to it, the inverse strength as in ``LogisticRegression``, in place of alpha, which is then
        1 / (C n), n being the sum of all weights where there are some: then the objectives have the same minimiser.
    l1_ratio : float
        The share of the l1 norm in "elasticnet" and "sparse_group_lasso"; other penalties do not look at it.
    penalty_factor : array of shape (d,) or None
        By how much the strength of the penalty is multiplied for each feature; 0 leaves one without a penalty. They are
        taken as they are (glmnet scales its ``penalty.factor``). With groups, one for each group, in place of the
        square root of its size.
    positive : bool
        Whether coefficients must not be negative.
    bounds : (lower, upper) or None
        Limits of the coefficients, lower <= 0 <= upper: numbers, arrays with one for each feature, or None for no
        limit. With standardize, too, they are in the columns' own units.
    groups : list of lists, array or None
        For "group_lasso" and "sparse_group_lasso": the features of each group, by their numbers from 0, or for each
        feature the number of its group. Features of no group are free of their norm. With several classes in one
        problem a feature stands for its coefficients of all classes.
    solver : str or Solver
        "auto" is "samplednewton", or "proxsvrg" on dense rows with many features whose norms are very unlike, and
        where a step_size is given; "saga", "lsvrg", "s2gd", "sgd", "proxsgd", "sqn"; or an object such as
        ``bg.S2gd()``.
    sampler : str or Sampler
        "auto" draws uniformly, or by recent gradient norms as "recentnorm" does while it measures that this lowers the
        variance by 1.5 or more; "uniform", "importance", "mabs", "vrb", "recentnorm"; or an object such as
        ``bg.Mabs(eta=0.3)``.
    step_size : float or "auto"
        The solver's step; "auto" finds it while running.
    max_iter : int
        How many passes over the data to make at most.
    tol : float or None
        Stop when the norm of the gradient mapping, which is zero exactly at a minimum, is at most `tol` times what it
        is at w = 0. None or 0: make all passes. The plain SGD solvers come near the minimum, not to it; give them a
        larger tol, or None.
    early_stopping : bool
        Whether to hold out some rows and stop when their mean loss has not fallen for `n_iter_no_change` passes; the
        coefficients of the best pass are kept.
    validation_fraction : float
        The share of the rows that early stopping holds out, as many of each class.
    n_iter_no_change : int
        The patience of early stopping, in passes.
    fit_intercept : bool
    standardize : bool
        Whether the penalty sees columns divided by their standard deviations, so that it treats them alike and raw
        columns do no harm; coefficients are given in the columns' own units. Sparse rows stay sparse. Needs memory for
        a copy of X.
    multi_class : "auto", "multinomial" or "ovr"
        What to do with more than two classes: one multinomial problem, which asks for "log_loss"; or one problem for
        each, against the rest. "auto" is the first with "log_loss", the second with other losses and with a solver
        of your own that does not say `takes_several_margins`.
    class_weight : dict, "balanced" or None
        Weights by which the rows of each class count.
    warm_start : bool
        Whether `fit` starts where the last one ended.
    random_state : int, RandomState or None
        An int makes every fit the same to the bit.
    n_jobs : int or None
        Threads for classes that are taken one against the rest; -1 is one per core.
    verbose : int
        Whether to show progress and print how each run ended.
    callback : callable or None
        Called after every pass of a run with a `Progress` (passes, seconds, value, w), from a thread where n_jobs is
        more than one; a true answer stops the run.

    Attributes
    ----------
    classes_ : the labels, sorted
    coef_ : array of shape (1, d) or (classes, d)
    intercept_ : array of shape (1,) or (classes,)
    alpha_ : the strength of the penalty that was used: alpha, or what C came to
    n_iter_ : passes made, the most over the classes
    solver_ : the name of the solver that ran: what "auto" took
    objective_ : F at the solution, one number per problem solved
    history_ : list of `History`, one per problem: passes, seconds and value, pass by pass
    sampling_probabilities_ : array of shape (n,)
        The probability of each row of the training data with the sampler as it was in the end; the mean over problems.
        "samplednewton" makes few draws or none, and a bandit learns little; with "proxsvrg" it learns in every pass.
    importance_ : array of shape (n,)
        The norm of each row's gradient at the solution, relative to the mean: how many times as often as under uniform
        sampling the best sampler for SGD would draw the row. Hard, mislabelled and outlying rows are high, rows that
        the model is sure of are near zero.
    effective_variance_ratio_ : float
        The variance of the solver's gradient estimator over that with uniform sampling, the mean over the passes, of
        which ever fewer are looked at: 0.25 says that the sampling was worth four times as many draws a step; 1 that
        it bought nothing. For Newton's method, which makes few draws, that of a stochastic gradient at the same
        points.
    validation_loss_ : list of arrays, one per problem
        With early stopping: the mean loss of the rows held out, pass by pass.
    """

    _losses = CLASSIFICATION_LOSSES

    def __init__(
        self,
        loss: str = "log_loss",
        *,
        penalty: str | None = "l2",
        alpha: float = ALPHA,
        C: float | None = None,
        l1_ratio: float = 0.15,
        penalty_factor: ArrayLike | None = None,
        positive: bool = False,
        bounds: Any = None,
        groups: Any = None,
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
        multi_class: str = "auto",
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callable[[Progress], Any] | None = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.C = C
        self.l1_ratio = l1_ratio
        self.penalty_factor = penalty_factor
        self.positive = positive
        self.bounds = bounds
        self.groups = groups
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
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> "BanditClassifier":
        """Fit the model; a `sample_weight` of 2 counts like the row given twice."""
        X, y = self._check_data(X, y)
        self._fit_targets(X, self._targets(y), self._weights(y, sample_weight))
        return self

    def _check_data(self, X: Any, y: Any) -> tuple[Any, Any]:
        self._check_parameters()
        X, y = self._validate(X, y, reset=True)
        check_classification_targets(y)
        classes = np.unique(y)
        expect_two(classes)
        self.classes_ = classes
        return X, y

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: ArrayLike | None = None
    ) -> "BanditClassifier":
        """One pass over these rows, going on from what was fitted before.

        `classes`, all labels that will ever come, is needed in the first call. Weights count relative to their mean in
        this call. With solver, sampler and step_size at "auto" it takes every row once, in random order, by AdaGrad,
        for which columns need not be scaled; nothing is recorded, and of the attributes there are `classes_`, `coef_`,
        `intercept_`, `n_iter_`, `solver_` and `n_seen_`, the number of rows so far. Else it is a run of proximal SGD:
        the sampler learns about the rows of this call while it makes the pass, and forgets them after it.
        """
        self._check_parameters()
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit: all labels that will ever come.")
        if self.class_weight == "balanced":
            raise ValueError(
                'class_weight="balanced" needs all labels at once, which partial_fit never sees. Pass a dict.'
            )
        X, y = self._validate(X, y, reset=first)
        check_classification_targets(y)
        if first:
            self.classes_ = np.unique(classes)
            expect_two(self.classes_)
        elif classes is not None and not np.array_equal(self.classes_, np.unique(classes)):
            raise ValueError(f"classes={classes!r} is not what the first call to partial_fit had: {self.classes_}.")
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(f"y holds labels that are not in classes: {unknown[:5]}.")
        self._stream_targets(X, self._targets(y), self._weights(y, sample_weight))
        return self

    def decision_function(self, X: Any) -> Vector:
        """<x, w> + b, positive for the second class; with more classes, a column for each."""
        margins = self._margins(X)
        return margins[:, 0] if margins.shape[1] == 1 else margins

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each row."""
        margins = self.decision_function(X)
        return self.classes_[(margins > 0).astype(int) if margins.ndim == 1 else margins.argmax(axis=1)]

    @available_if(lambda self: expect_probabilities(self))
    def predict_proba(self, X: Any) -> Vector:
        """The probability of each class; of more than two that are taken one against the rest, scaled to sum to 1."""
        check_is_fitted(self)
        margins = self._margins(X)
        if self._is_multinomial:
            return np.asarray(softmax(margins, axis=1))
        p = expit(margins) if self.loss == "log_loss" else 0.5 * (np.clip(margins, -1.0, 1.0) + 1.0)
        if p.shape[1] == 1:
            return np.hstack([1.0 - p, p])
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0.0, p / np.where(total > 0.0, total, 1.0), 1.0 / p.shape[1])

    @available_if(lambda self: expect_probabilities(self))
    def predict_log_proba(self, X: Any) -> Vector:
        """The logarithms of `predict_proba`."""
        if hasattr(self, "classes_") and self._is_multinomial:
            return np.asarray(log_softmax(self._margins(X), axis=1))
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @property
    def _is_multinomial(self) -> bool:
        """Whether the classes, as far as they are known, are one problem with a margin for each."""
        return hasattr(self, "classes_") and is_multinomial(self, self.classes_.size)

    @property
    def _outputs(self) -> int:
        return 1 if self.classes_.size == 2 else int(self.classes_.size)

    def _as_starts(self, coefficients: Any) -> Sequence[Vector] | None:
        together = coefficients is not None and self._is_multinomial
        return [coefficients.T] if together else super()._as_starts(coefficients)

    def _loss(self) -> Any:
        return Softmax(self.classes_.size) if self._is_multinomial else super()._loss()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.multi_class not in MULTI_CLASS:
            names = ", ".join(f'"{name}"' for name in MULTI_CLASS)
            raise ValueError(f"multi_class must be one of {names}; got {self.multi_class!r}.")
        if self.multi_class == "multinomial" and self.loss != "log_loss":
            raise ValueError(f'multi_class="multinomial" comes with loss="log_loss", not {self.loss!r}. Pass "ovr".')

    def _targets(self, y: NDArray[Any]) -> list[Vector]:
        """The numbers of the classes for one multinomial problem, else one against the rest."""
        if self._is_multinomial:
            return [np.searchsorted(self.classes_, y).astype(np.float64)]
        positive = self.classes_[1:] if self.classes_.size == 2 else self.classes_
        return [np.where(y == label, 1.0, -1.0) for label in positive]

    def _strata(self, targets: Sequence[Vector]) -> Any:
        if self._is_multinomial:
            return targets[0]
        return np.column_stack([np.zeros_like(targets[0]), *targets]).argmax(axis=1)

    def _weights(self, y: NDArray[Any], sample_weight: ArrayLike | None) -> Vector | None:
        weights: Vector | None = as_weights(sample_weight)
        if self.class_weight is None:
            return weights
        given = _check_sample_weight(weights, y, dtype=np.float64)
        by_class = compute_class_weight(self.class_weight, classes=self.classes_, y=y, sample_weight=given)
        return np.asarray(by_class[np.searchsorted(self.classes_, y)] * given)


def is_multinomial(estimator: Any, classes: int) -> bool:
    """Whether so many classes are one problem."""
    if classes < 3 or estimator.loss != "log_loss" or estimator.multi_class == "ovr":
        return False
    if estimator.multi_class == "multinomial":
        return True
    solver = make_solver(estimator.solver, estimator.step_size)
    return isinstance(solver, str) or solver.takes_several_margins


def expect_two(classes: NDArray[Any]) -> None:
    if classes.size < 2:
        raise ValueError(f"BanditClassifier needs at least two classes, got 1 class: {shown(classes[0])}.")


def expect_probabilities(estimator: Any) -> bool:
    if estimator.loss not in ("log_loss", "modified_huber"):
        raise AttributeError(
            f'Probabilities come with loss="log_loss" or "modified_huber"; the margins of {shown(estimator.loss)} are '
            "no log-odds. Use decision_function, or scikit-learn's CalibratedClassifierCV."
        )
    return True
