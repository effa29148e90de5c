"""The rows of a step: a minibatch, of one row or more, from draws that are made in blocks.

Draws lie in a *double buffer* of two blocks, and are known one block and more before their turn, so that their rows can
be fetched early. When a block is used up, the sampler is told of it and draws the next but one in its place. So a draw
does not know the feedback of up to two blocks before it; the estimator stays unbiased, since p is that of the draw.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline, outline, prefetch
from banditgrad.margins import Scratch, new_scratch
from banditgrad.samplers.blocks import NONE, Block, gather_feedback, new_double_buffer, sub_block

BLOCK_SIZE = 128
BLOCKS_PER_PASS = 64  # at least, unless a minibatch is more than such a block: with few rows blocks are smaller
FETCH_AHEAD, LOCATE_AHEAD = 3, 12  # how many steps before its own a row is asked for, and all else of it

# Where a minibatch begins in the double buffer: this one, and that which is LOCATE_AHEAD steps on.
POSITION = np.dtype([("now", "i8"), ("ahead", "i8")])


class Minibatch(NamedTuple):
    """One minibatch, and the draws to come."""

    i: NDArray[np.int64]
    p: NDArray[np.float64]
    factor: NDArray[np.float64]  # of x_i in the gradient estimator
    feedback: NDArray[np.float64]  # a_i that the sampler will be told, or NONE
    buffer: Block
    position: NDArray[np.void]  # one POSITION record
    scratch: Scratch  # of rows with several margins


def new_minibatch(problem: Any, size: int) -> Minibatch:
    n = problem.n
    block_size = size * max(1, min(BLOCK_SIZE // size, n // (BLOCKS_PER_PASS * size)))
    return Minibatch(
        i=np.zeros(size, np.int64),
        p=np.zeros(size),
        factor=np.zeros(size),
        feedback=np.full(size, NONE),
        buffer=new_double_buffer(n, block_size),
        position=np.array([(-size, 0)], POSITION),
        scratch=new_scratch(problem.margins if problem.vector else 0, size),
    )


def check_batch_size(owner: Any, size: Any) -> None:
    if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size < 1:
        raise ValueError(f"{type(owner).__name__} expects a batch_size of at least 1, got {size!r}.")


@inline
def next_minibatch(parts, sampler, minibatch):
    """Go on to the next minibatch, all from one p; False where the sampler drew an index out of range."""
    buffer, position, size = minibatch.buffer, minibatch.position[0], minibatch.i.size
    block_size, begin = buffer.i.size // 2, position.now
    if begin >= 0:
        for k in range(size):
            buffer.a[begin + k] = minibatch.feedback[k]
            minibatch.feedback[k] = NONE
    begin += size
    if begin == 0 or begin == block_size or begin == 2 * block_size:
        if not _draw_anew(sampler, buffer, begin, block_size):
            return False
        begin = block_size if begin == block_size else 0
    position.now = begin
    for k in range(size):
        minibatch.i[k] = buffer.i[begin + k]
        minibatch.p[k] = buffer.p[begin + k]
    soon, ahead = _after(begin, FETCH_AHEAD * size, block_size), _after(begin, LOCATE_AHEAD * size, block_size)
    position.ahead = ahead
    for k in range(size):
        parts.rows.fetch(buffer.i[soon + k])
        i = buffer.i[ahead + k]
        parts.rows.locate(i)
        parts.terms.fetch(i)
        prefetch(parts.norms2, i)
    return True


@inline
def row_ahead(minibatch):
    """A row that a step soon to come looks at: what a solver keeps of it can be fetched."""
    return minibatch.buffer.i[minibatch.position[0].ahead]


@inline
def _after(begin, steps, block_size):
    """The place in the buffer that is so many steps on, or as far as draws are known."""
    place = begin + min(steps, block_size)
    return place - 2 * block_size if place >= 2 * block_size else place


@outline
def _draw_anew(sampler, buffer, end, block_size):
    """Learn from the block that ends here and draw it anew; at the very beginning, 0, draw both.

    False where that gives an index out of range.
    """
    first, last = (0, 2 * block_size) if end == 0 else (end - block_size, end)
    for begin in range(first, last, block_size):
        block = sub_block(buffer, begin, begin + block_size)
        known = gather_feedback(block)
        if known > 0:
            sampler.learn_many(block, known)
        sampler.draw_many(block)
        if not _accepted(block):
            return False
    return True


@inline
def _accepted(block):
    """Make ready for feedback; False where an index is out of range."""
    astray = 0
    for t in range(block.i.size):
        block.a[t] = NONE
        astray += block.i[t] < 0 or block.i[t] >= block.n
    return astray == 0


@inline
def estimate(parts, iterate, minibatch):
    """Factors f with ĝ = Σ_k f_k x_{i_k}, the mean over the minibatch of ∇φ_i(w) / (n p_i), equation (3), and the a_i.

    False, before anything is changed, where a number is not finite.
    """
    n, size = parts.norms2.size, minibatch.i.size
    a_unit = 1.0 / n / n
    for k in range(size):
        i = minibatch.i[k]
        z, slope = parts.terms.margin_and_slope(parts.rows, iterate, minibatch.scratch, i)
        if not (abs(z) < np.inf and slope * slope * parts.norms2[i] < np.inf):
            return False
        minibatch.factor[k] = slope
        if size > 1:
            parts.terms.keep(minibatch.scratch, k)
    for k in range(size):
        i, slope = minibatch.i[k], minibatch.factor[k]
        minibatch.feedback[k] = slope * slope * parts.norms2[i] * a_unit  # a_i = ‖∇φ_i(w)‖² / n²
        minibatch.factor[k] = slope / (size * n * minibatch.p[k])
    return True


@inline
def add_estimate(parts, minibatch, scale, out):
    """out += scale · ĝ, of the last `estimate`."""
    for k in range(minibatch.i.size):
        recall(parts, minibatch, k)
        parts.terms.add_along(parts.rows, minibatch.scratch, minibatch.i[k], scale * minibatch.factor[k], out)


@inline
def recall(parts, minibatch, k):
    """Make the scratch that of row k."""
    if minibatch.i.size > 1:
        parts.terms.recall(minibatch.scratch, k)
