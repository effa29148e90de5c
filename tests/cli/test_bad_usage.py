"""Bad input, one row a kind: the exit code (1 failed, 2 bad usage), the words, and never a traceback."""

import gzip
import json
import os

import numpy as np
import pandas as pd
import pytest

from banditgrad.linear_model import BanditClassifier, save_model

from .test_commands import run  # noqa: F401

GOOD = "+1 1:0.5 2:1\n-1 1:0.2\n+1 2:3\n-1 1:1 2:0.1\n"
TABLE = "a,b,label\n1,2,x\n3,4,y\n5,7,x\n"

# name: (files to write, command, exit code, words of the error)
BAD = {
    "missing file": ({}, "fit nowhere", 2, "does not exist"),
    "a folder": ({}, "fit .", 2, "is a directory"),
    "no data": ({}, "fit", 2, "Missing argument"),
    "no such command": ({}, "train d", 2, "No such command"),
    "no such option": ({"d": GOOD}, "fit d --speed 3", 2, "No such option"),
    "empty file": ({"d": ""}, "inspect d", 1, "has no rows"),
    "empty table": ({"d.csv": ""}, "inspect d.csv", 1, "d.csv is empty"),
    "header only": ({"d.csv": "a,b,label\n"}, "inspect d.csv", 1, "0 rows"),
    "bad token": ({"d": "+1 1:0.5\n-1 2;3\n"}, "fit d", 1, "line 2: '2;3' has no colon"),
    "bad value": ({"d": "+1 1:0.5\n-1 2:x\n"}, "fit d", 1, "line 2: the value 'x'"),
    "bad label": ({"d": "spam 1:0.5\n"}, "fit d", 1, "the label 'spam'"),
    "descending indices": ({"d": "1 2:1 1:1\n"}, "fit d", 1, "indices must ascend"),
    "NaN in svmlight": ({"d": "+1 1:nan\n-1 1:1\n"}, "fit d", 1, "is not a finite decimal number"),
    "no features": ({"d": "+1\n-1\n"}, "fit d", 1, "no features"),
    "one class": ({"d": "1 1:1\n1 1:2\n"}, "fit d", 1, "one class only"),
    "numbers as classes": ({"d": "1.5 1:1\n2.5 1:2\n"}, "fit d --loss log_loss", 1, "needs classes"),
    "words as numbers": ({"d.csv": TABLE}, "fit d.csv --loss huber", 1, "needs numbers as labels"),
    "three classes to compare": ({"d": "1 1:1\n2 1:2\n3 1:1\n"}, "compare d", 1, "--positive LABEL"),
    "no such class": ({"d": GOOD}, "compare d --positive 7", 1, "no label '7'"),
    "gaps in a table": (
        {"d.csv": "a,b,c,label\n1,2,u,x\n,,,y\n"},
        "fit d.csv --missing error",
        1,
        "missing in 'a' (1 row), 'b' (1 row), 'c' (1 row)",
    ),
    "infinity in a table": ({"d.csv": "a,label\n1,x\ninf,y\n"}, "fit d.csv", 1, "an infinite value in row 2"),
    "label missing in a row": ({"d.csv": "a,label\n1,x\n2,\n"}, "fit d.csv", 1, "is empty in row 2"),
    "no label column": ({"d.csv": "a,b\n1,2\n"}, "fit d.csv", 1, "Name the label column"),
    "no such label column": ({"d.csv": TABLE}, "fit d.csv --label z", 1, "no column 'z'"),
    "a word among numbers": ({"d.csv": "a,label\n1,x\n2,y\nten,y\n"}, "fit d.csv", 1, "'ten' in row 3"),
    "words as numbers in a feature": (
        {"d.csv": "a,label\nred,x\nblue,y\n"},
        "fit d.csv --number a",
        1,
        "'a' must hold numbers, and has 'red'",
    ),
    "dates": (
        {"d.csv": "a,b,label\n2024-05-31,1/2/24,x\n2024-06-01,1/3/24,y\n"},
        "fit d.csv",
        1,
        "--drop a --drop b",
    ),
    "money": ({"d.csv": 'a,label\n"$1,200",x\n"$3,000",y\n'}, "fit d.csv", 1, "numbers with signs, such as '$1,200'"),
    "no header, no label": ({"d.csv": "1,1,x\n2,2,y\n"}, "fit d.csv", 1, "`--label last`"),
    "a misspelt label": ({"d.csv": TABLE}, "fit d.csv --label lable", 1, "Did you mean 'label'?"),
    "position too high": ({"d.csv": TABLE}, "fit d.csv --label 4", 1, "no column '4'"),
    "a workbook": ({"d.xlsx": b"PK\x03\x04..."}, "fit d.xlsx", 1, "a ZIP archive"),
    "a workbook called csv": ({"d.csv": b"PK\x03\x04..."}, "fit d.csv", 1, "a ZIP archive"),
    "JSON": ({"d.json": '[{"a": 1}]'}, "inspect d.json", 1, "is JSON"),
    "a web page": ({"d.csv": "<!DOCTYPE html>"}, "inspect d.csv", 1, "a web page"),
    "long separator": ({"d.csv": TABLE}, "fit d.csv --sep ,,", 1, "must be one character"),
    "tables with other columns": (
        {"a.csv": TABLE, "b.csv": "a,c,label\n1,2,x\n"},
        "fit a.csv b.csv",
        1,
        "'b', 'c' are in one of them only",
    ),
    "two svmlight files": ({"a": GOOD, "b": GOOD}, "fit a b", 2, "only if they are tables"),
    "two tests": ({"d": GOOD}, "fit d --test d --test-size 0.5", 2, "pass one of them"),
    "nothing to test on": ({"d": GOOD}, "fit d --test-size 0", 2, "leaves none"),
    "no match of a pattern": ({}, "fit *.parquet", 2, "does not exist"),
    "separator for svmlight": ({"d": GOOD}, "fit d --sep ;", 2, "--sep is for tables"),
    "column to keep of svmlight": ({"d": GOOD}, "predict model.json d --keep id", 2, "--keep is for tables"),
    "no column to keep": ({"t.csv": "a,b\n1,2\n"}, "predict table.json t.csv --keep id", 1, "no column 'id'"),
    "svmlight for a model of columns": ({"d": GOOD}, "predict table.json d", 1, "with the columns 'a', 'b'"),
    "words for a model of numbers": ({"t.csv": "a,b\n1,x\n"}, "predict table.json t.csv", 1, "'b' must hold numbers"),
    "gaps for a model without": ({"t.csv": "a,b\n1,\n"}, "predict table.json t.csv", 1, "the model knows none"),
    "ragged table": ({"d.csv": "a,label\n1,x\n2,y,z,w\n"}, "fit d.csv", 1, "not a readable table"),
    "binary as a table": ({"d.csv": b"\x00\xff\xfe,\x80\n"}, "fit d.csv", 1, "not a readable table"),
    "text as parquet": ({"d.parquet": "hello"}, "fit d.parquet", 1, "not a readable table"),
    "damaged gzip": ({"d.gz": gzip.compress(GOOD.encode())[:-12]}, "fit d.gz", 1, "is damaged"),
    "negative weights": ({"d.csv": "a,s,label\n1,-1,x\n2,1,y\n"}, "fit d.csv --weights s", 1, "must not be negative"),
    "label for svmlight": ({"d": GOOD}, "fit d --label y", 2, "--label is for"),
    "features for a table": ({"d.csv": TABLE}, "fit d.csv --features 9", 2, "--features is for svmlight"),
    "too few features": ({"d": GOOD}, "fit d --features 1", 1, "of 1"),
    "negative alpha": ({"d": GOOD}, "fit d --alpha -1", 2, "--alpha"),
    "alpha in words": ({"d": GOOD}, "fit d --alpha lots", 2, "--alpha"),
    "l1 ratio above one": ({"d": GOOD}, "fit d --l1-ratio 2", 2, "--l1-ratio"),
    "no iterations": ({"d": GOOD}, "fit d --max-iter 0", 2, "--max-iter"),
    "negative step": ({"d": GOOD}, "fit d --step-size -1", 2, "must be positive"),
    "unknown solver": ({"d": GOOD}, "fit d --solver adam", 2, "'adam' is not one of"),
    "unknown sampler": ({"d": GOOD}, "compare d --samplers uniform,best", 2, "'best' is not one of"),
    "sampler twice": ({"d": GOOD}, "compare d --samplers mabs,mabs", 2, "each once"),
    "unknown loss": ({"d": GOOD}, "fit d --loss absolute", 2, "'absolute' is not one of"),
    "alpha twice": ({"d": GOOD}, "fit d --alpha 1 --C 1", 2, "pass one of them"),
    "folds without a penalty": ({"d": GOOD}, "fit d --cv 3 --penalty none", 2, "there is none"),
    "C of numbers": ({"d": "1.5 1:1\n2.5 1:2\n"}, "fit d --C 1", 2, "--C is for classes"),
    "one fold": ({"d": GOOD}, "fit d --cv 1", 2, "--cv"),
    "a model as data": ({}, "fit model.json", 1, "no data. To use it"),
    "model and data swapped": ({"d": GOOD}, "predict d model.json", 2, "predict model.json d"),
    "balanced numbers": ({"d": "1.5 1:1\n2.5 1:2\n"}, "fit d --balanced", 2, "is for classes"),
    "test with other features": ({"d": GOOD, "t": "1 9:1\n"}, "fit d --test t", 1, "of 2"),
    "test with other columns": (
        {"d.csv": TABLE, "t.csv": "a,c,label\n1,2,x\n"},
        "fit d.csv --test t.csv",
        1,
        "no column",
    ),
    "test with other labels": ({"d": GOOD, "t": "5 1:1\n"}, "fit d --test t", 1, "which does not occur"),
    "model into a folder": ({"d": GOOD}, "fit d --out .", 1, "is a folder"),
    "model under a file": ({"d": GOOD}, "fit d --out d/model", 1, "Cannot write"),
    "report into a file": ({"d": GOOD}, "compare d --out d", 2, "is a file"),
    "model is text": ({"d": GOOD, "m": "hello"}, "predict m d", 1, "not a banditgrad model"),
    "model is other JSON": ({"d": GOOD, "m": '{"a": 1}'}, "predict m d", 1, "not a banditgrad model"),
    "model is binary": ({"d": GOOD, "m": b"\x80\x04\x95\xff"}, "predict m d", 1, "not a banditgrad model"),
    "model for other features": ({"d": "1 7:1\n"}, "predict model.json d", 1, "the feature number 7 of 2"),
    "model for other columns": ({"t.csv": "a,b,c\n1,2,3\n"}, "predict model.json t.csv", 1, "has 3 feature columns"),
    "model is damaged": ({"d": GOOD}, "predict damaged.json d", 1, "is damaged"),
    "model is cut off": ({"d": GOOD}, "predict cut.json d", 1, "not a banditgrad model, or is damaged"),
    "model of a later version": ({"d": GOOD}, "predict later.json d", 1, "Upgrade banditgrad"),
    "probabilities of a hinge": ({"d": GOOD}, "predict hinge.json d --proba", 1, "gives no probabilities"),
}


@pytest.fixture(scope="module")
def models():
    """Model files by name, made without a fit: the coefficients do not matter here."""
    model = BanditClassifier()
    model.classes_, model.coef_, model.intercept_ = np.array([-1, 1]), np.array([[1.0, 2.0]]), np.zeros(1)
    model.n_features_in_, model.n_iter_ = 2, 1
    return model


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_told_in_words(name, run, models, tmp_path, monkeypatch):  # noqa: F811
    files, command, code, words = BAD[name]
    monkeypatch.chdir(tmp_path)
    for file, content in files.items():
        (tmp_path / file).write_bytes(content.encode() if isinstance(content, str) else content)
    text = save_model(models, tmp_path / "model.json").read_text()
    (tmp_path / "damaged.json").write_text(text.replace("2.0", "2.5"))
    (tmp_path / "cut.json").write_text(text[: len(text) // 2])
    (tmp_path / "later.json").write_text(json.dumps({**json.loads(text), "format_version": 99}))
    models.feature_names_in_ = np.array(["a", "b"], dtype=object)
    save_model(models, tmp_path / "table.json")
    del models.feature_names_in_
    save_model(models.set_params(loss="squared_hinge"), tmp_path / "hinge.json")
    models.set_params(loss="log_loss")
    got, out, err = run(*command.split())
    shown = " ".join(err.replace("│", " ").split())
    assert got == code, shown
    assert words in shown
    assert "Traceback" not in out + err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_output_that_cannot_be_written(run, tmp_path):  # noqa: F811
    (tmp_path / "d").write_text(GOOD)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    code, _, err = run("fit", tmp_path / "d", "--out", closed / "model.json")
    assert code == 1
    assert "permission denied" in err


def test_a_model_file_is_exact(models, tmp_path):
    from banditgrad.linear_model import load_model

    again = load_model(save_model(models, tmp_path / "m"))
    frame = pd.DataFrame([[0.1, 0.2]]).to_numpy()
    assert np.array_equal(again.decision_function(frame), models.decision_function(frame))
    assert again.get_params() == models.get_params()
