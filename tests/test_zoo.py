"""A small part of benchmarks/zoo.py: every fit reaches the minimum, none explodes, all reasons are true."""

import argparse

import numpy as np
import pytest
from rich.console import Console

import banditgrad as bg
from sets import all_sets, half
from zoo import Run, judge, visit

SMALL = ("tiny", "huge-row", "huge-column", "copies")
KINDS = ("logistic l1 1e-4", "logistic l2 1e-4")


def faults(data, **options):
    arguments = argparse.Namespace(**{"kinds": KINDS, "seeds": 3, "first_order": False, **options})
    return [fault for run in visit(data, arguments, Console(quiet=True)) for fault in run.faults]


@pytest.mark.parametrize("name", SMALL)
def test_small_sets(name):
    assert faults(all_sets()[name], first_order=True, kinds=KINDS[:1]) == []


@pytest.mark.parametrize("name", ["amounts-1", "amounts-3", "amounts-6"])
def test_raw_amounts(name):
    assert faults(all_sets()[name]) == []


@pytest.mark.parametrize("name", ["australian", "svmguide1"])
def test_raw_columns_of_real_data(name, real_data):
    try:
        all_sets()[name].load()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    assert faults(all_sets()[name], seeds=10) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", all_sets())
def test_everything(name):
    try:
        all_sets()[name].load()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    assert faults(all_sets()[name], kinds=None, first_order=True) == []


def test_halves_are_of_families_and_both_are_there():
    halves = {name: data.half for name, data in all_sets().items()}
    assert set(halves.values()) == {"tuning", "held-out"}
    assert len({halves[name] for name in halves if name.startswith("kdd")}) == 1
    assert half("w8a") == "tuning"


@pytest.mark.parametrize(
    ("run", "fault"),
    [
        (Run("minimise", 0, 1.0, np.array([1.0, 0.5]), 0.5, bg.Reason.PASSES_DONE, True), None),
        (Run("minimise", 0, 1.0, np.array([1.0, 0.6]), 0.6, bg.Reason.PASSES_DONE, True), "stall"),
        (Run("Saga", 0, 1.0, np.array([1.0, 0.6]), 0.6, bg.Reason.PASSES_DONE, False), None),
        (Run("Saga", 0, 1.0, np.array([1.0, 3.0, 0.6]), 0.6, bg.Reason.PASSES_DONE, False), "explosion"),
        (Run("Saga", 0, 1.0, np.array([1.0, 0.5, 0.6]), 0.6, bg.Reason.PASSES_DONE, False), "explosion"),
        (Run("Saga", 0, 1.0, np.array([1.0, 0.6]), 0.6, bg.Reason.CONVERGED, False), "false reason"),
        (Run("Sgd", 0, 1.0, np.array([1.0, 3.0]), 1.0, bg.Reason.ROSE, False), None),
        (Run("Sgd", 0, 1.0, np.array([1.0, 3.0]), 1.0, bg.Reason.PASSES_DONE, False), "false reason"),
    ],
)
def test_the_zoo_sees_what_is_wrong(run, fault):
    judge(run, 0.5)
    assert any(told.startswith(fault) for told in run.faults) if fault else run.faults == []
