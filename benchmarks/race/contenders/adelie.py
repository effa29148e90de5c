"""adelie: coordinate descent (within Newton steps, for the logistic loss) at one λ; alpha is the share of L1.

Columns in matrices of its own, labels 0 and 1; its tolerance is the ladder. For L2 it takes groups of one column.
"""

import numpy as np
import scipy.sparse as sp

from race.contenders import TOLERANCES, contender
from race.contenders.scikit import columns


@contender("adelie", {"logistic-l1", "logistic-l2", "squared-l1", "squared-l2"}, TOLERANCES)
def path_of_one(task):
    import adelie

    loss, penalty = task.kind.split("-")
    kind = adelie.matrix.sparse if sp.issparse(task.X) else adelie.matrix.dense
    X = kind(columns(task), method="naive", n_threads=1)
    fixed = {"alpha": float(penalty == "l1"), "lmda_path": np.array([task.strength]), "intercept": False}
    fixed |= {"early_exit": False, "progress_bar": False, "n_threads": 1, "max_iters": 10**7}

    def fit(tolerance):
        if loss == "squared":
            return adelie.grpnet(X, adelie.glm.gaussian(task.y), tol=tolerance, **fixed).betas.toarray().ravel()
        glm = adelie.glm.binomial((task.y + 1.0) / 2.0)
        return adelie.grpnet(X, glm, tol=tolerance, irls_tol=tolerance, **fixed).betas.toarray().ravel()

    return fit
