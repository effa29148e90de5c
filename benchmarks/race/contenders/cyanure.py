"""cyanure: its automatic choice, plain SVRG and accelerated SVRG; lambda_1 = λ.

Its squared hinge has a factor ½, so λ is halved. Passes are the ladder; the duality gap that it would stop by is left
out, which only saves it time. One thread.
"""

import numpy as np
import scipy.sparse as sp

from race.contenders import ITERATIONS, KINDS, contender

LOSSES = {"logistic": "logistic", "hinge": "sqhinge", "softmax": "multiclass-logistic"}


def estimator(task, solver, seed):
    from cyanure.estimators import Classifier, Regression

    loss, penalty = task.kind.split("-")
    fixed = {
        "penalty": penalty,
        "lambda_1": task.strength / 2 if loss == "hinge" else task.strength,
        "solver": solver,
        "fit_intercept": False,
        "tol": 1e-30,
        "duality_gap_interval": 1_000_000,
        "n_threads": 1,
        "verbose": False,
        "random_state": seed,
    }
    if loss != "squared":
        fixed["loss"] = LOSSES[loss]
    kind = Regression if loss == "squared" else Classifier
    X = sp.csr_matrix(task.X) if sp.issparse(task.X) else task.X
    y = task.y.astype(np.int64) if loss == "softmax" else task.y
    return lambda passes: kind(**fixed, max_iter=passes).fit(X, y).coef_.reshape(task.shape)


@contender("cyanure auto", KINDS, ITERATIONS, stochastic=True)
def automatic(task, seed):
    return estimator(task, "auto", seed)


@contender("cyanure svrg", KINDS, ITERATIONS, stochastic=True)
def svrg(task, seed):
    return estimator(task, "svrg", seed)


@contender("cyanure acc-svrg", KINDS, ITERATIONS, stochastic=True)
def accelerated(task, seed):
    return estimator(task, "acc-svrg", seed)
