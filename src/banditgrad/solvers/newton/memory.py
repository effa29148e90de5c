"""What steps have shown of the Hessian where no sample can: the pairs of L-BFGS (Liu and Nocedal 1989).

A step s along which the gradient changes by y tells that the Hessian times s is y, for free: both gradients were needed
anyway. Of all matrices near a given one, B is the nearest (in the sense of BFGS) that agrees with the last pairs.
"""

import math
from collections import deque

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import kernel
from banditgrad.solvers.newton.quadratic import best

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

PAIRS = 10  # the last steps, that are remembered
CURVED = 1e-8  # a step along which the gradient changes less, as a cosine, shows only rounding
TINY = 1e-300
SWEEPS = 100  # of coordinate descent at most, for one minimiser; one costs as much as a few rows


class Memory:
    """The last steps, and the changes of the gradient along them."""

    def __init__(self) -> None:
        self._pairs: deque[tuple[Vector, Vector, float]] = deque(maxlen=PAIRS)

    def note(self, step: Vector, change: Vector) -> None:
        curve = float(step @ change)
        if curve > CURVED * float(np.linalg.norm(step) * np.linalg.norm(change)):
            self._pairs.append((step, change, curve))

    def minimise(self, diagonal: Vector, slope: Vector, w: Vector, l1: Vector, tol: float) -> tuple[Vector, float]:
        """The v that minimises <slope, v> + ½ <v, B v> + l1 |w + v|, and <v, B v>; B is near a diagonal."""
        if l1.any():
            return self._descend(diagonal, slope, w, l1, tol)
        v = -self._solve(diagonal, slope)
        return v, -float(slope @ v)

    def _solve(self, diagonal: Vector, slope: Vector) -> Vector:
        """B⁻¹ slope, by the two loops of L-BFGS; the diagonal is scaled to curve as F did along the last step.

        (With an l1 norm, whose minimisers move few coordinates, the diagonal as it is does better.)
        """
        inverse, shares = 1.0 / np.where(diagonal > 0.0, diagonal, np.inf), []
        if self._pairs:
            _, change, curve = self._pairs[-1]
            inverse *= curve / max(float(change @ (inverse * change)), TINY)
        for step, change, curve in reversed(self._pairs):
            shares.append(float(step @ slope) / curve)
            slope = slope - shares[-1] * change
        x = inverse * slope
        for (step, change, curve), share in zip(self._pairs, reversed(shares), strict=True):
            x = x + (share - float(change @ x) / curve) * step
        return x

    def _descend(self, diagonal: Vector, slope: Vector, w: Vector, l1: Vector, tol: float) -> tuple[Vector, float]:
        """By coordinate descent on the compact form of B, a diagonal less a matrix of low rank (Byrd, Nocedal and
        Schnabel 1994; Scheinberg and Tang 2016): a coordinate costs four multiply-adds per pair, and no row is read.
        """
        W, Q = self._compact(diagonal)
        curves = np.maximum(diagonal - np.einsum("jk,jk->j", W, Q), 0.0)  # below zero by rounding alone
        u, t = w.copy(), np.zeros(W.shape[1])
        _descend(W, Q, diagonal, curves, slope, w, l1, tol, SWEEPS, u, t)
        v = u - w
        return v, float((diagonal * v) @ v) - float((Q.T @ v) @ t)

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


@kernel
def _descend(W, Q, diagonal, curves, slope, w, l1, tol, sweeps, u, t):
    """Sweeps until none moves u by more than tol times what the first did; t = W' (u - w).

    What is zero is passed over until the others have settled.
    """
    rank = t.size
    goal, everywhere = -1.0, True
    for _ in range(sweeps):
        worst = 0.0
        for j in range(u.size):
            if u[j] == 0.0 and not everywhere:
                continue
            r = slope[j] + diagonal[j] * (u[j] - w[j])
            for k in range(rank):
                r -= Q[j, k] * t[k]
            change = best(curves[j], r, u[j], l1[j], 0.0) - u[j]
            if change != 0.0:
                u[j] += change
                worst = max(worst, abs(change) * math.sqrt(curves[j]))
                for k in range(rank):
                    t[k] += change * W[j, k]
        goal = tol * worst if goal < 0.0 else goal
        if worst <= goal and everywhere:
            return
        everywhere = worst <= goal
