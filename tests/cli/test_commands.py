"""The commands, run as a user would, on files of every kind."""

import bz2
import gzip
import io
import json
import lzma
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from banditgrad.cli import main
from banditgrad.datasets import make_imbalanced


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same kind of rows as svmlight (plain and compressed), CSV and Parquet."""
    folder = tmp_path_factory.mktemp("data")
    X, y = make_imbalanced(400, 12, 4, positive=0.3, seed=1)
    lines = []
    for i in range(400):
        row = X[[i]].tocoo()
        cells = " ".join(f"{j + 1}:{v:.6g}" for j, v in zip(row.coords[1], row.data, strict=True))
        lines.append(f"{y[i]:+.0f} {cells}")
    text = ("\n".join(lines) + "\n").encode()
    (folder / "rows").write_bytes(text)
    for suffix, pack in (("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)):
        (folder / f"rows.{suffix}").write_bytes(pack(text))
    frame = pd.DataFrame(X.toarray(), columns=[f"f{j}" for j in range(12)])
    frame["id"], frame["bought"] = np.arange(400), np.where(y > 0, "yes", "no")
    frame["weight"] = 1.0
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_parquet(folder / "rows.parquet")
    numbers = frame.drop(columns=["bought", "id", "weight"]).assign(y=X.toarray() @ np.arange(12.0) + 0.5)
    numbers.to_csv(folder / "numbers.csv.gz", index=False)
    return folder


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command in this process; its exit code, standard output and standard error."""

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["banditgrad", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        return code, *capsys.readouterr()

    return call


@pytest.mark.parametrize("name", ["rows", "rows.gz", "rows.bz2", "rows.xz"])
def test_inspect_reads_svmlight(run, files, name):
    code, out, _ = run("inspect", files / name)
    assert code == 0
    assert "400 × 12" in out
    assert "Bandit sampling is" in out or "Bandit sampling may" in out


def test_inspect_as_json(run, files):
    code, out, _ = run("inspect", files / "rows.csv", "--label", "bought", "--drop", "id", "--drop", "weight", "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["rows"], found["features"], set(found["classes"])) == (400, 12, {"no", "yes"})
    assert found["near_optimum"]["perfect_gain"] >= found["near_optimum"]["importance_gain"] * (1 - 1e-9)
    assert found["worth_it"] in ("yes", "a little", "no")
    assert found["solver"] == "samplednewton"


def test_fit_and_predict_a_table(run, files, tmp_path):
    table, model = files / "rows.parquet", tmp_path / "model.json"
    words = ("--label", "bought", "--drop", "id", "--weights", "weight", "--penalty", "l1", "--alpha", "1e-3")
    code, out, err = run("fit", table, *words, "--test", files / "rows.csv", "--out", model)
    assert code == 0, err
    for part in ("objective", "accuracy", "AUC", "non-zeros", "hardly any draws", "test", "Model written"):
        assert part in " ".join(out.split())
    code, out, _ = run("predict", model, files / "rows.csv", "--proba")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "prediction,p(no),p(yes)"
    assert len(lines) == 401
    assert {line.split(",")[0] for line in lines[1:]} == {"no", "yes"}
    code, out, err = run("predict", model, files / "rows.csv", "--json", "--out", tmp_path / "p.csv")
    assert code == 0
    assert json.loads(out)["prediction"] == [line.split(",")[0] for line in lines[1:]]
    assert "400 predictions" in err


def test_fit_svmlight_and_the_same_seed(run, files, tmp_path):
    results = []
    for name in ("a", "b"):
        code, out, _ = run("fit", files / "rows", "--out", tmp_path / name, "--json", "--seed", "5")
        assert code == 0
        results.append(json.loads(out))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert results[0]["objective"] == results[1]["objective"]
    assert results[0]["train"]["accuracy"] > 0.7
    code, out, _ = run("predict", tmp_path / "a", files / "rows")
    assert code == 0
    assert set(out.splitlines()[1:]) == {"-1", "1"}


def test_svmlight_files_of_one_model_begin_with_the_same_index(run, tmp_path):
    """A file in which the first feature does not occur looks as if it began with 1."""
    (tmp_path / "rows").write_text("+1 0:5 1:1 2:1\n-1 0:-5 1:1 2:-1\n" * 20)
    (tmp_path / "new").write_text("+1 1:5\n")
    (tmp_path / "other").write_text("+1 1:5 2:1\n-1 1:-5 2:1 3:-1\n" * 20)
    for name in ("rows", "other"):
        assert run("fit", tmp_path / name, "--out", tmp_path / f"{name}.json")[0] == 0
    _, out, _ = run("predict", tmp_path / "rows.json", tmp_path / "new", "--json", "--proba")
    assert json.loads(out)["p(1)"][0] == pytest.approx(0.5, abs=0.1)  # it says nothing of the feature that counts
    _, out, _ = run("fit", tmp_path / "rows", "--test", tmp_path / "new", "--json")
    assert json.loads(out)["test"]["log loss"] > 0.5
    code, _, err = run("predict", tmp_path / "other.json", tmp_path / "rows")
    assert code == 1
    assert "line 1: index 0, where the first feature has the index 1" in " ".join(err.split())


def test_predict_needs_no_labels(run, files, tmp_path):
    frame = pd.read_csv(files / "rows.csv").drop(columns=["id", "weight"]).rename(columns={"bought": "label"})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.assign(label=None).to_csv(tmp_path / "new.csv", index=False)
    assert run("fit", tmp_path / "rows.csv", "--out", tmp_path / "model")[0] == 0
    code, out, err = run("predict", tmp_path / "model", tmp_path / "new.csv")
    assert code == 0, err
    assert len(out.splitlines()) == 401


def test_labels_that_look_like_formulas_are_text_in_csv(run, files, tmp_path):
    frame = pd.read_csv(files / "rows.csv").drop(columns=["id", "weight"])
    frame["bought"] = frame["bought"].map({"yes": "=1+1", "no": "-no"})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    assert run("fit", tmp_path / "rows.csv", "--label", "bought", "--out", tmp_path / "model")[0] == 0
    _, out, _ = run("predict", tmp_path / "model", tmp_path / "rows.csv")
    assert set(out.splitlines()[1:]) == {"'=1+1", "'-no"}


COMPARE = ("--samplers", "uniform", "--solvers", "saga", "--passes", "1", "--seeds", "1")


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
@pytest.mark.parametrize(
    ("words", "shown"),
    [(("inspect",), "tau = max L / mean L"), (("compare", *COMPARE), "F - F*"), (("compare", *COMPARE, "--json"), "")],
    ids=["inspect", "compare", "compare as JSON"],
)
def test_characters_that_an_encoding_lacks_do_not_stop_a_command(
    run, files, tmp_path, monkeypatch, words, shown, encoding
):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.chdir(tmp_path)
    code, _, err = run(words[0], files / "rows", *words[1:])
    assert code == 0, err
    stream.flush()
    out = stream.buffer.getvalue().decode(encoding)
    assert shown in out
    if "--json" in words:
        assert float(json.loads(out)["settings"]["τ"]) > 1.0


def test_fit_tells_what_a_sampling_solver_bought(run, files, tmp_path):
    code, out, _ = run("fit", files / "rows", "--solver", "proxsvrg", "--out", tmp_path / "model")
    assert code == 0
    assert "of uniform sampling's" in " ".join(out.split())


def test_fit_regresses_on_numbers(run, files):
    code, out, _ = run("fit", files / "numbers.csv.gz", "--json")
    assert code == 0
    assert json.loads(out)["train"]["R²"] > 0.99
    assert json.loads(out)["settings"]["loss"] == "squared_error"


def test_compare_writes_a_report(run, files, tmp_path):
    words = ("--samplers", "uniform,auto", "--solvers", "proxsvrg", "--passes", "3", "--seeds", "2")
    code, out, err = run("compare", files / "rows", *words, "--out", tmp_path)
    assert code == 0, err
    assert "uniform" in out
    assert "auto" in out
    assert "Samplers compared on rows" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert (tmp_path / "distance.png").exists()
    assert (tmp_path / "variance.svg").exists()
    code, out, _ = run("compare", files / "rows", *words, "--out", tmp_path, "--json")
    rows = json.loads(out)["runs"]
    assert [row["sampler"] for row in rows] == ["uniform", "auto"]
    assert rows[0]["variance_vs_uniform"] == pytest.approx(1.0)
    assert all(row["gap"] >= 0.0 for row in rows)


def test_compare_does_without_matplotlib(run, files, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    words = ("--samplers", "uniform", "--solvers", "proxsvrg", "--passes", "2", "--seeds", "1", "--out", tmp_path)
    code, out, err = run("compare", files / "rows", *words)
    assert code == 0, err
    assert "uniform" in out
    assert "report.html" in out
    assert "banditgrad[viz]" in err
    assert (tmp_path / "report.html").exists()


def test_compare_where_there_is_nothing_to_learn(run, tmp_path):
    (tmp_path / "zeros.csv").write_text("a,b,y\n" + "1,2,0\n3,4,0\n" * 10)
    words = ("--loss", "squared_error", "--passes", "2", "--seeds", "1", "--samplers", "uniform")
    code, out, err = run("compare", tmp_path / "zeros.csv", *words, "--out", tmp_path)
    assert code == 0, err
    assert "uniform" in out


@pytest.mark.parametrize("command", ["inspect", "fit", "predict", "compare", "demo", "paper"])
def test_help_has_examples(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0
    assert "Examples" in out
    assert f"banditgrad {command}" in out


def test_ctrl_c_keeps_what_was_reached(files, tmp_path):
    """A real process and a real signal, sent once training is under way."""
    model = tmp_path / "model.json"
    words = ["fit", files / "rows", "--out", model, "--solver", "saga", "--max-iter", 10**8, "--tol", 0, "--json"]
    process = subprocess.Popen(
        [sys.executable, "-c", _TRAINING_TELLS, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stderr.readline() == b"training\n"
    time.sleep(0.2)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130, err
    assert json.loads(out)["interrupted"] is True
    assert model.exists()
    assert b"Traceback" not in err


# The command itself, which says on standard error when the first pass was made.
_TRAINING_TELLS = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # the background jobs of a shell ignore it
from banditgrad.cli import main, screen
plain = screen.pass_by_pass
def pass_by_pass(say, what):
    once = []
    def callback(progress):
        if not once:
            once.append(1)
            print("training", file=sys.stderr, flush=True)
        return plain(say, what)(progress)
    return callback
screen.pass_by_pass = pass_by_pass
main()
"""
