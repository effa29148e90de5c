"""scikit-learn. Logistic and SVM: C = 1/(nλ). Lasso: alpha = λ. Ridge: alpha = nλ. SGD: alpha = λ.

CSR or C-ordered rows as its manual recommends, Fortran order or CSC for coordinate descent. Where a solver takes
iterations they are the ladder, with a tolerance too small to stop it first; else its tolerance is. Warnings of fits
that stop early are silenced.
"""

import numpy as np
import scipy.sparse as sp

from race.contenders import ITERATIONS, ONCE, SCALAR, SOFTMAX, TOLERANCES, contender

NEVER = 1e-30  # a tolerance that is not met


def logistic(task, solver, seed=0, **settings):
    """Multinomial for more than two classes."""
    from sklearn.linear_model import LogisticRegression

    X, fixed = (
        rows(task),
        {"C": 1.0 / (task.n * task.strength), "fit_intercept": False, "random_state": seed, **settings},
    )
    fixed |= {"l1_ratio": 1.0 if task.kind.endswith("l1") else 0.0, "solver": solver}
    return lambda **effort: LogisticRegression(**fixed, **effort).fit(X, task.y).coef_.T.reshape(task.shape)


def ridge(task, solver, seed=0):
    from sklearn.linear_model import Ridge

    X, fixed = rows(task), {"alpha": task.n * task.strength, "fit_intercept": False, "random_state": seed}
    return lambda **effort: Ridge(solver=solver, **fixed, **effort).fit(X, task.y).coef_


def rows(task):
    """Its checks are those of matrices; a sparse array is the same memory."""
    return task.X if isinstance(task.X, np.ndarray) else sp.csr_matrix(task.X)


def columns(task):
    return np.asfortranarray(task.X) if isinstance(task.X, np.ndarray) else sp.csc_matrix(task.X)


def iterations(fit):
    return lambda count: fit(max_iter=count, tol=NEVER)


@contender("scikit-learn lbfgs", {"logistic-l2", "softmax-l2"}, ITERATIONS)
def lbfgs(task):
    return iterations(logistic(task, "lbfgs"))


@contender("scikit-learn newton-cholesky", {"logistic-l2", "softmax-l2"}, ITERATIONS)
def newton_cholesky(task):
    return iterations(logistic(task, "newton-cholesky"))


@contender("scikit-learn newton-cg", {"logistic-l2", "softmax-l2"}, ITERATIONS)
def newton_cg(task):
    return iterations(logistic(task, "newton-cg"))


@contender("scikit-learn liblinear", {"logistic-l1", "logistic-l2", "hinge-l2"}, TOLERANCES)
def liblinear(task):
    """Its own copy of liblinear: -s 6, -s 0 and -s 2."""
    if task.kind != "hinge-l2":
        fit = logistic(task, "liblinear", max_iter=1000)
        return lambda tolerance: fit(tol=tolerance)
    from sklearn.svm import LinearSVC

    X, C = rows(task), 1.0 / (task.n * task.strength)
    fixed = {"C": C, "dual": False, "fit_intercept": False, "max_iter": 1000, "random_state": 0}
    return lambda tolerance: LinearSVC(**fixed, tol=tolerance).fit(X, task.y).coef_[0]


@contender("scikit-learn sag", {"logistic-l2", "squared-l2", "softmax-l2"}, ITERATIONS, stochastic=True)
def sag(task, seed):
    return iterations((ridge if task.kind == "squared-l2" else logistic)(task, "sag", seed))


@contender("scikit-learn saga", {"logistic-l1", "logistic-l2", "squared-l2"} | SOFTMAX, ITERATIONS, stochastic=True)
def saga(task, seed):
    return iterations((ridge if task.kind == "squared-l2" else logistic)(task, "saga", seed))


@contender("scikit-learn SGD", SCALAR, ITERATIONS, stochastic=True)
def sgd(task, seed):
    """Classification with the "optimal" schedule, its default; regression with "invscaling", its default."""
    from sklearn.linear_model import SGDClassifier, SGDRegressor

    loss, penalty = task.kind.split("-")
    kind = SGDRegressor if loss == "squared" else SGDClassifier
    names = {"logistic": "log_loss", "hinge": "squared_hinge", "squared": "squared_error"}
    fixed = {"loss": names[loss], "penalty": penalty, "alpha": task.strength, "fit_intercept": False}
    fixed["random_state"], X = seed, rows(task)
    return lambda count: kind(**fixed, max_iter=count, tol=None).fit(X, task.y).coef_.ravel()


@contender("scikit-learn Lasso", {"squared-l1"}, ITERATIONS)
def lasso(task):
    """Cyclic coordinate descent, with the Gram matrix made beforehand by itself where the data are dense."""
    from sklearn.linear_model import Lasso

    X, fixed = columns(task), {"alpha": task.strength, "fit_intercept": False}
    gram = isinstance(X, np.ndarray)
    return lambda count: Lasso(**fixed, precompute=gram, max_iter=count, tol=0.0).fit(X, task.y).coef_


@contender("scikit-learn Ridge cholesky", {"squared-l2"}, ONCE)
def ridge_cholesky(task):
    """Direct: one rung."""
    fit = ridge(task, "cholesky")
    return lambda _: fit()


@contender("scikit-learn Ridge lsqr", {"squared-l2"}, ITERATIONS)
def ridge_lsqr(task):
    return iterations(ridge(task, "lsqr"))


@contender("scikit-learn Ridge sparse_cg", {"squared-l2"}, ITERATIONS)
def ridge_cg(task):
    return iterations(ridge(task, "sparse_cg"))
