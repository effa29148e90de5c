"""liblinear by its official package: every solver that fits, data converted to its own nodes beforehand, C = 1/(nλ).

The ladder is its tolerance -e, the only effort it takes. Its primal ones (-s 0, 2, 11) are trust-region Newton, its L1
one (-s 6) a Newton with coordinate descent, its dual ones (-s 1, 7, 12) coordinate descent. Support vector regression
with -p 0 is ridge regression, with C = 1/(2nλ) as its loss has no factor ½. Its coordinates come in the random order of
the C library's rand(), which is seeded before every fit.
"""

import ctypes

import numpy as np
import scipy.sparse as sp

from race.contenders import L2, TOLERANCES, contender


def train(task, seed, solver, cost, more=""):
    from liblinear.liblinear import problem
    from liblinear.liblinearutil import train

    nodes, seed_rand = problem(task.y, sp.csr_matrix(task.X)), ctypes.CDLL(None).srand

    def fit(tolerance):
        seed_rand(seed + 1)
        model = train(nodes, f"-s {solver} -c {cost!r} -e {tolerance!r} -q {more}")
        w = np.ctypeslib.as_array(model.w, (task.d,)).copy()
        return w if task.kind == "squared-l2" or model.get_labels()[0] == 1 else -w

    return fit


def cost(task):
    return 1.0 / (task.n * task.strength)


@contender("liblinear -s 6", {"logistic-l1"}, TOLERANCES)
def l1_logistic(task, seed):
    return train(task, seed, 6, cost(task))


@contender("liblinear primal", L2, TOLERANCES)
def primal(task):
    if task.kind == "squared-l2":
        return train(task, 0, 11, cost(task) / 2, "-p 0")
    return train(task, 0, 0 if task.kind == "logistic-l2" else 2, cost(task))


@contender("liblinear dual", L2, TOLERANCES, stochastic=True)
def dual(task, seed):
    if task.kind == "squared-l2":
        return train(task, seed, 12, cost(task) / 2, "-p 0")
    return train(task, seed, 7 if task.kind == "logistic-l2" else 1, cost(task))
