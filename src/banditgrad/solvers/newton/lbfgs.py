"""What steps have shown of the Hessian where no sample can: the pairs of L-BFGS (Liu and Nocedal 1989).

A step s along which the gradient changes by y tells that the Hessian times s is y, for free: both gradients were needed
anyway. Of all matrices near a given one, B is the nearest (in the sense of BFGS) that agrees with the last pairs.
"""

from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad.solvers.newton.blocks import SWEEPS as BLOCK_SWEEPS
from banditgrad.solvers.newton.blocks import Blocks, minimise_in_blocks
from banditgrad.solvers.newton.quadratic import descend_coordinates

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

PAIRS = 10  # the last steps, that are remembered
CURVED = 1e-8  # a step along which the gradient changes less, as a cosine, shows only rounding
TINY = 1e-300
SWEEPS = 100  # of coordinate descent at most, for one minimiser; one costs as much as a few rows


class CompactModel(NamedTuple):
    """<slope, u - w> + ½ <u - w, B (u - w)> with B = diag(diagonal) - W Q', for coordinate descent."""

    W: Matrix
    Q: Matrix
    diagonal: Vector
    slope: Vector
    w: Vector
    t: Vector  # W' (u - w)

    def visit(self, order):
        pass

    def partial(self, j, u):
        r = self.slope[j] + self.diagonal[j] * (u - self.w[j])
        for k in range(self.t.size):
            r -= self.Q[j, k] * self.t[k]
        return r

    def shift(self, j, change):
        for k in range(self.t.size):
            self.t[k] += change * self.W[j, k]

    def model_entry(self, j, k):
        """B_jk."""
        total = self.diagonal[j] if j == k else 0.0
        for m in range(self.t.size):
            total -= self.W[j, m] * self.Q[k, m]
        return max(total, 0.0) if j == k else total  # below zero by rounding alone


class LBFGS:
    """The last steps s, and the changes y of the gradient along them."""

    def __init__(self) -> None:
        self._pairs: deque[tuple[Vector, Vector, float]] = deque(maxlen=PAIRS)

    def remember(self, step: Vector, change: Vector) -> None:
        product = float(step @ change)
        if product > CURVED * float(np.linalg.norm(step) * np.linalg.norm(change)):
            self._pairs.append((step, change, product))

    def minimise(self, diagonal: Vector, slope: Vector, w: Vector, l1: Vector, tol: float) -> tuple[Vector, float]:
        """v = argmin <slope, v> + ½ <v, B v> + l1 |w + v|, and <v, B v>; B is near a diagonal."""
        if l1.any():
            return self._descend(diagonal, slope, w, l1, tol)
        v = -self._solve(diagonal, slope)
        return v, -float(slope @ v)

    def _solve(self, diagonal: Vector, slope: Vector) -> Vector:
        """B⁻¹ slope, by the two loops of L-BFGS; the diagonal is scaled to agree with the last pair.

        (With an l1 norm, whose minimisers move few coordinates, the diagonal as it is does better.)
        """
        inverse, shares = 1.0 / np.where(diagonal > 0.0, diagonal, np.inf), []
        if self._pairs:
            _, change, product = self._pairs[-1]
            inverse *= product / max(float(change @ (inverse * change)), TINY)
        for step, change, product in reversed(self._pairs):
            shares.append(float(step @ slope) / product)
            slope = slope - shares[-1] * change
        x = inverse * slope
        for (step, change, product), share in zip(self._pairs, reversed(shares), strict=True):
            x = x + (share - float(change @ x) / product) * step
        return x

    def _descend(self, diagonal: Vector, slope: Vector, w: Vector, l1: Vector, tol: float) -> tuple[Vector, float]:
        """By coordinate descent on the compact form of B, a diagonal less a matrix of low rank (Byrd, Nocedal and
        Schnabel 1994; Scheinberg and Tang 2016): a coordinate costs four multiply-adds per pair, and no row is read.
        """
        W, Q = self._compact(diagonal)
        model = CompactModel(W, Q, diagonal, slope, w, np.zeros(W.shape[1]))
        curvatures = np.maximum(diagonal - np.einsum("jk,jk->j", W, Q), 0.0)  # below zero by rounding alone
        u, order = w.copy(), np.arange(w.size)
        descend_coordinates(model, curvatures, l1, np.zeros_like(w), tol, SWEEPS, order, u)
        v = u - w
        return v, float((diagonal * v) @ v) - float((Q.T @ v) @ model.t)

    def minimise_in_blocks(
        self, diagonal: Vector, slope: Vector, w: Vector, blocks: Blocks, tol: float
    ) -> tuple[Vector, float]:
        """Likewise with bounds or groups; B holds the ridge."""
        W, Q = self._compact(diagonal)
        model = CompactModel(W, Q, diagonal, slope, w, np.zeros(W.shape[1]))
        blocks = blocks._replace(l2=np.zeros_like(w))
        v = minimise_in_blocks(model, w, blocks, tol, None, None, rounds=SWEEPS // BLOCK_SWEEPS)
        return v, float((diagonal * v) @ v) - float((Q.T @ v) @ model.t)

    def _compact(self, diagonal: Vector) -> tuple[Matrix, Matrix]:
        """W and Q with B = diag(diagonal) - W Q'."""
        if not self._pairs:
            return np.zeros((diagonal.size, 0)), np.zeros((diagonal.size, 0))
        S = np.array([step for step, _, _ in self._pairs]).T
        Y = np.array([change for _, change, _ in self._pairs]).T
        scaled, products = diagonal[:, None] * S, S.T @ Y
        lower = np.tril(products, -1)
        middle = np.block([[S.T @ scaled, lower], [lower.T, -np.diag(np.diag(products))]])
        W = np.hstack([scaled, Y])
        try:
            return W, np.ascontiguousarray(np.linalg.solve(middle, W.T).T)
        except np.linalg.LinAlgError:  # such as a step where the diagonal is zero by now
            self._pairs.clear()
            return self._compact(diagonal)
