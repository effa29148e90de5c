"""The problem F(w) = (1/n) Σ_i φ_i(w) + λ r(w), equation (1): data, loss and penalty, and what can be asked of them."""

import copy
import inspect
import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditgrad import margins
from banditgrad._jit import bridge, check_part, compile_once, kernel, prefetch
from banditgrad.certificate import add_squares, column_curvatures, duality_gap
from banditgrad.local_curvature import local_curvatures
from banditgrad.losses import Logistic, Loss, VectorLoss, has_kinks, margins_of
from banditgrad.losses.names import loss_named
from banditgrad.objective import mean_term
from banditgrad.penalties import Form, Zero, as_penalty, form_of, has_closed_form
from banditgrad.rows import add, as_rows, check_in_place, dot, finite_norms, read_only, refuse_masked

Vector = NDArray[np.float64]


@bridge
class Terms(NamedTuple):
    """The sub-costs φ_i as functions of the margin z = <x_i, w>."""

    loss: Any
    targets: Vector
    weights: Vector  # sample weights, or empty
    derivatives: Any

    def shifted(self, i, z):
        """What the loss is given for the margin z of row i."""
        return z

    def term(self, i, z):
        value = self.loss.value(self.shifted(i, z), self.targets[i])
        return value * self.weights[i] if self.weights.size > 0 else value

    def slope(self, i, z):
        value = self.loss.derivative(self.shifted(i, z), self.targets[i])
        return value * self.weights[i] if self.weights.size > 0 else value

    def fetch(self, i):
        prefetch(self.targets, i)
        if self.weights.size > 0:
            prefetch(self.weights, i)

    def second(self, i, z):
        """φ_i''."""
        value = self.derivatives.second_of(self.loss, self.shifted(i, z), self.targets[i])
        return value * self.weights[i] if self.weights.size > 0 else value

    def expand(self, i, z):
        """(φ_i, φ_i', φ_i'') at z."""
        value, slope, second = self.derivatives.all_of(self.loss, self.shifted(i, z), self.targets[i])
        s = self.weights[i] if self.weights.size > 0 else 1.0
        return s * value, s * slope, s * second

    # What stochastic steps ask for. `margins.VectorTerms` has the same methods for rows of several margins, for which
    # there is the scratch; here a row of the table is a slope and a margin.

    def margin_and_slope(self, rows, iterate, scratch, i):
        """z_i, and the slope with ∇φ_i(w) = slope · x_i."""
        z = iterate.margin(rows, i)
        return z, self.slope(i, z)

    def difference(self, rows, iterate, table, scratch, i):
        """Likewise, and the change with ∇φ_i(w) - ∇φ_i(w̃_i) = change · x_i."""
        z = iterate.margin(rows, i)
        slope = self.slope(i, z)
        return z, slope, slope - table[i].slope

    def largest_second(self, table, scratch, i, z, change):
        """The largest of φ_i'' at the margins of w̃_i and w and of the slope of its derivative between them."""
        before = table[i].margin
        second = max(self.second(i, before), self.second(i, z))
        return max(second, change / (z - before)) if z != before else second

    def second_in(self, table, i):
        """φ_i'' at the margin of w̃_i."""
        return self.second(i, table[i].margin)

    def move_along(self, rows, iterate, scratch, i, factor, change):
        iterate.move(rows, i, factor, change)

    def add_along(self, rows, scratch, i, scale, w):
        """w += scale · x_i."""
        add(rows, i, scale, w)

    def add_row_along(self, rows, iterate, scratch, i, gamma, scale):
        iterate.add_row(rows, i, gamma, scale)

    def keep(self, scratch, k):
        """Rows of one margin have no direction to remember."""

    def recall(self, scratch, k):
        pass

    def along(self, rows, scratch, i, v):
        """<x_i, v>, and its size but for the sign."""
        slope = dot(rows, i, v)
        return slope, slope

    def take_squares(self, rows, i, g, total):
        """total + Σ_j g_j² over the coordinates of row i but the intercept's, which are zero after it."""
        for e in range(rows.begin(i), rows.end(i)):
            j = rows.column(i, e)
            total += g[j] * g[j]
            g[j] = 0.0
        return total

    def free_coordinates(self):
        """How many an intercept is."""
        return 1

    def add_curved(self, rows, scratch, i, w, s, share, out):
        """out += ∇²φ_i(w) s / share."""
        second = self.second(i, dot(rows, i, w))
        add(rows, i, second * dot(rows, i, s) / share, out)

    def note_row_of(self, rows, iterate, i):
        iterate.note_row(rows, i)

    def remember(self, table, scratch, i, z, slope):
        """w̃_i becomes w."""
        table[i].slope = slope
        table[i].margin = z

    def fetch_of(self, table, i):
        prefetch(table, i)

    def term_at(self, rows, scratch, w, i, zero):
        """φ_i(w); w may be said to be zero."""
        return self.term(i, 0.0 if zero else dot(rows, i, w))

    def add_terms_along(self, rows, scratch, i, w, direction, lengths, n, values):
        """values_k += φ_i(w + lengths_k · direction) / n."""
        z, change = dot(rows, i, w), dot(rows, i, direction)
        for k in range(lengths.size):
            values[k] += self.term(i, z + lengths[k] * change) / n

    def add_gradient(self, rows, scratch, w, table, i, n, g, with_value):
        """g += ∇φ_i(w) / n, and w̃_i becomes w; returns φ_i(w) where that is asked for, else 0."""
        z = dot(rows, i, w)
        slope = self.slope(i, z)
        table[i].slope = slope
        table[i].margin = z
        value = self.term(i, z) if with_value else 0.0
        add(rows, i, slope / n, g)
        return value


class OffsetTerms(NamedTuple):
    """Likewise, of margins z = <x_i, w> that the loss is given with an offset added to each."""

    loss: Any
    targets: Vector
    weights: Vector
    derivatives: Any
    offsets: Vector

    def shifted(self, i, z):
        return z + self.offsets[i]

    def fetch(self, i):
        prefetch(self.targets, i)
        prefetch(self.offsets, i)
        if self.weights.size > 0:
            prefetch(self.weights, i)


for _name, _method in vars(Terms).items():
    if inspect.isfunction(_method) and not _name.startswith("_") and _name not in vars(OffsetTerms):
        setattr(OffsetTerms, _name, _method)


@bridge
class ExactDerivatives(NamedTuple):
    """The second derivative of a loss that offers it."""

    bound: float

    def second_of(self, loss, z, y):
        return loss.second_derivative(z, y)

    def all_of(self, loss, z, y):
        return loss.value(z, y), loss.derivative(z, y), loss.second_derivative(z, y)


class FusedDerivatives(NamedTuple):
    """Likewise, of a loss that offers all three at once."""

    bound: float

    def second_of(self, loss, z, y):
        return loss.second_derivative(z, y)

    def all_of(self, loss, z, y):
        return loss.expansion(z, y)


class BoundedDerivatives(NamedTuple):
    """An upper bound on it, for a loss that does not."""

    bound: float

    def second_of(self, loss, z, y):
        return self.bound

    def all_of(self, loss, z, y):
        return loss.value(z, y), loss.derivative(z, y), self.bound


def _derivatives(loss: Any) -> Any:
    bound = float(loss.curvature())
    if not hasattr(loss, "second_derivative"):
        return BoundedDerivatives(bound)
    return FusedDerivatives(bound) if hasattr(loss, "expansion") else ExactDerivatives(bound)


# The cached numbers of a `Problem` that depend on its penalty, and on its loss.
OF_PENALTY = ("_value_at_zero", "_optimality_at_zero", "form")
OF_LOSS = (
    "_value_at_zero", "_optimality_at_zero", "_mean_at_zero", "_gradient_at_zero",
    "curvatures", "smoothness", "gradient_bounds", "_column_curvatures",
)  # fmt: skip


class Parts(NamedTuple):
    """The data term of a problem as kernels take it."""

    rows: Any
    terms: Any
    norms2: Vector  # ‖x_i‖²


class Problem:
    """F(w) = (1/n) Σ_i φ_i(w) + λ r(w),  φ_i(w) = s_i · loss(<x_i, w> + o_i, y_i).

    A loss of several margins, as `Softmax`, has a matrix W with a column for each, and φ_i(W) = s_i · loss(W'x_i, y_i).
    Methods take such a W, and give one back, or all of its numbers in a row, as solvers do.

    Parameters
    ----------
    X : array of shape (n, d), or scipy sparse array or matrix
        float32 and float64 rows in C order, memory-mapped arrays and CSR are used in place; other input is converted.
        The `indices` and `indptr` of a CSR matrix with more than four million entries, which are not copied, must not
        be changed while the problem is in use.
    y : array of shape (n,)
        Targets; classification losses expect -1 and +1, `Softmax` the numbers of the classes, from 0.
    loss : Loss or str
        `Logistic`, `Hinge`, `SquaredHinge`, `ModifiedHuber`, `ComplementaryLogLog`; `Softmax`; `Squared`, `Huber`,
        `Quantile`; `Poisson`, `Gamma`, `Tweedie`; a name, "logistic" or scikit-learn's "log_loss"; or your own.
    penalty : Penalty
        `Zero`, `L1`, `SquaredL2`, `ElasticNet`, or your own; its strength is the λ of the formula.
    sample_weight : array of shape (n,), optional
        Weights s_i >= 0, rescaled to mean 1; a weight of 2 counts like the row given twice.
    fit_intercept : bool
        Whether w has one more, last coordinate, and W one more, last row, that is added to every margin and not
        penalised.
    offset : array of shape (n,), optional
        Numbers o_i that are added to the margins; the logarithm of the exposure for losses with a logarithmic link.
    """

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        loss: Any = None,
        penalty: Any = None,
        sample_weight: ArrayLike | None = None,
        fit_intercept: bool = False,
        offset: ArrayLike | None = None,
    ) -> None:
        traits = ("curvature", "slope_bound")
        loss = Logistic() if loss is None else loss_named(loss) if isinstance(loss, str) else loss
        self.margins = margins_of(loss)
        self.loss = check_part(loss, VectorLoss if hasattr(loss, "margins") else Loss, "loss", also=traits)
        if isinstance(penalty, str):
            raise TypeError(
                f"penalty must be one with its strength, such as SquaredL2(1e-4) or L1(1e-3); got {penalty!r}."
            )
        self.fit_intercept = bool(fit_intercept)
        rows, self.n, self.d = as_rows(X, self.fit_intercept)
        self.penalty = as_penalty(Zero() if penalty is None else penalty, self.d, self.margins)
        targets = read_only(_vector(y, self.n, "y").copy())
        if hasattr(self.loss, "check_targets"):
            self.loss.check_targets(targets)
        norms2 = finite_norms(rows, self.n)
        self.sample_weight = None if sample_weight is None else _weights(sample_weight, self.n)
        weights = np.zeros(0) if self.sample_weight is None else self.sample_weight
        self.offset = None if offset is None else read_only(_vector(offset, self.n, "offset").copy())
        terms: Any
        if self.vector:
            if self.offset is not None:
                raise ValueError(f"offset is for losses of one margin, got {self.loss}, of {self.margins}.")
            terms = margins.vector_terms(self.loss, targets, read_only(weights))
        else:
            about = (self.loss, targets, read_only(weights), _derivatives(self.loss))
            terms = Terms(*about) if self.offset is None else OffsetTerms(*about, self.offset)
        self.parts = Parts(rows, terms, read_only(norms2))

    def __repr__(self) -> str:
        shape = f"{self.n} x {self.d}, {type(self.parts.rows).__name__.lower()}"
        return f"Problem({shape}, loss={self.loss}, penalty={self.penalty}, fit_intercept={self.fit_intercept})"

    def with_loss(self, loss: Any) -> "Problem":
        """The same rows, targets and penalty with another loss of one margin."""
        other = copy.copy(self)
        for name in OF_LOSS:
            vars(other).pop(name, None)
        other.loss = loss
        other.parts = self.parts._replace(terms=self.parts.terms._replace(loss=loss, derivatives=_derivatives(loss)))
        return other

    def with_penalty(self, penalty: Any) -> "Problem":
        """The same data and loss with another penalty; nothing is copied or checked again."""
        other = copy.copy(self)
        for name in OF_PENALTY:
            vars(other).pop(name, None)
        other.penalty = as_penalty(penalty, self.d, self.margins)
        return other

    @property
    def vector(self) -> bool:
        """Whether the loss is one of several margins, and the iterate a matrix."""
        return hasattr(self.loss, "margins")

    @property
    def dimension(self) -> int:
        """How many numbers w is: as many as features, one more with an intercept, and that times the margins."""
        return (self.d + self.fit_intercept) * self.margins

    @property
    def penalised(self) -> int:
        """How many of them are penalised, the first: all but the intercept."""
        return self.d * self.margins

    @property
    def shape(self) -> tuple[int, ...]:
        """That of w, or of W."""
        return (self.d + self.fit_intercept, self.margins) if self.vector else (self.dimension,)

    def shaped(self, w: Vector) -> Vector:
        """w as users have it: W where the loss has several margins."""
        return w.reshape(self.shape)

    @property
    def shrinkage(self) -> tuple[Any, Any] | None:
        """(l1, l2) of a penalty l1 |w| + l2/2 w², which solvers then apply in closed form; None for any other.

        Two numbers, or of `Weighted` two arrays.
        """
        kind: Any = type(self.penalty)
        if not has_closed_form(kind):
            return None
        strengths = self.penalty.shrinkage()
        if strengths is None or np.ndim(strengths[0]):
            return strengths
        l1, l2 = strengths
        return float(l1), float(l2)

    @cached_property
    def form(self) -> Form | None:
        """What is known of the penalty beyond its proximal step; None of one that does not tell."""
        return form_of(self.penalty, self.penalised)

    @property
    def _steps_apart(self) -> bool:
        """Whether the penalty takes a step for each coordinate."""
        return hasattr(self.penalty, "prox") or hasattr(self.penalty, "prox_each")

    @property
    def bounded_curvature(self) -> bool:
        """Whether the loss bounds its second derivative."""
        return math.isfinite(self.loss.curvature())

    @cached_property
    def curvatures(self) -> Vector:
        """Bounds on φ_i'' as functions of the margins, or where there are none, values for a model without features."""
        if self.bounded_curvature:
            return read_only(self._weighted(np.full(self.n, float(self.loss.curvature()))))
        return read_only(local_curvatures(self))

    @cached_property
    def smoothness(self) -> Vector:
        """L_i, the smoothness of each φ_i; near a model without features where the loss has no bound."""
        if self.bounded_curvature:
            return read_only(self._weighted(float(self.loss.curvature()) * self.parts.norms2))
        return read_only(self.curvatures * self.parts.norms2)

    @property
    def tau(self) -> float:
        """τ = max L_i / mean L_i: how unlike the rows are, section 4.1; 1 for equal rows."""
        mean = float(np.mean(self.smoothness))
        return float(np.max(self.smoothness)) / mean if mean > 0.0 else 1.0

    @cached_property
    def gradient_bounds(self) -> Vector | None:
        """G_i >= ‖∇φ_i(w)‖ for all w, or None where the loss has no bounded slope."""
        slope = float(self.loss.slope_bound())
        return read_only(self._weighted(slope * np.sqrt(self.parts.norms2))) if slope < math.inf else None

    def _weighted(self, values: Vector) -> Vector:
        return values if self.sample_weight is None else values * self.sample_weight

    def value(self, w: ArrayLike) -> float:
        """F(w)."""
        w = self.check_point(w)
        return self._value(w) if w.any() else self._value_at_zero

    def _value(self, w: Vector) -> float:
        return float(self._mean(w) + _penalty_cost(self.penalty, w, self.penalised))

    def _mean(self, w: Vector) -> float:
        if self.vector:
            return margins.mean_term(self.parts, self.shaped(w))
        return float(_mean_term(self.parts, margins.NO_SCRATCH, w))

    @cached_property
    def _value_at_zero(self) -> float:
        """Where every run begins, and what it is compared with."""
        zero = np.zeros(self.dimension)
        return float(self._mean_at_zero + _penalty_cost(self.penalty, zero, self.penalised))

    @cached_property
    def _mean_at_zero(self) -> float:
        return self._mean(np.zeros(self.dimension))

    def gradient(self, w: ArrayLike) -> Vector:
        """∇f(w), the gradient of the data term."""
        point, out = self.check_point(w), np.zeros(self.dimension)
        if self.vector:
            margins.gradient(self.parts, self.shaped(point), self.shaped(out))
        else:
            _gradient(self.parts, point, out)
        return out.reshape(np.shape(w))

    def residuals(self, w: ArrayLike) -> Vector:
        """|<x_i, w> + o_i - y_i| for every i."""
        if self.vector:
            raise TypeError(f"{self.loss} has {self.margins} margins and no residuals.")
        out = np.empty(self.n)
        _residuals(self.parts, self.check_point(w), out)
        return out

    def gradient_norms(self, w: ArrayLike) -> Vector:
        """‖∇φ_i(w)‖ for every i."""
        out = np.empty(self.n)
        if self.vector:
            margins.gradient_norms(self.parts, self.shaped(self.check_point(w)), out)
        else:
            _gradient_norms(self.parts, self.check_point(w), out)
        return out

    def gradient_mapping(self, w: ArrayLike, step: float | None = None, gradient: Vector | None = None) -> Vector:
        """(w - prox(w - step ∇f(w))) / step: zero exactly at a minimiser. The step is 1 / mean L_i unless given.

        ∇f(w) is computed unless it is given.
        """
        shape, w = np.shape(w), self.check_point(w)
        if step is None:
            mean = float(np.mean(self.smoothness))
            step = 1.0 / mean if mean > 0.0 else 1.0
        moved = w - step * (self.gradient(w) if gradient is None else np.ravel(gradient))
        _prox_all(self.penalty, moved, step, self.penalised)
        return ((w - moved) / step).reshape(shape)

    def gap(self, w: ArrayLike) -> float:
        """A certificate: F(w) is at most so much above its minimum. The duality gap, at the cost of two passes.

        Infinite where there is none: without a penalty, with features that a penalty leaves free and do not bound, and
        with a penalty of your own that does not tell what it is; then `optimality` tells. It holds for convex losses
        that are never negative. For a loss with kinks it is the least that slopes of smoothed ones show.
        """
        return duality_gap(self, self.check_point(w))

    def optimality(self, w: ArrayLike, gradient: Vector | None = None) -> float:
        """The norm of the gradient mapping in units in which all columns curve alike: zero exactly at a minimiser.

            √( Σ_j h_j (w_j - u_j)² ),   u_j = prox(w_j - ∂_j f(w) / h_j),   h_j >= ∂²f/∂w_j²

        Multiplying a column by a number does not change it, but for the penalty. ∇f(w) is computed unless it is given.
        With a penalty of your own on vectors that has no `prox_each`, all h_j are the largest.
        For a loss with kinks, whose ∇f need not be small anywhere, it is √(2 gap) unless one is given that is, such as
        that of a smoothed loss.
        """
        w, h = self.check_point(w), self._column_curvatures
        if not self._steps_apart:
            h = np.full_like(h, h.max(initial=0.0))
        if has_kinks(self.loss) and gradient is None:
            return math.sqrt(2.0 * self.gap(w))
        moved = w - (self.gradient(w) if gradient is None else np.ravel(gradient)) / h
        if self._steps_apart:
            _prox_each(self.penalty, moved, 1.0 / h, self.penalised)
        else:
            _prox_all(self.penalty, moved, 1.0 / h[0], self.penalised)
        return float(np.linalg.norm(np.sqrt(h) * (w - moved)))

    def relative_optimality(
        self, w: ArrayLike, value: float | None = None, gradient: Vector | None = None, predicted: float = 0.0
    ) -> float:
        """What `tol` bounds: `optimality`, o, relative to that at zero and, where F has not all but vanished, to F.

            max( o(w) / o(0),  min( max(o(w), √predicted) / √F(w), √(F(w) / F(0)) ) )

        ½ o² is in units of F. Where F falls by orders of magnitude, as on separable data, a gradient that is small
        beside that at zero can still be large beside what is left. F(w) and ∇f(w) are computed unless given.
        `predicted` is what F might still fall by according to somebody who knows more of the curvature than o does.
        """
        value = abs(self.value(w) if value is None else value)
        norm, start = self.optimality(w, gradient), abs(self._value_at_zero)
        if norm == 0.0:
            return 0.0
        left = min(_ratio(max(norm, math.sqrt(max(predicted, 0.0))), math.sqrt(value)), math.sqrt(_ratio(value, start)))
        return max(_ratio(norm, self._optimality_at_zero), left)

    @cached_property
    def _optimality_at_zero(self) -> float:
        return self.optimality(np.zeros(self.dimension), self._gradient_at_zero)

    @cached_property
    def _gradient_at_zero(self) -> Vector:
        return self.gradient(np.zeros(self.dimension))

    @cached_property
    def _column_curvatures(self) -> Vector:
        curvatures = np.repeat(column_curvatures(self), self.margins)
        return np.where(curvatures > 0.0, curvatures, 1.0)

    def effective_variance(self, w: ArrayLike, p: ArrayLike) -> float:
        """V_e(w, p) = (1/n²) Σ_i ‖∇φ_i(w)‖² / p_i, equation (5); a row with a zero gradient may have p_i = 0."""
        p = _vector(p, self.n, "p")
        if p.min() < 0.0:
            raise ValueError(f"p must hold probabilities, got {p.min()}.")
        return effective_variance((self.gradient_norms(w) / self.n) ** 2, p)

    def optimal_variance(self, w: ArrayLike) -> float:
        """The least effective variance over all p, reached at p_i ∝ ‖∇φ_i(w)‖."""
        return optimal_variance((self.gradient_norms(w) / self.n) ** 2)

    def compile(self) -> None:
        """Compile what the methods above run, so that their first call takes no longer than the next."""
        compile_once(Problem._compile, (self.parts, self.penalty), self)

    def _compile(self) -> None:
        parts, nothing = self.parts._replace(norms2=self.parts.norms2[:0]), np.zeros(self.dimension)
        if self.vector:
            margins.compile(parts, self.shaped(nothing))
        else:
            _mean_term(parts, margins.NO_SCRATCH, nothing)
            _gradient(parts, nothing, nothing)
        add_squares(parts, nothing)
        _penalty_cost(self.penalty, nothing, 0)
        _prox_all(self.penalty, nothing, 1.0, 0)
        if self._steps_apart:
            _prox_each(self.penalty, nothing, nothing, 0)

    def check_rows(self) -> None:
        """Refuse a large CSR matrix whose indices were changed since, before compiled code trusts them."""
        check_in_place(self.parts.rows, self.n, self.d)

    def check_point(self, w: ArrayLike) -> Vector:
        """w, or W in a row, as a float64 array of the right length."""
        w = np.ascontiguousarray(w, dtype=np.float64)
        if self.vector and w.shape == self.shape:
            return w.reshape(-1)
        if w.shape != (self.dimension,):
            if self.vector:
                what = "the features and the intercept" if self.fit_intercept else "the features"
                raise ValueError(f"W must have shape {self.shape}, {what} by the margins, got {w.shape}.")
            extra = " (the features and the intercept)" if self.fit_intercept else ""
            raise ValueError(f"w must have shape ({self.dimension},){extra}, got {w.shape}.")
        return w


def effective_variance(a: Vector, p: Vector) -> float:
    """V_e = Σ_i a_i / p_i, equation (9), where terms with a_i = 0 count as 0."""
    used = a > 0.0
    if np.any(p[used] == 0.0):
        return math.inf
    return float(np.sum(a[used] / p[used]))


def optimal_variance(a: Vector) -> float:
    """min over p of Σ_i a_i / p_i = (Σ_i √a_i)²."""
    return float(np.sum(np.sqrt(a)) ** 2)


def _vector(values: ArrayLike, n: int, name: str) -> Vector:
    refuse_masked(values, name)
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}.")
    if array.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), one entry per row of X, got {array.shape}.")
    array = np.ascontiguousarray(array, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} has a NaN or an infinity at position {np.flatnonzero(~np.isfinite(array))[0]}.")
    return array


def _ratio(a: float, b: float) -> float:
    """a / b for numbers that are not negative; 0 / 0 is 0."""
    return a / b if b > 0.0 else (math.inf if a > 0.0 else 0.0)


def _weights(values: ArrayLike, n: int) -> Vector:
    weights = _vector(values, n, "sample_weight")
    if weights.min() < 0.0:
        raise ValueError(f"sample_weight must not be negative, got {weights.min()} at position {weights.argmin()}.")
    if not weights.max() > 0.0:
        raise ValueError("sample_weight must not be all zero.")
    weights = weights / weights.max()
    return read_only(weights * (n / weights.sum()))


@kernel
def _mean_term(parts, scratch, w):
    return mean_term(parts, scratch, w)


@kernel
def _penalty_cost(penalty, w, d):
    return penalty.total_cost(w, d)


@kernel
def _gradient(parts, w, out):
    n = parts.norms2.size
    for i in range(n):
        slope = parts.terms.slope(i, dot(parts.rows, i, w))
        if slope != 0.0:
            add(parts.rows, i, slope / n, out)


@kernel
def _residuals(parts, w, out):
    zero = True
    for j in range(w.size):
        zero = zero and w[j] == 0.0
    for i in range(out.size):
        z = parts.terms.shifted(i, 0.0 if zero else dot(parts.rows, i, w))
        out[i] = abs(z - parts.terms.targets[i])


@kernel
def _gradient_norms(parts, w, out):
    for i in range(out.size):
        out[i] = abs(parts.terms.slope(i, dot(parts.rows, i, w))) * math.sqrt(parts.norms2[i])


@kernel
def _prox_each(penalty, w, steps, d):
    penalty.prox_each(w, steps, d)


@kernel
def _prox_all(penalty, w, step, d):
    penalty.prox_all(w, step, d)
