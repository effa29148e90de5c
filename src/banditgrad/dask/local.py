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

from banditgrad._jit import kernel
from banditgrad._random import new_stream
from banditgrad.margins import NO_ROOM
from banditgrad.objective import TABLE, full_gradient
from banditgrad.problem import Problem
from banditgrad.rows import dot
from banditgrad.samplers import Sampler, Sampling
from banditgrad.solvers.base import BAD_INDEX
from banditgrad.solvers.newton.costs import Costs
from banditgrad.solvers.newton.hessian import HessianMatrix
from banditgrad.solvers.newton.quadratic import one_blas_thread
from banditgrad.solvers.newton.solver import SampledNewton, approach, sample_sizes
from banditgrad.solvers.newton.subset import RowSubset
from banditgrad.solvers.parts.iterates.affine import new_iterate, set_out
from banditgrad.solvers.parts.iterates.base import flushed
from banditgrad.solvers.parts.minibatch import Minibatch, new_minibatch
from banditgrad.solvers.parts.step_size.smoothness import SmoothnessRule, first_step, smoothness_rule
from banditgrad.solvers.svrg import BURST, DONE, NOISE, inner_loop

Vector = NDArray[np.float64]

RETREAT = 8.0  # by how much a step that led nowhere is shortened
HESSIAN_WORK = 8.0  # of a sample of the Hessian, in units of a look at all rows: about as long as an inner loop takes


class LoopState(NamedTuple):
    iterate: Any
    table: NDArray[np.void]  # slopes and margins at w̃
    minibatch: Minibatch  # of one row
    rule: SmoothnessRule
    noise: NDArray[np.void]  # one NOISE record: what estimates the variance as it is, and under uniform sampling


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
        self._safe = first_step(problem, step_size)
        self._newton: Any = None
        if hasattr(problem.loss, "second_derivative"):
            other_seed = int(np.random.default_rng(seed).integers(2**63))
            self._newton = SampledNewton().start(problem, np.zeros(problem.dimension), other_seed)
            self._stream = new_stream([other_seed, 1])
        self.snapshot = np.full(problem.dimension, math.nan)
        self.state = LoopState(
            iterate=new_iterate(problem, np.zeros(problem.dimension), self._safe, mean=True),
            table=np.zeros(problem.n, TABLE),
            minibatch=new_minibatch(problem, 1),
            rule=smoothness_rule(problem, step_size, means=True),
            noise=np.zeros(1, NOISE),
        )

    def compile(self, problem: Problem) -> None:
        """Have the loops compiled, so that this does not count as work."""
        w, parts = np.zeros(problem.dimension), problem.parts
        _evaluate(parts._replace(norms2=parts.norms2[:0]), NO_ROOM, w, self.state.table, np.zeros_like(w))
        _values_along(parts._replace(norms2=parts.norms2[:0]), w, w, np.zeros(0), np.zeros(0))
        if self._newton is not None:
            SampledNewton().advance(problem, self._newton, self.sampling.state, 0)
        self._set_out(w, w)
        _inner_loop(parts, self.state, self.sampling.state, 0)
        flushed(self.state.iterate)

    def evaluate(self, problem: Problem, w: Vector) -> tuple[float, Vector]:
        """f_k(w) and ∇f_k(w); w becomes the snapshot."""
        gradient = np.zeros_like(w)
        value = float(_evaluate(problem.parts, NO_ROOM, w, self.state.table, gradient))
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
        self._set_out(w, gradient)
        done = _inner_loop(problem.parts, state, self.sampling.state, steps)
        if done == BAD_INDEX:
            raise self._astray(problem)
        if done < steps:  # a number was not finite
            self._slow_down()
            return Moved(w.copy(), np.zeros(2), done / problem.n)
        mean = flushed(state.iterate).total / steps
        return Moved(mean, state.noise.view(np.float64) / steps, steps / problem.n)

    def _astray(self, problem: Problem) -> IndexError:
        who = type(self.sampling.sampler).__name__
        return IndexError(f"{who} drew an index outside 0..{problem.n - 1}: a fault in the sampler.")

    def _set_out(self, w: Vector, gradient: Vector) -> None:
        iterate = self.state.iterate
        iterate.w[:], iterate.g[:], iterate.total[:] = w, gradient, 0.0
        self.state.noise[:] = 0.0
        set_out(iterate, float(iterate.clock["gamma"][0]))

    def _slow_down(self) -> None:
        rule, clock = self.state.rule, self.state.iterate.clock
        if rule.automatic:
            clock["gamma"] = max(clock["gamma"][0] / RETREAT, self._safe)
            rule.measured["smoothness"] = rule.safety / clock["gamma"]


@kernel
def _evaluate(parts, room, w, table, gradient):
    return full_gradient(parts, room, w, table, gradient, True)


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
    done, end = 0, DONE
    while done < steps and end in (DONE, BURST):  # after a burst the next evaluation will tell
        made, end = inner_loop(parts, state, sampler, steps - done, math.inf)
        done += made
    return BAD_INDEX if end == BAD_INDEX else done
