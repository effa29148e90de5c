"""banditgrad: one call with all defaults, and two of its parts alone for reference.

On the clock: `Problem(...)` with its checks, the whole of `minimise`, and the values of F that it takes on the way
(at the start and at the end, `record_every` being the whole run). Kernels are compiled beforehand, as everyone's are.
"""

import banditgrad as bg
from race.contenders import KINDS, PASSES, contender


def minimise(task, solver, sampler):
    def fit(passes):
        return bg.minimise(task.problem(), solver, sampler, passes=passes, record_every=passes, seed=0).w

    return fit


@contender("banditgrad", KINDS, PASSES, stochastic=True)
def automatic(task):
    return minimise(task, "auto", "auto")


@contender("banditgrad Saga, auto sampler", KINDS, PASSES, stochastic=True)
def saga(task):
    return minimise(task, bg.Saga(), "auto")


@contender("banditgrad ProxSvrg, uniform", KINDS, PASSES, stochastic=True)
def uniform(task):
    return minimise(task, bg.ProxSvrg(), bg.Uniform())
