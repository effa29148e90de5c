"""banditgrad: one call with all defaults; for reference its estimators, and two of its parts alone.

On the clock: `Problem(...)` with its checks, the whole of `minimise`, and the values of F that it takes on the way
(at the start and at the end, `record_every` being the whole run). The estimators check their input themselves and
record once a pass. Kernels are compiled beforehand, as everyone's are.
"""

import banditgrad as bg
from race.contenders import ITERATIONS, KINDS, PASSES, contender

LOSSES = {"hinge": "squared_hinge", "squared": "squared_error"}


def minimise(task, solver, sampler, seed):
    def fit(passes):
        return bg.minimise(task.problem(), solver, sampler, passes=passes, record_every=passes, seed=seed).w

    return fit


@contender("banditgrad", KINDS, PASSES, stochastic=True)
def automatic(task, seed):
    return minimise(task, "auto", "auto", seed)


@contender("banditgrad estimator", KINDS, ITERATIONS, stochastic=True)
def estimator(task, seed):
    """`BanditClassifier` or `BanditRegressor`; it stops for itself, by its default tolerance."""
    from banditgrad.linear_model import BanditClassifier, BanditRegressor

    loss, penalty = task.kind.split("-")
    kind = BanditRegressor if loss == "squared" else BanditClassifier
    fixed = {"loss": LOSSES.get(loss, "log_loss"), "penalty": penalty, "alpha": task.strength, "fit_intercept": False}
    fixed["random_state"] = seed
    return lambda passes: kind(**fixed, max_iter=passes).fit(task.X, task.y).coef_.T.reshape(task.shape)


@contender("banditgrad Saga, auto sampler", KINDS, PASSES, stochastic=True)
def saga(task, seed):
    return minimise(task, bg.Saga(), "auto", seed)


@contender("banditgrad ProxSvrg, uniform", KINDS, PASSES, stochastic=True)
def uniform(task, seed):
    return minimise(task, bg.ProxSvrg(), bg.Uniform(), seed)
