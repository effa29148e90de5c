"""The table of all samplers: statistics beside formulas and enumeration, the journal, and a small table."""

import itertools
import json

import numpy as np
import pytest

from contest.cases import Settings
from contest.display import halves, markdown, report, summary, words
from contest.ranks import against, standing
from contest.results import Cell, cells, draw_costs, last_gap, passes_to, seconds_to, table
from contest.runs import Journal, Missing, measure


def test_ranks_and_friedmans_test_by_their_formulas(rng):
    values = rng.standard_normal((3, 14)) + np.array([[0.0], [0.5], [1.5]])
    found = standing(dict(zip("abc", values, strict=True)))
    ranks = (values[:, None] >= values[None]).sum(axis=1).mean(axis=1)
    assert list(found.ranks.values()) == pytest.approx(ranks)
    statistic = 12.0 * 14 / (3 * 4) * (np.sum(ranks**2) - 3 * 4**2 / 4)
    assert found.p_value == pytest.approx(np.exp(-statistic / 2.0))  # chi-squared with two degrees of freedom
    assert found.problems == 14


def test_the_difference_that_tells_apart_is_the_published_one(rng):
    """Demšar, "Statistical Comparisons of Classifiers over Multiple Data Sets", JMLR 2006: 1.25 for four on 14 sets."""
    found = standing(dict(zip("abcd", rng.standard_normal((4, 14)), strict=True)))
    assert found.difference == pytest.approx(2.569 * np.sqrt(4 * 5 / (6 * 14)), rel=1e-3)


def test_level_contenders_are_not_told_apart():
    same = np.arange(1.0, 9.0)
    assert standing({"a": same, "b": same, "c": same}).p_value == 1.0
    assert against({"a": same, "b": same, "c": same}, "a") == {"b": 1.0, "c": 1.0}


def test_signed_ranks_by_enumeration_with_holms_correction(rng):
    """p: of all signs that the differences could have had, the share that is at least as far from even."""
    reference = np.exp(rng.standard_normal(8))
    ratios = {"b": np.exp(-np.abs(rng.standard_normal(8))), "c": np.exp(rng.standard_normal(8))}
    raw = {}
    for name, ratio in ratios.items():
        ranks = np.argsort(np.argsort(np.abs(np.log(ratio)))) + 1.0
        sums = np.array([ranks @ signs for signs in itertools.product((-1, 1), repeat=8)])
        raw[name] = np.mean(np.abs(sums) >= abs(ranks @ np.sign(np.log(ratio))))
    found = against({"a": reference, **{name: reference * ratio for name, ratio in ratios.items()}}, "a")
    first, second = sorted(raw, key=raw.__getitem__)
    assert found[first] == pytest.approx(min(1.0, 2.0 * raw[first]))
    assert found[second] == pytest.approx(max(found[first], raw[second]))


def test_one_that_never_arrives_is_last_and_finite():
    values = {"a": np.ones(9), "b": np.full(9, np.inf)}
    assert against(values, "a")["b"] == pytest.approx(2.0 / 2**9)
    assert standing({**values, "c": np.full(9, 2.0)}).ranks == {"a": 1.0, "b": 3.0, "c": 2.0}


def line(seed, values, variance, sampler="mabs"):
    key = {"set": "copies", "objective": "o", "solver": "sgd", "sampler": sampler, "seed": seed}
    passes = [0.5 * k for k in range(len(values))]
    ones = [1.0] * len(values)
    return {
        "key": key,
        "passes": passes,
        "value": values,
        "variance": variance,
        "optimal": ones,
        "uniform": [4.0] * len(ones),
    }


def test_cells_say_what_the_lines_say():
    place = {"set": "copies", "objective": "o"}
    lines = [
        {"key": {"draw": "mabs"}, "nanoseconds": 7.0},
        {"key": {**place, "what": "optimum"}, "value": 1.0},
        {"key": {**place, "solver": "sgd", "what": "pace"}, "seconds": {"mabs": 0.25}},
        line(0, [2.0, 1.01, 1.0005], [3.0, 2.0, 1.0]),
        line(1, [2.0, 1.0005, 1.0], [9.0, 2.0, 1.0]),
        line(2, [2.0, np.nan], [3.0, np.nan]),  # diverged
    ]
    (cell,) = cells(lines)
    assert cell.passes_to(1e-3).tolist() == [1.0, 0.5, np.inf]
    assert passes_to(1e-3)(cell) == 1.0
    assert seconds_to(1e-3)(cell) == 0.25
    assert last_gap(cell) == pytest.approx(5e-4)
    assert cell.regret == pytest.approx(3.0)  # the second of 1, 3 and infinity
    assert cell.worst == np.inf
    assert draw_costs(lines) == {"mabs": 7.0}
    assert table([cell, Cell(("p", "o", "sgd"), "vrb", *[np.ones(1)] * 4, 1.0)], last_gap)["mabs"].size == 0


def test_the_journal_goes_on_where_it_was(tmp_path):
    path = tmp_path / "journal.jsonl"
    assert Journal(path).get({"n": 1}, lambda: {"value": 1.5})["value"] == 1.5
    with path.open("a") as file:
        file.write('{"key": {"n": 2}, "val')  # cut off
    journal = Journal(path)
    journal.deadline = 0.0
    assert journal.get({"n": 1}, dict)["value"] == 1.5
    with pytest.raises(Missing):
        journal.get({"n": 2}, dict)
    journal.deadline = np.inf
    journal.get({"n": 3}, lambda: {"value": 2.5})
    assert len(Journal(path).lines) == 2
    path.write_text(path.read_text().replace(journal.code, "older"))
    assert Journal(path).get({"n": 1}, lambda: {"value": 3.5})["value"] == 3.5
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
    assert Journal(path, any_code=True).get({"n": 1}, dict)["value"] == 1.5


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A table of one set, one solver and three samplers: its settings and lines."""
    settings = Settings(("counts",), ("logistic l2",), ("sgd",), ("uniform", "mabs", "tracking"), 2, 4.0, 400)
    journal = Journal(tmp_path_factory.mktemp("contest") / "journal.jsonl")
    return settings, list(measure(settings, journal, lambda said: None)), journal


def test_a_whole_table(small):
    settings, lines, journal = small
    found, draws = cells(lines), draw_costs(lines)
    assert [cell.sampler for cell in found] == ["uniform", "mabs", "tracking"]
    uniform, mabs, tracking = found
    assert np.isfinite(uniform.gaps).all()
    assert uniform.to_uniform == pytest.approx(1.0, abs=1e-3)  # four digits are kept
    assert (uniform.variance >= 0.999).all()
    assert tracking.regret < mabs.regret < uniform.regret
    assert set(draws) == set(settings.samplers)
    assert all(cell.seconds_a_pass > 0.0 for cell in found)
    assert list(halves(found)) == ["all sets", "held-out sets"]
    text = markdown(summary(found, draws))
    assert all(f"| {name} |" in text for name in settings.samplers)
    assert "400 rows" in words(settings)
    page = report(found, draws, settings)
    assert [figure.key for figure in page.figures] == ["sgd-distance", "sgd-variance"]
    journal.deadline = 0.0
    assert json.dumps(list(measure(settings, journal, lambda said: None))) == json.dumps(lines)
