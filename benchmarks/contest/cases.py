"""Who takes part, and on what."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import banditgrad as bg
from minima.problems import fingerprint
from sets import all_sets

SETS = ("w8a", "ijcnn1", "a9a", "kdd-std", "debian-tfidf", "debian-counts", "fashion")
SOLVERS = {"sgd": bg.Sgd(), "saga": bg.Saga(), "proxsvrg": bg.ProxSvrg(), "lsvrg": bg.LSvrg()}
SAMPLERS = {
    "uniform": bg.Uniform(),
    "importance": bg.Importance(),
    "mabs": bg.Mabs(),
    "mabs (10 δ)": bg.Mabs(relax=0.1),
    "vrb": bg.Vrb(),
    "osmd": bg.Osmd(),
    "adaosmd": bg.AdaOsmd(),
    "avare": bg.Avare(),
    "emanorm": bg.EmaNorm(),
    "forgettingmabs": bg.ForgettingMabs(),
    "safebounds": bg.SafeBounds(),
    "recentnorm": bg.RecentNorm(),
    "tracking": bg.Tracking(),
    "auto": bg.Auto(),
}
# the loss, and how much of the penalty 1e-4 is the l1 norm; all as elastic nets, which share compiled loops
OBJECTIVES = {
    "logistic l1": (bg.Logistic(), 1.0),
    "logistic l2": (bg.Logistic(), 0.0),
    "squared hinge l2": (bg.SquaredHinge(), 0.0),
}
STRENGTH = 1e-4


@dataclass(frozen=True)
class Settings:
    """What a table is made with."""

    sets: tuple[str, ...] = SETS
    objectives: tuple[str, ...] = tuple(OBJECTIVES)
    solvers: tuple[str, ...] = tuple(SOLVERS)
    samplers: tuple[str, ...] = tuple(SAMPLERS)
    seeds: int = 10
    passes: float = 40.0
    rows: int | None = None  # of each set, at most
    sparse: bool = False  # dense rows are stored as sparse ones


@dataclass(frozen=True, eq=False)
class Case:
    data: str
    objective: str
    problem: bg.Problem
    digest: str  # of the rows

    @property
    def half(self) -> str:
        return all_sets()[self.data].half


def cases(settings: Settings) -> Iterator[Case]:
    for name in settings.sets:
        X, y = _rows(name, settings)
        digest = fingerprint(X, y)
        for objective in settings.objectives:
            loss, l1_ratio = OBJECTIVES[objective]
            yield Case(name, objective, bg.Problem(X, y, loss, bg.ElasticNet(STRENGTH, l1_ratio)), digest)


def _rows(name: str, settings: Settings) -> tuple[Any, np.ndarray]:
    """The rows of a set, or as many of them as are asked for, at random but always the same."""
    X, y = all_sets()[name].load()
    if settings.rows is not None and settings.rows < len(y):
        kept = np.sort(np.random.default_rng(0).permutation(len(y))[: settings.rows])
        X, y = X[kept], y[kept]
    if settings.sparse and isinstance(X, np.ndarray):
        X = sp.csr_array(X)
    return X, y
