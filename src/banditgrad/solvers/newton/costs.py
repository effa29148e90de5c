"""What the parts of a Newton step cost, in multiply-adds of a plain loop: by these the work is divided."""

from typing import Any

import numpy as np

from banditgrad.rows import Dense

LOSS = 20.0  # one loss with its derivatives
CACHED = 360  # features whose matrix takes a megabyte
LIGHT = 8.0  # times a pass: a Hessian and a solve that cost no more are cheap
SMALL = 1e7  # multiply-adds, some 10 ms: cheap whatever a pass costs
OVERHEAD = 1e5  # multiply-adds: work that takes no longer than a step's way through Python
MOST = 0.5  # a sample of a larger share of the rows becomes all of them: the exact Hessian needs no other help
BLAS = 8.0  # how much faster than a plain loop


def evaluation(problem: Any) -> float:
    """Of F, ∇f and the φ_i'' of all rows."""
    rows, n = problem.parts.rows, problem.n
    entries = n * problem.d if isinstance(rows, Dense) else int(rows.indptr[-1])
    return 2.0 * (entries + n * problem.fit_intercept) + LOSS * n


class Costs:
    """Of work on all rows of a problem; a share of the rows costs this share of it.

    Attributes
    ----------
    product : of a pass that multiplies each row once with a vector, and adds it up once
    evaluation : of F, ∇f and the φ_i'' of all rows
    hessian : the outer products of all rows; scattered over a matrix beyond the cache they cost about twice as much
    solve : of a system of equations, whatever the number of rows
    """

    def __init__(self, problem: Any) -> None:
        rows, n, d = problem.parts.rows, problem.n, problem.dimension
        if isinstance(rows, Dense):
            squares = float(n * d * d) / BLAS
        else:
            lengths = np.diff(rows.indptr).astype(np.float64) + problem.fit_intercept
            squares = float(lengths @ lengths) * (2.0 if d > CACHED else 1.0)
        self.evaluation = evaluation(problem)
        self.product = max(self.evaluation - LOSS * n, 1.0)
        self.hessian = max(0.5 * squares, 1.0)
        self.solve = d**3 / 3.0 / BLAS

    def matrix_pays(self, share: float = 1.0) -> bool:
        """Whether a matrix of d x d numbers costs little beside an evaluation of a share of the rows: where these are
        short, or features few.

        Measured on dense and sparse data with 22 to 2000 features, Newton's method with one and `ProxSvrg` are level
        at about `LIGHT`.
        """
        return share * self.hessian + self.solve <= max(LIGHT * share * self.evaluation, SMALL)
