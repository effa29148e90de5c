"""What a solver is: a specification from which a run starts, and the steps it makes."""

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

BAD_INDEX = -1


class Known(Protocol):
    """What a solver knows of its iterate, or can tell sooner than anybody else: F and ∇f, and what its last step was to
    gain by its model of F, about as much as there was to gain."""

    @property
    def value(self) -> float: ...

    @property
    def gradient(self) -> NDArray[np.float64]: ...

    @property
    def predicted(self) -> float: ...


class Solver(ABC):
    """Base of all solvers. A run's state is whatever `start` returns; arrays in it are changed in place."""

    batch_size: int = 1

    @property
    def takes_several_margins(self) -> bool:
        """Whether it can do with losses of several margins."""
        return False

    @property
    def takes_vector_penalties(self) -> bool:
        """Whether it can do with penalties that are no sum over coordinates, as `GroupLasso`."""
        return False

    def rows_per_step(self, problem: Any) -> int:
        """How many rows one step looks at: passes are counted by it."""
        return self.batch_size

    @abstractmethod
    def start(self, problem: Any, w: NDArray[np.float64], seed: Any) -> Any:
        """The state of a run that starts at w, which the run may change in place; seed is for its own randomness."""

    @abstractmethod
    def advance(self, problem: Any, state: Any, sampler: Any, steps: int) -> int:
        """Make `steps` steps and return their number. Zero steps only compile.

        Fewer are made where a margin or gradient is not finite; `BAD_INDEX` tells of a draw out of range.
        """

    @abstractmethod
    def iterate(self, problem: Any, state: Any) -> NDArray[np.float64]:
        """The solution as of now, as a new array. Must not influence later steps."""

    def draws(self, problem: Any) -> bool:
        """Whether it draws, and so much that it matters from which sampler."""
        return True

    def finished(self, state: Any) -> bool:
        """Whether no further step makes F fall, up to rounding."""
        return False

    def known(self, problem: Any, state: Any) -> Known | None:
        """F and ∇f at the iterate where the solver has them; None where they would have to be computed."""
        return None

    def feedback(self, problem: Any, state: Any) -> NDArray[np.float64]:
        """The a_i of the solver's estimator as of now, equation (9): of plain SGD at the iterate unless overridden."""
        return np.asarray((problem.gradient_norms(self.iterate(problem, state)) / problem.n) ** 2)


def expect_subgradients(problem: Any, who: str) -> None:
    """Of a solver that makes no proximal steps."""
    penalty = problem.penalty
    if hasattr(penalty, "bounds"):
        raise TypeError(
            f"{who} steps along sub-gradients, which would leave the bounds of {type(penalty).__name__}. Use ProxSgd."
        )
    if not (hasattr(penalty, "subgradient") or hasattr(penalty, "add_subgradient")):
        raise TypeError(
            f"{who} steps along sub-gradients, and {type(penalty).__name__} has no method "
            "add_subgradient(self, w, scale, out, d). Use ProxSgd."
        )
