"""glum: iteratively reweighted least squares, by Cholesky for L2 and by coordinate descent for L1 too; alpha = λ.

Its deviances are twice the loss, and it halves them. Labels 0 and 1. Columns of its own kind, as it asks for: what
it would make of the data on the clock. Iterations are the ladder, few as they are Newton's, with a tolerance that does
not stop it first.
"""

import scipy.sparse as sp

from race.contenders import contender
from race.contenders.scikit import NEVER, columns

STEPS = tuple(range(1, 42))


def irls(task, solver):
    import tabmat
    from glum import GeneralizedLinearRegressor

    loss, penalty = task.kind.split("-")
    X = (tabmat.SparseMatrix if sp.issparse(task.X) else tabmat.DenseMatrix)(columns(task))
    y = (task.y + 1.0) / 2.0 if loss == "logistic" else task.y
    fixed = {"family": "binomial" if loss == "logistic" else "normal", "alpha": task.strength, "fit_intercept": False}
    fixed |= {"l1_ratio": float(penalty == "l1"), "solver": solver, "gradient_tol": NEVER}
    return lambda count: GeneralizedLinearRegressor(**fixed, max_iter=count).fit(X, y).coef_


@contender("glum irls-ls", {"logistic-l2", "squared-l2"}, STEPS)
def least_squares(task):
    return irls(task, "irls-ls")


@contender("glum irls-cd", {"logistic-l1", "logistic-l2", "squared-l1", "squared-l2"}, STEPS)
def coordinate_descent(task):
    return irls(task, "irls-cd")
