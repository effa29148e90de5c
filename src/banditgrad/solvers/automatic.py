"""The solver for somebody who does not want to choose."""

from typing import Any

from banditgrad.solvers.base import Solver
from banditgrad.solvers.newton import SampledNewton
from banditgrad.solvers.svrg import ProxSvrg

WIDEST = 2000  # features up to which a matrix of d x d numbers pays


def automatic_solver(problem: Any) -> Solver:
    """`SampledNewton` where its matrix fits the problem, `ProxSvrg`, whose step finds itself, elsewhere."""
    closed_form = problem.shrinkage is not None
    curved = hasattr(problem.loss, "second_derivative")
    return SampledNewton() if closed_form and curved and problem.dimension <= WIDEST else ProxSvrg()
