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

    def tilt(self, stream, share, lot):
        """Turn uniform draws into draws from (1 - share)/n + share · q."""

    def floor_entries(self, weighted, stream, lot, count):
        """Draw from q for `count` places of the lot, those in `lot.place`."""
        fill_bits(stream, lot.bits, count)
        for t in range(count):
            k = index_from(lot.bits[t], stream, weighted.where.size)
            prefetch(weighted.entries, k)
            lot.entry[lot.place[t]] = k


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

    def tilt(self, stream, share, lot):
        fill_units(stream, lot.real, lot.i.size)
        for t in range(lot.i.size):
            if lot.real[t] < share:
                lot.i[t] = self.table.alias_draw(stream)
            lot.p[t] = (1.0 - share) * lot.p[t] + share * self.q[lot.i[t]]

    def floor_entries(self, weighted, stream, lot, count):
        self.table.alias_draws(stream, lot, count)
        for t in range(count):
            prefetch(weighted.where, np.int64(lot.bits[t]))
        for t in range(count):
            k = np.int64(weighted.where[lot.bits[t]])
            prefetch(weighted.entries, k)
            lot.entry[lot.place[t]] = k

    def faults(self, arrays: dict[str, NDArray[Any]]) -> list[str]:
        q, cells = arrays["q"], arrays["table.cells"]
        if self.table.faults({"cells": cells}):
            return []  # the table says so itself
        sound = q.min() >= 0.0 and np.allclose(shares_of(cells), q, rtol=1e-6, atol=1e-12)
        return [] if sound else ["the shares it mixes with are not those of its alias table"]


@inline
def mixed_draws(floor_of, weighted, stream, eta, lot):
    """Draw all of a lot from p."""
    size = lot.i.size
    fill_units(stream, lot.real, size)
    by_weights = floored = 0
    for t in range(size):  # every place is put on both lists, and stays on one: no branch, which nobody could foretell
        lot.todo[np.uint64(by_weights)] = t
        lot.place[np.uint64(floored)] = t
        by_weight = lot.real[t] >= eta
        by_weights += by_weight
        floored += not by_weight
    floor_of.floor_entries(weighted, stream, lot, floored)
    weighted.pick_many(stream, lot, by_weights)
    weighted.read_many(lot)
    for t in range(size):
        lot.p[t] = (1.0 - eta) * lot.p[t] + eta * floor_of.floor(lot.i[t])


def new_floor(q: NDArray[np.float64] | None, n: int) -> EvenFloor | UnevenFloor:
    """q up to a factor; None for uniform."""
    if q is None:
        return EvenFloor(1.0 / n)
    q = q / q.max()  # the sum is then finite
    q = q / q.sum()
    return UnevenFloor(new_alias_table(q), q)
