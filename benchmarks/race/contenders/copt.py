"""copt: SAGA with the step 1 / (3 max L_i) of its examples; λ is its alpha for L2 and the strength of its L1 norm.

It compiles its loop anew at every call; this is done off the clock, before the first pass. Labels 0 and 1 for its log
loss. CSR rows, which it asks for.
"""

import numpy as np
import scipy.sparse as sp

from race.clock import unclocked
from race.contenders import ITERATIONS, contender


def compile_off_clock(state):
    """Called before the first pass and after each one, with copt's local variables."""
    if "it" not in state:
        with unclocked():
            names = ("memory_gradient", "gradient_average", "grad_tmp", "step_size")
            state["_saga_epoch"](state["x"], state["idx"][:0], *(state[name] for name in names))


@contender("copt SAGA", {"logistic-l1", "logistic-l2", "squared-l1", "squared-l2"}, ITERATIONS, stochastic=True)
def saga(task, seed):
    import copt.loss
    import copt.penalty
    import copt.utils

    loss, penalty = task.kind.split("-")
    X = sp.csr_matrix(task.X)
    y = (task.y + 1.0) / 2.0 if loss == "logistic" else task.y
    f = (copt.loss.LogLoss if loss == "logistic" else copt.loss.SquareLoss)(X, y)
    largest = (0.25 if loss == "logistic" else 1.0) * float(X.multiply(X).sum(axis=1).max())
    prox = copt.penalty.L1Norm(task.strength).prox_factory(task.d) if penalty == "l1" else None
    alpha = task.strength if penalty == "l2" else 0.0

    def fit(passes):
        np.random.seed(seed)  # noqa: NPY002 - where copt draws from
        arguments = {"step_size": 1.0 / (3.0 * largest), "prox": prox, "alpha": alpha, "tol": 0.0}
        start = np.zeros(task.d)
        return copt.minimize_saga(
            f.partial_deriv, X, y, start, max_iter=passes, callback=compile_off_clock, **arguments
        ).x

    return fit
