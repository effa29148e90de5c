"""The commands, run as a user would, on files of every kind."""

import bz2
import gzip
import importlib
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


def test_fit_chooses_alpha_and_prints_standard_errors(run, files):
    words = ("--label", "bought", "--drop", "id", "--drop", "weight", "--standardize")
    code, out, err = run("fit", files / "rows.csv", *words, "--cv", "3", "--alphas", "4", "--summary")
    shown = " ".join(out.split())
    assert code == 0, err
    assert "alpha by 3 folds, columns standardised" in shown
    assert "by 3 folds: accuracy" in shown
    assert "standard error" in shown
    assert "odds ratio" in shown
    code, out, _ = run("fit", files / "rows.csv", *words, "--C", "2", "--summary", "--json")
    found = json.loads(out)
    assert [row["feature"] for row in found["summary"]] == [*(f"f{j}" for j in range(12)), "(intercept)"]
    assert found["settings"]["C"] == 2.0
    _, _, err = run("fit", files / "rows.csv", *words, "--penalty", "l1", "--summary")
    assert "No summary." in err


def test_columns_of_very_different_scale_are_told(run, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((60, 2)) * [1e-3, 1e4], columns=["small", "large"])
    frame.assign(y=np.where(frame["small"] > 0, "a", "b")).to_csv(tmp_path / "d.csv", index=False)
    _, out, _ = run("fit", tmp_path / "d.csv", "--json")
    assert "entries of 'large' are about" in json.loads(out)["notes"][0]
    _, out, _ = run("fit", tmp_path / "d.csv", "--json", "--standardize")
    assert json.loads(out)["notes"] == []
    assert json.loads(out)["train"]["accuracy"] == 1.0


def test_warmup_leaves_nothing_to_compile_for_a_fit(run, files, monkeypatch):
    warmup = importlib.import_module("banditgrad.cli.warmup")  # the package has the command under this name

    first = next(warmup.kinds())
    monkeypatch.setattr(warmup, "kinds", lambda: iter([first]))
    code, out, _ = run("warmup")
    assert code == 0
    assert "classes from dense rows" in out
    _, out, _ = run("warmup", "--json")
    assert json.loads(out)["seconds_compiling"] == {"classes from dense rows": 0.0}


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
    assert [race["solver"] for race in found["races"]] == ["samplednewton", "proxsvrg", "proxsvrg"]
    assert 0.0 < found["half"] <= 0.5
    assert list(found["classes"]) == ["no", "yes"]  # the larger first


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


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A table as people have it: an id, numbers with gaps, words with rare levels."""
    folder, rng, n = tmp_path_factory.mktemp("shop"), np.random.default_rng(0), 600
    city = np.append(rng.choice(["Rome", "Oslo", "Bern"], n - 5), [f"village {k}" for k in range(5)])
    age = np.round(rng.uniform(18, 90, n))
    bought = np.where((city == "Rome") + 0.02 * age + rng.normal(size=n) > 1.5, "yes", "no")
    age[::20] = np.nan
    frame = pd.DataFrame({"id": [f"{k:05}" for k in range(n)], "age": age, "city": city, "bought": bought})
    frame.to_csv(folder / "shop.csv", index=False, sep=";", decimal=",")
    frame[["age", "city", "bought"]].to_csv(folder / "bare.data", index=False, header=False)
    return folder


def test_fit_tells_what_it_decided_and_predict_does_the_same(run, shop, tmp_path):
    model = tmp_path / "model.json"
    code, out, err = run("fit", shop / "shop.csv", "--label", "bought", "--test-size", "0.25", "--out", model)
    assert code == 0, err
    words = " ".join(out.split())
    for part in (
        "450 rows to train on, 150 to test on",
        "6, from 1 columns of numbers and 1 of words, one-hot: city (4)",
        "classification, 2 classes: no",
        "precision",
        "as yes",
        "city=Rome",
        "× deviation",
    ):
        assert part in words
    assert out.index("classification") < out.index("objective")
    for part in ("semicolons", "Left out: 'id'", "'age' (30 rows)", "5 of 8 in 'city'"):
        assert part in err
    (tmp_path / "new.csv").write_text("city,id,age\nRome,007,80\nMars,008,\n")
    code, out, err = run("predict", model, tmp_path / "new.csv", "--keep", "id", "--proba")
    assert code == 0, err
    assert [line.split(",")[:2] for line in out.splitlines()] == [["id", "prediction"], ["007", "yes"], ["008", "no"]]
    assert "'Mars'" in err


def test_fit_as_json_has_what_the_screen_has(run, shop):
    code, out, _ = run("fit", shop / "shop.csv", "--label", "bought", "--test-size", "0.25", "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["task"], found["rows"], found["test_rows"]) == ("classification", 450, 150)
    assert found["columns"] == {"numbers": 1, "words": {"city": 4}}
    assert sum(each["rows"] for each in found["by_class"].values()) == 150
    right = sum(row[k] for k, row in enumerate(found["confusion"].values()))
    assert right / 150 == pytest.approx(found["test"]["accuracy"])
    assert {each["feature"] for each in found["largest"][:2]} == {"age", "city=Rome"}
    assert found["seconds"] > 0.0


def test_a_table_without_names_and_without_the_label(run, shop, tmp_path):
    code, _, err = run("fit", shop / "bare.data", "--label", "last", "--out", tmp_path / "model")
    assert code == 0, err
    (tmp_path / "new.data").write_text("80,Rome\n20,Oslo\n")
    code, out, err = run("predict", tmp_path / "model", tmp_path / "new.data")
    assert code == 0, err
    assert out.split() == ["prediction", "yes", "no"]


def test_standard_input_and_patterns(run, files, monkeypatch):
    text = io.TextIOWrapper(io.BytesIO((files / "rows").read_bytes()))
    monkeypatch.setattr(sys, "stdin", text)
    code, out, _ = run("fit", "-", "--json")
    assert code == 0
    assert json.loads(out)["rows"] == 400
    code, out, _ = run("fit", files / "rows.par*", files / "rows.csv", "--label", "bought", "--json")
    assert code == 0
    assert json.loads(out)["rows"] == 800


def test_a_set_by_name(run, tmp_path, monkeypatch, named_sets):
    monkeypatch.chdir(tmp_path)  # where no file is called so
    code, out, err = run("fit", "a9a", "--json", "--max-iter", "2")
    assert code == 0, err
    assert (json.loads(out)["rows"], json.loads(out)["features"]) == (32561, 123)


@pytest.fixture
def named_sets():
    if not os.environ.get("BANDITGRAD_DATA"):
        pytest.skip("BANDITGRAD_DATA names no folder with the set a9a")


def test_a_class_too_small_to_split(run, tmp_path):
    (tmp_path / "d.csv").write_text("a,y\n" + "1,x\n2,z\n" * 20 + "3,w\n")
    results = [run("fit", tmp_path / "d.csv", "--test-size", "0.5", "--seed", k) for k in range(6)]
    assert {code for code, *_ in results} == {0, 1}
    assert any("no row of the class 'w' is left" in err for _, _, err in results)


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


@pytest.mark.parametrize("command", ["inspect", "fit", "predict", "compare", "demo", "paper", "warmup"])
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
    while (line := process.stderr.readline()) != b"training\n":  # it may say that it compiles
        assert b"compiling" in line
    time.sleep(0.2)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130, err
    assert json.loads(out)["interrupted"] is True
    assert model.exists()
    assert b"Traceback" not in err


# The command itself, which says on standard error when the first pass was made.
_TRAINING_TELLS = """
import contextlib, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # the background jobs of a shell ignore it
from banditgrad.cli import main, screen
plain = screen.training
@contextlib.contextmanager
def training(problems):
    with plain(problems) as callback:
        once = []
        def tell(progress):
            if not once:
                once.append(1)
                print("training", file=sys.stderr, flush=True)
            return callback(progress)
        yield tell
screen.training = training
main()
"""
