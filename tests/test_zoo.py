"""A small part of benchmarks/zoo.py: every fit reaches the minimum, none explodes, all reasons are true."""

import dataclasses

import numpy as np
import pytest

import banditgrad as bg
from minima import fits, problems
from minima.faults import faults
from minima.journal import Journal
from minima.optimum import Optimum
from second_opinion import second_opinion
from sets import DataSet, all_sets, half
from zoo import visit

DEFAULTS = ("minimise", "estimator", "SampledNewton")
SMALL = ("tiny", "huge-row", "huge-column", "copies")
KINDS = ("logistic l1 1e-4", "logistic l2 1e-4")


def wrong(data, kinds=KINDS, solvers=DEFAULTS, seeds=3, journal=None):
    """All faults of a set's problems."""
    try:
        data.load()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    found = []
    for case in problems.cases(data, kinds):
        verdict = visit(case, journal or Journal(None), solvers, seeds)
        found += [(case.kind.name, fit.solver, fit.seed, why) for fit, why in verdict.faults.items() if why]
    return found


@pytest.mark.parametrize("name", SMALL)
def test_small_sets(name):
    solvers = (*DEFAULTS, "ProxSvrg", "Saga", "S2gd", "LSvrg", "Sgd", "ProxSgd")
    assert wrong(all_sets()[name], KINDS[:1], solvers) == []


@pytest.mark.parametrize("name", ["amounts-1", "amounts-3", "amounts-6"])
def test_raw_amounts(name):
    assert wrong(all_sets()[name], solvers=DEFAULTS[:2]) == []


@pytest.mark.parametrize("name", ["australian", "svmguide1"])
def test_raw_columns_of_real_data(name):
    assert wrong(all_sets()[name], seeds=10) == []


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("name", all_sets())
def test_everything(name):
    assert wrong(all_sets()[name], kinds=None, solvers=None) == []


def test_halves_are_of_families_and_both_are_there():
    halves = {name: data.half for name, data in all_sets().items()}
    assert set(halves.values()) == {"tuning", "held-out"}
    assert len({halves[name] for name in halves if name.startswith("kdd")}) == 1
    assert half("w8a") == "tuning"


def of(solver, values, value, reason):
    promises = solver == "minimise"
    told = fits.told(np.array(values), value, reason)
    return fits.Fit("set", "kind", solver, 0, promises, **told)


@pytest.mark.parametrize(
    ("fit", "fault"),
    [
        (of("minimise", [1.0, 0.5], 0.5, "PASSES_DONE"), None),
        (of("minimise", [1.0, 0.6], 0.6, "PASSES_DONE"), "stall"),
        (of("minimise", [1.0, 1.1, 0.5], 0.5, "CONVERGED"), "explosion"),
        (of("minimise", [1.0, 0.5], np.nan, "CONVERGED"), "stall"),
        (of("minimise", [1.0], 1.0, "ValueError: too large"), "explosion"),
        (of("minimise", [1.0, 0.3], 0.3, "CONVERGED"), "false reason"),
        (of("Saga", [1.0, 0.6], 0.6, "PASSES_DONE"), None),
        (of("Saga", [1.0, 3.0, 0.6], 0.6, "PASSES_DONE"), "explosion"),
        (of("Saga", [1.0, 0.5, 0.6], 0.6, "PASSES_DONE"), "explosion"),
        (of("Saga", [1.0, 0.6], 0.6, "CONVERGED"), "false reason"),
        (of("Sgd", [1.0, 0.5, 0.8], 0.5, "ROSE"), None),
        (of("Sgd", [1.0, 0.5, 1.2], 0.5, "ROSE"), "explosion"),
        (of("Sgd", [1.0, 1.2], 1.0, "PASSES_DONE"), "false reason"),
    ],
)
def test_the_zoo_sees_what_is_wrong(fit, fault):
    found = faults(fit, Optimum("set", "kind", 0.5, 0.4, "gap"))
    assert any(told.startswith(fault) for told in found) if fault else found == []


def small(name="small", seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 3))
    y = np.where(X @ [1.0, 2.0, 0.0] + rng.standard_normal(60) > 0.0, 1.0, -1.0)
    return DataSet(name, name, lambda: (X, y), zoo=True)


def test_a_run_that_was_stopped_goes_on(tmp_path, monkeypatch):
    case, path, made = next(problems.cases(small(), KINDS)), tmp_path / "zoo.jsonl", []
    visit(case, Journal(path), ["minimise"], 2)
    with path.open("a") as file:
        file.write('{"set": "sm')  # cut off
    monkeypatch.setitem(
        fits.FITTERS,
        "minimise",
        fits.FITTERS["minimise"]._replace(run=lambda *at: made.append(at[1]) or fits.minimised("auto", "auto", 9, *at)),
    )
    verdict = visit(case, Journal(path), ["minimise"], 4)
    assert made == [2, 3]
    assert [fit.seed for fit in verdict.fits] == [0, 1, 2, 3]
    assert [fit.seed for fit in Journal(path).fits(case)] == [0, 1, 2, 3]


def test_fits_of_other_code_and_other_data_do_not_count(tmp_path):
    case, path = next(problems.cases(small(), KINDS)), tmp_path / "zoo.jsonl"
    visit(case, Journal(path), ["minimise"], 1)
    later = Journal(path)
    later.code = "another"
    assert later.fits(case) == []
    assert later.optimum(case) is not None
    changed = next(problems.cases(small(seed=1), KINDS))
    assert Journal(path).fits(changed) == []
    assert Journal(path).optimum(changed) is None


def test_no_time_is_no_fault():
    case = next(problems.cases(small(), KINDS))
    verdict = visit(case, Journal(None), ["minimise", "Saga"], 2, time_limit=1e-9)
    assert verdict.late == 4
    assert verdict.fits == verdict.all_faults == []


@pytest.mark.parametrize("kind", [*problems.CLASSIFICATION, *problems.REGRESSION], ids=lambda kind: kind.name)
def test_the_second_opinion_finds_the_minimum(kind):
    """From zero."""
    X, y = small().load()
    y = y if kind in problems.CLASSIFICATION else 3.0 * y + X[:, 2]
    weights = np.linspace(0.1, 2.0, len(y)) if kind.weighted else None
    problem = bg.Problem(X, y, kind.loss, kind.penalty, weights, kind.intercept)
    origin = np.zeros(problem.dimension)
    w, doubt = second_opinion(X, y, problem, origin)
    assert doubt <= 1e-8 * problem.value(w)
    assert problem.optimality(w) < 1e-4 * problem.optimality(origin)


def test_a_fit_is_kept_without_loss():
    fit = of("Saga", [1.0, 1 / 3], 1 / 3, "PASSES_DONE")
    assert fits.Fit(**dataclasses.asdict(fit)) == fit
