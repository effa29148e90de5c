"""The sampled Hessian without a matrix, for wide data and smooth penalties: its rows are kept as they are.

The model is minimised by conjugate gradients on M = Σ_k c_k x_i x_i' + l2, of which a product costs a look at the
sampled rows. They stop early: what a sample knows least, its small eigenvalues, is what they would look at last.

Rows that have little in common tell little but the diagonal of the Hessian. A sample is therefore shrunk towards its
diagonal, by as much as is noise off it, and dropped where that is most: see `memory` for what is done then.
"""

import math

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import kernel
from banditgrad.rows import add, dot
from banditgrad.solvers.newton.costs import Costs
from banditgrad.solvers.newton.curvature import Sample
from banditgrad.solvers.newton.view import AHEAD, View, add_squares

Vector = NDArray[np.float64]

PRODUCTS = 50  # with the model at most, for one minimiser
PROBES = 500  # pairs of rows that tell how much a sample knows
SAME = 1e-3  # relative: a slope as near as this to what the last minimiser left
MOST_DOUBT = 0.5  # a sample that knows less than its diagonal does is dropped
USUAL = 8.0  # as many as a minimiser takes as a rule: by it the sample's size is chosen


class RowCurvature:
    """An estimate of the Hessian of the rows in view, as the rows that were sampled.

    Attributes
    ----------
    dropped : whether the sample was of no use; then the diagonal is all that is known, and no other is drawn
    exact : whether the sample was all rows
    diagonal : of the Hessian; empty where all rows are taken
    """

    def __init__(self, view: View, stream: NDArray[np.uint64]) -> None:
        self.view, self.sample = view, Sample(view, stream)
        self.dropped, self.exact, self._all, self.diagonal = False, False, False, np.zeros(0)
        self.effort = 1.0
        self._seen, self._mass = np.zeros(0), 0.0  # the diagonal when it was last seen
        self._rest = self._direction = np.zeros(view.gradient.size)
        self._chosen, self._scales, self._room = np.zeros(0, np.int64), np.zeros(0), np.zeros(view.gradient.size)

    @staticmethod
    def cost(costs: Costs) -> float:
        """Of the products with all rows."""
        return USUAL * costs.product

    def pays_in_full(self, bends: Vector, share: float) -> bool:
        """Whether to take all rows where they stay as they are: if a sample tells more than its diagonal."""
        self.move(bends, share)
        return not self.dropped

    def move(self, bends: Vector, share: float, exact: bool = False) -> int:
        """A new sample of about share · size rows, or all of them where the share is 1 or more; once it was to be
        `exact`, it is always all of them."""
        self._all = self._all or exact
        share = 1.0 if self._all else share
        self.exact = share >= 1.0 and not self.dropped
        if not self.dropped:
            self.sample.begin(bends, afresh=True)
            picked, changes = self.sample.pick(bends, share)
            self._chosen, self._scales = self.view.rows(picked).copy(), changes.copy()
            doubt = self._doubt(bends[picked] / changes) if share < 1.0 else 0.0
            self.dropped = doubt > MOST_DOUBT
            self._scales *= 1.0 - doubt
        if share < 1.0:
            self._see_diagonal(float(bends @ self.view.norms2))
        else:  # the rows tell it themselves
            self.diagonal = self.view.diagonal = np.zeros(0)
        return self._chosen.size

    def _see_diagonal(self, mass: float) -> None:
        """The diagonal of the Hessian as the last look saw it; `mass` is its sum.

        Without a sample, looks are spared that until the mass has doubled or halved: the last one seen is scaled.
        """
        if self.view.diagonal.size:
            self._seen, self._mass = self.view.diagonal.copy(), mass
        change = mass / self._mass if self._mass > 0.0 else 1.0
        self.diagonal = change * self._seen
        near = self._mass > 0.0 and 0.5 < change < 2.0
        self.view.diagonal = np.zeros(0 if self.dropped and near else self._seen.size)

    def _doubt(self, chances: Vector) -> float:
        """How far to shrink the sample towards its diagonal (Ledoit and Wolf 2004): the share of noise in the rest.

        The rows of a sample of which row k was taken with probability π_k have Σ_k c_k² (1 - π_k) ‖x_k‖⁴ of noise in
        the squares of the matrix; what two of them have in common is no noise. Some pairs are enough to tell.
        """
        m = self._chosen.size
        first = np.linspace(0, m - 1, min(m, PROBES)).astype(np.int64)
        second = (first + m // 2) % max(m, 1)
        own, common = _overlaps(self.view.parts.rows, self._chosen, self._scales, chances, first, second, self._room)
        noise, signal = own, max(common, 0.0) * m
        return noise / (noise + signal) if noise > 0.0 else 0.0

    def minimise(self, gradient: Vector, w: Vector, l1: Vector, l2: Vector, tol: float) -> tuple[Vector, float]:
        """The change v of w that minimises the quadratic model, to √tol, and the <v, M v> of it; l1 must be 0."""
        rows = self.view.parts.rows
        seen = np.zeros_like(w)
        _diagonal(rows, self._chosen, self._scales, seen)
        held = l2 + (np.maximum(self.diagonal - seen, 0.0) if self.diagonal.size else 0.0)
        weight = np.maximum(seen + held, 1e-12 * float((seen + held).max()) or 1.0)  # the preconditioner
        v, product = np.zeros_like(w), np.zeros_like(w)
        slope = gradient + l2 * w
        r = -slope
        s = r / weight
        p, energy = s.copy(), float(r @ s)
        if np.linalg.norm(r - self._rest) <= SAME * np.linalg.norm(r):
            p = self._direction  # F is what the model said, as a quadratic F is: conjugate gradients go on
        goal = tol / self.effort**2 * energy
        for _ in range(int(PRODUCTS * self.effort)):
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
        self._rest, self._direction = r, p
        return v, -float(v @ (slope + r)) - float((l2 * v) @ v)


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


@kernel
def _overlaps(rows, chosen, scales, chances, first, second, room):
    """Sums over pairs k, l of c_k² (1 - π_k) (‖x_k‖⁴ - Σ_j x_kj⁴) and of c_k c_l (<x_k, x_l>² - Σ_j x_kj² x_lj²).

    They are squares of entries off the diagonal. `room` is zero before and after.
    """
    own, common = 0.0, 0.0
    for pair in range(first.size):
        k, other = first[pair], second[pair]
        i, h = chosen[k], chosen[other]
        add(rows, i, 1.0, room)
        square, fourth, product, products = 0.0, 0.0, 0.0, 0.0
        for e in range(rows.begin(i), rows.end(i)):
            x = np.float64(rows.entry(i, e))
            square += x * x
            fourth += x * x * x * x
        for e in range(rows.begin(h), rows.end(h)):
            x = rows.entry(h, e) * room[rows.column(h, e)]
            product += x
            products += x * x
        if rows.intercept != 0.0:
            square, fourth, product, products = square + 1.0, fourth + 1.0, product + 1.0, products + 1.0
        add(rows, i, -1.0, room)
        own += scales[k] * scales[k] * (1.0 - chances[k]) * (square * square - fourth)
        common += scales[k] * scales[other] * (product * product - products)
    return own, common
