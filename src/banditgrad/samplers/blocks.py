"""Draws in blocks: many made together, all from one p, and later learnt from together.

A single draw costs the processor more in mispredicted branches and cache misses than in work: which bucket, accepted or
not. A block is drawn in short loops that do one thing each, without branches, and entries are prefetched. The estimator
stays unbiased, since p is that of the draw.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline

NONE = -1.0  # in place of an a_i that is not known


class Block(NamedTuple):
    """Room for draws, for what is learnt of them, and for the work in between."""

    n: int  # items are 0..n-1
    i: NDArray[np.int64]
    p: NDArray[np.float64]  # at the time of the draw
    a: NDArray[np.float64]  # a_i, or NONE
    entry: NDArray[np.uint64]  # where a weighted sampler found the item: a hint, items move; no solver looks at it

    # scratch, for one and a half times as many
    bits: NDArray[np.uint64]
    todo: NDArray[np.uint64]
    place: NDArray[np.uint64]
    real: NDArray[np.float64]
    other: NDArray[np.float64]


def new_block(n: int, size: int) -> Block:
    """A block of `size` draws of n items."""
    room = (size + size // 2 + 15) & -8  # whole vectors
    bits, todo, place = np.zeros((3, room), np.uint64)
    real, other = np.zeros((2, room))
    a = np.full(size, NONE)
    return Block(
        n, np.zeros(size, np.int64), np.zeros(size), a, np.zeros(size, np.uint64), bits, todo, place, real, other
    )


def new_double_buffer(n: int, size: int) -> Block:
    """Two blocks of `size` draws, end to end, with the scratch of one."""
    i, entry = np.zeros(2 * size, np.int64), np.zeros(2 * size, np.uint64)
    return new_block(n, size)._replace(i=i, p=np.zeros(2 * size), a=np.full(2 * size, NONE), entry=entry)


@inline
def sub_block(block, begin, end):
    """These places of a block, or of a double buffer, as a block that works in the same scratch."""
    i, p, a, entry = block.i[begin:end], block.p[begin:end], block.a[begin:end], block.entry[begin:end]
    return Block(block.n, i, p, a, entry, block.bits, block.todo, block.place, block.real, block.other)


@inline
def gather_feedback(block):
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
