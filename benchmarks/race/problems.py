"""What is solved: F(w) = (1/n) Σ loss(<x_i, w>, y_i) + λ r(w), without an intercept; y = ±1, for regression too."""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import banditgrad as bg

LASSO_SHARE = 0.01  # of the least λ for which the lasso is zero


class Objective(NamedTuple):
    """`kind` is what a contender needs to know to take part; `strength` gives λ from the data."""

    kind: str
    loss: Any
    penalty: Any
    strength: Callable[[Any, Any], float]


def _share_of_largest(X, y):
    return LASSO_SHARE * float(np.abs(X.T @ y).max()) / len(y)


OBJECTIVES = {
    "l1-logistic": Objective("logistic-l1", bg.Logistic(), bg.L1, lambda X, y: 1e-4),
    "l2-logistic": Objective("logistic-l2", bg.Logistic(), bg.SquaredL2, lambda X, y: 1e-4),
    "l2-logistic-1/n": Objective("logistic-l2", bg.Logistic(), bg.SquaredL2, lambda X, y: 1 / len(y)),
    "squared-hinge": Objective("hinge-l2", bg.SquaredHinge(), bg.SquaredL2, lambda X, y: 1e-4),
    "lasso": Objective("squared-l1", bg.Squared(), bg.L1, _share_of_largest),
    "ridge": Objective("squared-l2", bg.Squared(), bg.SquaredL2, lambda X, y: 1e-4),
}


def task_name(data: str, objective: str) -> str:
    return f"{data} {objective}"


@dataclass(frozen=True, eq=False)
class Task:
    """One problem of the race: the data (CSR or C-ordered float64) and what to minimise on them."""

    data: str
    objective: str
    X: Any
    y: np.ndarray

    @property
    def name(self) -> str:
        return task_name(self.data, self.objective)

    @property
    def kind(self) -> str:
        return OBJECTIVES[self.objective].kind

    @property
    def n(self) -> int:
        return self.X.shape[0]

    @property
    def d(self) -> int:
        return self.X.shape[1]

    @cached_property
    def strength(self) -> float:
        """λ."""
        return OBJECTIVES[self.objective].strength(self.X, self.y)

    @property
    def nbytes(self) -> int:
        return self.X.nbytes if isinstance(self.X, np.ndarray) else self.X.data.nbytes + self.X.indices.nbytes

    def problem(self) -> bg.Problem:
        objective = OBJECTIVES[self.objective]
        return bg.Problem(self.X, self.y, objective.loss, objective.penalty(self.strength))

    def head(self, n: int = 300) -> "Task":
        """A small task of the same types, to compile on: as many rows of either label, so far as there are."""
        rows = np.sort(np.concatenate([np.flatnonzero(self.y == label)[: n // 2] for label in (-1.0, 1.0)]))
        return replace(self, X=self.X[rows], y=self.y[rows])


def fingerprint(task: Task) -> str:
    """A hash of the data and the objective."""
    digest = hashlib.blake2b(digest_size=16)
    X = task.X
    for array in (X,) if isinstance(X, np.ndarray) else (X.data, X.indices, X.indptr):
        digest.update(np.ascontiguousarray(array).data)
    digest.update(task.y.tobytes())
    digest.update(f"{task.kind} {task.strength!r}".encode())
    return digest.hexdigest()


def _libsvm(name):
    def load():
        data = bg.datasets.load(name)
        return data.X, data.y

    return load


def million(n=1_000_000):
    """20 entries per row, rows of log-normal length (σ = 1)."""
    return bg.datasets.make_imbalanced(n, 1000, 20, positive=0.3, tail=1.0, seed=0)


def dense(n=50_000, d=4000):
    """Normal features, rows of length about 1; 5 % of the features matter."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    X /= math.sqrt(d)
    beta = rng.standard_normal(d) * (rng.random(d) < 0.05)
    score = X @ beta
    return X, np.where(score + 0.5 * score.std() * rng.standard_normal(n) > 0.0, 1.0, -1.0)


def words(n=30_000, d=3000):
    """Word counts as they are: Zipf's law over d words, and documents of very different length (τ > 500).

    The two classes prefer different words, mildly. The length is log-normal with σ = 1.2 and a median of 30, at most
    4000.
    """
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    lengths = np.clip(np.exp(math.log(30.0) + 1.2 * rng.standard_normal(n)), 1, 4000).astype(np.int64)
    zipf, lean = 1.0 / (np.arange(d) + 5.0), 0.5 * rng.standard_normal(d)
    indices = np.empty(lengths.sum(), np.int32)
    ends = np.cumsum(lengths)
    for label in (-1.0, 1.0):
        p = zipf * np.exp(label * lean)
        mine = np.repeat(y == label, lengths)
        indices[mine] = rng.choice(d, int(mine.sum()), p=p / p.sum())
    indptr = np.concatenate([[0], ends]).astype(np.int32)
    X = sp.csr_array((np.ones(indices.size), indices, indptr), shape=(n, d))
    X.sum_duplicates()
    return X, y


DATA: dict[str, Callable[[], tuple[Any, np.ndarray]]] = {
    "w8a": _libsvm("w8a"),
    "ijcnn1": _libsvm("ijcnn1"),
    "a9a": _libsvm("a9a"),
    "words": words,
    "million": million,
    "dense": dense,
}
