"""The solver for somebody who does not want to choose."""

from typing import Any

from banditgrad.solvers.base import Solver
from banditgrad.solvers.newton import SampledNewton, costs
from banditgrad.solvers.svrg import ProxSvrg


def automatic_solver(problem: Any) -> Solver:
    """`SampledNewton` where its model is cheap to minimise, `ProxSvrg`, whose step finds itself, elsewhere."""
    if problem.shrinkage is None or not hasattr(problem.loss, "second_derivative"):
        return ProxSvrg()
    l1, _ = problem.shrinkage
    return SampledNewton() if l1 == 0.0 or costs.matrix_pays(problem) else ProxSvrg()
