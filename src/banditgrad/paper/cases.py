"""The problems of the evaluation, by name: "w8a", "ijcnn1", and "tau=20" or "tau=20, set 3" for the synthetic ones."""

import functools
import hashlib
import itertools
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import banditgrad as bg

STRENGTH = 1e-4  # λ of the L1 penalty on the real sets
SMALLEST_TAU = 3.7  # the smallest of the paper


@dataclass(frozen=True, eq=False)
class Case:
    """A set and the paper's problem on it."""

    X: Any
    y: NDArray[np.float64]
    problem: bg.Problem
    data_hash: str


def synthetic(tau: float, draw: int = 0) -> str:
    """The name of the synthetic set with this τ; other draws are other sets of the same kind."""
    return f"tau={tau:g}" + (f", set {draw}" if draw else "")


def is_synthetic(name: str) -> bool:
    return name.startswith("tau=")


@functools.cache
def _seed(draw: int) -> int:
    """The seed of a draw: seeds whose rows have a larger τ than the paper's smallest are passed over."""

    def serves(seed: int) -> bool:
        try:
            bg.datasets.make_tau(SMALLEST_TAU, seed=seed)
        except ValueError:
            return False
        return True

    return next(itertools.islice(filter(serves, itertools.count()), draw, None))


def _load(name: str) -> tuple[Any, NDArray[np.float64]]:
    data = bg.datasets.load(name)
    return data.X, data.y


class Cases:
    """Cases, made when first asked for. `load` gives the real sets as (X, y)."""

    def __init__(self, load: Callable[[str], tuple[Any, NDArray[np.float64]]] = _load) -> None:
        self._load, self._made, self._lock = load, dict[str, Case](), threading.Lock()

    def __getitem__(self, name: str) -> Case:
        with self._lock:
            if name not in self._made:
                self._made[name] = self._make(name)
            return self._made[name]

    def _make(self, name: str) -> Case:
        if is_synthetic(name):
            tau, draw = re.fullmatch(r"tau=([\d.]+)(?:, set (\d+))?", name).groups()  # type: ignore[union-attr]
            X, y = bg.datasets.make_tau(float(tau), seed=_seed(int(draw or 0)))
            problem = bg.Problem(X, y, loss=bg.Squared())
        else:
            X, y = self._load(name)
            problem = bg.Problem(X, y, loss=bg.Logistic(), penalty=bg.L1(STRENGTH))
        return Case(X, y, problem, _hash(X, y))


def _hash(X: Any, y: NDArray[np.float64]) -> str:
    digest = hashlib.sha256(repr(X.shape).encode())
    for array in ((X.indptr, X.indices, X.data) if sp.issparse(X) else (X,)) + (y,):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
