"""Drawing from weights that change at every step, exactly and in expected O(1): the structure under the samplers.

A weight is m 2^e with m in [1, 2) and e an integer, so that nothing overflows and no pass over all items is ever
needed to rescale. The entries are a permutation of the items in which items of equal e, a *bucket*, lie together, in
ascending e. To draw: choose a bucket with probability ∝ count · 2^(e+1), an integer computation without rounding;
a uniform entry in it; accept with probability m/2; at most about two tries. To change a weight: store m, and when e
changes move the item over the buckets in between, one swap each.

Only the 32 buckets below the highest are told apart when drawing. What lies below is proposed
as one *underflow bucket* with a bound of its own and accepted with its own, tiny probability, so it stays exact and can
grow back.

16 bytes per item for an entry, 4 for the map from item to entry.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import bridge, float_bits, inline, kernel, outline, prefetch
from banditgrad._random import below, biased, fill_below, fill_bits, fill_units, peek, skip, unit
from banditgrad.samplers.buckets import (
    BUCKET_INDEX,
    BUCKETS,
    ENTRY,
    LOWEST,
    NEVER,
    WINDOW,
    add_exactly,
    add_up,
    after_move,
    begin_sort,
    depth_of,
    entry_of,
    exponent,
    fill_depths,
    finish_sort,
    freshen,
    mantissa,
    move,
    next_entry,
    power_of_two,
    rebuild,
    slide_up,
    step_back,
    sum_bounds,
)

MAX_ITEMS = 2**31 - 1


@bridge
class WeightedSampler(NamedTuple):
    """n items with weights; made by `new_weighted_sampler` and filled. Items are numbered 0..n-1 and never leave."""

    entries: NDArray[np.void]  # ENTRY records, a permutation of the items
    where: NDArray[np.int32]  # item -> its entry
    buckets: NDArray[np.void]  # one BUCKET_INDEX record
    total: NDArray[np.float64]  # the sum of the weights in units of 2^base, and what rounding left out of it

    def pick(self, stream, mixing):
        """Draw an item: uniformly with probability `mixing`, else in proportion to the weights."""
        index = self.buckets[0]
        freshen(index)
        uniform = unit(peek(stream, 0)) < mixing
        skip(stream, 1)
        while True:
            bits, u = peek(stream, 0), unit(peek(stream, 1))
            skip(stream, 2)
            bound = np.uint64(self.where.size if uniform else index.ends[WINDOW])
            if biased(bits, bound):
                continue
            r = np.int64(below(bits, bound))
            if uniform:
                return np.int64(self.entries[r].id)
            k = np.uint64(entry_of(index, r, depth_of(index, r)))
            if 2.0 * u < self.bulk_of(k, self.underflow_exponent()):
                return np.int64(self.entries[k].id)

    def pick_many(self, stream, block, left):
        """Draw in proportion to the weights for `left` places of the block, those in `block.todo`: their entries."""
        entries, index = self.entries, self.buckets[0]
        bits, todo, place, real = block.bits, block.todo, block.place, block.real
        freshen(index)
        bound, line = np.uint64(index.ends[WINDOW]), self.underflow_exponent()
        # The mean number of proposals until one is accepted: from 1 to 2, more only from the underflow bucket.
        tries = np.float64(bound) * power_of_two(index.top + 1 - WINDOW) * self.unit_share()
        tries = min(max(tries, 1.0), 3.0)
        done = 0
        while done < left:
            enough = np.int64((left - done) * tries * 1.0625) + 6  # most likely
            proposals = min((enough + 7) & -8, bits.size)  # whole vectors
            fill_bits(stream, bits, proposals)
            fill_units(stream, real, proposals)
            fill_below(bits, bound, real, proposals)
            fill_depths(index, bits, place, proposals)
            for t in range(proposals):
                place[t] = entry_of(index, np.int64(bits[t]), np.int64(place[t]))
                prefetch(entries, np.int64(place[t]))
            for t in range(proposals):
                block.entry[todo[np.uint64(done)]] = place[t]
                done += 2.0 * real[t] < self.bulk_of(place[t], line)
                if done == left:
                    break

    def underflow_exponent(self):
        """The exponent below which items are in the underflow bucket."""
        index = self.buckets[0]
        return index.base + index.top - WINDOW

    def bulk_of(self, k, underflow_exponent):
        """Twice the share that the item of entry k has of its bound: m, but less in the underflow bucket."""
        m, above = self.entries[k].m, np.int64(self.entries[k].e) - underflow_exponent
        return m if above >= 0 else m * power_of_two(above)

    def read_many(self, block):
        """The items in the entries of the block, and, for the time being in place of p, their shares."""
        unit_share = self.unit_share()
        for t in range(block.i.size):
            k = block.entry[t]
            block.i[t] = self.entries[k].id
            block.p[t] = self.weight_in(k) * unit_share

    def weight_in(self, k):
        """The weight of the item of entry k, in units of 2^base."""
        return self.entries[k].m * power_of_two(self.entries[k].e - self.buckets[0].base)

    def unit_share(self):
        """One over the sum of all weights, in units of 2^base."""
        return 1.0 / (self.total[0] + self.total[1])

    def share(self, i):
        """The weight of item i over the sum of all weights."""
        return self.weight_in(np.uint64(self.where[i])) * self.unit_share()

    def fetch_many(self, block, count):
        """Ask for the entries of the first items of the block, which are to be changed soon."""
        for t in range(count):
            prefetch(self.entries, np.int64(block.entry[t]))

    def find(self, i, hint):
        """The entry of item i, which was in entry `hint` when it was drawn and nearly always still is."""
        return hint if self.entries[hint].id == i else np.uint64(self.where[i])

    def multiply(self, i, factor):
        """Multiply the weight of item i by a positive factor."""
        self.multiply_in(np.uint64(self.where[i]), factor)

    def multiply_in(self, k, factor):
        k = np.int64(k)
        bits = float_bits(self.entries[k].m * factor)
        self.store(k, mantissa(bits), np.int64(self.entries[k].e) + exponent(bits))

    def multiply_many(self, block, count):
        """Multiply the weights of the first items of the block by the factors in `block.other`, which are at least 1.

        What weights gain is added up before it is added to the total, which is exact enough where they only grow.
        """
        entries, base, more = self.entries, self.buckets[0].base, 0.0
        for t in range(count):
            k = self.find(block.i[t], block.entry[t])
            old = entries[k].m
            new = old * block.other[t]
            if new < 2.0:  # it stays in its bucket
                entries[k].m = new
                more += (new - old) * power_of_two(entries[k].e - base)
            else:
                add_exactly(self.total, more)
                self.multiply_in(k, block.other[t])
                base, more = self.buckets[0].base, 0.0
        add_exactly(self.total, more)

    def weight_at(self, k):
        """The weight of the item of entry k as a float; meant for weights that were put as floats."""
        return self.entries[k].m * power_of_two(self.entries[k].e)

    def put(self, i, weight):
        """Set the weight of item i; what is not a positive, finite number is ignored."""
        self.put_in(np.uint64(self.where[i]), weight)

    def put_in(self, k, weight):
        if weight > 1e-300 and weight < 1e300:
            bits = float_bits(weight)
            self.store(np.int64(k), mantissa(bits), exponent(bits))

    def store(self, k, m, e):
        """Give the item of entry k the weight m 2^e."""
        entries, where, index = self.entries, self.where, self.buckets[0]
        old_m, old_e, item = entries[k].m, np.int64(entries[k].e), entries[k].id
        if e == old_e:  # the difference of two such m is exact
            entries[k].m = m
            add_exactly(self.total, (m - old_m) * power_of_two(e - index.base))
            return
        if e - index.base >= BUCKETS:
            slide_up(index, self.total, where.size, e - index.base - BUCKETS // 2)
        base = index.base
        add_exactly(self.total, m * power_of_two(e - base))
        add_exactly(self.total, -old_m * power_of_two(old_e - base))
        old, new = max(old_e - base, 0), max(e - base, 0)
        k = move(entries, where, index, k, old, new)
        entries[k].m = m
        entries[k].e = max(e, LOWEST)
        entries[k].id = item
        where[item] = k
        if after_move(index, old, new, where.size):
            rebuild(entries, where, index, self.total)

    def faults(self, arrays: dict[str, NDArray[Any]]) -> list[str]:
        """What is wrong with arrays to be loaded: compiled code trusts what the weighted sampler holds."""
        entries, where, index, total = arrays["entries"], arrays["where"], arrays["buckets"][0], arrays["total"]
        n, m, e = where.size, entries["m"], entries["e"].astype(np.int64)
        base, start, top = index["base"], index["start"], index["top"]
        if not (where.min() >= 0 and where.max() < n and (entries["id"][where] == np.arange(n)).all()):
            return ["the map of its weighted sampler does not fit the entries"]
        weights = ((m >= 1.0) & (m < 2.0)) | ((m == 0.0) & (e == NEVER))
        bucket = np.searchsorted(start, np.arange(n), side="right") - 1
        sound = (
            weights.all()
            and m.max() > 0.0
            and start[0] == 0
            and start[-1] == n
            and (start[1:] >= start[:-1]).all()
            and (bucket == np.maximum(e - base, 0)).all()
            and WINDOW <= top == bucket[-1] <= index["peak"] < BUCKETS
        )
        if not sound:
            return ["the entries of its weighted sampler do not fit together"]
        fresh = arrays["buckets"].copy()
        _sum_bounds(fresh)
        up_to_date = index["stale"] != 0 or fresh.tobytes() == index.tobytes()
        exact = float(np.sum(np.ldexp(m, np.maximum(e - base, -1000))))
        sound = up_to_date and abs(total.sum() - exact) <= 1e-6 * exact
        return [] if sound else ["the sums of its weighted sampler do not fit the entries"]


def new_weighted_sampler(n: int) -> WeightedSampler:
    """A weighted sampler of n items, to be filled."""
    return WeightedSampler(np.zeros(n, ENTRY), np.zeros(n, np.int32), np.zeros(1, BUCKET_INDEX), np.zeros(2))


def fill(weighted: WeightedSampler, weights: NDArray[np.float64]) -> None:
    """Give every item its weight: finite, not negative, not all zero. An item of weight zero is never drawn."""
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    if weights.shape != weighted.where.shape:
        raise ValueError(f"The weighted sampler has {weighted.where.size} items, got weights of shape {weights.shape}.")
    if not (np.isfinite(weights).all() and weights.min() >= 0.0 and weights.max() > 0.0):
        raise ValueError("The weights of a weighted sampler must be finite, not negative and not all zero.")
    _fill(weighted, weights)


@kernel
def _sum_bounds(index):
    sum_bounds(index[0])


@kernel
def _fill(weighted, weights):
    """The same entries as by `rebuild`, each written once."""
    entries, where, index = weighted.entries, weighted.where, weighted.buckets[0]
    largest = np.int64(NEVER)
    for i in range(weights.size):
        largest = max(largest, _exponent_of(weights[i]))
    begin_sort(index, largest)
    for i in range(weights.size):
        index.start[max(_exponent_of(weights[i]) - index.base, 0) + 1] += 1
    add_up(index)
    for i in range(weights.size):
        e = _exponent_of(weights[i])
        k = next_entry(index, e)
        entries[k].m = mantissa(float_bits(weights[i])) if weights[i] > 0.0 else 0.0
        entries[k].e = e
        entries[k].id = i
    step_back(index)
    finish_sort(entries, where, index, weighted.total)


@inline
def _exponent_of(weight):
    return exponent(float_bits(weight)) if weight > 0.0 else np.int64(NEVER)


@kernel
def fill_equal(weighted):
    """Give all items the same weight."""
    equalise(weighted.entries, weighted.where, weighted.buckets[0], weighted.total)


@outline
def equalise(entries, where, index, total):
    for i in range(where.size):
        entries[i].m = 1.75  # accepted 7 times in 8, with room to grow
        entries[i].e = 0
        entries[i].id = i
    rebuild(entries, where, index, total)
