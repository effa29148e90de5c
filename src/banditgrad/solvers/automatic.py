"""The solver for somebody who does not want to choose."""

from typing import Any

from banditgrad.solvers.base import Solver
from banditgrad.solvers.newton import SampledNewton, costs
from banditgrad.solvers.svrg import ProxSvrg

LIGHT = 8.0  # times a pass: a Hessian and a solve that cost no more make Newton's method the faster one
SMALL = 1e7  # multiply-adds, some 10 ms: of no account whatever a pass costs


def automatic_solver(problem: Any) -> Solver:
    """`SampledNewton` where a Hessian is cheap, that is, rows are short or features few; `ProxSvrg` elsewhere.

    Measured on dense and sparse data with 22 to 2000 features, the two are level at about `LIGHT`.
    """
    if problem.shrinkage is None or not hasattr(problem.loss, "second_derivative"):
        return ProxSvrg()
    lengths = costs.entries(problem)
    newton = costs.hessian(problem, lengths) + costs.solve(problem.dimension)
    return SampledNewton() if newton <= max(LIGHT * costs.look(lengths), SMALL) else ProxSvrg()
