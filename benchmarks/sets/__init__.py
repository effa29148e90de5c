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
    zoo: bool  # whether benchmarks/zoo.py fits it: not if it is large or has several classes

    @property
    def half(self) -> str:
        return half(self.family)


SETS: dict[str, DataSet] = {}
# Constants were chosen on these before there were halves.
TUNED_BEFORE = ("w8a", "ijcnn1", "a9a", "words", "million", "dense")


def half(family: str) -> str:
    """ "tuning" or "held-out": the parity of the first byte of the SHA-256 of the family's name."""
    if family in TUNED_BEFORE:
        return "tuning"
    return ("tuning", "held-out")[hashlib.sha256(family.encode()).digest()[0] % 2]


def data_set(family: str, name: str = "", zoo: bool = True) -> Callable[[Any], Any]:
    """Decorator: registers a function without arguments as a data set, under its own name unless another is given."""

    def register(load: Any) -> Any:
        title = name or load.__name__.replace("_", "-")
        assert title not in SETS, f"two data sets are called {title}"
        SETS[title] = DataSet(title, family, load, zoo)
        return load

    return register


@cache
def every_set() -> dict[str, DataSet]:
    """By name, those that only the race uses too."""
    from sets import generated, large, real, text  # noqa: F401  # they register themselves

    return SETS


@cache
def all_sets() -> dict[str, DataSet]:
    """Those of the zoo, by name."""
    return {name: data for name, data in every_set().items() if data.zoo}
