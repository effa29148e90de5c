"""What a partition tells of its curvature: how it descends on samples of its rows, and its Hessian.

One class for rows of one margin, one for rows of several, with the same methods.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from banditgrad._random import new_stream
from banditgrad.problem import Problem
from banditgrad.solvers import multinomial
from banditgrad.solvers.multinomial.descent import sample_rows
from banditgrad.solvers.multinomial.look import Look
from banditgrad.solvers.multinomial.matrix import hessian_among
from banditgrad.solvers.multinomial.solver import MultinomialNewton
from banditgrad.solvers.newton.costs import Costs
from banditgrad.solvers.newton.hessian import HessianMatrix
from banditgrad.solvers.newton.quadratic import one_blas_thread
from banditgrad.solvers.newton.solver import SampledNewton, approach, sample_sizes
from banditgrad.solvers.newton.subset import RowSubset

Vector = NDArray[np.float64]

HESSIAN_WORK = 8.0  # of a sample of the Hessian, in units of a look at all rows: about as long as an inner loop takes
MOST = 0.6  # a sample of a larger share becomes all rows


class Samples(Protocol):
    """What a `Loop` asks for."""

    def compile(self, problem: Problem, sampler: Any) -> None: ...

    def sizes(self, problem: Problem) -> list[int]:
        """Of the samples to descend on; none where rows are few."""
        ...

    def approach(self, problem: Problem, w: Vector, sampler: Any) -> Vector | None:
        """Where descent on samples leads from w; None where the sampler drew an index out of range."""
        ...

    def hessian(self, problem: Problem, w: Vector, effort: float, caution: float) -> tuple[Vector, float]:
        """∇²f_k(w), from all rows or, where these are dear, from a sample; and the rows read, in passes.

        No φ_i'' counts as less than `caution` times the loss's largest, and a column of which the sample has seen too
        little has the Hessian's own diagonal.
        """
        ...


class ScalarSamples:
    """Of rows of one margin, drawn by the bandit."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self._newton: Any = SampledNewton().start(problem, np.zeros(problem.dimension), seed)
        self._stream = new_stream([seed, 1])

    def compile(self, problem: Problem, sampler: Any) -> None:
        self._newton.compile(sampler, self.sizes(problem))

    def sizes(self, problem: Problem) -> list[int]:
        return sample_sizes(problem.n, problem.dimension)

    def approach(self, problem: Problem, w: Vector, sampler: Any) -> Vector | None:
        self._newton.w = w.copy()
        found: Vector | None = self._newton.w if approach(problem, self._newton, sampler) else None
        return found

    def hessian(self, problem: Problem, w: Vector, effort: float, caution: float) -> tuple[Vector, float]:
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


class MatrixSamples:
    """Of rows of several margins."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self._newton = MultinomialNewton().start(problem, np.zeros(problem.dimension), seed)

    def compile(self, problem: Problem, sampler: Any) -> None:
        MultinomialNewton().advance(problem, self._newton, sampler, 0)

    def sizes(self, problem: Problem) -> list[int]:
        return multinomial.sample_sizes(problem.n, problem.shape[0])

    def approach(self, problem: Problem, w: Vector, sampler: Any) -> Vector | None:
        self._newton.W = problem.shaped(w.copy())
        with one_blas_thread:
            multinomial.approach(problem, self._newton)
        return self._newton.W.reshape(-1)

    def hessian(self, problem: Problem, w: Vector, effort: float, caution: float) -> tuple[Vector, float]:
        """To each ∇²φ_i a multiple of the identity is added, rather than that less curvature counts as so much."""
        look = Look(problem)
        with one_blas_thread:
            look.at(problem.shaped(w))
            share = effort * HESSIAN_WORK / w.size  # a row costs about so many times more than a look at it
            curvature, lacking, read = look.take_all(), np.zeros((problem.shape[0], 1)), 1.0
            if share <= MOST:
                curvature, lacking = sample_rows(look, share, self._newton.stream)
                read = curvature.scales.size / problem.n
            curvature = curvature._replace(added=caution * problem.loss.curvature())
            matrix = hessian_among(curvature, np.arange(w.size))
        matrix[np.diag_indices(w.size)] += np.broadcast_to(lacking, problem.shape).ravel()
        return matrix, 1.0 + read


def new_samples(problem: Problem, seed: Any) -> Samples | None:
    """None for a loss that does not tell its curvature."""
    asked = ("curve_product", "curve_parts") if problem.vector else ("second_derivative",)
    if not all(hasattr(problem.loss, name) for name in asked):
        return None
    kind = MatrixSamples if problem.vector else ScalarSamples
    return kind(problem, int(np.random.default_rng(seed).integers(2**63)))
