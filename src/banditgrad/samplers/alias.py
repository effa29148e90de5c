"""Drawing from weights that never change: Walker's alias table, one look per draw.

Each of n equally likely cells belongs to one item up to its *cut*, and to another from there on.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import bridge, kernel, prefetch
from banditgrad._random import fill_bits, fill_units, index_from, peek, skip, uniform_index, unit

CELL = np.dtype([("cut", "f8"), ("other", "i8")])


@bridge
class AliasTable(NamedTuple):
    cells: NDArray[np.void]

    def alias_draw(self, stream):
        """Draw an item."""
        cell = uniform_index(stream, self.cells.size)
        u = unit(peek(stream, 0))
        skip(stream, 1)
        return self.owner(cell, u)

    def alias_draws(self, stream, block, count):
        """Draw `count` items into `block.bits`."""
        fill_units(stream, block.real, count)
        fill_bits(stream, block.bits, count)
        for t in range(count):
            cell = index_from(block.bits[t], stream, self.cells.size)
            block.bits[t] = cell
            prefetch(self.cells, cell)
        for t in range(count):
            block.bits[t] = self.owner(np.int64(block.bits[t]), block.real[t])

    def owner(self, cell, u):
        other = self.cells[cell].other
        return cell + (other - cell) * np.int64(u >= self.cells[cell].cut)  # no branch, which nobody could foretell

    def faults(self, arrays: dict[str, NDArray[Any]]) -> list[str]:
        other = arrays["cells"]["other"]
        inside = (other >= 0).all() and (other < other.size).all()
        return [] if inside else ["its alias table names items that are not there"]


def shares_of(cells: NDArray[np.void]) -> NDArray[np.float64]:
    """The probabilities with which a table draws its items."""
    own = np.minimum(cells["cut"], 1.0)
    return np.asarray(own + np.bincount(cells["other"], 1.0 - own, cells.size)) / cells.size


def new_alias_table(q: NDArray[np.float64]) -> AliasTable:
    """For shares q, which are not negative and sum to 1."""
    table = AliasTable(np.zeros(q.size, CELL))
    _deal(table.cells, q, int(q.argmax()), np.zeros(q.size, np.int64))
    return table


@kernel
def _deal(cells, q, heaviest, stack):
    """Vose's method. `stack` holds the cells that are less than full from the left, the others from the right."""
    n = q.size
    light, heavy = 0, n
    for i in range(n):
        cells[i].cut = n * q[i]
        cells[i].other = i
        if cells[i].cut < 1.0:
            stack[light] = i
            light += 1
        else:
            heavy -= 1
            stack[heavy] = i
    while light > 0 and heavy < n:
        light -= 1
        small, large = stack[light], stack[heavy]
        cells[small].other = large
        cells[large].cut -= 1.0 - cells[small].cut
        if cells[large].cut < 1.0:
            heavy += 1
            stack[light] = large
            light += 1
    for k in range(light):  # by rounding: what is left of them goes to an item that hardly notices
        cells[stack[k]].other = heaviest
