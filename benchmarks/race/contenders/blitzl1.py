"""BlitzL1: working sets for L1; its λ is nλ. Columns, handed over beforehand; its tolerance is the ladder.

It was written for a NumPy that compared data types with those of C; the function that hands arrays over is replaced.
"""

import numpy as np

from race.contenders import TOLERANCES, contender
from race.contenders.scikit import columns


def hand_over(array, pointer):
    array = np.require(array, pointer._type_, "C" if array.ndim == 1 else "F")
    return array, array.ctypes.data_as(pointer)


@contender("blitzl1", {"logistic-l1", "squared-l1"}, TOLERANCES)
def working_set(task):
    import blitzl1
    from blitzl1 import _blitzl1

    _blitzl1.data_as = hand_over
    blitzl1.set_use_intercept(False)
    kind = blitzl1.LassoProblem if task.kind == "squared-l1" else blitzl1.LogRegProblem
    problem = kind(columns(task), task.y)

    def fit(tolerance):
        blitzl1.set_tolerance(tolerance)
        return problem.solve(task.n * task.strength).x

    return fit
