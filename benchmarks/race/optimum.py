"""F*, by prox-Newton steps on the exact Hessian, with a duality gap to certify it.

With u_i = φ'(z_i) scaled by s ≤ 1 and v = -(1/n) X'u, the value

    D(u) = -(1/n) Σ φ*(u_i) - r*(v),   r*(v) = ‖v‖²/(2λ) for L2;  0 where ‖v‖∞ ≤ λ, for L1

is at most F*, so F(w) - D(u) is at least F(w) - F*. For L1, s makes v feasible; for L2, s = 1.
"""

import json
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.special import expit, xlogy

import banditgrad as bg
from banditgrad._files import write_atomically
from race.problems import Task, fingerprint

ENOUGH = 1e-11  # a gap that leaves no doubt at F − F* = 1e-8
STEPS = 40


class Optimum(NamedTuple):
    """The least value found, and how far at most it is above the true one."""

    value: float
    gap: float


# loss: (φ'(z), φ''(z), φ*(u)), with y = ±1 for the first two
def _conjugate_logistic(u, y):
    v = np.clip(-u * y, 0.0, 1.0)
    return xlogy(v, v) + xlogy(1.0 - v, 1.0 - v)


LOSSES = {
    "logistic": (
        lambda z, y: -y * expit(-y * z),
        lambda z, y: expit(z) * expit(-z),
        _conjugate_logistic,
    ),
    "hinge": (
        lambda z, y: -2.0 * y * np.maximum(0.0, 1.0 - y * z),
        lambda z, y: 2.0 * (y * z < 1.0),
        lambda u, y: u * u / 4.0 + u * y,
    ),
    "squared": (
        lambda z, y: z - y,
        lambda z, y: np.ones_like(z),
        lambda u, y: u * u / 2.0 + u * y,
    ),
}


def dual_value(task: Task, w: np.ndarray) -> float:
    """D(u) at the dual point that belongs to w: a lower bound on F*."""
    loss, penalty = task.kind.split("-")
    slope, _, conjugate = LOSSES[loss]
    u = slope(task.X @ w, task.y)
    v = -(task.X.T @ u) / task.n
    if penalty == "l2":
        return float(-np.mean(conjugate(u, task.y)) - v @ v / (2.0 * task.strength))
    largest = float(np.abs(v).max())
    scale = min(1.0, task.strength / largest) if largest > 0.0 else 1.0
    return float(-np.mean(conjugate(scale * u, task.y)))


def certified_optimum(task: Task, cache: Path | None = None) -> Optimum:
    """F* and its gap, from the cache if it has them for these very data."""
    known = json.loads(cache.read_text()) if cache is not None and cache.exists() else {}
    key = fingerprint(task)
    if key not in known:
        known[key] = {"task": task.name, **compute(task)._asdict()}
        if cache is not None:
            write_atomically(cache, json.dumps(known, indent=1).encode())
    return Optimum(known[key]["value"], known[key]["gap"])


def compute(task: Task) -> Optimum:
    """A few stochastic passes to come near, then Newton steps until the gap closes."""
    problem = task.problem()
    w = bg.minimise(problem, bg.ProxSvrg(), passes=10, seed=0, record_every=10).w
    best = Optimum(np.inf, np.inf)
    stale = 0
    for _ in range(STEPS):
        value = problem.value(w)
        lower = dual_value(task, w)
        stale = 0 if value - lower < 0.9 * best.gap else stale + 1
        best = Optimum(min(value, best.value), max(0.0, min(value - lower, best.gap)))
        if best.gap <= ENOUGH or stale == 5:
            break
        w = _line_search(problem, w, value, _newton_point(task, w))
    return best


def _line_search(problem, w, value, target):
    step = 1.0
    while step > 1e-6:
        point = w + step * (target - w)
        if problem.value(point) <= value:
            return point
        step /= 2.0
    return target  # at the limit of rounding: values no longer tell better from worse


def _newton_point(task: Task, w: np.ndarray) -> np.ndarray:
    """The minimiser of the second-order model at w; for L1, over the coordinates that may move."""
    loss, penalty = task.kind.split("-")
    slope, bend, _ = LOSSES[loss]
    z = task.X @ w
    gradient = task.X.T @ slope(z, task.y) / task.n
    curves = bend(z, task.y)
    target = w.copy()
    if penalty == "l2":
        hessian = _hessian(task.X, curves)
        hessian[np.diag_indices_from(hessian)] += task.strength
        target -= scipy.linalg.solve(hessian, gradient + task.strength * w, assume_a="pos")
        return target
    free = np.flatnonzero((w != 0.0) | (np.abs(gradient) > 0.8 * task.strength))
    columns = task.X[:, free] if isinstance(task.X, np.ndarray) else sp.csr_array(sp.csc_array(task.X)[:, free])
    hessian = _hessian(columns, curves)
    hessian[np.diag_indices_from(hessian)] += 1e-12 * max(np.trace(hessian) / max(free.size, 1), 1e-300)
    moved = w[free].copy()
    _coordinate_descent(hessian, gradient[free].copy(), moved, task.strength, 1e-13 * task.strength, 20_000)
    target[free] = moved
    return target


def _hessian(X, curves, block=10_000):
    """(1/n) X' diag(curves) X, a block of rows at a time."""
    n, d = X.shape
    total = np.zeros((d, d))
    for begin in range(0, n, block):
        rows, weight = X[begin : begin + block], curves[begin : begin + block]
        if isinstance(X, np.ndarray):
            total += rows.T @ (rows * weight[:, None])
        else:
            total += (rows.T @ (sp.diags_array(weight) @ rows)).toarray()
    return total / n


@numba.njit(error_model="numpy")
def _coordinate_descent(H, gradient, w, strength, tol, sweeps):
    """min over w of <gradient, w - w0> + ½ (w - w0)'H(w - w0) + strength ‖w‖₁; gradient is kept up to date."""
    for _ in range(sweeps):
        worst = 0.0
        for j in range(w.size):
            if H[j, j] <= 0.0:
                continue
            old = w[j]
            moved = old - gradient[j] / H[j, j]
            w[j] = np.sign(moved) * max(abs(moved) - strength / H[j, j], 0.0)
            delta = w[j] - old
            if delta != 0.0:
                worst = max(worst, abs(delta) * H[j, j])
                for k in range(w.size):
                    gradient[k] += delta * H[j, k]
        if worst <= tol:
            return
