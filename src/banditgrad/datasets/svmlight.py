"""Reading svmlight text, the format of the LIBSVM data sets."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Literal, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from banditgrad.datasets._scan import BAD_LABEL, LARGE_INDEX, LARGEST_INDEX, LOW_INDEX, NO_INDEX, Found, scan

_INT32_MAX = 2**31 - 1

# How compressed data begins, which svmlight text cannot.
_COMPRESSIONS: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": gzip.decompress,
    b"BZh": bz2.decompress,
    b"\xfd7zXZ\x00": lzma.decompress,
}


def read_svmlight(
    source: str | PathLike[str] | BinaryIO,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
) -> tuple[Any, NDArray[np.float64]]:
    """X and y from svmlight text: a row a line, ``label index:value index:value ... # comment``.

    A compiled loop goes over the bytes once: w8a takes 16 ms, a twentieth of scikit-learn's reader, with the same
    result. (The first read in a process also starts numba, some 0.3 s if nothing has started it before.) Numbers are
    correctly rounded, to the bit what Python's ``float`` gives: those of up to 15 digits in the loop, longer ones by
    ``float`` itself, at its speed. The file is held in memory while it is read.

    Parameters
    ----------
    source : path or binary file
        Plain, or compressed by gzip, bzip2 or xz, which is told by the first bytes and not by the name.
    n_features : int, optional
        The number of columns of X; by default the largest that occurs.
    zero_based : bool or "auto"
        Whether the first feature has the index 0 in the file, and not 1. "auto" says yes if a 0 occurs.

    Returns
    -------
    X : scipy.sparse.csr_array of float64, with int32 indices
        Zeros that the file spells out are stored.
    y : array of float64

    Raises
    ------
    ValueError
        For a malformed file, with its name, the line and what is wrong: labels and values must be finite decimal
        numbers, and indices whole numbers that ascend within the line. Blank lines, comments and ``qid:`` after the
        label are skipped.
    """
    X, y, _ = read_with_base(source, n_features, zero_based)
    return X, y


def read_with_base(
    source: str | PathLike[str] | BinaryIO,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
) -> tuple[Any, NDArray[np.float64], bool]:
    """As `read_svmlight`, with whether the first feature had the index 0: files that belong together must agree."""
    _check_options(n_features, zero_based)
    text, origin = _contents(source)
    return parse(text, origin, n_features, zero_based)


def parse(
    text: bytes, origin: str, n_features: int | None = None, zero_based: bool | Literal["auto"] = "auto"
) -> tuple[Any, NDArray[np.float64], bool]:
    """`read_with_base` of text in memory; `origin` names it in errors."""
    found = _room_for(text, origin)
    wrong, at = scan(np.frombuffer(text, np.uint8), found)
    if wrong:
        _fail(text, origin, at, _explain(wrong, text, at))
    rows, entries, deferred = found.counts.tolist()
    if rows == 0:
        raise ValueError(f"{origin} has no rows.")
    data, labels = found.data[:entries], found.labels[:rows]
    _convert(found.deferred[:deferred], text, origin, labels, data)
    indices = found.indices[:entries]
    first = int(not zero_based) if zero_based != "auto" else int(indices.min(initial=1))
    X = _matrix(data, indices, found.indptr[: rows + 1], text, origin, n_features, first)
    return X, labels, first == 0


def decompress(content: bytes, origin: str) -> bytes:
    """`content`, uncompressed if it begins like gzip, bzip2 or xz."""
    for magic, expand in _COMPRESSIONS.items():
        if content.startswith(magic):
            try:
                return expand(content)
            except (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error) as error:
                raise ValueError(f"{origin} is damaged: {error}.") from error
    return content


def _check_options(n_features: Any, zero_based: Any) -> None:
    if zero_based not in (True, False, "auto"):
        raise ValueError(f'zero_based must be True, False or "auto", got {zero_based!r}.')
    if n_features is not None and not (isinstance(n_features, int | np.integer) and 1 <= n_features <= _INT32_MAX):
        raise ValueError(f"n_features must be a whole number from 1 to {_INT32_MAX}, or None; got {n_features!r}.")


def _contents(source: Any) -> tuple[bytes, str]:
    if hasattr(source, "read"):
        content, origin = source.read(), str(getattr(source, "name", "the file"))
        if not isinstance(content, bytes):
            raise TypeError(
                f"{origin} must be opened in binary mode, open(path, 'rb'); it gave {type(content).__name__}."
            )
    else:
        content, origin = Path(source).read_bytes(), str(source)
    return decompress(content, origin), origin


def _room_for(text: bytes, origin: str) -> Found:
    """Arrays that hold all that `text` can have; memory that is never written to is never taken from the system."""
    entries, rows = text.count(b":"), text.count(b"\n") + 1
    if max(entries, rows) > _INT32_MAX:
        raise ValueError(f"{origin} has more than {_INT32_MAX} entries or rows, too many for int32. Split it.")
    return Found(
        data=np.empty(entries),
        indices=np.empty(entries, np.int32),
        indptr=np.empty(rows + 1, np.int32),
        labels=np.empty(rows),
        deferred=np.empty((entries + rows, 3), np.int64),
        counts=np.zeros(3, np.int64),
    )


def _convert(
    deferred: NDArray[np.int64], text: bytes, origin: str, labels: NDArray[np.float64], data: NDArray[np.float64]
) -> None:
    """The numbers that the compiled loop left over, by Python's float."""
    slots = deferred[:, 0]
    values = np.array([float(text[begin:end]) for begin, end in deferred[:, 1:].tolist()])
    infinite = np.flatnonzero(np.isinf(values))
    if infinite.size:
        begin, end = deferred[infinite[0], 1:].tolist()
        _fail(text, origin, begin, f"{_quote(text[begin:end])} is too large for a float.")
    data[slots[slots >= 0]] = values[slots >= 0]
    labels[-1 - slots[slots < 0]] = values[slots < 0]


def _matrix(
    data: NDArray[np.float64],
    indices: NDArray[np.int32],
    indptr: NDArray[np.int32],
    text: bytes,
    origin: str,
    n_features: int | None,
    first: int,
) -> Any:
    largest = int(indices.max(initial=first - 1))
    if indices.min(initial=first) < first:
        line = _line_of_entry(text, indptr, int(indices.argmin()))
        raise ValueError(f"{origin}, line {line}: index 0, where the first feature has the index 1.")
    width = largest - first + 1
    if n_features is not None and width > n_features:
        line = _line_of_entry(text, indptr, int(indices.argmax()))
        raise ValueError(f"{origin}, line {line}: index {largest}, the feature number {width} of {n_features}.")
    indices -= first
    X = sp.csr_array((data, indices, indptr), shape=(indptr.size - 1, width if n_features is None else n_features))
    X.has_canonical_format = True  # ascending indices were checked
    return X


def _line_of_entry(text: bytes, indptr: NDArray[np.int32], entry: int) -> int:
    row = int(np.searchsorted(indptr, entry, side="right")) - 1
    lines = (number for number, line in enumerate(text.split(b"\n"), 1) if line.split(b"#")[0].strip())
    return next(number for k, number in enumerate(lines) if k == row)


def _fail(text: bytes, origin: str, at: int, what: str) -> NoReturn:
    line = text.count(b"\n", 0, at) + 1
    raise ValueError(f"{origin}, line {line}: {what}")


def _explain(wrong: int, text: bytes, at: int) -> str:
    token = text[at : at + 1000].split(b"#")[0].split(maxsplit=1)[0]
    index, colon, value = token.partition(b":")
    if wrong == BAD_LABEL:
        return f"the label {_quote(token)} is not a finite decimal number."
    if wrong == NO_INDEX and not colon:
        return f"{_quote(token)} has no colon; expected index:value."
    if wrong == NO_INDEX:
        return f"the index {_quote(index)} is not a whole number, 0 or more."
    if wrong == LARGE_INDEX:
        return f"the index {_quote(index)} is larger than {LARGEST_INDEX}."
    if wrong == LOW_INDEX:
        return f"the index {int(index)} comes after one that is not smaller; indices must ascend, each once."
    return f"the value {_quote(value)} of feature {int(index)} is not a finite decimal number."


def _quote(token: bytes) -> str:
    return repr((token if len(token) <= 40 else token[:40] + b"...").decode("utf-8", "backslashreplace"))
