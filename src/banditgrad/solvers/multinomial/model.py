"""The minimiser of the quadratic model of F,

    q(V) = <G, V> + ½ <V, M V> + l1 ‖W + V‖₁ + (l2/2) ‖W + V‖²,    M = Σ_i c_i ∇²φ_i ⊗ x_i x_i'

by conjugate gradients on products with M, of which no matrix is made. With an l1 norm they run among the numbers that
are not zero or that the slope asks to move, with the signs they have or would take; those that would change sign stop
at zero (Keskar, Nocedal, Öztoprak and Wächter 2016), and so on until the optimality conditions hold.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad.solvers.newton.quadratic import minimise_quadratic

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

PRODUCTS = 60  # of one run of conjugate gradients at most
ROUNDS = 40  # of these
FEWEST, MOST_WORKING = 256, 3000  # numbers of a matrix that are zero, beside twice as many as are not; and of all
ROUGH = 0.1  # how well the first round with an l1 norm is solved, relative
ENOUGH = 0.1  # of what conjugate gradients promised: a step that stops at zero and gains less is shortened
SHORTEST = 2.0**-10


class Model(NamedTuple):
    """M, by its products, what stands in for its inverse, and as a matrix among some of its numbers."""

    among: Callable[[NDArray[np.int64]], Matrix]  # M without l2

    product: Callable[[Matrix], Matrix]  # M + l2
    precondition: Callable[[Matrix], Matrix]
    curvatures: Matrix  # the diagonal of M + l2
    balanced: bool  # whether slopes sum to zero over the margins, and so do steps


class Found(NamedTuple):
    V: Matrix
    curve: float  # <V, (M + l2) V>
    products: int


def minimise_model(model: Model, slope: Matrix, W: Matrix, l1: Matrix, l2: Matrix, tol: float, effort: float) -> Found:
    """V, to tol in the norm of the slope; `slope` is that of the smooth part, l2 included."""
    if not l1.any():
        found = conjugate_gradients(model, -slope, None, tol, int(PRODUCTS * effort))
        return Found(found.x, float(np.vdot(found.x, -slope - found.rest)), found.products)
    return _minimise_on_working(model, slope, W, l1, l2, tol, effort)


def _minimise_on_working(
    model: Model, slope: Matrix, W: Matrix, l1: Matrix, l2: Matrix, tol: float, effort: float
) -> Found:
    """By the matrix among working numbers: those that are not zero, and of the others those that the slope asks to move
    most."""
    l1, l2 = np.broadcast_to(l1, W.shape), np.broadcast_to(l2, W.shape)
    u, r = W.copy(), slope
    start = violation(model, r, u, l1)
    products = 0
    for _ in range(int(ROUNDS * effort)):
        now = violation(model, r, u, l1)
        if now <= tol * start:
            break
        asked = np.where((u == 0.0), np.maximum(np.abs(r) - l1, 0.0), 0.0) / np.sqrt(model.curvatures)
        nonzero = np.flatnonzero(u)
        most = min(max(FEWEST, 2 * nonzero.size), int(np.count_nonzero(asked)))
        if nonzero.size + most > MOST_WORKING:
            return _minimise_among_signs(model, slope, W, l1, tol, effort)
        new = np.argpartition(-asked, most - 1, axis=None)[:most] if most else nonzero[:0]
        working = np.sort(np.concatenate([nonzero, new]))
        M, there = model.among(working), u.ravel()[working]
        g = r.ravel()[working] - l2.ravel()[working] * there
        step = minimise_quadratic(M, g, there, l1.ravel()[working], l2.ravel()[working], 0.5 * tol)
        if not step.any():
            break
        u.ravel()[working] += step
        r, products = slope + model.product(u - W), products + 1
    V = u - W
    return Found(V, float(np.vdot(V, r - slope)), products)


class Run(NamedTuple):
    x: Matrix
    rest: Matrix  # b - (M + l2) x
    products: int


def conjugate_gradients(model: Model, b: Matrix, among: Any, tol: float, most: int) -> Run:
    """(M + l2)⁻¹ b among some of the numbers, to tol."""

    def precondition(r: Matrix) -> Matrix:
        s = model.precondition(r)
        if among is not None:
            return np.where(among, s, 0.0)
        return s - s.mean(axis=1, keepdims=True) if model.balanced else s

    x, rest = np.zeros_like(b), b.copy()
    s = precondition(rest)
    direction, energy, count = s, float(np.vdot(rest, s)), 0
    goal = tol * tol * energy
    while count < most and energy > goal:
        product = model.product(direction)
        if among is not None:
            product[~among] = 0.0
        count += 1
        curve = float(np.vdot(direction, product))
        if not (curve > 0.0 and math.isfinite(curve)):
            break
        x += energy / curve * direction
        rest -= energy / curve * product
        s = precondition(rest)
        before, energy = energy, float(np.vdot(rest, s))
        direction = s + energy / before * direction
    return Run(x, rest, count)


def violation(model: Model, r: Matrix, u: Matrix, l1: Matrix) -> float:
    """The norm of the gradient mapping in units of the curvatures; r is the smooth slope at u."""
    h = model.curvatures
    moved = _shrunk(u - r / h, l1 / h)
    return float(np.linalg.norm(np.sqrt(h) * (u - moved)))


def _shrunk(u: Matrix, by: Matrix) -> Matrix:
    return np.sign(u) * np.maximum(np.abs(u) - by, 0.0)


def _minimise_among_signs(model: Model, slope: Matrix, W: Matrix, l1: Matrix, tol: float, effort: float) -> Found:
    u, r, products = W.copy(), slope.copy(), 0
    goal, accuracy = tol * violation(model, r, u, l1), ROUGH
    for _ in range(int(ROUNDS * effort)):
        now = violation(model, r, u, l1)
        if now <= goal:
            break
        among = (u != 0.0) | (np.abs(r) > l1)
        signs = np.where(u != 0.0, np.sign(u), -np.sign(r))
        b = np.where(among, -r - l1 * signs, 0.0)
        run = conjugate_gradients(model, b, among, accuracy, PRODUCTS)
        change, product, spent = _stopped_at_zero(model, r, u, l1, signs, run, b)
        products += run.products + spent
        if change is None:
            break
        u, r = u + change, r + product
        accuracy = max(0.1 * tol, min(ROUGH, 0.1 * goal / now)) if now < 100.0 * goal else ROUGH
    V = u - W
    return Found(V, float(np.vdot(V, r - slope)), products)


def _stopped_at_zero(
    model: Model, r: Matrix, u: Matrix, l1: Matrix, signs: Matrix, run: Run, b: Matrix
) -> tuple[Any, Any, int]:
    """The step with what would change sign stopped at zero, shortened until it gains enough, or one along the gradient
    mapping; its product with M; and how many products that took. No step where rounding leaves none."""
    promised = 0.5 * float(np.vdot(run.x, b + run.rest))
    t, spent = 1.0, 0
    while t >= SHORTEST:
        there = u + t * run.x
        crossing = (l1 > 0.0) & (signs * there < 0.0)
        if t == 1.0 and not crossing.any():
            return run.x, model.product(run.x), 1
        change = np.where(crossing, -u, t * run.x)
        product = model.product(change)
        spent += 1
        gain = -float(np.vdot(change, r + 0.5 * product) + np.sum(l1 * (np.abs(u + change) - np.abs(u))))
        if gain >= ENOUGH * t * promised:
            return change, product, spent
        t *= 0.5
    change = _shrunk(u - r / model.curvatures, l1 / model.curvatures) - u
    product = model.product(change)
    fall = -float(np.vdot(change, r) + np.sum(l1 * (np.abs(u + change) - np.abs(u))))
    t = min(1.0, fall / max(float(np.vdot(change, product)), 1e-300))
    return (t * change, t * product, spent + 1) if fall > 0.0 else (None, None, spent + 1)
