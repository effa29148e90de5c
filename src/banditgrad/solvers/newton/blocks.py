"""The minimiser of a quadratic model with bounds, or with norms of groups of coordinates,

    q(u) = <g, u - w> + ½ <u - w, M (u - w)> + Σ_j l1_j |u_j| + (l2_j/2) u_j² + Σ_b μ_b ‖u_b‖,   lower <= u <= upper,

by block coordinate descent (Yuan and Lin 2006), where what is in no group is a block of its own, and steps of Newton's
method among the coordinates that are free: q is smooth there.

A block moves to its minimiser by proximal steps in the metric of D_j = Σ_k |M_jk| + l2_j over its own coordinates,
which is above its part of M + l2; for a single coordinate D is that part, and one step is enough.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import bridge, inline, kernel
from banditgrad.penalties import Form
from banditgrad.penalties.groups import shrink_block, soft
from banditgrad.solvers.newton.quadratic import solve_linear

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

SWEEPS = 16  # between two moves of the free coordinates
ROUNDS = 12
INNER, CLOSE = 50, 1e-3  # proximal steps for one block, up to this part of the first
LARGEST = 256  # coordinates of a block whose matrix is kept; a larger one takes one step, in a metric by its trace
SHORTEST = 2.0**-12
ROUNDING = 1e-15  # relative: nothing moves less
FAILURES = 2  # of steps of Newton's method, after which rounding hides the rest
STILL = 1e-300  # instead of 1 / D where that is infinite: nothing moves there but to zero


class Blocks(NamedTuple):
    """A penalty with every coordinate in one block, and room to work in."""

    l1: Vector
    l2: Vector
    lower: Vector
    upper: Vector
    members: Indices
    begins: Indices
    norms: Vector  # one for each block; 0 for single coordinates
    metric: Vector  # D
    starts: Indices  # where a block's own matrix begins in `grams`
    grams: Vector
    slope: Vector  # of the smooth part, l2 included, where it was last computed
    before: Vector
    new: Vector
    steps: Vector  # 1 / D

    def clipped(self, u: Vector) -> Vector:
        """Rounding may carry a point over its bounds."""
        return np.clip(u, self.lower, self.upper)

    def cost(self, u: Vector) -> float:
        """The norms of groups; infinite out of bounds."""
        if np.any(u < self.lower) or np.any(u > self.upper):
            return math.inf
        return float(self.norms @ self.sizes(u))

    def sizes(self, u: Vector) -> Vector:
        """‖u_b‖."""
        return np.sqrt(np.add.reduceat(u[self.members] ** 2, self.begins[:-1])) if u.size else u

    def of_members(self, each: Any) -> Vector:
        """For each coordinate what there is for each block."""
        out = np.empty(self.l1.size)
        out[self.members] = np.repeat(each, np.diff(self.begins))
        return out


def expect_form(problem: Any, who: str) -> None:
    """Of a penalty that is known by its proximal step alone no model of F can be minimised."""
    if problem.form is None:
        raise TypeError(
            f"{who} takes Zero, L1, SquaredL2, ElasticNet, Weighted and Box of these, GroupLasso and SparseGroupLasso, "
            f"got {type(problem.penalty).__name__}. Use ProxSvrg with it."
        )


def new_blocks(form: Form, l2: Vector) -> Blocks:
    """For as many coordinates as l2 has, the last of which may not be penalised."""
    size, d = l2.size, form.numbers
    free = size - d
    alone = np.ones(size, bool)
    alone[form.members] = False
    single = np.flatnonzero(alone)
    lengths = np.concatenate([np.diff(form.begins), np.ones(single.size, np.int64)])
    return _with_room(
        np.append(form.l1, np.zeros(free)),
        l2,
        np.append(form.lower, np.full(free, -math.inf)),
        np.append(form.upper, np.full(free, math.inf)),
        np.concatenate([form.members, single]),
        np.append(0, np.cumsum(lengths)),
        np.concatenate([form.norms, np.zeros(single.size)]),
    )


def _with_room(
    l1: Vector, l2: Vector, lower: Vector, upper: Vector, members: Indices, begins: Indices, norms: Vector
) -> Blocks:
    lengths = np.diff(begins)
    starts = np.append(0, np.cumsum(np.where((lengths > 1) & (lengths <= LARGEST), lengths**2, 0)))
    room = [np.zeros(l1.size) for _ in range(5)]
    return Blocks(l1, l2, lower, upper, members, begins, norms, room[0], starts, np.zeros(starts[-1]), *room[1:])


def among(blocks: Blocks, chosen: NDArray[np.bool_]) -> tuple[Blocks, Indices]:
    """Some of the blocks alone, and which coordinates theirs are; these are in their order."""
    lengths = np.diff(blocks.begins)
    kept = blocks.members[np.repeat(chosen, lengths)]
    working = np.sort(kept)
    l1, l2, lower, upper = (a[working] for a in (blocks.l1, blocks.l2, blocks.lower, blocks.upper))
    begins = np.append(0, np.cumsum(lengths[chosen]))
    return _with_room(l1, l2, lower, upper, np.searchsorted(working, kept), begins, blocks.norms[chosen]), working


def asked_to_move(blocks: Blocks, u: Vector, slope: Vector) -> NDArray[np.bool_]:
    """The blocks that are not zero, or that the slope of the smooth part moves from there."""
    push = np.maximum(np.abs(slope) - blocks.l1, 0.0)
    push = np.where(slope > 0.0, np.where(blocks.lower < u, push, 0.0), np.where(blocks.upper > u, push, 0.0))
    return np.asarray((blocks.sizes(u) > 0.0) | (blocks.sizes(push) > blocks.norms))


@bridge
class MatrixModel(NamedTuple):
    """<g, u - w> + ½ <u - w, M (u - w)>, its partial derivatives kept in r."""

    M: Matrix
    r: Vector

    def visit(self, order):
        pass

    def partial(self, j, u):
        return self.r[j]

    def shift(self, j, change):
        for k in range(self.r.size):
            self.r[k] += change * self.M[j, k]

    def model_entry(self, j, k):
        """M_jk."""
        return self.M[j, k]


class FreeCurvature(NamedTuple):
    """What the penalty adds to M among free coordinates: of ‖u_b‖ it is (I - e e') / ‖u_b‖, with e = u_b / ‖u_b‖."""

    diagonal: Vector
    directions: Vector  # e / √‖u_b‖, times √μ_b
    block: Indices  # of each coordinate

    def times(self, p: Vector) -> Vector:
        along = np.bincount(self.block, self.directions * p)[self.block] if p.size else p
        return np.asarray(self.diagonal * p - self.directions * along)

    def matrix(self) -> Matrix:
        same = self.block[:, None] == self.block
        return np.asarray(np.diag(self.diagonal) - np.where(same, np.outer(self.directions, self.directions), 0.0))


def minimise_with_matrix(M: Matrix, g: Vector, w: Vector, blocks: Blocks, tol: float) -> Vector:
    """v = u - w, to a violation of tol times that at w."""
    model = MatrixModel(np.ascontiguousarray(M), g.copy())

    def solve(free: Indices, added: FreeCurvature, slope: Vector) -> Vector:
        return -solve_linear(M[np.ix_(free, free)] + added.matrix(), np.zeros(free.size), slope)

    return minimise_in_blocks(model, w, blocks, tol, solve, lambda change: np.asarray(M @ change))


def minimise_in_blocks(
    model: Any,
    w: Vector,
    blocks: Blocks,
    tol: float,
    solve: Callable[[Indices, FreeCurvature, Vector], Vector] | None,
    multiply: Callable[[Vector], Vector] | None,
    rounds: int = ROUNDS,
) -> Vector:
    """Likewise with any model. `solve` finds the step of Newton's method among free coordinates, given what the penalty
    adds to their matrix and the slope; without it there are sweeps alone."""
    u, order = w.copy(), np.arange(blocks.norms.size)
    _measure_blocks(model, blocks)
    start = _violation(model, blocks, u)
    goal = max(tol * start, ROUNDING * float(np.max(np.sqrt(blocks.metric) * np.abs(u), initial=0.0)))
    failures = 0
    for _ in range(rounds):
        if _sweep_blocks(model, blocks, goal, SWEEPS, order, u) or failures == FAILURES:
            break
        if solve is not None and multiply is not None:
            failures += not _move_free(model, blocks, u, solve, multiply)
    return u - w


def free_coordinates(blocks: Blocks, u: Vector) -> tuple[Indices, FreeCurvature, Vector]:
    """Those at no kink and no bound, what the penalty adds to M there, and the slope of its kinks."""
    sizes, norms = blocks.of_members(blocks.sizes(u)), blocks.of_members(blocks.norms)
    at_kink = (u == 0.0) & ((blocks.l1 > 0.0) | ((norms > 0.0) & (sizes == 0.0)))
    free = np.flatnonzero(~at_kink & (u > blocks.lower) & (u < blocks.upper))
    here, size = u[free], np.maximum(sizes[free], 1e-300)
    over = np.where(norms[free] > 0.0, norms[free] / size, 0.0)
    block = blocks.of_members(np.arange(blocks.norms.size))[free].astype(np.int64)
    added = FreeCurvature(blocks.l2[free] + over, np.sqrt(over) * here / size, block)
    return free, added, blocks.l1[free] * np.sign(here) + over * here


def stopped(blocks: Blocks, u: Vector, free: Indices, step: Vector) -> Vector:
    """u + step, where what would cross zero or a bound stops there."""
    there, here = u.copy(), u[free]
    there[free] = np.where((blocks.l1[free] > 0.0) & (here * (here + step) < 0.0), 0.0, here + step)
    return blocks.clipped(there)


def kinks_and_ridges(blocks: Blocks, u: Vector) -> float:
    """λ r(u)."""
    return blocks.cost(u) + float(blocks.l1 @ np.abs(u) + 0.5 * (blocks.l2 * u) @ u)


def _move_free(
    model: Any,
    blocks: Blocks,
    u: Vector,
    solve: Callable[[Indices, FreeCurvature, Vector], Vector],
    multiply: Callable[[Vector], Vector],
) -> bool:
    """A step of Newton's method among the free coordinates, as long as q falls; whether it did."""
    free, added, kinks = free_coordinates(blocks, u)
    if not free.size:
        return True
    _fill_slopes(model, blocks, u)
    step, before, t = solve(free, added, blocks.slope[free] + kinks), kinks_and_ridges(blocks, u), 1.0
    while t > SHORTEST and np.isfinite(step).all():
        change = stopped(blocks, u, free, t * step) - u
        rise = float((blocks.slope - blocks.l2 * u) @ change + 0.5 * change @ multiply(change))
        if rise + kinks_and_ridges(blocks, u + change) - before < 0.0:
            _shift_all(model, change, u)
            u[:] = blocks.clipped(u)
            return True
        t *= 0.25
    return False


@kernel
def _shift_all(model, change, u):
    for j in range(change.size):
        if change[j] != 0.0:
            model.shift(j, change[j])
            u[j] += change[j]


@kernel
def _measure_blocks(model, blocks):
    """The matrices of blocks, and D."""
    members = blocks.members
    for b in range(blocks.norms.size):
        begin, end = blocks.begins[b], blocks.begins[b + 1]
        size, start = end - begin, blocks.starts[b]
        if size == 1 or size > LARGEST:
            trace = 0.0
            for m in range(begin, end):
                trace += model.model_entry(members[m], members[m])
            for m in range(begin, end):
                blocks.metric[members[m]] = trace + blocks.l2[members[m]]
            continue
        for a in range(size):
            for c in range(a + 1):
                value = model.model_entry(members[begin + a], members[begin + c])
                blocks.grams[start + a * size + c] = value
                blocks.grams[start + c * size + a] = value
        for a in range(size):
            total = blocks.l2[members[begin + a]]
            for c in range(size):
                total += abs(blocks.grams[start + a * size + c])
            blocks.metric[members[begin + a]] = total


@inline
def _best(blocks, b, u):
    """new_b ← the proximal step from u_b by the slopes in `slope`, in the metric D; u may be new."""
    members, begin, end = blocks.members, blocks.begins[b], blocks.begins[b + 1]
    new, mu = blocks.new, blocks.norms[b]
    for m in range(begin, end):
        j = members[m]
        D = blocks.metric[j]
        blocks.before[j] = u[j]
        blocks.steps[j] = 1.0 / D if D > 0.0 else STILL
        if D > 0.0:
            new[j] = soft(u[j] - blocks.slope[j] / D, blocks.l1[j] / D)
        else:  # no curvature: to zero, or nowhere if the slope is steeper than the norms
            new[j] = 0.0 if abs(blocks.slope[j]) < blocks.l1[j] + mu else u[j]
    shrink_block(members, begin, end, mu, blocks.steps, new)
    for m in range(begin, end):
        j = members[m]
        new[j] = min(max(new[j], blocks.lower[j]), blocks.upper[j])


@inline
def _slopes(model, blocks, b, u):
    for m in range(blocks.begins[b], blocks.begins[b + 1]):
        j = blocks.members[m]
        blocks.slope[j] = model.partial(j, u[j]) + blocks.l2[j] * u[j]


@inline
def _moved(blocks, b, u):
    """‖new_b - u_b‖² in the metric D."""
    total = 0.0
    for m in range(blocks.begins[b], blocks.begins[b + 1]):
        j = blocks.members[m]
        total += blocks.metric[j] * (blocks.new[j] - u[j]) ** 2
    return total


@inline
def _minimise_block(blocks, b, u):
    """new_b ← the minimiser over block b; `slope` is that at u before."""
    members, grams, new = blocks.members, blocks.grams, blocks.new
    begin, end = blocks.begins[b], blocks.begins[b + 1]
    size, start = end - begin, blocks.starts[b]
    _best(blocks, b, u)
    if size == 1 or size > LARGEST:
        return
    first = moved = _moved(blocks, b, blocks.before)
    for _ in range(INNER):
        if not moved > CLOSE * CLOSE * first:
            return
        for a in range(size):
            j = members[begin + a]
            total = blocks.l2[j] * (new[j] - blocks.before[j])
            for c in range(size):
                k = members[begin + c]
                total += grams[start + a * size + c] * (new[k] - blocks.before[k])
            blocks.slope[j] += total
        _best(blocks, b, new)
        moved = _moved(blocks, b, blocks.before)


@inline
def _is_zero(blocks, b, u):
    zero = True
    for m in range(blocks.begins[b], blocks.begins[b + 1]):
        zero = zero and u[blocks.members[m]] == 0.0
    return zero


@kernel
def _sweep_blocks(model, blocks, goal, sweeps, order, u):
    """Sweeps over the blocks; whether the last one, of all, moved none by more than `goal`.

    What is zero is passed over until the others have settled.
    """
    everywhere = True
    for _ in range(sweeps):
        worst = 0.0
        model.visit(order)
        for b in order:
            if not everywhere and _is_zero(blocks, b, u):
                continue
            _slopes(model, blocks, b, u)
            _minimise_block(blocks, b, u)
            worst = max(worst, _moved(blocks, b, u))
            for m in range(blocks.begins[b], blocks.begins[b + 1]):
                j = blocks.members[m]
                change = blocks.new[j] - u[j]
                if change != 0.0:
                    u[j] = blocks.new[j]
                    model.shift(j, change)
        close = math.sqrt(worst) <= goal
        if close and everywhere:
            return True
        everywhere = close
    return False


@kernel
def _violation(model, blocks, u):
    """The largest move of a block by a proximal step."""
    worst = 0.0
    for b in range(blocks.norms.size):
        _slopes(model, blocks, b, u)
        _best(blocks, b, u)
        worst = max(worst, _moved(blocks, b, u))
    return math.sqrt(worst)


@kernel
def proximal_step(model, blocks, u):
    """new ← the proximal step from u in the metric D; by how much all blocks move."""
    total = 0.0
    for b in range(blocks.norms.size):
        _slopes(model, blocks, b, u)
        _best(blocks, b, u)
        total += _moved(blocks, b, u)
    return math.sqrt(total)


@kernel
def _fill_slopes(model, blocks, u):
    for b in range(blocks.norms.size):
        _slopes(model, blocks, b, u)
