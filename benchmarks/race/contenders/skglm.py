"""skglm: working sets with prox-Newton (logistic) or Anderson-accelerated coordinate descent (lasso); L-BFGS for L2.

Columns (Fortran order or CSC). Its tolerance is the ladder. What it compiles with numba is compiled beforehand.
"""

from race.contenders import TOLERANCES, contender
from race.contenders.scikit import columns


@contender("skglm", {"logistic-l1", "squared-l1"}, TOLERANCES)
def working_set(task):
    from skglm import Lasso, SparseLogisticRegression

    X, kind = columns(task), Lasso if task.kind == "squared-l1" else SparseLogisticRegression
    fixed = {"alpha": task.strength, "fit_intercept": False, "max_iter": 200}
    return lambda tolerance: kind(**fixed, tol=tolerance).fit(X, task.y).coef_.ravel()


@contender("skglm lbfgs", {"logistic-l2"}, TOLERANCES)
def lbfgs(task):
    """The solver itself, on compiled parts: its estimators do not offer it without an intercept."""
    from skglm.datafits import Logistic
    from skglm.penalties import L2
    from skglm.solvers import LBFGS
    from skglm.utils.jit_compilation import compiled_clone

    X, datafit, penalty = columns(task), compiled_clone(Logistic()), compiled_clone(L2(task.strength))
    return lambda tolerance: LBFGS(max_iter=10_000, tol=tolerance).solve(X, task.y, datafit, penalty)[0]
