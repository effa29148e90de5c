"""What one partition does in a round: value and gradient at the snapshot w̃, then a long inner loop on its own rows.

    w ← prox(w - γ ((∇φ_i(w) - ∇φ_i(w̃)) / (n_k p_i) + ∇f(w̃)), γ)

The rows and the bandit that draws them are the partition's, ∇f(w̃) is that of all partitions: at the minimiser of the
whole problem the loop stands still, whatever the partition holds.

In the first round, far from there, samples of a partition show the way sooner: large partitions descend on rows that
their bandits draw, as `SampledNewton` does.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import kernel, prefetch
from banditgrad._random import new_stream
from banditgrad.problem import Problem
from banditgrad.rows import add, dot
from banditgrad.samplers import Sampler, Sampling
from banditgrad.solvers.base import BAD_INDEX, LATER, Batch, draw_batch, new_batch
from banditgrad.solvers.drift import arrived, new_drift
from banditgrad.solvers.newton.costs import Costs
from banditgrad.solvers.newton.hessian import HessianMatrix
from banditgrad.solvers.newton.quadratic import one_blas_thread
from banditgrad.solvers.newton.solver import SampledNewton, approach, sample_sizes
from banditgrad.solvers.newton.subset import RowSubset
from banditgrad.solvers.pace import LARGEST, Pace, keep_pace, largest_curve, new_pace, note

Vector = NDArray[np.float64]

SLOPE, MARGIN = 0, 1  # columns of `table`
ADAPTIVE, UNIFORM = 0, 1  # indices into `noise`: sums that estimate the variance as it is, and under uniform sampling
RETREAT = 8.0  # by how much a step that led nowhere is shortened
HESSIAN_WORK = 8.0  # of a sample of the Hessian, in units of a look at all rows: about as long as an inner loop takes


class LoopState(NamedTuple):
    drift: Any
    table: NDArray[np.float64]  # slopes and margins at w̃
    batch: Batch  # of one row
    pace: Pace
    noise: NDArray[np.float64]


class Moved(NamedTuple):
    """Where an inner loop came to, the two sums of its noise, and the rows drawn, in passes over the partition."""

    w: Vector
    noise: NDArray[np.float64]
    passes: float


class Loop:
    """The inner loops of one partition and one target: all that is kept from round to round."""

    def __init__(self, problem: Problem, sampler: Sampler, step_size: Any, seed: Any) -> None:
        bounds = problem.gradient_bounds
        self.sampling: Sampling = sampler.start(
            problem.n,
            seed=seed,
            smoothness=problem.smoothness,
            bounds=None if bounds is None else (bounds / problem.n) ** 2,
        )
        pace = new_pace(problem, step_size, means=True)
        self._safe = pace.step[0]
        self._newton: Any = None
        if hasattr(problem.loss, "second_derivative"):
            other_seed = int(np.random.default_rng(seed).integers(2**63))
            self._newton = SampledNewton().start(problem, np.zeros(problem.dimension), other_seed)
            self._stream = new_stream([other_seed, 1])
        self.snapshot = np.full(problem.dimension, math.nan)
        self.state = LoopState(
            drift=new_drift(problem, np.zeros(problem.dimension), pace.step[0], mean=True),
            table=np.zeros((problem.n, 2)),
            batch=new_batch(problem.n, 1),
            pace=pace,
            noise=np.zeros(2),
        )

    def compile(self, problem: Problem) -> None:
        """Have the loops compiled, so that this does not count as work."""
        w, parts = np.zeros(problem.dimension), problem.parts
        _take_snapshot(parts._replace(norms2=parts.norms2[:0]), w, self.state.table, np.zeros_like(w))
        _values_along(parts._replace(norms2=parts.norms2[:0]), w, w, np.zeros(0), np.zeros(0))
        if self._newton is not None:
            SampledNewton().advance(problem, self._newton, self.sampling.state, 0)
        self._depart(w, w)
        _inner_loop(parts, self.state, self.sampling.state, 0)
        arrived(self.state.drift, self.state.pace.step[0])

    def evaluate(self, problem: Problem, w: Vector) -> tuple[float, Vector]:
        """f_k(w) and ∇f_k(w); w becomes the snapshot."""
        gradient = np.zeros_like(w)
        value = float(_take_snapshot(problem.parts, w, self.state.table, gradient))
        self.snapshot = w.copy()
        return value, gradient

    def probe(self, problem: Problem, w: Vector, direction: Vector, parts: Vector) -> Vector:
        """f_k at w + part · direction, for each of the parts."""
        values = np.zeros(parts.size)
        _values_along(problem.parts, w, direction, parts, values)
        return values

    def approach(self, problem: Problem, w: Vector) -> Moved | None:
        """From w towards the partition's own minimiser, on samples; None where rows are few or the loss is rough."""
        sizes = sample_sizes(problem.n, problem.dimension)
        if self._newton is None or not sizes:
            return None
        self._newton.w = w.copy()
        if not approach(problem, self._newton, self.sampling.state):
            raise self._astray(problem)
        return Moved(self._newton.w, np.zeros(2), sum(sizes) / problem.n)

    def hessian(self, problem: Problem, w: Vector, effort: float, caution: float) -> tuple[Vector, float]:
        """∇²f_k(w), from all rows or, where these are dear, from a sample; and the rows read, in passes.

        No φ_i'' counts as less than `caution` times the loss's largest, and a column of which the sample has seen too
        little has the Hessian's own diagonal.
        """
        subset, costs = RowSubset(problem), Costs(problem)
        subset.diagonal = np.zeros(problem.dimension)
        subset.evaluate(w)
        estimate = HessianMatrix(subset, self._stream)
        weights = 1.0 if problem.sample_weight is None else problem.sample_weight
        least = caution * problem.loss.curvature() / problem.n * weights
        second_derivatives = np.maximum(subset.second_derivatives, least)
        with one_blas_thread:  # partitions are worked on side by side
            read = estimate.move(second_derivatives, effort * HESSIAN_WORK * costs.evaluation / costs.hessian)
        matrix, corner = estimate.matrix, np.arange(problem.dimension)
        matrix[corner, corner] = np.maximum(subset.diagonal, matrix[corner, corner])
        return matrix, 1.0 + read / problem.n

    def run(self, problem: Problem, w: Vector, gradient: Vector, passes: float, careful: bool) -> Moved:
        """Start at w, where ∇f, that of all partitions, is `gradient`; `careful`: with shorter steps than before."""
        if not np.array_equal(w, self.snapshot):
            self.evaluate(problem, w)
        state, steps = self.state, max(1, math.ceil(passes * problem.n))
        if careful:
            self._slow_down()
        self._depart(w, gradient)
        done = _inner_loop(problem.parts, state, self.sampling.state, steps)
        if done == BAD_INDEX:
            raise self._astray(problem)
        if done < steps:  # a number was not finite
            self._slow_down()
            return Moved(w.copy(), np.zeros(2), done / problem.n)
        mean = arrived(state.drift, state.pace.step[0]).total / steps
        return Moved(mean, state.noise / steps, steps / problem.n)

    def _astray(self, problem: Problem) -> IndexError:
        who = type(self.sampling.sampler).__name__
        return IndexError(f"{who} drew an index outside 0..{problem.n - 1}: a fault in the sampler.")

    def _depart(self, w: Vector, gradient: Vector) -> None:
        drift, pace = self.state.drift, self.state.pace
        drift.w[:], drift.g[:], drift.total[:], self.state.noise[:] = w, gradient, 0.0, 0.0
        _set_out(drift, pace.step[0])

    def _slow_down(self) -> None:
        pace = self.state.pace
        if pace.automatic:
            pace.step[0] = max(pace.step[0] / RETREAT, self._safe)
            pace.sums[LARGEST] = pace.safety / pace.step[0]


@kernel
def _set_out(drift, gamma):
    """Make the drift ready for steps of length γ from its w."""
    drift.change_step(gamma)
    drift.depart()


@kernel
def _take_snapshot(parts, w, table, gradient):
    """The slopes and margins at w into the table, ∇f_k into `gradient`; returns f_k(w)."""
    n, total = parts.norms2.size, 0.0
    for i in range(n):
        z = dot(parts.rows, i, w)
        slope = parts.terms.slope(i, z)
        table[i, SLOPE] = slope
        table[i, MARGIN] = z
        total += parts.terms.term(i, z)
        if slope != 0.0:
            add(parts.rows, i, slope / n, gradient)
    return total / n


@kernel
def _values_along(parts, w, direction, lengths, values):
    n = parts.norms2.size
    for i in range(n):
        z, change = dot(parts.rows, i, w), dot(parts.rows, i, direction)
        for k in range(lengths.size):
            values[k] += parts.terms.term(i, z + lengths[k] * change) / n


@kernel
def _inner_loop(parts, state, sampler, steps):
    """Fewer steps than asked for are made where a number is not finite."""
    n, drift, table, batch, noise = parts.norms2.size, state.drift, state.table, state.batch, state.noise
    for step in range(steps):
        gamma = state.pace.step[0]
        if not draw_batch(parts, sampler, batch):
            return BAD_INDEX
        i = batch.i[0]
        prefetch(table, batch.buffer.i[batch.clock[LATER]])
        z = drift.margin_at(parts.rows, i, gamma)
        change = parts.terms.slope(i, z) - table[i, SLOPE]
        energy = change * change * parts.norms2[i]
        if not (abs(z) < np.inf and energy < np.inf):
            return step
        weight = 1.0 / (n * batch.p[0])
        batch.feedback[0] = energy / n / n  # a_i
        noise[ADAPTIVE] += energy * weight * weight
        noise[UNIFORM] += energy * weight
        if state.pace.automatic and change != 0.0:
            curve = largest_curve(parts.terms, i, table[i, MARGIN], z, change)
            note(state.pace, energy * weight * weight, change * change * weight / curve)
        drift.move(parts.rows, i, change * weight, 0.0, gamma)
        if state.pace.automatic:
            keep_pace(state.pace, drift, parts.rows, i, math.inf)
    return steps
