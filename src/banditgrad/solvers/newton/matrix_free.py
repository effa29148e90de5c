"""The sampled Hessian without a matrix, for wide data and smooth penalties: its rows are kept as they are.

The model is minimised by conjugate gradients on M = Σ_k c_k x_i x_i' + l2, of which a product costs a pass over
the sampled rows. They stop early: what a sample knows least, its small eigenvalues, is what they would come to last.

Rows that have little in common tell little but the diagonal of the Hessian. A sample is therefore shrunk towards its
diagonal, by as much as is noise off it, and dropped where that is most: see `lbfgs` for what is done then.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import kernel
from banditgrad.rows import add, dot
from banditgrad.solvers.newton.costs import Costs
from banditgrad.solvers.newton.hessian import Sample
from banditgrad.solvers.newton.subset import AHEAD, RowSubset, add_squares

Vector = NDArray[np.float64]

PRODUCTS = 50  # with the model at most, for one minimiser
PROBES = 500  # pairs of rows that tell how much of a sample is noise
SAME = 1e-3  # relative: a slope as near as this to the last residual
MOST_NOISE = 0.5  # a sample that knows less than its diagonal does is dropped
USUAL = 8.0  # as many as a minimiser takes as a rule: by it the sample's size is chosen


class HessianRows:
    """An estimate of the Hessian of a subset of rows, as the rows that were sampled.

    Attributes
    ----------
    dropped : whether the sample was of no use; then the diagonal is all that is known, and no other is drawn
    exact : whether the sample was all rows
    diagonal : of the Hessian; empty where all rows are taken
    """

    constant = False

    def __init__(self, subset: RowSubset, stream: NDArray[np.uint64]) -> None:
        self.subset, self.sample = subset, Sample(subset, stream)
        self.dropped, self.exact, self._all, self.diagonal = False, False, False, np.zeros(0)
        self.effort = 1.0
        self._measured, self._mass = np.zeros(0), 0.0  # the diagonal when it was last computed
        self._residual = self._direction = np.zeros(subset.gradient.size)
        self._chosen, self._scales = np.zeros(0, np.int64), np.zeros(0)

    @staticmethod
    def cost(costs: Costs) -> float:
        """Of the products with all rows."""
        return USUAL * costs.product

    def exact_pays(self, second_derivatives: Vector, share: float) -> bool:
        """Whether to take all rows where they stay as they are: if a sample tells more than its diagonal."""
        self.move(second_derivatives, share)
        return not self.dropped

    def affordable(self, share: float, w: Vector, l1: Vector) -> float:
        """See `HessianMatrix`."""
        return share

    def move(self, second_derivatives: Vector, share: float, exact: bool = False) -> int:
        """A new sample of about share · size rows, or all of them where the share is 1 or more; once it was to be
        `exact`, it is always all of them."""
        self._all = self._all or exact
        share = 1.0 if self._all else share
        self.exact = share >= 1.0 and not self.dropped
        if not self.dropped:
            self.sample.begin(second_derivatives, afresh=True)
            picked, changes = self.sample.pick(second_derivatives, share)
            self._chosen, self._scales = self.subset.rows(picked).copy(), changes.copy()
            noise = self._noise_share(second_derivatives[picked] / changes) if share < 1.0 else 0.0
            self.dropped = noise > MOST_NOISE
            self._scales *= 1.0 - noise
        if share < 1.0:
            self._update_diagonal(float(second_derivatives @ self.subset.norms2))
        else:  # the rows tell it themselves
            self.diagonal = self.subset.diagonal = np.zeros(0)
        return self._chosen.size

    def _update_diagonal(self, mass: float) -> None:
        """The diagonal of the Hessian as the last evaluation found it; `mass` is its sum.

        Without a sample, evaluations are spared that until the mass has doubled or halved: the last one is scaled.
        """
        if self.subset.diagonal.size:
            self._measured, self._mass = self.subset.diagonal.copy(), mass
        change = mass / self._mass if self._mass > 0.0 else 1.0
        self.diagonal = change * self._measured
        near = self._mass > 0.0 and 0.5 < change < 2.0
        self.subset.diagonal = np.zeros(0 if self.dropped and near else self._measured.size)

    def _noise_share(self, chances: Vector) -> float:
        """By how much to shrink the sample towards its diagonal (Ledoit and Wolf 2004): the share of noise off it.

            N / (N + S),   N = Σ_k c_k² (1 - π_k) (‖x_k‖⁴ - Σ_j x_kj⁴),
                           S = Σ_k,l c_k c_l (<x_k, x_l>² - Σ_j x_kj² x_lj²)

        for rows taken with probabilities π_k: the squares of the matrix that are noise, and those that two rows have in
        common. Some pairs are enough to tell.
        """
        m = self._chosen.size
        first = np.linspace(0, m - 1, min(m, PROBES)).astype(np.int64)
        second = (first + m // 2) % max(m, 1)
        rows, zeros = self.subset.parts.rows, np.zeros(self.subset.gradient.size)
        noise, common = _overlaps(rows, self._chosen, self._scales, chances, first, second, zeros)
        signal = max(common, 0.0) * m
        return noise / (noise + signal) if noise > 0.0 else 0.0

    def minimise(self, gradient: Vector, w: Vector, l1: Vector, l2: Vector, tol: float) -> tuple[Vector, float]:
        """v = argmin <∇f, v> + ½ <v, M v> + (l2/2) ‖w + v‖², to √tol, and <v, M v>; l1 must be 0."""
        squares = np.zeros_like(w)
        _diagonal(self.subset.parts.rows, self._chosen, self._scales, squares)
        ridge = l2 + (np.maximum(self.diagonal - squares, 0.0) if self.diagonal.size else 0.0)
        weight = np.maximum(squares + ridge, 1e-12 * float((squares + ridge).max()) or 1.0)
        slope = gradient + l2 * w
        # F is what the last model said, as a quadratic F is: its conjugate gradients go on
        go_on = np.linalg.norm(slope + self._residual) <= SAME * np.linalg.norm(slope)
        v, r, self._direction = conjugate_gradients(
            lambda p: self._product(ridge, p),
            weight,
            -slope,
            tol / self.effort**2,
            int(PRODUCTS * self.effort),
            self._direction if go_on else None,
        )
        self._residual = r
        return v, -float(v @ (slope + r)) - float((l2 * v) @ v)

    def _product(self, ridge: Vector, p: Vector) -> Vector:
        """(Σ_k c_k x_i x_i' + ridge) p."""
        out = ridge * p
        _add_product(self.subset.parts.rows, self._chosen, self._scales, p, out)
        return out


def conjugate_gradients(
    multiply: Callable[[Vector], Vector], weight: Vector, b: Vector, tol: float, most: int, p: Vector | None = None
) -> tuple[Vector, Vector, Vector]:
    """x ≈ A⁻¹ b, the residual b - A x, and the direction in which the next iteration would go; A p = multiply(p).

        α = <r, s> / <p, A p>,   x ← x + α p,   r ← r - α A p,   s = r / weight,   p ← s + <r, s> / <r, s>_before · p

    until <r, s> is tol of what it was, or `most` products are done. The preconditioner is a diagonal, `weight`. Given
    a direction p, it is restarted there instead of from the steepest one.
    """
    x, r, s = np.zeros_like(b), b.copy(), b / weight
    p, energy = s if p is None else p, float(r @ s)
    goal = tol * energy
    for _ in range(most):
        if not energy > goal:
            break
        product = multiply(p)
        curvature = float(p @ product)
        if not (curvature > 0.0 and math.isfinite(curvature)):
            break
        x += (energy / curvature) * p
        r -= (energy / curvature) * product
        s = r / weight
        before, energy = energy, float(r @ s)
        p = s + (energy / before) * p
    return x, r, p


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
def _overlaps(rows, chosen, scales, chances, first, second, scratch):
    """Sums over pairs k, l of c_k² (1 - π_k) (‖x_k‖⁴ - Σ_j x_kj⁴) and of c_k c_l (<x_k, x_l>² - Σ_j x_kj² x_lj²).

    They are squares of entries off the diagonal. `scratch` is zero before and after.
    """
    own, common = 0.0, 0.0
    for pair in range(first.size):
        k, other = first[pair], second[pair]
        i, h = chosen[k], chosen[other]
        add(rows, i, 1.0, scratch)
        square, fourth, product, products = 0.0, 0.0, 0.0, 0.0
        for e in range(rows.begin(i), rows.end(i)):
            x = np.float64(rows.entry(i, e))
            square += x * x
            fourth += x * x * x * x
        for e in range(rows.begin(h), rows.end(h)):
            x = rows.entry(h, e) * scratch[rows.column(h, e)]
            product += x
            products += x * x
        if rows.intercept != 0.0:
            square, fourth, product, products = square + 1.0, fourth + 1.0, product + 1.0, products + 1.0
        add(rows, i, -1.0, scratch)
        own += scales[k] * scales[k] * (1.0 - chances[k]) * (square * square - fourth)
        common += scales[k] * scales[other] * (product * product - products)
    return own, common
