"""Problems for Newton's method, and their Hessians in plain NumPy."""

import numpy as np
import scipy.sparse as sp

import banditgrad as bg
from tables import LOSSES, PENALTIES


def problem_of(data, rows="sparse", loss="Logistic", penalty="L1", intercept=True, **options):
    X, y = data
    X = X if rows == "dense" else sp.csr_array(X)
    return bg.Problem(X, y, LOSSES[loss], PENALTIES[penalty], fit_intercept=intercept, **options)


def with_ones(X):
    return np.hstack([X, np.ones((len(X), 1))])


def hessian(problem, X, second_derivatives):
    return with_ones(X).T @ (second_derivatives[:, None] * with_ones(X))
