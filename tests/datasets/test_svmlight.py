"""The svmlight reader beside Python's float, a plain reader of the grammar, and scikit-learn's."""

import bz2
import gzip
import io
import lzma
import os
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from banditgrad.datasets import read_svmlight

NUMBER = rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
wide = st.integers(0, 21).flatmap(lambda digits: st.integers(10**digits // 2, 10**digits))
number_texts = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"[+-]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.builds("{}{:d}.{:0>3d}e{}".format, st.sampled_from(["", "-"]), wide, wide, st.integers(-45, 30)),
)


def read(text, **options):
    return read_svmlight(io.BytesIO(text), **options)


def plain_rows(text):
    """[(label, [(index, value)])], or None for text that must be rejected: the grammar, written another way."""
    rows = []
    for line in text.split(b"\n"):
        tokens = line.split(b"#")[0].split()
        if not tokens:
            continue
        label, *entries = tokens
        if entries and entries[0].startswith(b"qid:"):
            del entries[0]
        if not re.fullmatch(NUMBER, label) or not all(re.fullmatch(rb"[0-9]+:" + NUMBER, e) for e in entries):
            return None
        indices = [int(e.split(b":")[0]) for e in entries]
        numbers = [float(label), *(float(e.split(b":")[1]) for e in entries)]
        if not np.isfinite(numbers).all() or sorted(set(indices)) != indices or max(indices, default=0) > 2**31 - 2:
            return None
        rows.append((numbers[0], list(zip(indices, numbers[1:], strict=True))))
    return rows or None


def assert_same_bits(a, b):
    assert np.array_equal(np.asarray(a, np.float64).view(np.int64), np.asarray(b, np.float64).view(np.int64))


def assert_equals_rows(X, y, rows):
    first = min([index for _, entries in rows for index, _ in entries] + [1])
    assert_same_bits(y, [label for label, _ in rows])
    assert_same_bits(X.data, [value for _, entries in rows for _, value in entries])
    assert X.indices.tolist() == [index - first for _, entries in rows for index, _ in entries]
    assert np.diff(X.indptr).tolist() == [len(entries) for _, entries in rows]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(number_texts, st.dictionaries(st.integers(0, 2**31 - 2), number_texts, max_size=6)),
        min_size=1,
        max_size=20,
    )
)
def test_numbers_are_those_of_python_float(table):
    lines = [" ".join([label, *(f"{j}:{entries[j]}" for j in sorted(entries))]) for label, entries in table]
    text = "\n".join(lines).encode()
    rows = plain_rows(text)
    if rows is None:
        with pytest.raises(ValueError, match="too large for a float"):
            read(text)
    else:
        assert_equals_rows(*read(text), rows)


@settings(deadline=None)
@given(st.text("0123456789.:+-eE#qidnx_ \t\r\n\0", max_size=60).map(str.encode))
def test_any_text_is_read_or_rejected_as_the_grammar_says(text):
    rows = plain_rows(text)
    if rows is None:
        with pytest.raises(ValueError, match=r"line \d+: |no rows"):
            read(text)
    else:
        assert_equals_rows(*read(text), rows)


@settings(deadline=None)
@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_rejected(content):
    try:
        X, y = read(content)
    except ValueError:
        return
    X.check_format(full_check=True)
    assert X.shape[0] == y.size > 0


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_scikit_learn_reads_what_it_writes_as_we_do(seed, zero_based):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((5, 4)) * (rng.random((5, 4)) < 0.5) * 10.0 ** rng.integers(-30, 30, (5, 4))
    file = io.BytesIO()
    dump_svmlight_file(X, rng.integers(-1, 2, 5), file, zero_based=zero_based, comment="made: here")
    ours, y = read(file.getvalue(), n_features=4, zero_based=zero_based)
    theirs, z = load_svmlight_file(io.BytesIO(file.getvalue()), n_features=4, zero_based=zero_based)
    assert_same_bits(ours.toarray(), theirs.toarray())
    assert_same_bits(y, z)


@pytest.mark.parametrize("name", ["w8a", "ijcnn1", "a9a"])
def test_real_sets_are_read_as_scikit_learn_does(name, real_data):
    theirs, z = real_data(name)
    ours, y = read_svmlight(f"{os.environ['BANDITGRAD_DATA']}/{name}")
    assert ours.shape == theirs.shape
    assert_same_bits(ours.data, theirs.data)
    assert_same_bits(y, z)
    assert np.array_equal(ours.indices, theirs.indices)
    assert np.array_equal(ours.indptr, theirs.indptr)


def test_types_and_canonical_form():
    X, y = read(b"1 1:0 3:2.5\n-1\n")
    assert (X.format, X.shape, X.nnz) == ("csr", (2, 3), 2)
    assert (X.data.dtype, X.indices.dtype, X.indptr.dtype, y.dtype) == (np.float64, np.int32, np.int32, np.float64)
    assert X.has_sorted_indices
    assert X.has_canonical_format


@pytest.mark.parametrize(
    "text",
    [
        b"+1 1:2 4:.5\n-1 2:1e0\n",
        b"+1 1:2 4:.5\n-1 2:1e0",
        b"+1 1:2 4:.5\r\n-1 2:1e0\r\n",
        b"# head: 1:2\n\n  +1\t1:2  4:.5 # tail: x\n\n \t\n-1 2:1e0#z\n#",
        b"1 qid:7 1:2. 4:0.5\n-1 qid:8 2:+1\n\n",
    ],
)
def test_what_is_allowed_around_the_numbers(text):
    X, y = read(text)
    assert X.toarray().tolist() == [[2.0, 0.0, 0.0, 0.5], [0.0, 1.0, 0.0, 0.0]]
    assert y.tolist() == [1.0, -1.0]


BAD = {
    "label": (b"1 1:1\nspam 1:1\n", "line 2: the label 'spam' is not a finite decimal number"),
    "labels": (b"1,2 1:1\n", "line 1: the label '1,2'"),
    "no label": (b"1:1 2:1\n", "line 1: the label '1:1'"),
    "label nan": (b"nan 1:1\n", "the label 'nan' is not a finite"),
    "label too large": (b"\n1e999 1:1\n", "line 2: '1e999' is too large for a float"),
    "no colon": (b"1 1:1\n\n# x\n-1 1:1 2\n", "line 4: '2' has no colon; expected index:value"),
    "word for index": (b"1 a:1\n", "line 1: the index 'a' is not a whole number"),
    "no index": (b"1 :1\n", "the index '' is not a whole number"),
    "negative index": (b"1 -3:1\n", "the index '-3' is not a whole number, 0 or more"),
    "fractional index": (b"1 1.5:1\n", "the index '1.5' is not a whole number"),
    "late qid": (b"1 1:1 qid:3\n", "the index 'qid' is not a whole number"),
    "descending": (b"1 1:1\r\n1 5:1 4:1\r\n", "line 2: the index 4 comes after one that is not smaller"),
    "twice": (b"1 5:1 5:1", "line 1: the index 5 comes after one that is not smaller"),
    "large index": (b"1 2147483647:1\n", "the index '2147483647' is larger than 2147483646"),
    "huge index": (b"1 " + b"9" * 5000 + b":1\n", "the index '9{40}...' is larger than 2147483646"),
    "word for value": (b"1 3:x\n", "line 1: the value 'x' of feature 3 is not a finite decimal number"),
    "no value": (b"1 3:\n", "the value '' of feature 3"),
    "space before value": (b"1 3: 4\n", "the value '' of feature 3"),
    "infinite value": (b"1 1:1 2:-inf\n", "the value '-inf' of feature 2 is not a finite"),
    "value too large": (b"1 1:1\n1 2:-1e400\n", "line 2: '-1e400' is too large for a float"),
    "two colons": (b"1 1:2:3\n", "the value '2:3' of feature 1"),
    "underscore": (b"1 1:1_0\n", "the value '1_0' of feature 1"),
    "hexadecimal": (b"1 1:0x1\n", "the value '0x1' of feature 1"),
    "half an exponent": (b"1 1:1e+\n", "the value '1e\\+' of feature 1"),
    "sign alone": (b"- 1:1\n", "the label '-'"),
    "dot alone": (b"1 1:.\n", "the value '.' of feature 1"),
    "not ASCII": ("1 1:½\n".encode(), "the value '½' of feature 1"),
    "not UTF-8": (b"1 1:\xff\n", r"the value '\\\\xff' of feature 1"),
    "empty": (b"", "has no rows"),
    "only comments": (b"# nothing\n\n", "has no rows"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_malformed_files_are_named_with_the_line(text, message, tmp_path):
    path = tmp_path / "bad.txt"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=message) as caught:
        read_svmlight(path)
    assert str(caught.value).startswith(str(path))


def test_zero_based_indices():
    assert read(b"1 1:5\n")[0].toarray().tolist() == [[5.0]]
    assert read(b"1 1:5\n", zero_based=True)[0].toarray().tolist() == [[0.0, 5.0]]
    assert read(b"1 1:5\n1 0:3\n")[0].toarray().tolist() == [[0.0, 5.0], [3.0, 0.0]]
    with pytest.raises(ValueError, match="line 4: index 0, where the first feature has the index 1"):
        read(b"1 1:5\n# 0:3\n\n1 0:3 1:2\n", zero_based=False)
    with pytest.raises(ValueError, match="zero_based must be True"):
        read(b"1 1:5\n", zero_based="yes")


def test_number_of_features():
    assert read(b"1 2:5\n", n_features=4)[0].shape == (1, 4)
    for zero_based in (True, False, "auto"):
        assert read(b"1\n", zero_based=zero_based)[0].shape == (1, 0)
    assert read(b"1\n", n_features=3)[0].shape == (1, 3)
    with pytest.raises(ValueError, match="line 3: index 4, the feature number 4 of 3"):
        read(b"1 2:5\n\n1 1:5 4:5\n1 3:1\n", n_features=3)
    with pytest.raises(ValueError, match="line 1: index 3, the feature number 4 of 3"):
        read(b"1 0:5 3:1\n", n_features=3)
    for wrong in (0, -1, 2.5, 2**31):
        with pytest.raises(ValueError, match="n_features must be a whole number"):
            read(b"1 1:1\n", n_features=wrong)


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_files(compress, tmp_path):
    text = b"".join(b"%d 1:%d 2:.5\n" % (k, k * k) for k in range(200))
    path = tmp_path / "rows"
    path.write_bytes(compress(text))
    X, y = read_svmlight(str(path))
    assert y.tolist() == list(range(200))
    assert X[:, [0]].toarray().ravel().tolist() == [k * k for k in range(200)]
    for damaged in (compress(text)[:-20], compress(text)[:30] + b"spam" + compress(text)[34:]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="rows is damaged"):
            read_svmlight(path)


def test_files_must_exist_and_be_binary(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing"):
        read_svmlight(tmp_path / "nothing.txt")
    with pytest.raises(TypeError, match="opened in binary mode"):
        read_svmlight(io.StringIO("1 1:1\n"))
