"""The whole evaluation, in miniature."""

import csv
import io
import json
import math
import sqlite3
import threading

import pytest
from rich.console import Console

import banditgrad as bg
from banditgrad.paper import PARTS, evaluate
from banditgrad.paper.optimum import Optimum, duality_gap
from banditgrad.paper.store import Results, Store
from banditgrad.report import Verdict
from paper import tiny
from report.test_browser import GEOMETRY, PHONE, browser  # noqa: F401  a fixture


def run(out, names=tuple(PARTS), scale=tiny.SCALE, jobs=2):
    words = io.StringIO()
    evaluate(list(names), scale, out, jobs, Console(file=words, width=200), tiny.cases())
    return words.getvalue()


def stored(out):
    connection = sqlite3.connect(out / "runs.sqlite")
    rows = connection.execute("SELECT key, outcome FROM outcomes WHERE settings NOT LIKE '{\"timing\"%' ORDER BY key")
    found = rows.fetchall()
    connection.close()
    return found


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a whole evaluation, and what it said."""
    out = tmp_path_factory.mktemp("finished")
    return out, run(out)


def test_everything_is_run_written_and_kept(finished):
    tmp_path, words = finished
    panels = {path.stem for path in tmp_path.glob("*.csv")}
    solvers, sets = ("sgd", "prox-svrg", "saga"), ("w8a", "ijcnn1")
    assert panels == {
        "figure1-cost",
        "figure1-variance",
        *(f"figure2-{solver}-{name}" for solver in solvers for name in sets),
        *(f"figure3-{solver}" for solver in solvers),
    }
    for figure in ("figure1", "figure2", "figure3"):
        assert (tmp_path / f"{figure}.png").stat().st_size > 10_000
        assert (tmp_path / f"{figure}.svg").stat().st_size > 10_000
    rows = list(csv.DictReader((tmp_path / "figure2-saga-w8a.csv").read_text(encoding="utf-8").splitlines()))
    assert [float(row["x"]) for row in rows] == [0, 1, 2, 3]
    assert float(rows[0]["MABS median"]) > float(rows[-1]["MABS median"]) > 0

    claims = (tmp_path / "claims.md").read_text(encoding="utf-8").splitlines()[2:]
    assert len(claims) >= 20
    assert all(sum(f"**{verdict.value}**" in claim for verdict in Verdict) == 1 for claim in claims)
    assert "nan" not in "".join(claims)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for title in ("Table 1", "In the text", "Training time", "Theorem 1", "Other draws".lower(), "F*"):
        assert title in page
    assert "runs to do: about" in words
    assert "with 2 threads" in words

    before = stored(tmp_path)
    again = run(tmp_path)
    assert "runs to do" not in again
    assert stored(tmp_path) == before
    assert (tmp_path / "claims.md").read_text(encoding="utf-8").splitlines()[2:] == claims


@pytest.mark.parametrize("settings", [{}, {"color_scheme": "dark", "viewport": PHONE}], ids=["desktop", "dark phone"])
def test_the_page_in_a_browser(finished, browser, settings):  # noqa: F811
    complaints = []
    context = browser.new_context(**settings)
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto((finished[0] / "report.html").as_uri())
    page.wait_for_selector(".chart > svg")
    charts = page.evaluate(GEOMETRY)
    wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    context.close()
    assert complaints == []
    assert not wide
    assert len(charts) == 2 + 6 + 3
    assert all(any(path["kind"] == "line" and path["length"] > 0 for path in chart["paths"]) for chart in charts)


def test_the_number_of_threads_does_not_change_a_bit(tmp_path):
    for name, jobs in (("one", 1), ("three", 3)):
        run(tmp_path / name, ["figure1"], jobs=jobs)
    assert stored(tmp_path / "one") == stored(tmp_path / "three")
    assert (tmp_path / "one" / "figure1.png").read_bytes() == (tmp_path / "three" / "figure1.png").read_bytes()


def test_more_repeats_reuse_the_fewer(tmp_path):
    run(tmp_path, ["figure1"])
    few = dict(stored(tmp_path))
    words = run(tmp_path, ["figure1"], tiny.SCALE.with_repeats(4))
    many = dict(stored(tmp_path))
    assert few.items() < many.items()
    assert f"{len(few)} runs are there from before" in words


@pytest.mark.parametrize("name", ["w8a", "tau=30"])
def test_the_optimum_is_certified(tmp_path, name):
    cases = tiny.cases()
    with Store(tmp_path / "s.sqlite") as store:
        results, task = Results(store, cases), Optimum(name)
        results.keep(task, task.work(cases, threading.Event()))
        found = results[task]
    assert 0.0 <= found["gap"] <= 1e-10
    problem = cases[name].problem
    solver = bg.Sgd(1e-3) if name.startswith("tau") else bg.ProxSvrg(0.5)
    other = bg.minimise(problem, solver, bg.Mabs(), passes=300, seed=1)
    assert found["value"] - found["gap"] <= other.value + 1e-12
    if not name.startswith("tau"):
        assert other.value - found["value"] <= duality_gap(cases[name], other.w) + 1e-12
        assert math.isclose(other.value, found["value"], rel_tol=1e-2)


def test_the_command_as_json(tmp_path, monkeypatch, capsys):
    from banditgrad.cli import app

    monkeypatch.setattr("banditgrad.paper.Cases", tiny.cases)
    monkeypatch.setattr("banditgrad.paper.QUICK", tiny.SCALE)
    app(["paper", "table1", "--quick", "--json", "--out", str(tmp_path)], standalone_mode=False)
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert [claim["verdict"] for claim in found["claims"]]
    assert found["files"][-1] == str(tmp_path / "report.html")
    assert "report.html" in err.replace("\n", "")  # the words go there
