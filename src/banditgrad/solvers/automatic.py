"""The solver for somebody who does not want to choose."""

from typing import Any

import numpy as np

from banditgrad.losses import can_be_smoothed, has_kinks
from banditgrad.rows import Dense
from banditgrad.solvers.base import Solver
from banditgrad.solvers.newton import SampledNewton
from banditgrad.solvers.newton.costs import Costs
from banditgrad.solvers.prox_sgd import ProxSgd
from banditgrad.solvers.svrg import ProxSvrg

UNLIKE = 4.0  # mean(L) / mean(√L)²: what the best p gains on the L_i


def automatic_solver(problem: Any) -> Solver:
    """`SampledNewton` where it can be; `ProxSvrg` also on long dense rows that are very unlike.

    There every look at all rows is dear and shows mostly what the few longest rows do. `ProxSgd` where the loss has a
    kink that nothing smooths: near it variance does not vanish.
    """
    loss = problem.loss
    if problem.vector:
        curved = hasattr(loss, "curve_product") and hasattr(loss, "curve_parts")
        return SampledNewton() if curved and problem.form is not None else ProxSvrg()
    kinked = has_kinks(loss)
    if kinked and not can_be_smoothed(loss):
        return ProxSgd()
    if problem.form is None or not (kinked or hasattr(loss, "second_derivative")):
        return ProxSvrg()
    if not isinstance(problem.parts.rows, Dense) or Costs(problem).matrix_pays():
        return SampledNewton()
    L = problem.smoothness
    unlike = L is not None and L.mean() > UNLIKE * np.sqrt(L).mean() ** 2
    return ProxSvrg() if unlike else SampledNewton()
