"""The solver for somebody who does not want to choose."""

from typing import Any

import numpy as np

from banditgrad.rows import Dense
from banditgrad.solvers.base import Solver
from banditgrad.solvers.newton import SampledNewton
from banditgrad.solvers.newton.costs import Costs
from banditgrad.solvers.svrg import ProxSvrg

UNLIKE = 4.0  # mean(L) / mean(√L)²: what the best p gains on the L_i


def automatic_solver(problem: Any) -> Solver:
    """`SampledNewton` where it can be; `ProxSvrg` also on long dense rows that are very unlike.

    There every look at all rows is dear and shows mostly what the few longest rows do.
    """
    if problem.vector:
        curved = hasattr(problem.loss, "curve_product") and hasattr(problem.loss, "curve_parts")
        return SampledNewton() if curved and problem.shrinkage is not None else ProxSvrg()
    if problem.shrinkage is None or not hasattr(problem.loss, "second_derivative"):
        return ProxSvrg()
    L = problem.smoothness
    unlike = L is not None and L.mean() > UNLIKE * np.sqrt(L).mean() ** 2
    dense = isinstance(problem.parts.rows, Dense)
    return ProxSvrg() if unlike and dense and not Costs(problem).matrix_pays() else SampledNewton()
