"""Tables as people have them: layouts that are guessed, columns that are not numbers."""

import io
import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from banditgrad.datasets import read_table
from banditgrad.datasets.encoding import Encoding, Levels, Numbers, from_json, learn_encoding
from banditgrad.datasets.frames import BLANKS, guess_header, guess_separator

N = 60
FRAME = pd.DataFrame(
    {
        "size": np.tile([1.5, 2.5, 4.0], N // 3),
        "colour": np.tile(["red", "blue", "red", "green"], N // 4),
        "label": np.tile(["no", "yes"], N // 2),
    }
)


@pytest.fixture
def plain(tmp_path):
    FRAME.to_csv(tmp_path / "plain.csv", index=False)
    return read_table(tmp_path / "plain.csv")


def dense(X):
    return X.toarray() if sp.issparse(X) else X


LAYOUTS = {
    "semicolons and decimal commas": ("t.csv", {"sep": ";", "decimal": ",", "index": False}, {}),
    "tabs": ("t.tsv", {"sep": "\t", "index": False}, {}),
    "tabs under another name": ("t.txt", {"sep": "\t", "index": False}, {}),
    "bars": ("t.csv", {"sep": "|", "index": False}, {}),
    "blanks": ("t.csv", {"sep": " ", "index": False}, {}),
    "a separator that is told": ("t.csv", {"sep": ":", "index": False}, {"sep": ":"}),
    "gzip": ("t.csv.gz", {"index": False}, {}),
    "xz under a bare name": ("t.xz", {"index": False}, {}),
    "UTF-16": ("t.csv", {"encoding": "utf-16", "index": False}, {}),
    "a byte order mark": ("t.csv", {"encoding": "utf-8-sig", "index": False}, {}),
    "an index without a heading": ("t.csv", {"index": True}, {}),
    "an index that has one": ("t.csv", {"index": True, "index_label": "row"}, {}),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_gives_the_same_table(plain, tmp_path, name):
    file, written, options = LAYOUTS[name]
    FRAME.to_csv(tmp_path / file, **written)
    table = read_table(tmp_path / file, **options)
    assert table.names == plain.names == ["size", "colour=blue", "colour=green", "colour=red"]
    assert np.array_equal(dense(table.X), dense(plain.X))
    assert np.array_equal(table.y, plain.y)


@pytest.mark.parametrize("label", ["3", "last", "-1"])
def test_columns_without_names_are_known_by_position(plain, tmp_path, label):
    FRAME.to_csv(tmp_path / "t.csv", index=False, header=False)
    table = read_table(tmp_path / "t.csv", label)
    assert table.names == ["1", "2=blue", "2=green", "2=red"]
    assert np.array_equal(dense(table.X), dense(plain.X))
    assert table.y.tolist() == plain.y.tolist()
    assert "The first line is taken as a row" in " ".join(table.notes)


@pytest.mark.parametrize("position", [1, 2, 3])
def test_positions_hold_where_the_label_is_absent(tmp_path, position):
    names = ["size", "colour"]
    names.insert(position - 1, "label")
    FRAME[names].to_csv(tmp_path / "t.csv", index=False, header=False)
    table = read_table(tmp_path / "t.csv", str(position))
    FRAME[["size", "colour"]].to_csv(tmp_path / "new.csv", index=False, header=False)
    again = read_table(tmp_path / "new.csv", encoding=table.encoding, need_label=False)
    assert np.array_equal(dense(again.X), dense(table.X))


def test_several_files_are_one_table(plain, tmp_path):
    FRAME[:20].to_parquet(tmp_path / "part-0.parquet")
    FRAME[20:].to_parquet(tmp_path / "part-1.parquet")
    for source in (tmp_path / "part-*.parquet", tmp_path):
        table = read_table(source)
        assert np.array_equal(dense(table.X), dense(plain.X))
        assert table.notes[0] == "2 files read as one table."


def test_standard_input(plain, monkeypatch):
    text = io.TextIOWrapper(io.BytesIO(FRAME.to_csv(index=False).encode()))
    monkeypatch.setattr("sys.stdin", text)
    assert np.array_equal(dense(read_table("-").X), dense(plain.X))


def test_words_that_are_not_utf_8(tmp_path):
    frame = FRAME.replace("green", "grün")
    frame.to_csv(tmp_path / "t.csv", index=False, encoding="cp1252")
    table = read_table(tmp_path / "t.csv")
    assert "colour=grün" in table.names
    assert "Windows-1252" in " ".join(table.notes)


@pytest.mark.parametrize(
    ("lines", "sep"),
    [
        (["a,b", "1,2"], ","),
        (["a;b;c", "1,5;2,5;3,5"], ";"),
        (["1,5;2,5", "3,5;4,5"], ";"),
        (["a\tb", "x y\tz"], "\t"),
        (["title,genre", "one,a|b", "two,c"], ","),
        (['"a;b",c', '"d;e",f'], ","),
        (["1 2  3", "4 5  6"], BLANKS),
        (["alone", "1"], ","),
    ],
)
def test_separators_are_guessed(lines, sep):
    assert guess_separator(lines) == sep


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        (["age,city", "3,Rome"], True),
        (["0,1,2,label", "1,1,1,x"], True),
        (["2019,2020,2021", "5,5,5"], True),
        (["0,tcp,http,0", "0,udp,smtp,1"], False),
        (["5.1,3.5,setosa", "4.9,3.0,setosa"], False),
        (["p,x,x,n", "e,y,y,n"], False),
        (["value,value", "1,2"], True),
        ([",Bern,no", "3,Rome,yes", "4,Bern,no"], False),
        (["?,3.5,a", "1,2.5,b"], False),
    ],
)
def test_headers_are_guessed(rows, named):
    assert guess_header([row.split(",") for row in rows]) is named


def test_rare_levels_share_a_feature_and_so_do_unseen_ones():
    town = ["Rome"] * 600 + ["Oslo"] * 380 + [f"village {k}" for k in range(20)]
    encoding, notes = learn_encoding(pd.DataFrame({"town": town}), "t")
    assert encoding.names == ["town=Oslo", "town=Rome", "town=(rare)"]
    assert notes == ["Rare levels pooled: 20 of 22 in 'town'."]
    X, notes = encoding.encode_noting(pd.DataFrame({"town": ["Rome", "Paris", "village 3", None]}), "t")
    assert dense(X).tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 0]]
    assert "'Paris'" in notes[0]


def test_without_rare_levels_an_unseen_one_is_none():
    encoding, _ = learn_encoding(FRAME[["colour"]], "t")
    X, notes = encoding.encode_noting(pd.DataFrame({"colour": ["pink", "red"]}), "t")
    assert dense(X).tolist() == [[0, 0, 0], [0, 0, 1]]
    assert "counted as none" in notes[0]


def test_gaps_are_filled_and_marked():
    frame = pd.DataFrame({"a": [1.0, None, 3.0, 8.0], "b": ["u", "v", None, "u"], "c": [None] * 4})
    encoding, notes = learn_encoding(frame, "t")
    assert encoding.columns == (Numbers("a", 3.0, True), Levels("b", ("u", "v"), False, True))
    assert dense(encoding.encode(frame)).tolist() == [
        [1, 0, 1, 0, 0],
        [3, 1, 0, 1, 0],
        [3, 0, 0, 0, 1],
        [8, 0, 1, 0, 0],
    ]
    assert "'c' (no values)" in notes[0]
    assert "'a' (1 row)" in notes[1]


def test_numbers_can_be_words_and_an_index_a_number(tmp_path):
    frame = FRAME.assign(zip=np.tile(["01", "02"], N // 2), t=np.arange(N))
    frame.to_csv(tmp_path / "t.csv", index=False)
    table = read_table(tmp_path / "t.csv", category=["zip"], number=["t"])
    assert table.names[-3:] == ["zip=01", "zip=02", "t"]
    again = read_table(tmp_path / "t.csv", encoding=table.encoding)  # a leading zero is kept here as well
    assert np.array_equal(dense(again.X), dense(table.X))
    assert "Left out: 't'" in " ".join(read_table(tmp_path / "t.csv").notes)


def test_numbers_that_are_stored_as_text_are_numbers(tmp_path):
    FRAME.assign(size=FRAME["size"].astype(str)).to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert table.names[0] == "size"
    assert np.array_equal(dense(table.X)[:, 0], FRAME["size"])


def test_words_that_hardly_repeat_are_left_out():
    frame = FRAME.assign(name=[f"person {k}" for k in range(N)], customer_id=np.arange(N)[::-1] * 7)
    encoding, notes = learn_encoding(frame, "t")
    assert {"name", "customer_id"}.isdisjoint(encoding.used)
    assert len([note for note in notes if note.startswith("Left out")]) == 2


def test_all_that_is_wrong_is_told_at_once():
    frame = pd.DataFrame(
        {
            "when": pd.date_range("2024-01-01", periods=4),
            "at": ["10:30", "11:00", "12:15", "9:05"],
            "price": ["$1", "$2", "$3", "$4"],
            "ratio": [1.0, np.inf, np.inf, 2.0],
        }
    )
    with pytest.raises(ValueError, match="infinite value in row 2 and 1 more") as error:
        learn_encoding(frame, "t")
    for name in frame.columns:
        assert repr(name) in str(error.value)


def test_sparse_and_dense_rows_are_the_same_features():
    levels = [f"level {k}" for k in range(30)]
    frame = pd.DataFrame({"a": np.tile([0.0, 2.0, 0.0], 100), "word": np.tile(levels, 10)})
    encoding, _ = learn_encoding(frame, "t")
    X = encoding.encode(frame)
    assert sp.issparse(X)
    assert X.has_sorted_indices
    expected = np.column_stack([frame["a"], *(frame["word"] == level for level in sorted(levels))])
    assert np.array_equal(X.toarray(), expected)


def test_columns_are_kept_as_they_are(tmp_path):
    FRAME.assign(id=[f"{k:04}" for k in range(N)]).to_csv(tmp_path / "t.csv", index=False)
    table = read_table(tmp_path / "t.csv", keep=["id", "size"], drop=["id"])
    assert table.kept["id"][:2] == ["0000", "0001"]
    assert "size" in table.names


def test_an_encoding_survives_json():
    encoding = Encoding((Numbers("1", None), Numbers("2", 0.1, True), Levels("4", ("ä", "b"), True, True)), 4, "3")
    assert from_json(json.loads(json.dumps(encoding.as_json()))) == encoding


GOOD = {"kind": "numbers", "name": "a", "fill": 0.0, "indicator": False}
WORDS = {"kind": "levels", "name": "b", "levels": ["x"], "rare": True, "missing": False}


@pytest.mark.parametrize(
    "change",
    [
        {"columns": []},
        {"columns": [GOOD, GOOD]},
        {"columns": [{**GOOD, "kind": "code"}]},
        {"columns": [{**GOOD, "name": 3}]},
        {"columns": [{**GOOD, "fill": "0"}]},
        {"columns": [{**GOOD, "fill": float("inf")}]},
        {"columns": [{**GOOD, "indicator": 1}]},
        {"columns": [{**GOOD, "fill": None, "indicator": True}]},
        {"columns": [{**GOOD, "more": 1}]},
        {"columns": [{**WORDS, "levels": "xy"}]},
        {"columns": [{**WORDS, "levels": ["x", "x"]}]},
        {"columns": [{**WORDS, "levels": [1]}]},
        {"columns": [{**WORDS, "rare": None}]},
        {"width": "3"},
        {"width": 3, "label": "4"},
    ],
)
def test_what_is_no_encoding_is_refused(change):
    assert from_json({"columns": [GOOD, WORDS], "width": None, "label": None}).names == ["a", "b=x", "b=(rare)"]
    with pytest.raises((ValueError, TypeError)):
        from_json({"columns": [GOOD, WORDS], "width": None, "label": None, **change})
