"""The race against the peers: its optima, its search and its counts. Nothing here looks at how long anything took."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from race import display, measure, results
from race.contenders import CONTENDERS, KINDS, Contender, all_contenders
from race.optimum import certified_optimum, compute, dual_value
from race.problems import OBJECTIVES, Task, words
from race.results import Cell, Standing

import banditgrad as bg


@pytest.fixture(scope="module")
def rows():
    return bg.datasets.make_imbalanced(600, 30, 5, positive=0.4, seed=0)


@pytest.fixture(params=OBJECTIVES)
def task(request, rows):
    return Task("tiny", request.param, *rows)


def test_duality_gap_certifies_the_optimum(task):
    problem, rng = task.problem(), np.random.default_rng(0)
    optimum = compute(task)
    assert 0.0 <= optimum.gap <= 1e-10
    for scale in (0.0, 0.1, 10.0):
        w = scale * rng.standard_normal(task.d)
        assert problem.value(w) >= optimum.value - 1e-12
        assert dual_value(task, w) <= optimum.value + 1e-12


def test_optimum_is_kept_for_the_same_data_only(rows, tmp_path):
    X, y = rows
    cache = tmp_path / "optima.json"
    first = certified_optimum(Task("tiny", "ridge", X, y), cache)
    cache.write_text(cache.read_text().replace(repr(first.value), "0.125"))
    assert certified_optimum(Task("tiny", "ridge", X, y), cache).value == 0.125
    assert certified_optimum(Task("tiny", "ridge", X, -y), cache).value == pytest.approx(first.value)


# The other peers are not installed where the tests run; every contender is held to the same F by the race itself.
@pytest.mark.parametrize("name", [name for name, c in all_contenders().items() if c.library in ("banditgrad", "scikit-learn")])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_contender_minimises_the_same_function(name, rows):
    contender = CONTENDERS[name]
    for objective, (kind, *_) in OBJECTIVES.items():
        if kind in contender.solves:
            task = Task("tiny", objective, *rows)
            w = contender.prepare(task)(contender.ladder[-1] if len(contender.ladder) > 40 else contender.ladder[-1])
            close = 0.02 if "SGD" in name else 1e-6
            assert task.problem().value(w) <= compute(task).value + close, objective
