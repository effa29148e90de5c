"""The compiled part of `read_svmlight`: one pass over the bytes of a file, into arrays that are large enough.

Every entry uses up one colon and every row one line, so counting both beforehand bounds what is written. Nothing is
read past the end either: there, `_peek` sees a newline.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline, kernel, outline

LARGEST_INDEX = 2**31 - 2  # so that the number of features fits an int32 as well

# What `scan` found wrong, at the byte it returns.
BAD_LABEL, NO_INDEX, LARGE_INDEX, LOW_INDEX, BAD_VALUE = 1, 2, 3, 4, 5

_NEWLINE, _PLUS, _MINUS, _DOT, _ZERO, _COLON, _LARGE_E, _SMALL_E = b"\n+-.0:Ee"
_QUERY = np.frombuffer(b"qid:", np.uint8)

# The kinds of bytes, so that a token ends where the kind is _BLANK or above.
_OTHER, _DIGIT, _BLANK, _LINE_END = 0, 1, 2, 3
_KIND = np.full(256, _OTHER, np.uint8)
_KIND[list(b"0123456789")], _KIND[list(b" \t\r\v\f")], _KIND[list(b"\n#")] = _DIGIT, _BLANK, _LINE_END

# A product or quotient of two numbers that floats hold exactly is rounded once, hence correctly.
_EXACT_INTEGER = 2**53
_EXACT_POWERS = np.array([float(10**k) for k in range(23)])
_DIGITS = 18  # as many always fit an int64, and are too many to be exact: any further ones need no counting
_EXPONENT = 10**6  # far beyond the range of floats; larger ones are not told apart


class Found(NamedTuple):
    """Where `scan` writes to."""

    data: NDArray[np.float64]
    indices: NDArray[np.int32]
    indptr: NDArray[np.int32]
    labels: NDArray[np.float64]
    deferred: NDArray[np.int64]  # (slot, begin, end) of numbers left to Python; the slot of row i's label is -1 - i
    counts: NDArray[np.int64]  # of rows, entries and deferred numbers; zero at first


@kernel
def scan(text, found):
    """What is wrong, or 0, and the byte where it is."""
    at = np.int64(0)  # a plain 0 has a type of its own, for which everything would be compiled again
    found.indptr[0] = 0
    while at < text.size:
        at = _skip_blanks(text, at)
        if _KIND[_peek(text, at)] < _LINE_END:
            wrong, at = _read_row(text, at, found)
            if wrong != 0:
                return wrong, at
        at = _next_line(text, at)
    return 0, at


@inline
def _read_row(text, at, found):
    """Label, perhaps qid:, and entries, up to the end of the line or its comment."""
    row, entry = found.counts[0], found.counts[1]
    valid, exact, value, end = _read_number(text, at)
    if not valid:
        return BAD_LABEL, at
    found.labels[row] = value
    if not exact:
        _defer(found, -1 - row, at, end)
    at = _skip_blanks(text, end)
    if _is_query(text, at):
        at = _skip_blanks(text, _token_end(text, at))
    previous = np.int64(-1)
    while _KIND[_peek(text, at)] < _LINE_END:
        index, colon = _read_index(text, at)
        if index < 0:
            return NO_INDEX, at
        if index > LARGEST_INDEX:
            return LARGE_INDEX, at
        if index <= previous:
            return LOW_INDEX, at
        valid, exact, value, end = _read_number(text, colon + 1)
        if not valid:
            return BAD_VALUE, at
        found.indices[entry] = index
        found.data[entry] = value
        if not exact:
            _defer(found, entry, colon + 1, end)
        entry += 1
        previous = index
        at = _skip_blanks(text, end)
    found.indptr[row + 1] = entry
    found.counts[0], found.counts[1] = row + 1, entry
    return 0, at


@inline
def _read_index(text, at):
    """Digits before a colon and where the colon is; -1 if it is not that."""
    index, begin = np.int64(0), at
    c = _peek(text, at)
    while _KIND[c] == _DIGIT:
        index = min(10 * index + c - _ZERO, LARGEST_INDEX + 1)
        at += 1
        c = _peek(text, at)
    return index if at > begin and c == _COLON else -1, at


@outline
def _read_number(text, at):
    """A decimal number up to the end of its token: (valid, exact, value, end); the value counts if it is exact."""
    negative, at = _read_sign(text, at)
    mantissa, digits, fraction, dot, begin = 0, 0, 0, False, at
    c = _peek(text, at)
    while _KIND[c] == _DIGIT or (c == _DOT and not dot):
        if c == _DOT:
            dot = True
        elif digits < _DIGITS:
            mantissa = 10 * mantissa + c - _ZERO
            digits += mantissa != 0
            fraction += dot
        at += 1
        c = _peek(text, at)
    valid, exponent = at - begin > dot, np.int64(0)
    if c in (_SMALL_E, _LARGE_E):
        begin = at + 1
        exponent, at = _read_exponent(text, begin)
        valid = valid and at > begin
    exact, value = _exact_value(mantissa, exponent - fraction)
    return valid and _KIND[_peek(text, at)] >= _BLANK, exact, -value if negative else value, at


@inline
def _read_exponent(text, at):
    """A signed whole number and its end; `at` if it has no digits."""
    negative, first = _read_sign(text, at)
    exponent, end = np.int64(0), first
    c = _peek(text, end)
    while _KIND[c] == _DIGIT:
        exponent = min(10 * exponent + c - _ZERO, _EXPONENT)
        end += 1
        c = _peek(text, end)
    return -exponent if negative else exponent, end if end > first else at


@inline
def _read_sign(text, at):
    """Whether there is a minus, and what comes after a sign."""
    c = _peek(text, at)
    return c == _MINUS, at + 1 if c in (_MINUS, _PLUS) else at


@inline
def _exact_value(mantissa, exponent):
    """mantissa · 10^exponent if one rounding gives it: (whether it does, the value)."""
    if mantissa == 0:
        return True, 0.0
    if mantissa > _EXACT_INTEGER or abs(exponent) >= _EXACT_POWERS.size:
        return False, 0.0
    power = _EXACT_POWERS[abs(exponent)]
    return True, mantissa / power if exponent < 0 else mantissa * power


@inline
def _defer(found, slot, begin, end):
    k = found.counts[2]
    found.deferred[k, 0], found.deferred[k, 1], found.deferred[k, 2] = slot, begin, end
    found.counts[2] = k + 1


@inline
def _peek(text, at):
    return text[at] if at < text.size else np.uint8(_NEWLINE)


@inline
def _skip_blanks(text, at):
    while _KIND[_peek(text, at)] == _BLANK:
        at += 1
    return at


@inline
def _token_end(text, at):
    while _KIND[_peek(text, at)] < _BLANK:
        at += 1
    return at


@inline
def _next_line(text, at):
    while _peek(text, at) != _NEWLINE:
        at += 1
    return at + 1


@inline
def _is_query(text, at):
    k = 0
    while k < _QUERY.size and _peek(text, at + k) == _QUERY[k]:
        k += 1
    return k == _QUERY.size
