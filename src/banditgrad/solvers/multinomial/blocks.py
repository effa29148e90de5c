"""The model with bounds, or with norms of groups such as the rows of W: as in `newton.blocks`, by its matrix among the
working numbers; or where these are too many by proximal steps and conjugate gradients among those that are free."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditgrad.solvers.newton.blocks import (
    Blocks,
    MatrixModel,
    among,
    asked_to_move,
    free_coordinates,
    kinks_and_ridges,
    minimise_with_matrix,
    proximal_step,
    stopped,
)
from banditgrad.solvers.newton.matrix_free import conjugate_gradients

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

ROUNDS, PRODUCTS = 40, 60  # at most, and of conjugate gradients in one
MOST_WORKING = 3000  # numbers of a matrix
ACCURACY = 0.05  # of conjugate gradients
SHORTEST = 2.0**-10
STALLED = 10.0  # times the last mapping: steps lead nowhere


class Quadratic:
    """q as far as it is smooth, l2 included: the point u and the slope r there."""

    def __init__(self, model: Any, slope: Matrix, W: Matrix) -> None:
        self.model, self.u, self.r, self.products = model, W.ravel().copy(), slope.ravel().copy(), 0
        self._shape = W.shape

    def product(self, change: Vector) -> Vector:
        self.products += 1
        return np.asarray(self.model.product(change.reshape(self._shape)).ravel())

    def move(self, change: Vector, product: Vector) -> None:
        self.u, self.r = self.u + change, self.r + product


def minimise_blocks(
    model: Any, slope: Matrix, W: Matrix, blocks: Blocks, tol: float, effort: float
) -> tuple[Matrix, float, int]:
    """V, <V, (M + l2) V> and how many products that took; to tol in the norm of the gradient mapping."""
    q, kinks = Quadratic(model, slope, W), blocks._replace(l2=np.zeros_like(blocks.l2))
    blocks.metric[:] = np.broadcast_to(model.curvatures, W.shape).ravel()
    goal, before = -1.0, np.inf
    for _ in range(int(ROUNDS * effort)):
        now = proximal_step(MatrixModel(np.zeros((0, 0)), q.r), kinks, q.u)
        goal = tol * now if goal < 0.0 else goal
        if now <= goal or now > STALLED * before:
            break
        before = now
        some, working = among(blocks, asked_to_move(blocks, q.u, q.r))
        if working.size <= MOST_WORKING:
            change, there = np.zeros_like(q.u), q.u[working]
            g = q.r[working] - some.l2 * there
            change[working] = minimise_with_matrix(model.among(working), g, there, some, 0.5 * tol)
            if not change.any():
                break
            q.move(change, q.product(change))
        elif not _step_along_mapping(q, kinks) or not _step_among_free(q, kinks):
            break
    V = (q.u - W.ravel()).reshape(W.shape)
    return V, float(np.vdot(V.ravel(), q.r - slope.ravel())), q.products


def _step_along_mapping(q: Quadratic, kinks: Blocks) -> bool:
    """Towards where the proximal step leads, as far as q falls; whether it does."""
    change = kinks.new - q.u
    fall = kinks_and_ridges(kinks, q.u) - kinks_and_ridges(kinks, kinks.new) - float(change @ q.r)
    if not fall > 0.0:
        return False
    product = q.product(change)
    t = min(1.0, fall / max(float(change @ product), 1e-300))
    q.move(t * change, t * product)
    q.u = kinks.clipped(q.u)
    return True


def _step_among_free(q: Quadratic, kinks: Blocks) -> bool:
    """A step of Newton's method among the coordinates at no kink and no bound, as long as q falls."""
    free, added, slope = free_coordinates(kinks, q.u)
    wide = np.zeros_like(q.u)

    def multiply(p: Vector) -> Vector:
        wide[free] = p
        return np.asarray(q.product(wide)[free] + added.times(p))

    weight = kinks.metric[free] + added.diagonal
    step, _, _ = conjugate_gradients(multiply, weight, -(q.r[free] + slope), ACCURACY**2, PRODUCTS)
    before, t = kinks_and_ridges(kinks, q.u), 1.0
    while t > SHORTEST:
        change = stopped(kinks, q.u, free, t * step) - q.u
        product = q.product(change)
        if float(change @ (q.r + 0.5 * product)) + kinks_and_ridges(kinks, q.u + change) < before:
            q.move(change, product)
            q.u = kinks.clipped(q.u)
            return True
        t *= 0.25
    return True  # the proximal step has moved
