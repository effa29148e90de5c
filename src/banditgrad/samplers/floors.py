"""What an adaptive sampler mixes its weights with, so that no probability comes near zero:  p = (1 - η) w/W + η q."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import bridge, inline, prefetch
from banditgrad._random import fill_bits, fill_units, index_from, peek, skip, unit
from banditgrad.samplers.alias import AliasTable, new_alias_table, shares_of


@bridge
class EvenFloor(NamedTuple):
    """q_i = 1/n."""

    share_of_each: float

    def mixed_draw(self, weighted, stream, eta):
        return weighted.pick(stream, eta)

    def floor(self, i):
        return self.share_of_each

    def tilt(self, stream, share, block):
        """Turn uniform draws into draws from (1 - share)/n + share · q."""

    def floor_entries(self, weighted, stream, block, count):
        """Draw from q for `count` places of the block, those in `block.place`."""
        fill_bits(stream, block.bits, count)
        for t in range(count):
            k = index_from(block.bits[t], stream, weighted.where.size)
            prefetch(weighted.entries, k)
            block.entry[block.place[t]] = k


class UnevenFloor(NamedTuple):
    """Any q_i."""

    table: AliasTable
    q: NDArray[np.float64]

    def mixed_draw(self, weighted, stream, eta):
        coin = unit(peek(stream, 0))
        skip(stream, 1)
        return self.table.alias_draw(stream) if coin < eta else weighted.pick(stream, 0.0)

    def floor(self, i):
        return self.q[i]

    def tilt(self, stream, share, block):
        fill_units(stream, block.real, block.i.size)
        for t in range(block.i.size):
            if block.real[t] < share:
                block.i[t] = self.table.alias_draw(stream)
            block.p[t] = (1.0 - share) * block.p[t] + share * self.q[block.i[t]]

    def floor_entries(self, weighted, stream, block, count):
        self.table.alias_draws(stream, block, count)
        for t in range(count):
            prefetch(weighted.where, np.int64(block.bits[t]))
        for t in range(count):
            k = np.int64(weighted.where[block.bits[t]])
            prefetch(weighted.entries, k)
            block.entry[block.place[t]] = k

    def faults(self, arrays: dict[str, NDArray[Any]]) -> list[str]:
        q, cells = arrays["q"], arrays["table.cells"]
        if self.table.faults({"cells": cells}):
            return []  # the table says so itself
        sound = q.min() >= 0.0 and np.allclose(shares_of(cells), q, rtol=1e-6, atol=1e-12)
        return [] if sound else ["the shares it mixes with are not those of its alias table"]


@inline
def mixed_draws(floor_of, weighted, stream, eta, block):
    """Draw all of a block from p."""
    size = block.i.size
    fill_units(stream, block.real, size)
    by_weights = floored = 0
    for t in range(size):  # every place is put on both lists, and stays on one: no branch, which nobody could foretell
        block.todo[np.uint64(by_weights)] = t
        block.place[np.uint64(floored)] = t
        by_weight = block.real[t] >= eta
        by_weights += by_weight
        floored += not by_weight
    floor_of.floor_entries(weighted, stream, block, floored)
    weighted.pick_many(stream, block, by_weights)
    weighted.read_many(block)
    for t in range(size):
        block.p[t] = (1.0 - eta) * block.p[t] + eta * floor_of.floor(block.i[t])


def new_floor(q: NDArray[np.float64] | None, n: int) -> EvenFloor | UnevenFloor:
    """q up to a factor; None for uniform."""
    if q is None:
        return EvenFloor(1.0 / n)
    q = q / q.max()  # the sum is then finite
    q = q / q.sum()
    return UnevenFloor(new_alias_table(q), q)
