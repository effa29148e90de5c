"""scikit-learn's own checks of an estimator."""

import pytest
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
    parametrize_with_checks,
)

from banditgrad.linear_model import BanditClassifier, BanditRegressor


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # the checks' data is often not scaled
@parametrize_with_checks([BanditClassifier(), BanditRegressor()])
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", [BanditClassifier, BanditRegressor])
@pytest.mark.parametrize(
    "check", [check_sample_weight_equivalence_on_dense_data, check_sample_weight_equivalence_on_sparse_data]
)
def test_an_integer_weight_is_a_repeated_row(check, kind):
    check(kind.__name__, kind(alpha=0.1, tol=1e-11, max_iter=10_000))
