"""The solver for somebody who does not want to choose."""

from typing import Any

from banditgrad.rows import Dense
from banditgrad.solvers.base import Solver
from banditgrad.solvers.newton import SampledNewton, costs
from banditgrad.solvers.svrg import ProxSvrg


def automatic_solver(problem: Any) -> Solver:
    """`SampledNewton`; with an l1 norm on long dense rows `ProxSvrg`, whose step finds itself."""
    if problem.shrinkage is None or not hasattr(problem.loss, "second_derivative"):
        return ProxSvrg()
    l1, _ = problem.shrinkage
    long_and_dense = isinstance(problem.parts.rows, Dense) and not costs.matrix_pays(problem)
    return ProxSvrg() if l1 > 0.0 and long_and_dense else SampledNewton()
