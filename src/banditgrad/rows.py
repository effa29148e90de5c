"""The feature vectors x_i behind one interface, so that one kernel serves dense and sparse data.

`as_rows` is the door: it takes what users have and checks it so that compiled code can never read out of bounds. Dense
rows are used as they lie, memory-mapped files included, and so are the values of CSR; other sparse formats are
converted to CSR. The indices of CSR are copied, so that nobody can change them after the check; where there are too
many to copy, nobody may, and `check_in_place` looks again.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from banditgrad._jit import bridge, inline, inline_sum, kernel, prefetch

MOST_COPIED = 2**22  # column indices; to copy more takes longer than a tenth of a pass


@bridge
class Rows(Protocol):
    """What rows offer to compiled loops: the entries k of row i, begin(i) <= k < end(i)."""

    def begin(self, i: int) -> int: ...

    def end(self, i: int) -> int: ...

    def column(self, i: int, k: int) -> int: ...

    def entry(self, i: int, k: int) -> float: ...

    def locate(self, i: int) -> None:
        """Ask for what `fetch` will need to know of row i."""

    def fetch(self, i: int) -> None:
        """Ask for row i, which will be needed soon."""


class Dense(NamedTuple):
    matrix: NDArray[Any]
    intercept: float  # 1.0: every row has a last feature, the constant 1; else 0.0

    def begin(self, i):
        return 0

    def end(self, i):
        return self.matrix.shape[1]

    def column(self, i, k):
        return k

    def entry(self, i, k):
        return self.matrix[i, k]

    def locate(self, i):
        pass

    def fetch(self, i):
        prefetch(self.matrix, i)


class Csr(NamedTuple):
    """Places are unsigned: numba then need not ask whether they count from the end, a third of a step."""

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]
    intercept: float

    def begin(self, i):
        return np.int64(self.indptr[np.uint64(i)])

    def end(self, i):
        return np.int64(self.indptr[np.uint64(i + 1)])

    def column(self, i, k):
        return self.indices[np.uint64(k)]

    def entry(self, i, k):
        return self.data[np.uint64(k)]

    def locate(self, i):
        prefetch(self.indptr, i)

    def fetch(self, i):
        first = self.begin(i)
        prefetch(self.indices, first)
        prefetch(self.data, first)
        prefetch(self.data, first + 8)
        last = min(max(self.end(i) - 1, first), first + 16)  # longer rows come by themselves
        prefetch(self.indices, last)
        prefetch(self.data, last)


@inline_sum
def dot(rows, i, w):
    """<x_i, w>, with the intercept."""
    z = 0.0
    for k in range(rows.begin(i), rows.end(i)):
        z += rows.entry(i, k) * w[rows.column(i, k)]
    if rows.intercept != 0.0:
        z += w[w.size - 1]
    return z


@inline
def add(rows, i, scale, w):
    """w += scale · x_i."""
    for k in range(rows.begin(i), rows.end(i)):
        w[rows.column(i, k)] += scale * rows.entry(i, k)
    if rows.intercept != 0.0:
        w[w.size - 1] += scale


@kernel
def squared_norms(rows, out):
    """out_i = ‖x_i‖²."""
    for i in range(out.size):
        out[i] = _squared_norm(rows, i)


@inline_sum
def _squared_norm(rows, i):
    total = rows.intercept
    for k in range(rows.begin(i), rows.end(i)):
        x = np.float64(rows.entry(i, k))
        total += x * x
    return total


def as_rows(X: Any, fit_intercept: bool) -> tuple[Dense | Csr, int, int]:
    """Rows, their number n and the number of features d, from a 2-d array or a scipy sparse array or matrix."""
    intercept = 1.0 if fit_intercept else 0.0
    if sp.issparse(X):
        return _sparse_rows(X, intercept), X.shape[0], X.shape[1]
    matrix = _float_array(X)
    if matrix.ndim != 2:
        raise ValueError(f"X must be two-dimensional, got an array of shape {matrix.shape}.")
    _expect_some(matrix.shape)
    if not (matrix.flags.c_contiguous or is_memory_mapped(matrix)):
        matrix = np.ascontiguousarray(matrix)  # a row in one piece is worth the copy
    return Dense(read_only(matrix), intercept), *matrix.shape


def finite_norms(rows: Dense | Csr, n: int) -> NDArray[np.float64]:
    """‖x_i‖² of all rows; entries are looked at here for the first time, and all must be finite."""
    norms2 = np.empty(n)
    squared_norms(rows, norms2)
    if norms2.max() < np.inf:
        return norms2
    bad = _first_not_finite_row(rows, n)
    if bad >= 0:
        raise ValueError(f"X has a NaN or an infinity in row {bad}. Remove or impute it.")
    raise ValueError(f"Row {norms2.argmax()} of X is too long: its squared norm overflows. Rescale X.")


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view: kernels are compiled once for both writable and read-only data."""
    view = array.view(np.ndarray)
    view.flags.writeable = False
    return view


def _float_array(X: Any) -> NDArray[Any]:
    array = np.asanyarray(X)
    refuse_masked(array, "X")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"X must hold real numbers, got dtype {array.dtype}.")
    native = array.dtype.isnative and array.dtype in (np.float32, np.float64)
    return array if native else array.astype(np.float64)


def refuse_masked(values: Any, name: str) -> None:
    """Conversions to a plain array would show what is behind the mask."""
    if np.ma.is_masked(values):
        count = np.ma.count_masked(values)
        raise TypeError(f"{name} is a masked array, {count} of its entries are masked. Fill or drop them first.")


def is_memory_mapped(array: Any) -> bool:
    """Whether it lies in a file, of which rows should be read in their order."""
    while array is not None:
        if isinstance(array, np.memmap):
            return True
        array = getattr(array, "base", None)
    return False


def _expect_some(shape: tuple[int, ...]) -> None:
    if shape[0] == 0 or shape[1] == 0:
        raise ValueError(f"X must have at least one row and one column, got shape {shape}.")


def _sparse_rows(X: Any, intercept: float) -> Csr:
    if X.ndim != 2:
        raise ValueError(f"X must be two-dimensional, got a sparse array of shape {X.shape}.")
    _expect_some(X.shape)
    users_own = X.format == "csr"
    if not users_own:
        _CHECKS[X.format](X)
        X = X.tocsr()
    data, indices, indptr = _float_array(X.data), X.indices, X.indptr
    if users_own and np.size(indices) <= MOST_COPIED:
        indices, indptr = np.array(indices), np.array(indptr)
    _check_compressed(indptr, indices, data, X.shape[0])
    if indices.dtype not in (np.int32, np.int64):
        indices = indices.astype(np.int64)
    if indptr.dtype != indices.dtype:
        indptr = indptr.astype(np.int64)
    unsigned = indices.view(np.uint32 if indices.dtype == np.int32 else np.uint64)
    rows = Csr(read_only(indptr), read_only(unsigned), read_only(data), 0.0)
    seen = np.full(X.shape[1], -1, np.int64)
    fault, i = _check_csr(rows, X.shape[0], seen)
    if fault == _OUT_OF_RANGE:
        raise ValueError(f"X has a column index outside 0..{X.shape[1] - 1} in row {i}; its shape is {X.shape}.")
    if fault == _DUPLICATE:
        X = sp.csr_array((data, indices, indptr), shape=X.shape, copy=True)
        X.sum_duplicates()
        return _sparse_rows(X, intercept)
    return rows._replace(intercept=intercept)


def check_in_place(rows: Dense | Csr, n: int, d: int) -> None:
    """Refuse indices that were not copied and are no longer what was checked; costs about a twentieth of a pass."""
    if isinstance(rows, Csr) and rows.indices.size > MOST_COPIED:
        _check_compressed(rows.indptr, rows.indices, rows.data, n)
        if rows.indices[: rows.indptr[-1]].max(initial=0) >= d:  # what was negative is now very large
            raise ValueError(f"X was changed: it has a column index outside 0..{d - 1} now.")


# Before scipy's converters, which trust what they are given, are run: a check for every format but CSR.


def _check_csc(X: Any) -> None:
    _check_compressed(X.indptr, X.indices, X.data, X.shape[1])
    _expect_range("row", X.indices, X.shape[0])


def _check_bsr(X: Any) -> None:
    height, width = X.data.shape[1:] if X.data.ndim == 3 else (0, 0)
    if not (height and width) or X.shape[0] % height or X.shape[1] % width:
        raise ValueError(f"X.data must hold blocks that fill the shape {X.shape}, got shape {X.data.shape}.")
    _check_compressed(X.indptr, X.indices, X.data[:, 0, 0], X.shape[0] // height)
    _expect_range("block column", X.indices, X.shape[1] // width)


def _check_coo(X: Any) -> None:
    if not X.row.shape == X.col.shape == X.data.shape:
        sizes = f"{X.row.shape}, {X.col.shape} and {X.data.shape}"
        raise ValueError(f"X.row, X.col and X.data must be of one length, got shapes {sizes}.")
    _expect_range("row", X.row, X.shape[0])
    _expect_range("column", X.col, X.shape[1])


def _check_dia(X: Any) -> None:
    if X.data.ndim != 2 or X.offsets.shape != X.data.shape[:1]:
        raise ValueError(f"X.data must have a row for each offset, got {X.data.shape} for offsets {X.offsets.shape}.")
    _expect_whole("X.offsets", X.offsets)
    n, d = X.shape
    if X.offsets.size and not (X.offsets.min() > -n and X.offsets.max() < d):
        raise ValueError(f"X.offsets must be from {1 - n} to {d - 1}, got {X.offsets.min()} to {X.offsets.max()}.")


def _check_lil(X: Any) -> None:
    counts = [[len(entries) for entries in part] for part in (X.rows, X.data)]
    if len(counts[0]) != X.shape[0] or counts[0] != counts[1]:
        raise ValueError(f"X.rows and X.data must be {X.shape[0]} pairs of lists of one length.")


def _check_dok(X: Any) -> None:
    _check_coo(X.tocoo())


_CHECKS = {
    "csc": _check_csc,
    "bsr": _check_bsr,
    "coo": _check_coo,
    "dia": _check_dia,
    "lil": _check_lil,
    "dok": _check_dok,
}


def _expect_whole(name: str, indices: NDArray[Any]) -> None:
    if indices.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold whole numbers, got dtype {indices.dtype}.")
    if indices.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {indices.shape}.")


def _expect_range(kind: str, indices: NDArray[Any], bound: int) -> None:
    _expect_whole(f"The {kind} indices of X", indices)
    if indices.size and not (indices.min() >= 0 and indices.max() < bound):
        raise ValueError(
            f"X has {kind} indices from {indices.min()} to {indices.max()}, its shape allows 0 to {bound - 1}."
        )


def _check_compressed(indptr: NDArray[Any], indices: NDArray[Any], data: NDArray[Any], count: int) -> None:
    """That row i, or column i, of `count` has the entries indptr[i] to indptr[i + 1]."""
    _expect_whole("X.indptr", indptr)
    _expect_whole("X.indices", indices)
    if data.ndim != 1:
        raise ValueError(f"X.data must be one-dimensional, got shape {data.shape}.")
    stored = min(indices.size, data.size)
    if indptr.size != count + 1:
        raise ValueError(f"X.indptr must have {count + 1} entries, got {indptr.size}.")
    if indptr[0] != 0 or indptr[-1] > stored:
        raise ValueError(f"X.indptr must run from 0 to at most {stored}, got {indptr[0]} to {indptr[-1]}.")
    falls = np.flatnonzero(indptr[1:] < indptr[:-1])
    if falls.size:
        raise ValueError(f"X.indptr must not decrease, but it does after entry {falls[0]}.")


_OUT_OF_RANGE, _DUPLICATE = 1, 2


@kernel
def _check_csr(rows, n, seen):
    """The first fault and its row, or (0, -1); `seen` holds the last row in which a column was met."""
    if _ascends(rows.indptr, rows.indices, n, seen.size):  # nearly always, and two to six times as fast to see
        return 0, -1
    for i in range(n):
        for k in range(rows.begin(i), rows.end(i)):
            j = rows.column(i, k)
            if j >= seen.size:  # what was negative is now very large
                return _OUT_OF_RANGE, i
            if seen[j] == i:
                return _DUPLICATE, i
            seen[j] = i
    return 0, -1


@inline
def _ascends(indptr, indices, n, d):
    """Whether the columns of every row ascend strictly and are below d. Without a branch, for vector instructions."""
    stored = np.int64(indptr[n])
    if stored == 0:
        return True
    largest, falls = indices[0], 0
    for k in range(1, stored):
        largest = max(largest, indices[k])
        falls += indices[k] <= indices[k - 1]
    for i in range(1, n):  # between rows they may fall
        k = np.int64(indptr[i])
        if k > indptr[i - 1] and k < stored:
            falls -= indices[k] <= indices[k - 1]
    return falls == 0 and largest < d


@kernel
def _first_not_finite_row(rows, n):
    for i in range(n):
        if _nothing(rows, i) != 0.0:
            return i
    return -1


@inline_sum
def _nothing(rows, i):
    """0, unless there is NaN or infinity, which survive; the sum needs no branch."""
    total = 0.0
    for k in range(rows.begin(i), rows.end(i)):
        total += rows.entry(i, k) * 0.0
    return total
