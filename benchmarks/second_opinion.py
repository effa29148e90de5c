"""A second opinion on F*, in plain NumPy: nothing of it is shared with the solvers that it judges.

    F(w) = (1/n) Σ_i s_i φ(z_i, y_i) + l1 ‖w‖₁ + l2/2 ‖w‖²,    z = X w, without a penalty on an intercept

Newton steps on the exact Hessian H, in units in which every column has mean square 1. A coefficient stays zero where
that is optimal, and keeps its sign during a step: the others move by -(H + μ diag H)⁻¹ g, and stop at zero. Where F
does not fall μ grows, until the step is a short one down the gradient, which makes F fall wherever it is not minimal.
Huber's loss is linear far from the targets, where H is nothing: it is rounded first, so widely that all rows curve, and
ever less.
"""

import math
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.special import expit

import banditgrad as bg

STEPS = 300
LARGEST = 1500  # coefficients that move at once: H is dense
ENOUGH = 1e-9  # of F: the gain that the next step promises
SHARPEN = 4.0  # from one width of the bend in Huber's loss to the next


class Opinion(NamedTuple):
    """Where it ended, and how much lower the minimum of its last model is: infinite where there was none."""

    w: np.ndarray
    promise: float


# loss: φ, φ' and φ'' of margins and targets
def _logistic(loss, z, y):
    return (
        loss.scale * np.logaddexp(0.0, -y * z),
        -loss.scale * y * expit(-y * z),
        loss.scale * expit(z) * expit(-z),
    )


def _squared_hinge(loss, z, y):
    short = np.maximum(loss.margin - y * z, 0.0)
    return short**2, -2.0 * y * short, 2.0 * (short > 0.0)


def _squared(loss, z, y):
    return 0.5 * loss.scale * (z - y) ** 2, loss.scale * (z - y), np.full(z.size, loss.scale)


def _huber(loss, z, y):
    r, inner = z - y, np.abs(z - y) <= loss.delta
    return (
        np.where(inner, 0.5 * r * r, loss.delta * (np.abs(r) - 0.5 * loss.delta)),
        np.clip(r, -loss.delta, loss.delta),
        inner.astype(float),
    )


def _pseudo_huber(loss, z, y):
    return _rounded(_Rounded(loss.delta, loss.delta), z, y)


class _Rounded(NamedTuple):
    """slope · (√(r² + width²) - width), r = z - y."""

    slope: float
    width: float


def _rounded(loss, z, y):
    r = z - y
    root = np.sqrt(r * r + loss.width**2)
    return loss.slope * r * r / (root + loss.width), loss.slope * r / root, loss.slope * loss.width**2 / root**3


LOSSES = {
    "Logistic": _logistic,
    "SquaredHinge": _squared_hinge,
    "Squared": _squared,
    "Huber": _huber,
    "PseudoHuber": _pseudo_huber,
    "_Rounded": _rounded,
}


class _Scaled:
    """The problem in units of its columns."""

    def __init__(self, X: Any, y: np.ndarray, problem: bg.Problem) -> None:
        n = len(y)
        self.y, self.loss = y, problem.loss
        self.s = np.ones(n) if problem.sample_weight is None else problem.sample_weight
        X = sp.csr_array(X).astype(np.float64) if sp.issparse(X) else np.asarray(X, np.float64)
        if problem.fit_intercept:
            ones = np.ones((n, 1))
            X = sp.csr_array(sp.hstack([X, ones])) if sp.issparse(X) else np.hstack([X, ones])
        squares = (X.multiply(X) if sp.issparse(X) else X * X).T @ self.s / n
        self.units = np.where(squares > 0.0, np.sqrt(squares), 1.0)  # w = v / units
        self.X = X @ sp.diags_array(1.0 / self.units) if sp.issparse(X) else X / self.units
        l1, l2 = problem.shrinkage
        penalised = np.arange(self.units.size) < problem.d
        self.l1, self.l2 = penalised * l1 / self.units, penalised * l2 / self.units**2

    def terms(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """φ_i, φ_i' and φ_i'' over n."""
        return tuple(part * self.s / self.y.size for part in LOSSES[type(self.loss).__name__](self.loss, z, self.y))

    def change(self, v: np.ndarray, z: np.ndarray, u: np.ndarray, z_u: np.ndarray) -> float:
        """F(u) - F(v), summed term by term: near the minimum it is much smaller than F."""
        penalty = self.l1 * (np.abs(u) - np.abs(v)) + 0.5 * self.l2 * (u - v) * (u + v)
        return float(np.sum(self.terms(z_u)[0] - self.terms(z)[0]) + penalty.sum())

    def hessian(self, curves: np.ndarray, free: np.ndarray) -> np.ndarray:
        columns = self.X[:, free]
        if sp.issparse(columns):
            H = (columns.T @ (sp.diags_array(curves) @ columns)).toarray()
        else:
            H = columns.T @ (columns * curves[:, None])
        H[np.diag_indices_from(H)] += self.l2[free]
        return H


def second_opinion(X: Any, y: np.ndarray, problem: bg.Problem, w: np.ndarray, deadline: float = math.inf) -> Opinion:
    """The minimum as seen from w, or how far it came by the deadline, a time of the monotonic clock."""
    scaled = _Scaled(X, y, problem)
    v = w * scaled.units
    if type(problem.loss).__name__ in ("Huber", "PseudoHuber"):
        width = float(np.abs(y).max())
        while width > problem.loss.delta:
            scaled.loss = _Rounded(problem.loss.delta, width)
            v, width = _descend(scaled, v, deadline)[0], width / SHARPEN
        scaled.loss = problem.loss
    v, promise = _descend(scaled, v, deadline)
    return Opinion(v / scaled.units, promise)


def _descend(scaled: _Scaled, v: np.ndarray, deadline: float) -> tuple[np.ndarray, float]:
    """Newton steps until the next promises to gain nothing, or no step makes F fall; and what the next promises."""
    z, mu, promise = scaled.X @ v, 1e-6, np.inf
    for _ in range(STEPS):
        if time.monotonic() >= deadline:
            return v, np.inf
        values, slopes, curves = scaled.terms(z)
        gradient = scaled.X.T @ slopes + scaled.l2 * v
        steepest = np.where(v != 0.0, gradient + scaled.l1 * np.sign(v), 0.0)
        at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - scaled.l1, 0.0)
        steepest = np.where(v == 0.0, at_zero, steepest)
        free = np.flatnonzero((v != 0.0) | (steepest != 0.0))
        if free.size > LARGEST:
            return v, np.inf
        if free.size == 0:
            return v, 0.0
        side = np.where(v[free] != 0.0, np.sign(v[free]), -np.sign(steepest[free]))
        kept = scaled.l1[free] > 0.0  # a sign matters where there is a kink
        H, g = scaled.hessian(curves, free), steepest[free]
        diagonal = np.maximum(np.diag(H), 1e-12)
        promise = 0.5 * float(g @ _solved(H, 1e-10 * diagonal, g))
        if promise <= ENOUGH * max(values.sum(), 1e-300):
            break
        while mu < 1e12:
            u = v.copy()
            u[free] = v[free] - _solved(H, mu * diagonal, g)
            u[free] = np.where(kept & (u[free] * side < 0.0), 0.0, u[free])
            z_u = scaled.X @ u
            if scaled.change(v, z, u, z_u) < 0.0:
                break
            mu *= 10.0
        else:
            break
        v, z, mu = u, z_u, max(mu / 30.0, 1e-10)
    return v, promise


def _solved(H: np.ndarray, damping: np.ndarray, g: np.ndarray) -> np.ndarray:
    damped = H + np.diag(damping)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)  # F tells whether the step was good
        try:
            return scipy.linalg.solve(damped, g, assume_a="pos")
        except scipy.linalg.LinAlgError:
            return g / np.diag(damped)
