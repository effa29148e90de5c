"""Data sets for benchmarks: one small function each, that returns rows and targets.

Constants of the library may be chosen on the *tuning* half only, claims are made on the *held-out* half. A set's half
follows from the name of its family, so that versions of one set (scalings, labels) are never on both sides.
"""

import hashlib
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np


class DataSet(NamedTuple):
    name: str
    family: str
    load: Callable[[], tuple[Any, np.ndarray]]

    @property
    def half(self) -> str:
        return half(self.family)


SETS: dict[str, DataSet] = {}
TUNED_BEFORE = ("w8a", "ijcnn1", "a9a")  # constants were chosen on these before there were halves


def half(family: str) -> str:
    """ "tuning" or "held-out": the parity of the first byte of the SHA-256 of the family's name."""
    if family in TUNED_BEFORE:
        return "tuning"
    return ("tuning", "held-out")[hashlib.sha256(family.encode()).digest()[0] % 2]


def data_set(family: str, name: str = "") -> Callable[[Any], Any]:
    """Decorator: registers a function without arguments as a data set, under its own name unless another is given."""

    def register(load: Any) -> Any:
        title = name or load.__name__.replace("_", "-")
        assert title not in SETS, f"two data sets are called {title}"
        SETS[title] = DataSet(title, family, load)
        return load

    return register


@cache
def all_sets() -> dict[str, DataSet]:
    """Every data set, by name."""
    from sets import generated, real  # noqa: F401  # they register themselves

    return SETS
