"""tick: SVRG and SAGA with its proximal operators and the step 1 / max L_i that its manual gives.

With this step its SAGA diverges on the squared loss, and gets the 1 / (3 max L_i) of theory there. Its quadratic hinge
has a factor ½, so λ is halved. The model is built beforehand; passes are the ladder, nothing is recorded on the way.
It finds its own attributes with numpydoc, which must be installed too.
"""

import scipy.sparse as sp

from race.contenders import ITERATIONS, SCALAR, contender


def solver(task, name, seed):
    import tick.linear_model
    import tick.prox
    import tick.solver

    loss, penalty = task.kind.split("-")
    models = {"logistic": "ModelLogReg", "hinge": "ModelQuadraticHinge", "squared": "ModelLinReg"}
    X = sp.csr_matrix(task.X) if sp.issparse(task.X) else task.X
    model = getattr(tick.linear_model, models[loss])(fit_intercept=False).fit(X, task.y)
    strength = task.strength / 2 if loss == "hinge" else task.strength
    prox = (tick.prox.ProxL1 if penalty == "l1" else tick.prox.ProxL2Sq)(strength)
    safety = 3.0 if name == "SAGA" and loss == "squared" else 1.0
    step = 1.0 / (safety * model.get_lip_max())

    def fit(passes):
        method = getattr(tick.solver, name)
        run = method(step=step, tol=0.0, max_iter=passes, record_every=10**9, verbose=False, seed=seed)
        return run.set_model(model).set_prox(prox).solve()

    return fit


@contender("tick SVRG", SCALAR, ITERATIONS, stochastic=True)
def svrg(task, seed):
    return solver(task, "SVRG", seed)


@contender("tick SAGA", SCALAR, ITERATIONS, stochastic=True)
def saga(task, seed):
    return solver(task, "SAGA", seed)
