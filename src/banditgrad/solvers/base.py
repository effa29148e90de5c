"""What a solver is: a specification from which a run starts, and the steps it makes."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline

BAD_INDEX = -1


class Solver(ABC):
    """Base of all solvers. A run's state is whatever `start` returns; arrays in it are changed in place."""

    batch_size: int = 1

    @abstractmethod
    def start(self, problem: Any, w: NDArray[np.float64], seed: Any) -> Any:
        """The state of a run that starts at w, which the run may change in place; seed is for its own randomness."""

    @abstractmethod
    def advance(self, problem: Any, state: Any, sampler: Any, steps: int) -> int:
        """Make `steps` steps and return their number. Zero steps only compile.

        Fewer are made where a margin or gradient is not finite; `BAD_INDEX` tells of a draw that is not a row.
        """

    @abstractmethod
    def iterate(self, problem: Any, state: Any) -> NDArray[np.float64]:
        """The solution as of now, as a new array. Must not influence later steps."""

    def feedback(self, problem: Any, state: Any) -> NDArray[np.float64]:
        """The a_i of the solver's estimator as of now, equation (9): of plain SGD at the iterate unless overridden."""
        return np.asarray((problem.gradient_norms(self.iterate(problem, state)) / problem.n) ** 2)


class Batch(NamedTuple):
    """Room for one mini-batch: indices, probabilities, and the factors of x_i in the gradient estimator."""

    i: NDArray[np.int64]
    p: NDArray[np.float64]
    factor: NDArray[np.float64]


def new_batch(size: int) -> Batch:
    return Batch(np.zeros(size, np.int64), np.zeros(size), np.zeros(size))


def check_batch_size(owner: Any, size: Any) -> None:
    if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size < 1:
        raise ValueError(f"{type(owner).__name__} expects a batch_size of at least 1, got {size!r}.")


@inline
def draw_batch(sampler, batch, n):
    """Draw the indices of a batch, all from one p; False where a sampler draws what is not a row."""
    for k in range(batch.i.size):
        i = sampler.draw()
        if i < 0 or i >= n:
            return False
        batch.i[k] = i
        batch.p[k] = sampler.probability(i)
    return True


@inline
def estimate(parts, w, shrinkage, sampler, batch):
    """Factors f with ĝ = Σ_k f_k x_{i_k}, the mean over the batch of ∇φ_i(w) / (n p_i), equation (3); feed back a_i.

    False, before anything is changed, where a number is not finite.
    """
    n, size = parts.norms2.size, batch.i.size
    for k in range(size):
        i = batch.i[k]
        z = shrinkage.margin(parts.rows, i, w)
        slope = parts.terms.slope(i, z)
        if not (abs(z) < np.inf and slope * slope * parts.norms2[i] < np.inf):
            return False
        batch.factor[k] = slope
    for k in range(size):
        i, slope = batch.i[k], batch.factor[k]
        sampler.update(i, batch.p[k], slope * slope * parts.norms2[i] / n / n)  # a_i = ‖∇φ_i(w)‖² / n²
        batch.factor[k] = slope / (size * n * batch.p[k])
    return True
