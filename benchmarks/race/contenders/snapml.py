"""Snap ML: regularizer = nλ. Coordinate descent, in the dual on rows or in the primal on columns; its SVM has the dual.

Iterations are the ladder, with a tolerance that does not stop it first.
"""

import numpy as np
import scipy.sparse as sp

from race.contenders import ITERATIONS, L2, SCALAR, contender


def coordinates(task, seed, dual):
    import snapml

    loss, penalty = task.kind.split("-")
    fixed = {"regularizer": task.n * task.strength, "fit_intercept": False, "n_jobs": 1, "tol": 0.0}
    fixed["random_state"] = seed
    if loss == "hinge":
        kind, fixed = snapml.SupportVectorMachine, fixed | {"loss": "squared_hinge"}
    else:
        kind = snapml.LogisticRegression if loss == "logistic" else snapml.LinearRegression
        fixed |= {"penalty": penalty, "dual": dual}
    X = task.X
    if sp.issparse(X):
        X = (sp.csr_matrix if dual else sp.csc_matrix)(X)
    else:  # what it would make of them on the clock
        X = np.asarray(X, np.float32, order="C" if dual else "F")
    return lambda count: kind(**fixed, max_iter=count).fit(X, task.y).coef_.ravel()


@contender("snapml dual", L2, ITERATIONS, stochastic=True)
def dual(task, seed):
    return coordinates(task, seed, True)


@contender("snapml primal", SCALAR - {"hinge-l2"}, ITERATIONS)
def primal(task, seed):
    return coordinates(task, seed, False)
