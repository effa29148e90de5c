"""What is solved: F(W) = (1/n) Σ loss(W'x_i, y_i) + λ r(W), without an intercept.

Every set of a kind is raced on the same objectives: two classes ±1 on l1-logistic, l2-logistic-1/n and squared-hinge;
regression, its targets standardised, on lasso and ridge; several classes, their numbers from 0, on multinomial-l2 and
multinomial-l1. Wide text is raced as a regression on its labels too.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import banditgrad as bg
from sets import every_set

LASSO_SHARE = 0.01  # of the least λ for which the lasso is zero


class Objective(NamedTuple):
    """`kind` is what a contender needs to know to take part; `strength` gives λ from the data."""

    kind: str
    loss: Any
    penalty: Any
    strength: Callable[[Any, Any], float]


def _share_of_largest(X, y):
    return LASSO_SHARE * float(np.abs(X.T @ y).max()) / len(y)


def _one_row(X, y):
    return 1 / len(y)


OBJECTIVES = {
    "l1-logistic": Objective("logistic-l1", bg.Logistic(), bg.L1, lambda X, y: 1e-4),
    "l2-logistic": Objective("logistic-l2", bg.Logistic(), bg.SquaredL2, lambda X, y: 1e-4),
    "l2-logistic-1/n": Objective("logistic-l2", bg.Logistic(), bg.SquaredL2, _one_row),
    "squared-hinge": Objective("hinge-l2", bg.SquaredHinge(), bg.SquaredL2, lambda X, y: 1e-4),
    "lasso": Objective("squared-l1", bg.Squared(), bg.L1, _share_of_largest),
    "ridge": Objective("squared-l2", bg.Squared(), bg.SquaredL2, lambda X, y: 1e-4),
    "multinomial-l2": Objective("softmax-l2", bg.Softmax, bg.SquaredL2, _one_row),
    "multinomial-l1": Objective("softmax-l1", bg.Softmax, bg.L1, lambda X, y: 1e-4),
}
TWO_CLASSES = ("l1-logistic", "l2-logistic-1/n", "squared-hinge")
REGRESSION = ("lasso", "ridge")
CLASSES = ("multinomial-l2", "multinomial-l1")

RACED = {
    **dict.fromkeys(("australian", "svmguide1", "mushrooms", "w8a", "ijcnn1", "a9a", "amounts-1"), TWO_CLASSES),
    **dict.fromkeys(("images", "fashion", "kdd-raw", "kdd-std", "debian-char"), TWO_CLASSES),
    **dict.fromkeys(("counts-wide", "click-log-wide", "million", "dense"), TWO_CLASSES),
    **dict.fromkeys(("words", "debian-tfidf"), TWO_CLASSES + REGRESSION),
    **dict.fromkeys(("abalone", "dear-targets"), REGRESSION),
    **dict.fromkeys(("digits", "fashion-10", "debian-58"), CLASSES),
}


def load(data: str) -> tuple[Any, np.ndarray]:
    """Rows, CSR or C-ordered float64, and targets."""
    X, y = every_set()[data].load()
    if sp.issparse(X):
        X = sp.csr_array(X, dtype=np.float64)
        X.sort_indices()
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    else:
        X = np.ascontiguousarray(X, np.float64)
    return X, (y - y.mean()) / y.std() if RACED.get(data) == REGRESSION else y


def half(task: str) -> str:
    """Of the data of a task."""
    return every_set()[task.split()[0]].half


def task_name(data: str, objective: str) -> str:
    return f"{data} {objective}"


@dataclass(frozen=True, eq=False)
class Task:
    """One problem of the race: the data and what to minimise on them."""

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
    def loss(self) -> Any:
        loss = OBJECTIVES[self.objective].loss
        return loss(int(self.y.max()) + 1) if loss is bg.Softmax else loss

    @property
    def shape(self) -> tuple[int, ...]:
        """Of W."""
        return (self.d, self.loss.margins()) if isinstance(self.loss, bg.Softmax) else (self.d,)

    @cached_property
    def strength(self) -> float:
        """λ."""
        return OBJECTIVES[self.objective].strength(self.X, self.y)

    @property
    def nbytes(self) -> int:
        return self.X.nbytes if isinstance(self.X, np.ndarray) else self.X.data.nbytes + self.X.indices.nbytes

    def problem(self) -> bg.Problem:
        return bg.Problem(self.X, self.y, self.loss, OBJECTIVES[self.objective].penalty(self.strength))

    def head(self, n: int = 300) -> "Task":
        """A small task of the same types, to compile on: as many rows of each label, so far as there are."""
        labels, number = np.unique(self.y, return_inverse=True)
        order = np.argsort(number, kind="stable")
        rank = np.empty(self.n, np.int64)  # of each row among those of its label
        rank[order] = np.arange(self.n) - np.searchsorted(number[order], number[order])
        rows = np.flatnonzero(rank < max(1, n // labels.size))[: 4 * n]
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
