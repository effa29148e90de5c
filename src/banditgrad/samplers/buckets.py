"""The bucket index of a weighted sampler: where buckets begin, what their proposal bounds add up to, how items move.

A weight is m 2^e with m in [1, 2). Entries of equal e, a *bucket*, lie together, in ascending e. Bucket b holds the
exponent base + b; bucket 0 also holds all that is lighter, with exponents of its own. When the highest bucket leaves
the index, the base slides up and low buckets become one; when it falls, the entries are sorted afresh. Exponents are
held in 32 bits: when the base is FAR from zero, the next sort subtracts the largest from all of them.

Sums of bounds are brought up to date when they are next needed: many moves may come before that. Helpers take single
arrays rather than the weighted: a tuple of arrays is dear to compile.
"""

import numpy as np

from banditgrad._jit import bits_float, inline, outline

ENTRY = np.dtype([("m", "f8"), ("e", "i4"), ("id", "i4")])
BUCKETS = 256
WINDOW = 32  # with fewer than 2^31 items the sum of bounds fits 63 bits
FAR = 2**28
NEVER = -(2**30)  # the exponent of a weight of zero
LOWEST = NEVER + 1  # of a positive weight; one that is lighter still is kept there

FALL, LONG_FALL = WINDOW, 48  # how far the highest bucket may fall until entries are sorted afresh: after many moves,
SORT_EVERY = 16  # n / 16, and after few

BUCKET_INDEX = np.dtype(
    [
        ("base", "i8"),  # the exponent of bucket 0
        ("top", "i8"),  # the highest bucket in use
        ("peak", "i8"),  # the highest one since the last sort
        ("moves", "i8"),  # their number since the last sort
        ("stale", "i8"),  # whether the sums, ends and offsets, are out of date
        (
            "ends",
            "i8",
            WINDOW + 1,
        ),  # sums of bounds of the highest 1, 2, .. 32 buckets and all; the unit is 2^(base + top - 31)
        ("offsets", "i8", WINDOW + 1),  # lead from a number below the sum of bounds to an entry, by depth below the top
        ("start", "i8", BUCKETS + 1),  # bucket b is entries[start[b]:start[b + 1]]
    ]
)


@inline
def power_of_two(k):
    """2^k; zero below the range of normal numbers."""
    return bits_float((max(np.int64(k), -1023) + 1023) << 52)


@inline
def mantissa(bits):
    return bits_float((bits & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000)


@inline
def exponent(bits):
    return np.int64((bits >> 52) - 1023)


@inline
def depth_of(index, r):
    """How far below the top the bucket is that r, uniform below the sum of bounds, falls on.

    By bisection without branches: nobody can foretell the bucket.
    """
    depth = np.int64(r >= index.ends[15]) << 4
    depth += np.int64(r >= index.ends[depth + 7]) << 3
    depth += np.int64(r >= index.ends[depth + 3]) << 2
    depth += np.int64(r >= index.ends[depth + 1]) << 1
    depth += np.int64(r >= index.ends[depth])
    return depth + np.int64(r >= index.ends[depth])


@inline
def fill_depths(index, r, depths, count):
    """Likewise for many r. By counting, which vector instructions do faster than bisection, eight buckets at a time."""
    for t in range(count):
        depths[t] = 0
    for first in range(0, WINDOW, 8):
        if index.ends[first] == index.ends[WINDOW]:
            break  # the buckets below are empty
        for t in range(count):
            more = 0
            for b in range(first, first + 8):
                more += np.int64(r[t]) >= index.ends[b]
            depths[t] += np.uint64(more)


@inline
def entry_of(index, r, depth):
    """The entry that r falls on in the bucket at this depth."""
    return (r >> (WINDOW - depth)) + index.offsets[np.uint64(depth)]


@inline
def freshen(index):
    """Bring the sums of bounds up to date."""
    if index.stale != 0:
        sum_bounds(index)


@outline
def sum_bounds(index):
    """Add up the proposal bounds from the highest bucket down: count · 2^(e+1) each, and one unit for what is lower."""
    top = index.top
    end = np.int64(0)
    for depth in range(WINDOW):
        first, after = index.start[max(top - depth, 0)], index.start[max(top - depth + 1, 0)]
        index.offsets[depth] = first - (end >> (WINDOW - depth))
        end += (after - first) << (WINDOW - depth)
        index.ends[depth] = end
    index.offsets[WINDOW] = -end
    index.ends[WINDOW] = end + index.start[max(top - WINDOW + 1, 0)]
    index.stale = 0


@inline
def add_exactly(total, x):
    """total += x; what rounding leaves out of the first number is added up in the second (Knuth's two-sum)."""
    old = total[0]
    new = old + x
    part = new - old
    total[0] = new
    total[1] += (old - (new - part)) + (x - part)


@inline
def move(entries, where, index, k, old, new):
    """Make a hole for the item of entry k in bucket `new`, and return the hole."""
    for b in range(old, new):  # upwards: the last item of each bucket fills the hole
        last = index.start[b + 1] - 1
        if last != k:  # the bucket holds more than the hole
            _copy(entries, where, last, k)
        index.start[b + 1] = last
        k = last
    for b in range(old, new, -1):  # downwards: the first item
        first = index.start[b]
        if first != k:
            _copy(entries, where, first, k)
        index.start[b] = first + 1
        k = first
    return k


@inline
def _copy(entries, where, source, target):
    entries[target].m = entries[source].m
    entries[target].e = entries[source].e
    entries[target].id = entries[source].id
    where[entries[source].id] = target


@inline
def after_move(index, old, new, n):
    """Bring the highest bucket up to date; True where the entries must be sorted afresh."""
    top = index.top
    index.moves += 1
    index.stale = 1
    if new > top or (old == top and index.start[top] == index.start[top + 1]):
        top = max(new, top)
        while index.start[top] == index.start[top + 1]:
            top -= 1
        index.top = top
        index.peak = max(top, index.peak)
        # Sort afresh when merged buckets come into the window or rounding of the sum begins to show: at the latest
        # before it matters, but not again and again for one item that goes up and down.
        fall, many = index.peak - top, index.moves > n // SORT_EVERY
        return top < WINDOW or fall > (FALL if many else LONG_FALL) or abs(index.base) > FAR
    return False


@outline
def slide_up(index, total, n, shift):
    """Make room above: the lowest `shift` buckets become one with the bucket above them.

        base' = base + s,    start'[b] = start[min(b + s, BUCKETS)] for b > 0, and 0 for b = 0,    total' = total / 2^s

    Bucket b' = b - s keeps the exponent base' + b' = base + b; what had b < s is now lighter than bucket 0's exponent.
    """
    for b in range(1, BUCKETS + 1):
        index.start[b] = index.start[b + shift] if b + shift <= BUCKETS else n
    index.base += shift
    index.top = max(index.top - shift, 0)
    index.peak = max(index.peak - shift, 0)
    index.stale = 1
    total[0] *= power_of_two(-shift)
    total[1] *= power_of_two(-shift)


@outline
def rebuild(entries, where, index, total):
    """Sort the entries into buckets around the largest exponent and add up everything afresh: O(n), rare."""
    largest = np.int64(NEVER)
    for k in range(where.size):
        largest = max(largest, np.int64(entries[k].e))
    if abs(largest) > FAR // 2:
        _subtract(entries, largest)
        largest = np.int64(0)
    begin_sort(index, largest)
    _sort(entries, where, index)
    finish_sort(entries, where, index, total)


@outline
def _subtract(entries, shift):
    """Divide all weights by 2^shift."""
    for k in range(entries.size):
        if entries[k].m > 0.0:
            entries[k].e = max(np.int64(entries[k].e) - shift, LOWEST)


@outline
def _sort(entries, where, index):
    """Counting sort of the entries by bucket, in place: follow each cycle of the permutation."""
    for k in range(where.size):
        index.start[max(entries[k].e - index.base, 0) + 1] += 1
    add_up(index)
    for k in range(where.size):  # for now, where[k] is the entry that the item of entry k must go to
        where[k] = next_entry(index, entries[k].e)
    step_back(index)
    for k in range(where.size):
        while where[k] != k:
            _swap(entries, where, k, np.int64(where[k]))


@outline
def begin_sort(index, largest):
    """Begin to sort: the largest exponent in the middle, no item counted."""
    index.base = largest - 2 * WINDOW
    index.top = 2 * WINDOW
    index.peak = 2 * WINDOW
    index.moves = 0
    for b in range(BUCKETS + 1):
        index.start[b] = 0


@outline
def add_up(index):
    """From the size of bucket b in place b + 1 to where buckets begin."""
    for b in range(BUCKETS):
        index.start[b + 1] += index.start[b]


@inline
def next_entry(index, e):
    """Where the next item of exponent e goes, while beginnings of buckets move to their ends."""
    b = max(e - index.base, 0)
    k = index.start[b]
    index.start[b] = k + 1
    return k


@outline
def step_back(index):
    """From the ends of buckets to their beginnings."""
    for b in range(BUCKETS, 0, -1):
        index.start[b] = index.start[b - 1]
    index.start[0] = 0


@outline
def finish_sort(entries, where, index, total):
    """Bring all that follows from the entries up to date."""
    sum_bounds(index)
    total[0] = 0.0
    total[1] = 0.0
    for k in range(where.size):
        where[entries[k].id] = k
        add_exactly(total, entries[k].m * power_of_two(entries[k].e - index.base))


@inline
def _swap(entries, where, k, target):
    m, e, item = entries[target].m, entries[target].e, entries[target].id
    entries[target].m = entries[k].m
    entries[target].e = entries[k].e
    entries[target].id = entries[k].id
    entries[k].m = m
    entries[k].e = e
    entries[k].id = item
    where[k], where[target] = where[target], where[k]
