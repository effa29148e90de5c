"""The race against the peers: its optima, its search and its counts. Nothing here looks at how long anything took."""

import math
from dataclasses import replace

import numpy as np
import pytest

import banditgrad as bg
from race import display, measure, results
from race.contenders import ITERATIONS, PASSES, TOLERANCES, Contender, all_contenders
from race.optimum import Optimum, certified_optimum, compute
from race.problems import CLASSES, OBJECTIVES, RACED, Task, load
from race.results import Cell, Standing
from sets import every_set, half

# Threads of the test runner are idle while a worker is forked.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

# The other peers are not installed where the tests run.
HERE = [c for c in all_contenders().values() if c.library in ("banditgrad", "scikit-learn")]
ENOUGH = {PASSES: 30.0, ITERATIONS: 1000, TOLERANCES: 1e-10}
QUICK = measure.Limits(rounds=2, seeds=1, budget=5.0, patience=1e6)


@pytest.fixture(scope="module")
def rows():
    return bg.datasets.make_imbalanced(600, 30, 5, positive=0.4, tail=0.3, seed=0)


@pytest.fixture(scope="module")
def tasks(rows):
    """objective → task and its optimum."""
    X, y = rows
    classes = np.random.default_rng(0).integers(0, 3, y.size) * (y > 0.0)
    made = {objective: Task("tiny", objective, X, classes if objective in CLASSES else y) for objective in OBJECTIVES}
    return {objective: (task, compute(task)) for objective, task in made.items()}


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_duality_gap_certifies_the_optimum(objective, tasks):
    task, optimum = tasks[objective]
    problem, rng = task.problem(), np.random.default_rng(0)
    assert 0.0 <= optimum.doubt <= 1e-10
    assert optimum.by == "a duality gap"
    assert optimum.certifies(1e-8)
    for scale in (0.0, 0.1, 10.0):
        w = scale * rng.standard_normal(task.shape)
        assert problem.value(w) >= optimum.value - 1e-12
        assert problem.value(w) - problem.gap(w) <= optimum.value + 1e-12


def test_optimum_is_kept_for_the_same_data_only(rows, tmp_path):
    X, y = rows
    cache = tmp_path / "optima.json"
    first = certified_optimum(Task("tiny", "ridge", X, y), cache)
    cache.write_text(cache.read_text().replace(repr(first.value), "0.125"))
    assert certified_optimum(Task("tiny", "ridge", X, y), cache).value == 0.125
    assert certified_optimum(Task("tiny", "ridge", X, -y), cache).value == pytest.approx(first.value)


@pytest.mark.parametrize("contender", HERE, ids=lambda contender: contender.name)
@pytest.mark.filterwarnings("ignore")  # peers warn of what we ask for: to go on to the limit of rounding
def test_contenders_minimise_the_same_function(contender, tasks):
    for objective, (task, optimum) in tasks.items():
        if task.kind in contender.solves and not (task.kind == "hinge-l2" and "SGD" in contender.name):
            effort = 100 if "newton" in contender.name else ENOUGH.get(contender.ladder, 1)
            w = contender.fit(task, seed=0)(effort)
            assert w.shape == task.shape
            close = 3e-2 if any(name in contender.name for name in ("SGD", "uniform", "Saga")) else 1e-4
            assert task.problem().value(w) <= optimum.value + close, objective


def least_rungs(entry):
    """Of the rungs that reach an accuracy, the lowest; the fastest may be another."""
    return [min(fit.rung for fit in entry.fits if fit.distance <= target) for target in measure.TARGETS]


def test_race_finds_the_least_effort(tasks):
    """A contender that is 2^-effort away from the optimum is searched rung by rung."""
    task, optimum = tasks["ridge"]
    solved = next(c for c in HERE if c.name == "scikit-learn Ridge cholesky").prepare(task)(1)

    def prepare(task):
        direction = np.ones(task.d) / 100
        return lambda effort: solved + direction * 2.0**-effort

    halving = Contender("halving", frozenset({task.kind}), tuple(range(40)), False, prepare)
    (entry,) = measure.race(task, [halving], optimum, QUICK)
    values = [task.problem().value(prepare(task)(effort)) - optimum.value for effort in halving.ladder]
    for target in measure.TARGETS:
        least = next(effort for effort, value in enumerate(values) if value <= target)
        assert least_rungs(entry)[measure.TARGETS.index(target)] == least
        assert sum(fit.rung == entry.best(target).rung for fit in entry.fits) >= 2  # repeated in the second round


def test_a_contender_that_breaks_stays_behind_with_a_note(tasks):
    task, optimum = tasks["ridge"]

    def absent(task):
        raise ImportError("No module named 'peer'")

    def wrong(task):
        return lambda effort: np.full(task.d, np.nan)

    broken = [Contender(f.__name__, frozenset({task.kind}), (1,), True, f) for f in (absent, wrong)]
    entries = measure.race(task, broken, optimum, QUICK)
    assert "No module named 'peer'" in entries[0].note
    assert all(math.isinf(cell.cpu) for cell in results.cells(entries))


def test_whole_race_writes_its_files(tasks, tmp_path):
    task, optimum = tasks["l2-logistic"]
    names = ("banditgrad", "scikit-learn lbfgs", "scikit-learn saga")
    entries = measure.race(task, [c for c in HERE if c.name in names], optimum, QUICK)
    cells = [replace(cell, task="words ridge") for cell in results.cells(entries)]  # a set that has a half
    assert len(cells) == 3 * len(measure.TARGETS)
    assert all(cell.cpu < math.inf for cell in cells if cell.target >= 1e-6)
    results.write_csv(tmp_path / "cells.csv", cells)
    assert str(results.read_cells(tmp_path / "cells.csv")) == str(cells)  # NaN is not equal to itself
    display.draw(tmp_path / "figure.png", cells)
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    document = tmp_path / "page.md"
    document.write_text("before\n<!-- peers: start -->\nold\n<!-- peers: end -->\nafter\n")
    display.fill_document(document, "peers", f"{display.summary(cells)}\n{display.tables(cells)}")
    text = document.read_text()
    assert "scikit-learn lbfgs" in text or "scikit-learn saga" in text
    assert "| tuning, all | 4 |" in text
    assert "old" not in text
    assert text.startswith("before")
    assert text.endswith("after\n")


def test_a_crash_in_the_middle_loses_its_own_rung_only(tasks):
    task, optimum = tasks["ridge"]
    solved = next(c for c in HERE if c.name == "scikit-learn Ridge cholesky").prepare(task)(1)

    def prepare(task):
        def fit(effort):
            if effort == 2:  # asked for on the way down from 4
                raise MemoryError("too little")
            return solved * min(1.0, effort / 3)

        return fit

    fragile = Contender("fragile", frozenset({task.kind}), tuple(range(9)), False, prepare)
    (entry,) = measure.race(task, [fragile], optimum, QUICK)
    assert "too little" in entry.note
    assert least_rungs(entry) == [3] * 4


def test_seeds_each_have_their_fits_and_the_worst_counts(tasks):
    task, optimum = tasks["ridge"]
    solved = next(c for c in HERE if c.name == "scikit-learn Ridge cholesky").prepare(task)(1)

    def prepare(task, seed):
        return lambda effort: solved if effort >= seed else np.zeros(task.d)

    lucky = Contender("lucky", frozenset({task.kind}), (0, 1, 2), True, prepare)
    entries = measure.race(task, [lucky], optimum, QUICK._replace(seeds=3))
    assert [least_rungs(entry) for entry in entries] == [[0] * 4, [1] * 4, [2] * 4]
    cells = [Cell("t", "lucky", seed, True, 1e-3, cpu, cpu, 1.0) for seed, cpu in enumerate((1.0, 3.0, 2.0))]
    assert results.worst_seeds(cells) == [cells[1]]
    never = Cell("t", "lucky", 3, True, 1e-3, math.inf, math.inf, math.nan, cutoff=0.5)
    assert results.worst_seeds([*cells, never]) == [never]


def test_accuracies_that_nothing_certifies_are_not_raced(tasks):
    task, optimum = tasks["ridge"]
    cholesky = next(c for c in HERE if c.name == "scikit-learn Ridge cholesky")
    (entry,) = measure.race(task, [cholesky], Optimum(optimum.value, 5e-8), QUICK)
    assert [cell.target for cell in results.cells([entry])] == [1e-3, 1e-4, 1e-6]
    assert measure.race(task, [cholesky], Optimum(optimum.value, 1.0), QUICK) == []


def test_standing_counts_cells():
    def column(target, ours, reference, stochastic, other):
        return [
            Cell("t", "banditgrad", 0, True, target, ours, ours, 1.0),
            Cell("t", "banditgrad Saga", 0, True, target, reference, reference, 1.0),
            Cell("t", "peer sgd", 0, True, target, stochastic, stochastic, 1.0),
            Cell("t", "peer newton", 0, False, target, other, other, 1.0),
        ]

    inf = math.inf
    rows = [
        *column(1e-3, 1.0, 0.1, 2.0, 3.0),  # first by 2x; our own other contenders do not count
        *column(1e-4, 1.2, 1.2, 2.0, 1.0),  # near; first among stochastic
        *column(1e-6, 3.0, 3.0, inf, 1.0),  # behind; the only stochastic one
        *column(1e-8, inf, inf, inf, inf),  # nobody
    ]
    assert results.standing(rows) == Standing(first=1, near=1, behind=1, far=1, nobody=1)
    assert results.standing(rows, stochastic_only=True) == Standing(first=3, near=0, behind=0, nobody=1)
    assert results.standing(column(1e-3, inf, 1.0, 1.0, 1.0)) == Standing(behind=1, far=1)
    late = Cell("t", "peer slow", 0, True, 1e-3, inf, inf, math.nan, cutoff=1.5)  # who knows when it would have arrived
    assert results.standing([*column(1e-3, 1.0, 1.0, 9.0, 9.0), late]) == Standing(first=1)
    assert results.standing([*column(1e-3, 2.0, 2.0, 9.0, 9.0), late]) == Standing(behind=1)
    stalled = Cell("t", "banditgrad", 1, True, 1e-3, inf, inf, math.nan)
    assert results.standing([*column(1e-3, 1.0, 1.0, 9.0, 9.0), stalled]) == Standing(behind=1, far=1)


def test_halves_stand_side_by_side():
    rows = [Cell(f"{data} ridge", "banditgrad", 0, True, 1e-3, 1.0, 1.0, 1.0) for data in ("words", "abalone")]
    titles = [title for title, _ in results.standings(rows)]
    assert titles == ["tuning, all", "tuning, stochastic", "held-out, all", "held-out, stochastic"]
    assert half("words") == "tuning"  # tuned on before there were halves
    assert {every_set()[data].half for data in RACED} == {"tuning", "held-out"}


def test_words_have_rows_of_very_different_length():
    X, y = load("words")
    assert Task("words", "lasso", X, y).problem().tau > 500


def test_targets_of_a_regression_are_standardised():
    _, y = load("dear-targets")
    assert abs(y.mean()) < 1e-9
    assert y.std() == pytest.approx(1.0)
