"""Losses × penalties, from strong to next to nothing, on the data sets."""

import hashlib
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import numpy as np

import banditgrad as bg
from sets import DataSet

LARGE = 2_000_000  # entries: larger sets take part with few problems and seeds


class PseudoHuber(NamedTuple):
    """δ² (√(1 + (r/δ)²) - 1), r = z - y: a user's own loss, which does not tell its second derivative."""

    delta: float = 1.35

    def value(self, z, y):
        r = (z - y) / self.delta
        return self.delta**2 * r * r / (1.0 + np.sqrt(1.0 + r * r))

    def derivative(self, z, y):
        return (z - y) / np.sqrt(1.0 + ((z - y) / self.delta) ** 2)

    def curvature(self):
        return 1.0

    def slope_bound(self):
        return self.delta


class Kind(NamedTuple):
    """Loss and penalty, with an intercept or weights."""

    name: str
    loss: Any
    penalty: Any
    intercept: bool = False
    weighted: bool = False


CLASSIFICATION = (
    Kind("logistic l1 1e-2", bg.Logistic(), bg.L1(1e-2), intercept=True),
    Kind("logistic l1 1e-4", bg.Logistic(), bg.L1(1e-4)),
    Kind("logistic l1 1e-6", bg.Logistic(), bg.L1(1e-6), intercept=True),
    Kind("logistic l1 1e-8", bg.Logistic(), bg.L1(1e-8)),
    Kind("logistic l2 1", bg.Logistic(), bg.SquaredL2(1.0)),
    Kind("logistic l2 1e-2", bg.Logistic(), bg.SquaredL2(1e-2), weighted=True),
    Kind("logistic l2 1e-4", bg.Logistic(), bg.SquaredL2(1e-4), intercept=True),
    Kind("logistic l2 1e-8", bg.Logistic(), bg.SquaredL2(1e-8)),
    Kind("logistic elastic net 1e-5", bg.Logistic(), bg.ElasticNet(1e-5, 0.5), intercept=True, weighted=True),
    Kind("squared hinge l1 1e-4", bg.SquaredHinge(), bg.L1(1e-4), intercept=True),
    Kind("squared hinge l2 1e-4", bg.SquaredHinge(), bg.SquaredL2(1e-4)),
    Kind("squared hinge l2 1e-8", bg.SquaredHinge(), bg.SquaredL2(1e-8), intercept=True),
    Kind("squared", bg.Squared(), bg.Zero(), intercept=True),
    Kind("squared l1 1e-3", bg.Squared(), bg.L1(1e-3), intercept=True),
    Kind("own l2 1e-4", PseudoHuber(), bg.SquaredL2(1e-4)),
)
REGRESSION = (
    Kind("squared", bg.Squared(), bg.Zero(), intercept=True),
    Kind("squared l1 1", bg.Squared(), bg.L1(1.0), intercept=True),
    Kind("squared l1 1e-3", bg.Squared(), bg.L1(1e-3), intercept=True),
    Kind("squared l2 1e-4", bg.Squared(), bg.SquaredL2(1e-4), intercept=True),
    Kind("squared l2 1e-8", bg.Squared(), bg.SquaredL2(1e-8), intercept=True, weighted=True),
    Kind("huber l1 1e-4", bg.Huber(), bg.L1(1e-4)),
    Kind("huber l2 1e-4", bg.Huber(), bg.SquaredL2(1e-4), intercept=True),
    Kind("huber l2 1e-8", bg.Huber(), bg.SquaredL2(1e-8), intercept=True),
    Kind("own l2 1e-4", PseudoHuber(), bg.SquaredL2(1e-4)),
)
FEW = ("logistic l1 1e-4", "logistic l2 1e-4", "squared", "squared l2 1e-4", "huber l2 1e-4", "own l2 1e-4")


class Case(NamedTuple):
    """A problem of the zoo, and the data that it was made of."""

    data: DataSet
    kind: Kind
    X: Any
    y: np.ndarray
    problem: bg.Problem
    digest: str  # of the data

    @property
    def large(self) -> bool:
        return entries(self.X) > LARGE


def entries(X: Any) -> int:
    return X.size if isinstance(X, np.ndarray) else X.nnz


def cases(data: DataSet, names: Collection[str] | None = None) -> Iterator[Case]:
    """The problems on a set: those asked for, else all, or few of them on a large one."""
    X, y = data.load()
    weights = 10.0 ** np.random.default_rng(0).uniform(-3.0, 3.0, len(y))
    digest = fingerprint(X, y)
    if names is None and entries(X) > LARGE:
        names = FEW
    for kind in CLASSIFICATION if set(np.unique(y)) <= {-1.0, 1.0} else REGRESSION:
        if names is None or kind.name in names:
            problem = bg.Problem(X, y, kind.loss, kind.penalty, weights if kind.weighted else None, kind.intercept)
            yield Case(data, kind, X, y, problem, digest)


def fingerprint(X: Any, y: np.ndarray) -> str:
    digest = hashlib.blake2b(digest_size=6)
    for array in (*((X,) if isinstance(X, np.ndarray) else (X.data, X.indices, X.indptr)), y):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
