"""liblinear by its official package: every solver that fits, data converted to its own nodes beforehand, C = 1/(nλ).

The ladder is its tolerance -e, the only effort it takes. Its primal ones (-s 0, 2, 11) are trust-region Newton, its L1
one (-s 6) a Newton with coordinate descent, its dual ones (-s 1, 7, 12) coordinate descent. Support vector regression
with -p 0 is ridge regression, with C = 1/(2nλ) as its loss has no factor ½.
"""

import numpy as np
import scipy.sparse as sp

from race.contenders import TOLERANCES, contender


def train(task, solver, cost, more=""):
    from liblinear.liblinear import problem
    from liblinear.liblinearutil import train

    nodes = problem(task.y, sp.csr_matrix(task.X))

    def fit(tolerance):
        model = train(nodes, f"-s {solver} -c {cost!r} -e {tolerance!r} -q {more}")
        w = np.ctypeslib.as_array(model.w, (task.d,)).copy()
        return w if task.kind == "squared-l2" or model.get_labels()[0] == 1 else -w

    return fit


def cost(task):
    return 1.0 / (task.n * task.strength)


@contender("liblinear -s 6", {"logistic-l1"}, TOLERANCES)
def l1_logistic(task):
    return train(task, 6, cost(task))


@contender("liblinear primal", {"logistic-l2", "hinge-l2", "squared-l2"}, TOLERANCES)
def primal(task):
    if task.kind == "squared-l2":
        return train(task, 11, cost(task) / 2, "-p 0")
    return train(task, 0 if task.kind == "logistic-l2" else 2, cost(task))


@contender("liblinear dual", {"logistic-l2", "hinge-l2", "squared-l2"}, TOLERANCES)
def dual(task):
    if task.kind == "squared-l2":
        return train(task, 12, cost(task) / 2, "-p 0")
    return train(task, 7 if task.kind == "logistic-l2" else 1, cost(task))
