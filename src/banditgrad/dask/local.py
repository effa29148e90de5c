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
from banditgrad.dask.samples import new_samples
from banditgrad.objective import full_gradient
from banditgrad.problem import Problem
from banditgrad.samplers import Sampler, Sampling
from banditgrad.solvers.base import BAD_INDEX
from banditgrad.solvers.parts.iterates.affine import set_out
from banditgrad.solvers.parts.iterates.base import flushed
from banditgrad.solvers.parts.iterates.choice import new_iterate
from banditgrad.solvers.parts.minibatch import Minibatch, new_minibatch
from banditgrad.solvers.parts.safeguard import RETREAT
from banditgrad.solvers.parts.step_size.smoothness import SmoothnessRule, first_step, smoothness_rule
from banditgrad.solvers.parts.variance_reduction import new_table
from banditgrad.solvers.svrg import BURST, DONE, NOISE, inner_loop

Vector = NDArray[np.float64]


class LoopState(NamedTuple):
    iterate: Any
    table: Any  # slopes and margins at w̃
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
        self._samples = new_samples(problem, seed)
        self.snapshot = np.full(problem.dimension, math.nan)
        self.state = LoopState(
            iterate=new_iterate(problem, np.zeros(problem.dimension), self._safe, mean=True),
            table=new_table(problem),
            minibatch=new_minibatch(problem, 1),
            rule=smoothness_rule(problem, step_size, means=True),
            noise=np.zeros(1, NOISE),
        )

    def compile(self, problem: Problem) -> None:
        """Have the loops compiled, so that this does not count as work."""
        w, parts = np.zeros(problem.dimension), problem.parts
        none, scratch = parts._replace(norms2=parts.norms2[:0]), self.state.minibatch.scratch
        _evaluate(none, scratch, w, self.state.table, np.zeros_like(w))
        _values_along(none, scratch, w, w, np.zeros(0), np.zeros(0))
        if self._samples is not None:
            self._samples.compile(problem, self.sampling.state)
        self._set_out(w, w)
        _inner_loop(parts, self.state, self.sampling.state, 0)
        flushed(self.state.iterate)

    def evaluate(self, problem: Problem, w: Vector) -> tuple[float, Vector]:
        """f_k(w) and ∇f_k(w); w becomes the snapshot."""
        gradient = np.zeros_like(w)
        value = float(_evaluate(problem.parts, self.state.minibatch.scratch, w, self.state.table, gradient))
        self.snapshot = w.copy()
        return value, gradient

    def probe(self, problem: Problem, w: Vector, direction: Vector, parts: Vector) -> Vector:
        """f_k at w + part · direction, for each of the parts."""
        values = np.zeros(parts.size)
        _values_along(problem.parts, self.state.minibatch.scratch, w, direction, parts, values)
        return values

    def approach(self, problem: Problem, w: Vector) -> Moved | None:
        """From w towards the partition's own minimiser, on samples; None where rows are few or the loss is rough."""
        sizes = [] if self._samples is None else self._samples.sizes(problem)
        if self._samples is None or not sizes:
            return None
        found = self._samples.approach(problem, w, self.sampling.state)
        if found is None:
            raise self._astray(problem)
        return Moved(found, np.zeros(2), sum(sizes) / problem.n)

    def hessian(self, problem: Problem, w: Vector, effort: float, caution: float) -> tuple[Vector, float]:
        """As `Samples.hessian`."""
        if self._samples is None:
            raise TypeError(f"{type(problem.loss).__name__} does not tell its curvature.")
        return self._samples.hessian(problem, w, effort, caution)

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
def _evaluate(parts, scratch, w, table, gradient):
    return full_gradient(parts, scratch, w, table, gradient, True)


@kernel
def _values_along(parts, scratch, w, direction, lengths, values):
    n = parts.norms2.size
    for i in range(n):
        parts.terms.add_terms_along(parts.rows, scratch, i, w, direction, lengths, n, values)


@kernel
def _inner_loop(parts, state, sampler, steps):
    """Fewer steps than asked for are made where a number is not finite."""
    done, end = 0, DONE
    while done < steps and end in (DONE, BURST):  # after a burst the next evaluation will tell
        made, end = inner_loop(parts, state, sampler, steps - done, math.inf)
        done += made
    return BAD_INDEX if end == BAD_INDEX else done
