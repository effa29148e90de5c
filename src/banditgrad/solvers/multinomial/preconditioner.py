"""What stands in for the inverse of the Hessian M = Σ_i c_i ∇²φ_i ⊗ x_i x_i' in conjugate gradients.

Where features are few, that of its blocks M_k = Σ_i c_i [∇²φ_i]_kk x_i x_i', one for each margin k. They are made of
few rows each, drawn with probability ∝ c_i [∇²φ_i]_kk: of most margins a row says nothing. What a sample has seen too
little of is held by the diagonal. Where features are many, M's diagonal.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditgrad import margins
from banditgrad.margins import TOGETHER
from banditgrad.solvers.multinomial.look import Curvature, as_dense

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

WORTH = 20.0  # looks that making the matrices may cost
SMALL = 1e9  # multiply-adds of BLAS, some 0.1 s: what costs no more is cheap
BLAS = 4.0  # how much faster it multiplies a matrix with itself than rows with W
MOST_NUMBERS = 1 << 26  # in all matrices
ENOUGH, PLENTY = 2, 8  # rows for each feature, and as many as there are if they cost no more than that
HELD = 1e-10  # added to a diagonal of ones: of columns that are the same to the last digit


class Preconditioner:
    """For the Hessian of some rows, at one point, plus a diagonal that is given, a number for each feature."""

    def __init__(
        self, curvature: Curvature, held: Matrix, look: float, stream: np.random.Generator, *, matrices: bool
    ) -> None:
        """`look` is how many multiply-adds a look at all rows takes; `matrices` whether to make any."""
        h = curvature.diagonals()
        self.diagonal = np.zeros((held.shape[0], h.shape[1]))
        margins.add_squares_transposed(curvature.rows, h, self.diagonal)
        self.held = held
        self._factors: list[tuple[Matrix, Vector]] = []
        p, width = self.diagonal.shape
        work = width * p**2 * (ENOUGH + 1.0 / 3.0) * p
        if matrices and width * p**2 <= MOST_NUMBERS and work <= max(WORTH * BLAS * look, SMALL):
            for k in range(width):
                gram = _gram(curvature.rows, h[:, k], (PLENTY if work <= SMALL else ENOUGH) * p, p, stream)
                lacking = np.maximum(self.diagonal[:, k] - np.diag(gram), 0.0)
                self._factors.append(_factor(gram, lacking + held[:, min(k, held.shape[1] - 1)]))

    @property
    def matrices(self) -> bool:
        """Whether there are any."""
        return bool(self._factors)

    @property
    def curvatures(self) -> Matrix:
        """The diagonal of the Hessian, what is held included; positive."""
        total = self.diagonal + self.held
        return np.maximum(total, 1e-12 * float(total.max(initial=0.0)) or 1.0)

    def __call__(self, r: Matrix) -> Matrix:
        """About M⁻¹ r."""
        if not self._factors:
            return np.asarray(r / self.curvatures)
        return np.hstack([_solve(factor, r[:, k, None]) for k, factor in enumerate(self._factors)])


def _sample(weights: Vector, most: int, stream: np.random.Generator) -> tuple[NDArray[np.int64], Vector]:
    """At most about so many rows, drawn in proportion to their weights, and by how much to multiply each."""
    chances = np.minimum(1.0, most * weights / max(float(weights.sum()), 1e-300))
    if most >= weights.size:
        return np.arange(weights.size), np.ones(weights.size)
    chosen = np.flatnonzero(stream.random(weights.size) < chances)
    return chosen, 1.0 / chances[chosen]


def _gram(rows: Any, h: Vector, most: int, p: int, stream: np.random.Generator) -> Matrix:
    """Σ_i h_i x_i x_i', of a sample of rows."""
    chosen, factors = _sample(h, most, stream)
    roots, gram = np.sqrt(h[chosen] * factors), np.zeros((p, p))
    for begin in range(0, chosen.size, TOGETHER):
        block = as_dense(rows, chosen[begin : begin + TOGETHER], p)
        block *= roots[begin : begin + TOGETHER, None]
        gram += block.T @ block
    return gram


def _factor(gram: Matrix, held: Vector) -> tuple[Matrix, Vector]:
    """The Cholesky factor of gram + diag(held) in units in which its diagonal is one, and these units."""
    from scipy.linalg import lapack  # here: importing banditgrad should not wait for it

    diagonal = np.diag(gram) + held
    units = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    scaled, ridge = gram / units / units[:, None], HELD
    while True:
        A = np.asfortranarray(scaled)
        A[np.diag_indices(len(A))] = 1.0 + ridge
        factor, info = lapack.dpotrf(A, lower=1, overwrite_a=1)
        if info == 0 and np.isfinite(factor).all():
            return factor, units
        ridge *= 100.0


def _solve(factor: tuple[Matrix, Vector], r: Matrix) -> Matrix:
    from scipy.linalg import lapack

    cholesky, units = factor
    x, _ = lapack.dpotrs(cholesky, r / units[:, None], lower=1)
    return np.asarray(x / units[:, None])
