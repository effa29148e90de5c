"""What a solver is: a specification from which a run starts, and the steps it makes."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline, prefetch

BAD_INDEX = -1


class Known(Protocol):
    """What a solver knows of its iterate, or can tell sooner than anybody else: F and ∇f."""

    @property
    def value(self) -> float: ...

    @property
    def gradient(self) -> NDArray[np.float64]: ...


class Solver(ABC):
    """Base of all solvers. A run's state is whatever `start` returns; arrays in it are changed in place."""

    batch_size: int = 1

    def rows_per_step(self, problem: Any) -> int:
        """How many rows one step looks at: passes are counted by it."""
        return self.batch_size

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

    def draws(self, problem: Any) -> bool:
        """Whether it ever asks the sampler."""
        return True

    def known(self, problem: Any, state: Any) -> Known | None:
        """F and ∇f at the iterate where the solver has them; None where they would have to be computed."""
        return None

    def feedback(self, problem: Any, state: Any) -> NDArray[np.float64]:
        """The a_i of the solver's estimator as of now, equation (9): of plain SGD at the iterate unless overridden."""
        return np.asarray((problem.gradient_norms(self.iterate(problem, state)) / problem.n) ** 2)


class Batch(NamedTuple):
    """Room for one mini-batch, of one row or more, and for the next one.

    The next batch is drawn one step early, so that its rows are on their way while this one is worked on. It does not
    know of this batch's feedback yet; the estimator stays unbiased, since p is that of the draw.
    """

    i: NDArray[np.int64]
    p: NDArray[np.float64]
    factor: NDArray[np.float64]  # of x_i in the gradient estimator
    feedback: NDArray[np.float64]  # a_i that the sampler will be told before the next draw, or NONE
    next_i: NDArray[np.int64]  # UNKNOWN before the first step
    next_p: NDArray[np.float64]


UNKNOWN = -2
NONE = -1.0


def new_batch(size: int) -> Batch:
    i, next_i = np.zeros(size, np.int64), np.full(size, UNKNOWN)
    return Batch(i, np.zeros(size), np.zeros(size), np.full(size, NONE), next_i, np.zeros(size))


def check_batch_size(owner: Any, size: Any) -> None:
    if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size < 1:
        raise ValueError(f"{type(owner).__name__} expects a batch_size of at least 1, got {size!r}.")


@inline
def draw_batch(parts, sampler, batch):
    """Take the batch drawn before and draw the next, all from one p; False where it holds what is not a row."""
    n = parts.norms2.size
    _tell(sampler, batch)
    rounds = 2 if batch.next_i[0] == UNKNOWN else 1
    for r in range(rounds):  # rather than a second call: each compiles the sampler once more
        if r == rounds - 1:
            for k in range(batch.i.size):
                i = batch.next_i[k]
                if i < 0 or i >= n:
                    return False
                batch.i[k] = i
                batch.p[k] = batch.next_p[k]
        _draw_next(parts, sampler, batch, n)
    return True


@inline
def _tell(sampler, batch):
    """Feed back what is known of the batch. Done just before the next draw, when the a_i have long been computed: the
    processor need not wait for them."""
    for k in range(batch.i.size):
        if batch.feedback[k] >= 0.0:
            sampler.update(batch.i[k], batch.p[k], batch.feedback[k])
        batch.feedback[k] = NONE


@inline
def _draw_next(parts, sampler, batch, n):
    for k in range(batch.i.size):
        i = sampler.draw()
        batch.next_i[k] = i
        if i >= 0 and i < n:
            batch.next_p[k] = sampler.probability(i)
            parts.rows.fetch(i)
            parts.terms.fetch(i)
            prefetch(parts.norms2, i)


@inline
def estimate(parts, w, shrinkage, batch):
    """Factors f with ĝ = Σ_k f_k x_{i_k}, the mean over the batch of ∇φ_i(w) / (n p_i), equation (3), and the a_i.

    False, before anything is changed, where a number is not finite.
    """
    n, size = parts.norms2.size, batch.i.size
    a_unit = 1.0 / n / n
    for k in range(size):
        i = batch.i[k]
        z = shrinkage.margin(parts.rows, i, w)
        slope = parts.terms.slope(i, z)
        if not (abs(z) < np.inf and slope * slope * parts.norms2[i] < np.inf):
            return False
        batch.factor[k] = slope
    for k in range(size):
        i, slope = batch.i[k], batch.factor[k]
        batch.feedback[k] = slope * slope * parts.norms2[i] * a_unit  # a_i = ‖∇φ_i(w)‖² / n²
        batch.factor[k] = slope / (size * n * batch.p[k])
    return True
