"""Linear classification of dask collections."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight

from banditgrad.dask.backend import thread_given_back
from banditgrad.dask.fitting import OnDask
from banditgrad.linear_model import classifier as local
from banditgrad.linear_model.availability import available_if
from banditgrad.minimise import Progress
from banditgrad.samplers import Sampler
from banditgrad.solvers import Solver


class BanditClassifier(OnDask, local.BanditClassifier):
    """`banditgrad.linear_model.BanditClassifier` for rows that do not fit one machine: the same minimiser.

        F(w, b) = Σ_i s_i loss(<x_i, w> + b, y_i) / Σ_i s_i + alpha (l1_ratio ‖w‖₁ + (1 - l1_ratio)/2 ‖w‖²)

    More than two classes are one multinomial problem with "log_loss", as in the local estimator, and else taken one
    against the rest. Rows stay where they are; vectors of one number per feature, or per feature and class, travel. It
    works on the cluster of the current `distributed.Client`, or in threads of this process where there is none.

    Parameters
    ----------
    loss, penalty, alpha, l1_ratio, sampler, step_size, tol, fit_intercept, multi_class, class_weight, warm_start,
    random_state
        As in the local estimator. An int as `random_state` makes every fit the same to the bit, on any number of
        workers, as long as the partitions are the same and none is lost.
    solver : "auto" or "proxsvrg"
    max_iter : int
        How many rounds to make at most. A round is an inner loop of up to two passes on each partition and one or two
        evaluations of F and its gradient.
    n_jobs : ignored; the cluster says how many workers there are
    verbose : int
        Whether to show rounds, objective and time on a terminal, and print how each run ended.
    callback : callable or None
        Called after every round with a `Progress` (passes, seconds, value, w); a true answer stops the run.
    time_limit : float or None
        Seconds after which to stop, looked at after each exchange with the partitions. Ctrl-C also stops, with what
        was reached.
    checkpoint : path or None
        A file that has, after every round, where the rounds are. A fit whose file is there begins where it says; remove
        it to begin anew. One file per fit: not for searches over parameters.

    Attributes
    ----------
    classes_, coef_, intercept_, solver_, objective_, effective_variance_ratio_
        As in the local estimator; the last is estimated from the draws.
    n_iter_ : rounds made, the most over the classes
    history_ : list of `RoundHistory`, one per problem: rounds, passes, seconds, value and bytes, round by round
    bytes_per_round_ : bytes sent to and received from all partitions, the mean over the rounds
    sampling_probabilities_, importance_ : dask arrays, a number per row; not part of a pickled model
    """

    _local_kind = local.BanditClassifier

    def __init__(
        self,
        loss: str = "log_loss",
        *,
        penalty: str | None = "l2",
        alpha: float = 1e-4,
        l1_ratio: float = 0.15,
        solver: str | Solver = "auto",
        sampler: str | Sampler = "auto",
        step_size: float | str = "auto",
        max_iter: int = 1000,
        tol: float | None = 1e-4,
        fit_intercept: bool = True,
        multi_class: str = "auto",
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callable[[Progress], Any] | None = None,
        time_limit: float | None = None,
        checkpoint: str | Path | None = None,
    ) -> None:
        self._set_parameters(locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "BanditClassifier":
        """Fit a dask array (of dense or CSR blocks) or dataframe; y and `sample_weight` are partitioned like X."""
        self._check_on_dask()
        with thread_given_back():
            backend, blocks, summaries = self._load(X, y, sample_weight, classify=True)
            filled = [each for each in summaries if each.rows]
            classes, codes = np.unique(np.concatenate([each.labels for each in filled]), return_inverse=True)
            local.expect_two(classes)
            self.classes_ = classes
            label_weights = None
            if self.class_weight is not None:
                counts = np.bincount(codes, np.concatenate([each.weights for each in filled]))
                label_weights = compute_class_weight(
                    self.class_weight, classes=classes, y=classes, sample_weight=counts
                )
            positive = None if self._is_multinomial else classes[1:] if classes.size == 2 else classes
            self._fit_blocks(backend, blocks, self._task(positive, classes, label_weights))
        return self

    def decision_function(self, X: Any) -> Any:
        """<x, w> + b, lazily for a collection; with more than two classes, a column for each."""
        columns = self.classes_.size if hasattr(self, "classes_") and self.classes_.size > 2 else 0
        return self._each_block(X, "decision_function", float, columns)

    def predict(self, X: Any) -> Any:
        """The label of each row, lazily for a collection."""
        return self._each_block(X, "predict", getattr(self, "classes_", np.zeros(0)).dtype, 0)

    @available_if(lambda self: local.expect_probabilities(self))
    def predict_proba(self, X: Any) -> Any:
        """The probability of each class, lazily for a collection."""
        return self._each_block(X, "predict_proba", float, getattr(self, "classes_", np.zeros(2)).size)

    @available_if(lambda self: local.expect_probabilities(self))
    def predict_log_proba(self, X: Any) -> Any:
        """The logarithms of `predict_proba`."""
        return self._each_block(X, "predict_log_proba", float, getattr(self, "classes_", np.zeros(2)).size)
