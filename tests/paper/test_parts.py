"""The pieces, one by one: verdicts, store, progress, scale."""

import io
import math
import shutil

import numpy as np
import pytest
from rich.console import Console

from banditgrad.paper import PAPER, QUICK
from banditgrad.paper import store as module
from banditgrad.paper.cases import Cases, synthetic
from banditgrad.paper.claims import judge, markdown, number, quantiles, trend
from banditgrad.paper.display import display, duration
from banditgrad.paper.figure3 import largest_step
from banditgrad.paper.runner import State
from banditgrad.paper.store import Results, Store, code_hash
from banditgrad.paper.tasks import Run
from banditgrad.report import Claim, Verdict

RUN = Run(synthetic(20.0), "SGD", (("step_size", 4e-3),), "MABS", 10)


def test_a_verdict_is_that_of_its_parts():
    assert judge([True, True]) is Verdict.HOLDS
    assert judge([True, False]) is Verdict.HOLDS_PARTLY
    assert judge([False]) is Verdict.DOES_NOT_HOLD
    assert judge([]) is Verdict.NOT_MEASURED


def test_quantiles_are_of_what_was_measured():
    runs = np.array([[1.0, math.inf], [2.0, math.inf], [3.0, 5.0]])
    median, low, high = quantiles(runs)
    assert median.tolist() == [2.0, math.inf]
    assert low.tolist() == [1.0, 5.0]
    assert high.tolist() == [3.0, math.inf]


def test_trend():
    assert trend([1, 2, 3], [1.0, 5.0, 100.0]) == pytest.approx(1.0)
    assert trend([1, 2, 3], [3.0, 2.0, 1.0]) == pytest.approx(-1.0)
    assert trend([1], [3.0]) == 0.0


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.0123456, "0.0123"), (4.5678e-7, "4.57e-07"), (12.34, "12.3"), (0.0, "0"), (math.inf, "diverged")],
)
def test_numbers_in_words(value, words):
    assert number(value) == words


def test_the_largest_step():
    assert largest_step({0.1: 1e-3, 1.0: 5e-3, 5.0: 0.5}, 1e-2) == 1.0
    assert largest_step({0.1: 1.0}, 1e-2) == 0.0


def test_claims_as_markdown():
    table = markdown([Claim("It is so.", "3 of 3.", Verdict.HOLDS)])
    assert table.splitlines()[2] == "| It is so. | 3 of 3. | **holds** |"


def test_a_store_returns_what_it_was_given_to_the_bit(tmp_path):
    outcome = {"value": [0.1 + 0.2, math.inf, 5e-324], "clipped": 0.0}
    with Store(tmp_path / "runs.sqlite") as store:
        store.put("key", {"γ": 1.0}, outcome)
    with Store(tmp_path / "runs.sqlite") as store:
        assert store.get("key") == outcome
        assert store.get("another") is None


def test_a_file_that_is_no_store_is_left_alone(tmp_path):
    path = tmp_path / "runs.sqlite"
    path.write_bytes(b"something else entirely, and long enough to be looked at" * 20)
    with pytest.raises(ValueError, match="Remove it to start anew"):
        Store(path)
    assert path.read_bytes().startswith(b"something else")


def test_a_key_depends_on_settings_data_and_code(tmp_path, monkeypatch):
    with Store(tmp_path / "runs.sqlite") as store:
        results = Results(store, Cases())
        keys = [
            results.key(Run(case, "SGD", (("step_size", step),), sampler, 10, seed=seed))
            for case in (synthetic(20.0), synthetic(20.0, 1))
            for step in (4e-3, 4.1e-3)
            for sampler in ("MABS", "uniform")
            for seed in (0, 1)
        ]
        assert len(set(keys)) == 16
        before = results.key(RUN)
        monkeypatch.setattr(module, "code_hash", lambda task: "changed")
        assert results.key(RUN) != before


def test_the_code_that_counts_is_hashed(tmp_path, monkeypatch):
    copy = tmp_path / "banditgrad"
    shutil.copytree(module._PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(module, "_PACKAGE", copy)
    hashes = []
    for change in (None, "samplers/mabs.py", "report/page.py", "paper/figure2.py"):
        if change:
            with (copy / change).open("a") as file:
                file.write("# changed\n")
        code_hash.cache_clear()
        hashes.append(code_hash(Run))
    code_hash.cache_clear()
    assert hashes[1] != hashes[0]
    assert hashes[1:] == [hashes[1]] * 3


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "1 s"), (40, "40 s"), (700, "12 min"), (3900, "65 min"), (9000, "2 h 30 min")]
)
def test_durations_in_words(seconds, words):
    assert duration(seconds) == words


def test_progress_in_plain_lines():
    words = io.StringIO()
    with display(Console(file=words)) as show:
        show(State(0, 100, 0, 6, 0.0, 0.0))
        show(State(50, 100, 2, 6, 0.5, 10.0))  # too soon for another line
        show(State(100, 100, 6, 6, 1.0, 20.0))
    first, last = words.getvalue().splitlines()
    assert "0 of 6 panels, 0 of 100 runs" in first
    assert last == "6 of 6 panels, 100 of 100 runs, 5.0 runs/s"


def test_progress_on_a_terminal():
    words = io.StringIO()
    with display(Console(file=words, force_terminal=True, width=120)) as show:
        show(State(50, 100, 2, 6, 0.5, 10.0))
    assert "2 of 6 panels, 50 of 100 runs, 5.0 runs/s, 10 s left" in words.getvalue()


def test_scales():
    assert PAPER.with_repeats(7).figure2_repeats == 7
    assert PAPER.repeats("MABS", 100) == 100
    assert PAPER.repeats("VRB", 100) == 10
    assert {solver for solver, _ in QUICK.figure3_steps} == {solver for solver, _ in PAPER.figure3_steps}
    with pytest.raises(ValueError, match="at least 1"):
        PAPER.with_repeats(0)


def test_other_draws_of_the_synthetic_set_are_other_sets():
    cases = Cases()
    hashes = {cases[synthetic(tau, draw)].data_hash for tau in (3.7, 83.9) for draw in range(4)}
    assert len(hashes) == 8
    assert cases[synthetic(83.9, 2)].problem.tau == pytest.approx(83.9)
