"""Rows where they are: from dask collections to partitions on workers, each with its problem and its bandits."""

import copy
import threading
from dataclasses import dataclass
from typing import Any, NamedTuple

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets

from banditgrad.certificate import column_curvatures
from banditgrad.dask.descent import Curve, Evaluate, Probe, packed
from banditgrad.dask.local import Loop
from banditgrad.linear_model.base import as_few_kinds
from banditgrad.problem import Problem
from banditgrad.rows import read_only
from banditgrad.samplers import Sampler
from banditgrad.samplers.base import not_negative

Vector = NDArray[np.float64]

FLOATS = [np.float64, np.float32]
LARGE_BYTES = 2**22  # a dense block of this size is not worth a copy as float64, of which there may be many
BYTES_PER_ROW, BYTES_PER_DRAW = 16, 80  # target and norm; of each problem the table and, at most, the sampler
BYTES_PER_MARGIN = 16  # of the table


class Block(NamedTuple):
    """The rows of one partition as numpy and scipy know them."""

    X: Any
    y: NDArray[Any]
    weights: Vector | None


class Summary(NamedTuple):
    """What the driver must know of a block."""

    rows: int
    features: int
    labels: NDArray[Any]
    weights: Vector  # the total weight of the rows of each label


class Facts(NamedTuple):
    """What the driver must know of a partition."""

    rows: int
    weight: float  # of all its rows
    smoothness: float  # the mean of the L_i
    curvatures: Vector  # bounds on ∂²f_k/∂w_j²


@dataclass(frozen=True)
class Task:
    """What is to be fitted, the same for all partitions."""

    loss: Any
    penalty: Any
    fit_intercept: bool
    positive: NDArray[Any] | None  # the label that is +1 in each problem; None where targets are numbers
    labels: NDArray[Any]  # all labels, or none
    label_weights: Vector | None  # by which the rows of each count
    sampler: Sampler
    step_size: Any
    seed: int

    @property
    def classes(self) -> bool:
        """Whether targets are the numbers of the labels, of one problem with a margin for each."""
        return self.positive is None and self.labels.size > 0


def is_collection(X: Any) -> bool:
    return isinstance(X, (da.Array, dd.DataFrame, dd.Series))


def as_blocks(X: Any, y: Any, weights: Any) -> list[Any]:
    """A delayed `Block` per partition; y and weights, if they are not partitioned like X, are made so."""
    if not isinstance(X, (da.Array, dd.DataFrame)) or X.ndim != 2:
        raise TypeError(
            f"X must be a two-dimensional dask array or a dask dataframe, got {type(X).__name__}. "
            "For rows in memory use banditgrad.linear_model."
        )
    if isinstance(X, da.Array):
        X = X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X
        sizes = X.chunks[0]
    else:
        sizes = (np.nan,) * X.npartitions
    parts = [_pieces(X), _aligned(y, sizes, "y")]
    parts.append([None] * len(sizes) if weights is None else _aligned(weights, sizes, "sample_weight"))
    make = dask.delayed(_make_block, pure=False)
    return [make(k, *each) for k, each in enumerate(zip(*parts, strict=True))]


def _aligned(values: Any, sizes: tuple[float, ...], name: str) -> list[Any]:
    """The pieces of y or of the weights, one for each partition of X."""
    known = not np.isnan(sizes).any()
    if not is_collection(values):
        if not known:
            raise ValueError(f"{name} must be a dask collection, since the partitions of X have unknown lengths.")
        values = np.asarray(values)
        if values.shape != (int(sum(sizes)),):
            raise ValueError(
                f"{name} must have shape ({int(sum(sizes))},), one entry per row of X; got {values.shape}."
            )
        values = da.from_array(values, chunks=(sizes,))
    if isinstance(values, da.Array):
        if values.ndim != 1:
            raise ValueError(f"{name} must be one-dimensional, got {values.ndim} dimensions.")
        if known and not np.isnan(values.chunks[0]).any() and values.chunks[0] != sizes:
            if sum(values.chunks[0]) != sum(sizes):
                raise ValueError(f"{name} has {sum(values.chunks[0])} entries, X has {sum(sizes)} rows.")
            values = values.rechunk((sizes,))
    pieces = _pieces(values)
    if len(pieces) != len(sizes):
        raise ValueError(f"{name} has {len(pieces)} partitions, X has {len(sizes)}. Repartition one like the other.")
    return pieces


def _pieces(collection: Any) -> list[Any]:
    """A delayed value per partition: an array of them for dask arrays, a list for dataframes."""
    if isinstance(collection, da.Array):
        pieces = collection.to_delayed()
    else:  # columns that are not needed are not read, but partitions stay: Dask would join those of narrow columns
        pieces = collection.simplify().to_delayed(optimize_graph=False)
    return list(pieces.ravel()) if isinstance(pieces, np.ndarray) else list(pieces)


def _make_block(k: int, X: Any, y: Any, weights: Any) -> Block:
    """Check what the partition holds; errors say which it is."""
    try:
        X = check_array(X, accept_sparse="csr", dtype=FLOATS, order="C", ensure_min_samples=0, input_name="X")
    except ValueError as error:
        raise ValueError(f"Partition {k}: {error}") from error
    y = np.asarray(y)
    for values, name in ((y, "y"), (weights, "sample_weight")):
        if values is not None and np.shape(values) != (X.shape[0],):
            raise ValueError(f"Partition {k} has {X.shape[0]} rows of X, but {name} of shape {np.shape(values)} there.")
    if weights is not None:
        weights = not_negative(weights, X.shape[0], f"sample_weight of partition {k}")
    large = isinstance(X, np.ndarray) and X.nbytes > LARGE_BYTES
    return Block(X if large else as_few_kinds(X), y, weights)


def summarise(block: Block, classify: bool) -> Summary:
    """Counts, and where there are labels, these with the weights of their rows."""
    rows, features = block.X.shape
    if not classify or not rows:
        return Summary(rows, features, block.y[:0], np.zeros(0))
    check_classification_targets(block.y)
    labels, codes = np.unique(block.y, return_inverse=True)
    weights = np.ones(rows) if block.weights is None else block.weights
    return Summary(rows, features, labels, np.asarray(np.bincount(codes, weights, labels.size), dtype=np.float64))


class Partition:
    """The rows of a block, ready to be drawn. Bandits live here: whoever holds the partition holds them.

    When Dask moves or spills a partition its bandits go with it; one that Dask has to make anew starts from uniform.
    """

    def __init__(self, k: int, block: Block, task: Task) -> None:
        self._k, self._task, self._lock = k, task, threading.Lock()
        weights = _row_weights(block, task)
        self.rows = block.y.size
        self.weight = float(block.y.size if weights is None else weights.sum())
        self._loops: dict[int, Loop] = {}
        self._codes: NDArray[np.intp] | None = None
        if not self.weight > 0.0:
            return
        targets = block.y
        if task.positive is not None:
            targets = np.where(block.y == task.positive[0], 1.0, -1.0)
        elif task.classes:
            targets = np.searchsorted(task.labels, block.y).astype(np.float64)
        self._problem = Problem(block.X, targets, task.loss, task.penalty, weights, task.fit_intercept)
        if task.positive is not None and task.positive.size > 1:
            self._codes = np.searchsorted(task.positive, block.y)

    def facts(self) -> Facts:
        """What the driver must know; the loops are compiled by the way."""
        if not self.weight > 0.0:
            return Facts(self.rows, 0.0, 0.0, np.zeros(0))
        self._loop(0).compile(self._problem)
        curvatures = column_curvatures(self._problem)
        return Facts(self.rows, self.weight, float(np.mean(self._problem.smoothness)), curvatures)

    def answer(self, share: float, requests: dict[int, Any]) -> list[Vector]:
        """The answers to requests by problem, times the partition's share of all weight: to be summed."""
        with self._lock:  # a task that was given up may still run
            return [share * self._answer(c, request) for c, request in requests.items()]

    def _answer(self, c: int, request: Any) -> Vector:
        problem = self._problem_of(c)
        loop = self._loop(c)
        if isinstance(request, Evaluate):
            value, gradient = loop.evaluate(problem, request.w)
            return np.concatenate([[value], gradient])
        if isinstance(request, Probe):
            return loop.probe(problem, request.w, request.direction, request.parts)
        if isinstance(request, Curve):
            matrix, passes = loop.hessian(problem, request.w, request.effort, request.caution)
            return np.concatenate([np.zeros(2), [passes], packed(matrix)])
        moved = loop.approach(problem, request.w) if request.far else None
        if moved is None:
            moved = loop.run(problem, request.w, request.gradient, request.passes, request.careful)
        return np.concatenate([moved.noise, [moved.passes], moved.w])

    def _loop(self, c: int) -> Loop:
        if c not in self._loops:
            seed = np.random.SeedSequence(self._task.seed, spawn_key=(self._k, c))
            self._loops[c] = Loop(self._problem, self._task.sampler, self._task.step_size, seed)
        return self._loops[c]

    def _problem_of(self, c: int) -> Problem:
        if self._codes is None:
            return self._problem
        problem = copy.copy(self._problem)
        targets, parts = read_only(np.where(self._codes == c, 1.0, -1.0)), problem.parts
        problem.parts = parts._replace(terms=parts.terms._replace(targets=targets))
        return problem

    def probabilities(self, share: float) -> Vector:
        """The probability of each row: its partition's share times that within it, the mean over the problems."""
        if not self._loops:
            return np.zeros(self.rows)
        return np.asarray(share * np.mean([loop.sampling.probabilities() for loop in self._loops.values()], axis=0))

    def gradient_norms(self, solutions: Vector) -> Vector:
        """The norm of each row's gradient at the solutions."""
        if not self.weight > 0.0:
            return np.zeros(self.rows)
        norms = [self._problem_of(c).gradient_norms(w) for c, w in enumerate(solutions)]
        return np.asarray(np.linalg.norm(norms, axis=0)) * (self.weight / self.rows)  # weights count among all rows

    def __sizeof__(self) -> int:
        """For Dask, which decides by size what to spill."""
        if not self.weight > 0.0:
            return 1000
        rows = sum(value.nbytes for value in self._problem.parts.rows if isinstance(value, np.ndarray))
        problems = 1 if self._task.positive is None else self._task.positive.size
        table = BYTES_PER_MARGIN * (self._problem.margins - 1)
        return int(rows + self._problem.n * (BYTES_PER_ROW + table + BYTES_PER_DRAW * problems))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        vars(self).update(attributes, _lock=threading.Lock())


def _row_weights(block: Block, task: Task) -> Vector | None:
    if task.label_weights is None:
        return block.weights
    by_label = task.label_weights[np.searchsorted(task.labels, block.y)]
    return by_label if block.weights is None else by_label * block.weights
