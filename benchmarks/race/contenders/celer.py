"""celer: dual extrapolation and working sets for L1; alpha = λ, C = 1/(nλ). Columns; its tolerance is the ladder."""

from race.contenders import TOLERANCES, contender
from race.contenders.scikit import columns


@contender("celer", {"logistic-l1", "squared-l1"}, TOLERANCES)
def celer(task):
    from celer import Lasso, LogisticRegression

    X = columns(task)
    if task.kind == "squared-l1":
        fixed = {"alpha": task.strength, "fit_intercept": False}
        return lambda tolerance: Lasso(**fixed, tol=tolerance).fit(X, task.y).coef_
    C = 1.0 / (task.n * task.strength)
    return lambda tolerance: LogisticRegression(C=C, tol=tolerance).fit(X, task.y).coef_[0]
