"""The model with an l1 norm, by its matrix among the numbers that are not zero or may not stay so.

    M = Σ_i c_i ∇²φ_i ⊗ x_i x_i',  c_i ∇²φ_i = diag(a_i) - b_i b_i'

has for each margin a block of its own, Σ_i a_ik x_i x_i', less the product of a matrix with itself, of rows b_i ⊗ x_i.
"""

import numpy as np
from numpy.typing import NDArray

from banditgrad.margins import TOGETHER
from banditgrad.solvers.multinomial.look import Curvature, as_dense

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]


def hessian_among(curvature: Curvature, working: Indices) -> Matrix:
    """M among these numbers, counted as they lie in W."""
    a, b = curvature.parts()
    features, margins = np.divmod(working, a.shape[1])
    used, place = np.unique(features, return_inverse=True)
    groups = [(k, np.flatnonzero(margins == k)) for k in np.unique(margins)]
    p = curvature.features
    M = np.zeros((working.size, working.size))
    for begin in range(0, len(a), TOGETHER):
        some = np.arange(begin, min(begin + TOGETHER, len(a)))
        block = as_dense(curvature.rows, some, p)[:, used]
        products = block[:, place] * b[some][:, margins]
        M -= products.T @ products
        for k, group in groups:
            roots = np.sqrt(a[some, k, None]) * block[:, place[group]]
            M[np.ix_(group, group)] += roots.T @ roots
    return M
