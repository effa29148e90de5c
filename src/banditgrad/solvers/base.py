"""What a solver is: a specification from which a run starts, and the steps it makes."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline, outline, prefetch
from banditgrad.samplers.blocks import NONE, Block, new_block, sub_block

BAD_INDEX = -1


class Known(Protocol):
    """What a solver knows of its iterate, or can tell sooner than anybody else: F and ∇f, and what its last step was to
    gain by its model of F, about as much as there was to gain."""

    @property
    def value(self) -> float: ...

    @property
    def gradient(self) -> NDArray[np.float64]: ...

    @property
    def predicted(self) -> float: ...


class Solver(ABC):
    """Base of all solvers. A run's state is whatever `start` returns; arrays in it are changed in place."""

    batch_size: int = 1

    def rows_per_step(self, problem: Any) -> int:
        """How many rows one step looks at: passes are counted by it."""
        return self.batch_size

    @abstractmethod
    def start(self, problem: Any, w: NDArray[np.float64], seed: Any) -> Any:
        """The state of a run that starts at w, which the run may change in place; seed is for its own randomness."""

    @abstractmethod
    def advance(self, problem: Any, state: Any, sampler: Any, steps: int) -> int:
        """Make `steps` steps and return their number. Zero steps only compile.

        Fewer are made where a margin or gradient is not finite; `BAD_INDEX` tells of a draw that is not a row.
        """

    @abstractmethod
    def iterate(self, problem: Any, state: Any) -> NDArray[np.float64]:
        """The solution as of now, as a new array. Must not influence later steps."""

    def draws(self, problem: Any) -> bool:
        """Whether it ever asks the sampler."""
        return True

    def finished(self, state: Any) -> bool:
        """Whether no further step makes F fall, up to rounding."""
        return False

    def known(self, problem: Any, state: Any) -> Known | None:
        """F and ∇f at the iterate where the solver has them; None where they would have to be computed."""
        return None

    def feedback(self, problem: Any, state: Any) -> NDArray[np.float64]:
        """The a_i of the solver's estimator as of now, equation (9): of plain SGD at the iterate unless overridden."""
        return np.asarray((problem.gradient_norms(self.iterate(problem, state)) / problem.n) ** 2)


class DoubleBuffer(NamedTuple):
    """Two blocks of draws, end to end: while one is used up, the next waits."""

    i: NDArray[np.int64]
    p: NDArray[np.float64]
    a: NDArray[np.float64]
    entry: NDArray[np.uint64]


class Batch(NamedTuple):
    """One mini-batch, of one row or more, and the draws to come.

    These are made in blocks, and known one block and more before their turn, so that their rows can be fetched early.
    When a block is used up, the sampler is told of it and draws the next but one in its place. So a draw does not know
    the feedback of up to two blocks before it; the estimator stays unbiased, since p is that of the draw.
    """

    i: NDArray[np.int64]
    p: NDArray[np.float64]
    factor: NDArray[np.float64]  # of x_i in the gradient estimator
    feedback: NDArray[np.float64]  # a_i that the sampler will be told, or NONE
    buffer: DoubleBuffer
    block: Block  # its size and scratch are those of every block; draws lie in the buffer
    clock: NDArray[np.int64]  # AT: the place of this batch in the buffer, or UNKNOWN; LATER: that of one some steps on


AT, LATER = 0, 1
UNKNOWN = -1
BLOCK_SIZE = 128
BLOCKS_PER_PASS = 64  # at least, unless a batch is more than such a block: with few rows blocks are smaller
FETCH_AHEAD, LOCATE_AHEAD = 3, 12  # how many steps before its own a row is asked for, and all else of it


def new_batch(n: int, size: int) -> Batch:
    block_size = size * max(1, min(BLOCK_SIZE // size, n // (BLOCKS_PER_PASS * size)))
    places = 2 * block_size
    return Batch(
        i=np.zeros(size, np.int64),
        p=np.zeros(size),
        factor=np.zeros(size),
        feedback=np.full(size, NONE),
        buffer=DoubleBuffer(
            np.zeros(places, np.int64), np.zeros(places), np.full(places, NONE), np.zeros(places, np.uint64)
        ),
        block=new_block(n, block_size),
        clock=np.array([UNKNOWN, 0]),
    )


def check_batch_size(owner: Any, size: Any) -> None:
    if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size < 1:
        raise ValueError(f"{type(owner).__name__} expects a batch_size of at least 1, got {size!r}.")


@inline
def draw_batch(parts, sampler, batch):
    """Go on to the next batch, all from one p; False where the sampler drew what is not a row."""
    buffer, clock, size, block_size = batch.buffer, batch.clock, batch.i.size, batch.block.i.size
    at = clock[AT]
    if at != UNKNOWN:
        for k in range(size):
            buffer.a[at + k] = batch.feedback[k]
            batch.feedback[k] = NONE
        at += size
    ends = at == block_size or at == 2 * block_size
    if ends or at == UNKNOWN:
        if not _turn_over(sampler, buffer, batch.block, at):
            return False
        at = block_size if at == block_size else 0
    clock[AT] = at
    for k in range(size):
        batch.i[k] = buffer.i[at + k]
        batch.p[k] = buffer.p[at + k]
    soon, later = _after(at, FETCH_AHEAD * size, block_size), _after(at, LOCATE_AHEAD * size, block_size)
    clock[LATER] = later
    for k in range(size):
        parts.rows.fetch(buffer.i[soon + k])
        i = buffer.i[later + k]
        parts.rows.locate(i)
        parts.terms.fetch(i)
        prefetch(parts.norms2, i)
    return True


@inline
def _after(at, ahead, block_size):
    """The place in the buffer that is `ahead` of this one, or as far as draws are known."""
    place = at + min(ahead, block_size)
    return place - 2 * block_size if place >= 2 * block_size else place


@outline
def _turn_over(sampler, buffer, block, at):
    """Learn from the block that ends at this place of the buffer and draw it anew; to begin with, draw both.

    False where that gives what is not a row.
    """
    size = block.i.size
    first, end = (0, 2 * size) if at == UNKNOWN else (at - size, at)
    for begin in range(first, end, size):
        these = sub_block(buffer, block, begin, begin + size)
        known = _gather(these)
        if known > 0:
            sampler.learn_many(these, known)
        sampler.draw_many(these)
        if not _accepted(these):
            return False
    return True


@inline
def _gather(block):
    """Bring the draws with feedback to the front and count them."""
    known = 0
    for t in range(block.i.size):
        known += block.a[t] >= 0.0
    if known < block.i.size:
        known = 0
        for t in range(block.i.size):
            block.i[known], block.p[known] = block.i[t], block.p[t]
            block.a[known], block.entry[known] = block.a[t], block.entry[t]
            known += block.a[t] >= 0.0
    return known


@inline
def _accepted(block):
    """Make ready for feedback; False where the block holds what is not a row."""
    astray = 0
    for t in range(block.i.size):
        block.a[t] = NONE
        astray += block.i[t] < 0 or block.i[t] >= block.n
    return astray == 0


@inline
def estimate(parts, w, shrinkage, batch):
    """Factors f with ĝ = Σ_k f_k x_{i_k}, the mean over the batch of ∇φ_i(w) / (n p_i), equation (3), and the a_i.

    False, before anything is changed, where a number is not finite.
    """
    n, size = parts.norms2.size, batch.i.size
    a_unit = 1.0 / n / n
    for k in range(size):
        i = batch.i[k]
        z = shrinkage.margin(parts.rows, i, w)
        slope = parts.terms.slope(i, z)
        if not (abs(z) < np.inf and slope * slope * parts.norms2[i] < np.inf):
            return False
        batch.factor[k] = slope
    for k in range(size):
        i, slope = batch.i[k], batch.factor[k]
        batch.feedback[k] = slope * slope * parts.norms2[i] * a_unit  # a_i = ‖∇φ_i(w)‖² / n²
        batch.factor[k] = slope / (size * n * batch.p[k])
    return True
