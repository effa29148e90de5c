"""The minimiser of a quadratic model with an elastic net,

    q(v) = <g, v> + ½ <v, M v> + l1 |w + v| + (l2/2) ‖w + v‖²,

by coordinate descent, which finds the zeros, and a direct solve among the others, which collinear columns do not slow.
"""

import functools
import math
import threading
from contextlib import nullcontext
from typing import Any, cast

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from banditgrad._jit import inline, kernel

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

SWEEPS = 16  # of coordinate descent between two direct solves
ROUNDS = 5
JITTER = 1e-10  # added to the diagonal, relative: columns that are the same to the last digit would blow up
TINY, SMALL = 64, 1000  # systems that a loop of our own solves faster than LAPACK; on which its threads mostly wait


def minimise_quadratic(M: Matrix, g: Vector, w: Vector, l1: Vector, l2: Vector, tol: float) -> Vector:
    """v, to a KKT violation of tol times that of v = 0; l1 and l2 have one entry per coordinate."""
    with one_blas_thread if TINY <= len(g) < SMALL else nullcontext():
        if not l1.any():
            return -solve_linear(M, l2, g + l2 * w)
        return _coordinates(M, g, w, l1, l2, tol)


class _OneBlasThread:
    """A context in which BLAS uses one thread. It is the process's setting, so of the fits that are inside at a time,
    the first to come makes it and the last to go takes it back."""

    def __init__(self) -> None:
        self._lock, self._inside, self._limit = threading.Lock(), 0, cast(Any, None)

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._limit = _blas().limit(limits=1)

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()


one_blas_thread = _OneBlasThread()


@functools.cache
def _blas() -> Any:
    import scipy.linalg.lapack  # noqa: F401  # has a BLAS of its own, which must be there to be limited

    return threadpoolctl.ThreadpoolController()


def _coordinates(M: Matrix, g: Vector, w: Vector, l1: Vector, l2: Vector, tol: float) -> Vector:
    u, r, diagonal = w.copy(), g.copy(), np.diag(M).copy()  # u = w + v, r = g + M v
    goal = tol * violation(diagonal, r, u, l1, l2)
    for _ in range(ROUNDS):
        working = np.flatnonzero((u != 0.0) | (np.abs(r) > l1))
        small = M[np.ix_(working, working)]
        u[working] = _minimise_among(small, r[working], u[working], l1[working], l2[working], goal)
        r = g + M @ (u - w)
        if violation(diagonal, r, u, l1, l2) <= goal:
            break
    return u - w


def _minimise_among(M: Matrix, r: Vector, u: Vector, l1: Vector, l2: Vector, goal: float) -> Vector:
    """The same among few coordinates, whose matrix stays in the cache."""
    for _ in range(ROUNDS):
        if _sweep(M, r, u, l1, l2, SWEEPS, 0.5 * goal):
            break
        _solve_on_support(M, r, u, l1, l2)
    return u


def _solve_on_support(M: Matrix, r: Vector, u: Vector, l1: Vector, l2: Vector) -> None:
    """Move the coordinates that are not zero to their joint minimiser; those that would change sign stop at zero."""
    support = np.flatnonzero(u)
    if not support.size:
        return
    here, l1, l2, model = u[support], l1[support], l2[support], M[np.ix_(support, support)]
    slope = r[support] + l2 * here + l1 * np.sign(here)
    for change in stopped_at_zero(here, -solve_linear(model, l2, slope), l1):
        if slope @ change + 0.5 * change @ (model @ change + l2 * change) < 0.0:
            r += M[:, support] @ change
            u[support] = here + change
            return


def stopped_at_zero(here: Vector, step: Vector, l1: Vector) -> tuple[Vector, Vector]:
    """A step with what would cross zero stopped there, and one that all of it stops where the first crosses."""
    crossing = (l1 > 0.0) & (np.sign(here) * (here + step) < 0.0)
    return np.where(crossing, -here, step), step * np.min(-here[crossing] / step[crossing], initial=1.0)


def solve_linear(M: Matrix, l2: Vector, b: Vector) -> Vector:
    """(M + diag(l2))⁻¹ b; where that is singular, with a ridge as small as will do.

    What the ridge took away from x, one step of iterative refinement gives back.
    """
    if b.size < TINY:
        x = np.empty(b.size)
        _solve_tiny(M, l2, b, JITTER, np.empty_like(M), np.empty(b.size), x)
        return x
    from scipy.linalg import lapack  # here: importing banditgrad should not wait for it

    if not (np.isfinite(b).all() and np.isfinite(M).all()):  # overflow
        return np.full(b.size, np.nan)
    diagonal = np.abs(np.diag(M))
    least, ridge = JITTER * diagonal + l2, 0.0
    added = least
    while True:
        A = M.copy(order="F")
        A.T.reshape(-1)[:: b.size + 1] += added
        factor, x, info = lapack.dposv(A, b, lower=1, overwrite_a=1)
        if info == 0 and np.isfinite(x).all():
            if ridge == 0.0:
                x = x + lapack.dpotrs(factor, b - M @ x - l2 * x, lower=1)[0]
            return np.asarray(x)
        ridge = max(100.0 * ridge, 1e-12)
        unit = np.where(diagonal + l2 > 0.0, diagonal + l2, 1.0)  # columns may differ by orders of magnitude
        added = least + ridge * unit


@kernel
def _solve_tiny(M, l2, b, jitter, A, rest, x):
    """The same in a loop of our own, where the way to LAPACK takes longer; A and `rest` are room."""
    d, ridge, nothing = b.size, 0.0, 0.0
    for j in range(d):
        nothing += 0.0 * b[j]
        for k in range(d):
            nothing += 0.0 * M[j, k]
    if nothing != 0.0:  # overflow
        x[:] = np.nan
        return
    while not _factor(M, l2, jitter, ridge, A) or not _substitute(A, b, x):
        ridge = max(100.0 * ridge, 1e-12)
    if ridge == 0.0:
        for j in range(d):
            rest[j] = b[j] - l2[j] * x[j]
            for k in range(d):
                rest[j] -= M[j, k] * x[k]
        _substitute(A, rest, rest)
        for j in range(d):
            x[j] += rest[j]


@inline
def _factor(M, l2, jitter, ridge, A):
    """A A' = M + diag(l2) with the ridge added; whether that is positive definite."""
    for j in range(l2.size):
        unit = abs(M[j, j]) + l2[j]
        for k in range(j + 1):
            total = M[j, k]
            if k == j:
                total += jitter * abs(M[j, j]) + l2[j] + ridge * (unit if unit > 0.0 else 1.0)
            for m in range(k):
                total -= A[j, m] * A[k, m]
            if k < j:
                A[j, k] = total / A[k, k]
            elif total > 0.0:
                A[j, j] = math.sqrt(total)
            else:
                return False
    return True


@inline
def _substitute(A, b, x):
    """x = (A A')⁻¹ b, which may be b itself; whether it is finite."""
    nothing = 0.0
    for j in range(x.size):
        total = b[j]
        for k in range(j):
            total -= A[j, k] * x[k]
        x[j] = total / A[j, j]
    for j in range(x.size - 1, -1, -1):
        for k in range(j + 1, x.size):
            x[j] -= A[k, j] * x[k]
        x[j] /= A[j, j]
        nothing += 0.0 * x[j]
    return nothing == 0.0


@kernel
def _sweep(M, r, u, l1, l2, sweeps, goal):
    """Sweeps of coordinate descent; whether the last one moved nothing by more than `goal`."""
    for _ in range(sweeps):
        worst = 0.0
        for j in range(u.size):
            change = best(M[j, j], r[j], u[j], l1[j], l2[j]) - u[j]
            if change != 0.0:
                u[j] += change
                worst = max(worst, abs(change) * math.sqrt(M[j, j] + l2[j]))
                for m in range(u.size):
                    r[m] += change * M[j, m]
        if worst <= goal:
            return True
    return False


@kernel
def violation(diagonal, r, u, l1, l2):
    """The largest change that coordinate descent would make, in units of √curvature."""
    worst = 0.0
    for j in range(u.size):
        change = best(diagonal[j], r[j], u[j], l1[j], l2[j]) - u[j]
        worst = max(worst, abs(change) * math.sqrt(diagonal[j] + l2[j]))
    return worst


@inline
def best(curvature, r, u, l1, l2):
    """Where coordinate descent moves u: with S the soft threshold, S(curvature · u - r, l1) / (curvature + l2).

    Without curvature to zero, or nowhere if the slope is steeper than the norm.
    """
    if not curvature + l2 > 0.0:
        return 0.0 if abs(r) < l1 else u
    t = curvature * u - r
    if t > l1:
        return (t - l1) / (curvature + l2)
    if t < -l1:
        return (t + l1) / (curvature + l2)
    return 0.0


@kernel
def descend_coordinates(model, diagonal, l1, l2, tol, sweeps, order, u):
    """Sweeps of coordinate descent on a quadratic model with this diagonal and an elastic net, until none moves u by
    more than tol times what the first did, in units of √curvature; whether they came to this end.

    What is zero is passed over until the others have settled. The model is a `ColumnModel` or a `CompactModel`.
    """
    goal, everywhere = -1.0, True
    for _ in range(sweeps):
        worst = 0.0
        model.visit(order)
        for j in order:
            if u[j] == 0.0 and not everywhere:
                continue
            change = best(diagonal[j], model.partial(j, u[j]), u[j], l1[j], l2[j]) - u[j]
            if change != 0.0:
                u[j] += change
                worst = max(worst, abs(change) * math.sqrt(diagonal[j] + l2[j]))
                model.shift(j, change)
        goal = tol * worst if goal < 0.0 else goal
        if worst <= goal and everywhere:
            return True
        everywhere = worst <= goal
    return False
