"""Snap ML: regularizer = nλ. Dual coordinate descent for L2, as it recommends for n > d; primal for L1, on columns.

Iterations are the ladder, with a tolerance that does not stop it first.
"""

import numpy as np
import scipy.sparse as sp

from race.contenders import ITERATIONS, KINDS, contender


@contender("snapml", KINDS, ITERATIONS)
def snap(task):
    import snapml

    loss, penalty = task.kind.split("-")
    fixed = {"regularizer": task.n * task.strength, "fit_intercept": False, "n_jobs": 1, "tol": 0.0, "random_state": 0}
    if loss == "hinge":
        kind, fixed = snapml.SupportVectorMachine, fixed | {"loss": "squared_hinge"}
    else:
        kind = snapml.LogisticRegression if loss == "logistic" else snapml.LinearRegression
        fixed |= {"penalty": penalty, "dual": penalty == "l2"}
    X = task.X
    if sp.issparse(X):
        X = (sp.csc_matrix if penalty == "l1" else sp.csr_matrix)(X)
    else:  # what it would make of them on the clock
        X = np.asarray(X, np.float32, order="F" if penalty == "l1" else "C")
    return lambda count: kind(**fixed, max_iter=count).fit(X, task.y).coef_.ravel()
