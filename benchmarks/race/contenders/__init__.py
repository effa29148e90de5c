"""The contenders, one small function each.

A contender is given a `Task`, converts the data to what its library likes best (this does not count) and returns a
function from an effort (passes, iterations or a tolerance) to w. Each call is a fresh fit on the clock, whatever the
library does inside it, checks of its input included. It is registered with the kinds of problem it solves and the
ladder of efforts, from least to most. No intercept anywhere. An ImportError leaves it out with a note. Where the
library takes a seed, it is a function of a task and a seed; the time of the worst seed counts.

    @contender("mylib newton", {"logistic-l2"}, ITERATIONS)
    def mylib_newton(task):
        import mylib

        X = mylib.convert(task.X)
        return lambda iterations: mylib.fit(X, task.y, task.strength, max_iter=iterations)
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from typing import Any

from race.problems import Task

L2 = frozenset({"logistic-l2", "hinge-l2", "squared-l2"})
SCALAR = L2 | {"logistic-l1", "squared-l1"}
SOFTMAX = frozenset({"softmax-l1", "softmax-l2"})
KINDS = SCALAR | SOFTMAX
# Neighbours differ by a fifth, so that no contender pays for more effort than an accuracy needs.
PASSES = tuple(0.1 * 1.2**k for k in range(51))
ITERATIONS = tuple(sorted({round(1.2**k) for k in range(55)}))
# A quarter of a decade.
TOLERANCES = tuple(10.0 ** (-k / 4) for k in range(57))
ONCE = (1,)
OURS = "banditgrad"
MODULES = (
    "ours",
    "liblinear",
    "scikit",
    "cyanure",
    "snapml",
    "skglm",
    "celer",
    "glum",
    "blitzl1",
    "adelie",
    "tick",
    "copt",
)


@dataclass(frozen=True)
class Contender:
    """`name` begins with the library. `stochastic`: it steps on single rows, or samples of them, drawn at random, be it
    in the primal or, as random dual coordinate methods do, in the dual."""

    name: str
    solves: frozenset[str]
    ladder: tuple[Any, ...]
    stochastic: bool
    prepare: Callable[..., Callable[[Any], Any]]

    @property
    def takes_seed(self) -> bool:
        return "seed" in signature(self.prepare).parameters

    def fit(self, task: Task, seed: int) -> Callable[[Any], Any]:
        """From effort to w, the data being converted."""
        return self.prepare(task, seed) if self.takes_seed else self.prepare(task)

    @property
    def library(self) -> str:
        return self.name.split()[0]


CONTENDERS: dict[str, Contender] = {}


def contender(name: str, solves: Iterable[str], ladder: tuple[Any, ...], stochastic: bool = False) -> Any:
    """Registers the function below it."""
    solves = frozenset(solves)
    if not solves <= KINDS:
        raise ValueError(f"{name} solves {sorted(solves - KINDS)}; the kinds of problem are {sorted(KINDS)}.")

    def register(prepare: Any) -> Any:
        CONTENDERS[name] = Contender(name, solves, ladder, stochastic, prepare)
        return prepare

    return register


def all_contenders() -> dict[str, Contender]:
    for module in MODULES:
        import_module(f"race.contenders.{module}")
    return CONTENDERS
