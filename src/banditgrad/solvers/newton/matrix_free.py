"""The sampled Hessian without a matrix, for wide data and smooth penalties: its rows are kept as they are.

The model is minimised by conjugate gradients on M = Σ_k c_k x_i x_i' + l2, of which a product costs a look at the
sampled rows. They stop early: what a sample knows least, its small eigenvalues, is what they would look at last.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import kernel
from banditgrad.rows import add, dot
from banditgrad.solvers.newton.curvature import Sample
from banditgrad.solvers.newton.view import AHEAD, View, add_squares

Vector = NDArray[np.float64]

PRODUCTS = 50  # with the model at most, for one minimiser
USUAL = 8.0  # as many as a minimiser takes as a rule: by it the sample's size is chosen


class RowCurvature:
    """An estimate of the Hessian of the rows in view, as the rows that were sampled."""

    def __init__(self, view: View, stream: NDArray[np.uint64]) -> None:
        self.view, self.sample = view, Sample(view, stream)
        view.diagonal = np.zeros(view.gradient.size)
        self._chosen, self._scales = np.zeros(0, np.int64), np.zeros(0)

    def cost(self, problem: Any, lengths: Vector) -> float:
        """Of the products with all rows, which have so many entries."""
        return USUAL * 2.0 * max(float(lengths.sum()), 1.0)

    def move(self, bends: Vector, share: float) -> int:
        """A new sample of about share · size rows, or all of them where the share is 1 or more."""
        self.sample.begin(bends, afresh=True)
        picked, changes = self.sample.pick(bends, share)
        self._chosen, self._scales = self.view.rows(picked).copy(), changes.copy()
        return picked.size

    def minimise(self, gradient: Vector, w: Vector, l1: Vector, l2: Vector, tol: float) -> tuple[Vector, float]:
        """The change v of w that minimises the quadratic model, to √tol, and the <v, M v> of it; l1 must be 0."""
        rows = self.view.parts.rows
        seen = np.zeros_like(w)
        _diagonal(rows, self._chosen, self._scales, seen)
        held = l2 + np.maximum(self.view.diagonal - seen, 0.0)
        weight = np.maximum(seen + held, 1e-12 * float((seen + held).max()) or 1.0)  # the preconditioner
        v, product = np.zeros_like(w), np.zeros_like(w)
        r = -(gradient + l2 * w)
        s = r / weight
        p, energy = s.copy(), float(r @ s)
        goal = tol * energy
        for _ in range(PRODUCTS):
            if not energy > goal:
                break
            product[:] = held * p
            _add_product(rows, self._chosen, self._scales, p, product)
            curve = float(p @ product)
            if not (curve > 0.0 and math.isfinite(curve)):
                break
            v += (energy / curve) * p
            r -= (energy / curve) * product
            s = r / weight
            before, energy = energy, float(r @ s)
            p = s + (energy / before) * p
        product[:] = (held - l2) * v
        _add_product(rows, self._chosen, self._scales, v, product)
        return v, float(v @ product)


@kernel
def _add_product(rows, chosen, scales, v, out):
    """out += Σ_k scales_k x_i <x_i, v>."""
    for k in range(chosen.size):
        if k + AHEAD < chosen.size:
            rows.fetch(chosen[k + AHEAD])
        add(rows, chosen[k], scales[k] * dot(rows, chosen[k], v), out)


@kernel
def _diagonal(rows, chosen, scales, out):
    for k in range(chosen.size):
        add_squares(rows, chosen[k], scales[k], out)
