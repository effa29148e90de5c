"""The book of a weighted sampler: where buckets of entries begin, what their proposal bounds add up to, how items move.

A weight is m 2^e with m in [1, 2). Entries of equal e, a *bucket*, lie together, in ascending e. Bucket b holds the
exponent BASE + b; bucket 0 also holds all that is lighter, with exponents of its own. When the highest bucket leaves
the book, the base slides up and low buckets become one; when it falls, the entries are sorted afresh. Exponents are
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

# The layout of `book`.
BASE, TOP = 0, 1  # exponent of bucket 0; highest bucket in use
PEAK, MOVES = 2, 3  # the highest bucket and the number of moves since the last sort
STALE = 4  # whether the sums are out of date
ENDS = 5  # sums of proposal bounds over the highest 1, 2, .. 32 buckets and over all, in units of 2^(BASE + TOP - 31)
OFFSETS = ENDS + WINDOW + 1  # what leads from a number below the sum of bounds to an entry, by depth below the top
START = OFFSETS + WINDOW + 1  # bucket b is entries[start[b]:start[b + 1]]
BOOK_SIZE = START + BUCKETS + 1


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
def depth_of(book, r):
    """How far below the top the bucket is that r, uniform below the sum of bounds, falls on.

    By bisection without branches: nobody can foretell the bucket.
    """
    depth = np.int64(r >= book[ENDS + 15]) << 4
    depth += np.int64(r >= book[ENDS + depth + 7]) << 3
    depth += np.int64(r >= book[ENDS + depth + 3]) << 2
    depth += np.int64(r >= book[ENDS + depth + 1]) << 1
    depth += np.int64(r >= book[ENDS + depth])
    return depth + np.int64(r >= book[ENDS + depth])


@inline
def fill_depths(book, r, depths, count):
    """Likewise for many r. By counting, which vector instructions do faster than bisection, eight buckets at a time."""
    for t in range(count):
        depths[t] = 0
    for first in range(0, WINDOW, 8):
        if book[ENDS + first] == book[ENDS + WINDOW]:
            break  # the buckets below are empty
        for t in range(count):
            more = 0
            for b in range(first, first + 8):
                more += np.int64(r[t]) >= book[ENDS + b]
            depths[t] += np.uint64(more)


@inline
def entry_of(book, r, depth):
    """The entry that r falls on in the bucket at this depth."""
    return (r >> (WINDOW - depth)) + book[np.uint64(OFFSETS + depth)]


@inline
def freshen(book):
    """Bring the sums of bounds up to date."""
    if book[STALE] != 0:
        sum_bounds(book)


@outline
def sum_bounds(book):
    """Add up the proposal bounds from the highest bucket down: count · 2^(e+1) each, and one unit for what is lower."""
    top = book[TOP]
    end = np.int64(0)
    for depth in range(WINDOW):
        first, after = book[START + max(top - depth, 0)], book[START + max(top - depth + 1, 0)]
        book[OFFSETS + depth] = first - (end >> (WINDOW - depth))
        end += (after - first) << (WINDOW - depth)
        book[ENDS + depth] = end
    book[OFFSETS + WINDOW] = -end
    book[ENDS + WINDOW] = end + book[START + max(top - WINDOW + 1, 0)]
    book[STALE] = 0


@inline
def add_exactly(total, x):
    """total += x; what rounding leaves out of the first number is added up in the second (Knuth's two-sum)."""
    old = total[0]
    new = old + x
    part = new - old
    total[0] = new
    total[1] += (old - (new - part)) + (x - part)


@inline
def move(entries, where, book, k, old, new):
    """Make a hole for the item of entry k in bucket `new`, and return the hole."""
    for b in range(old, new):  # upwards: the last item of each bucket fills the hole
        last = book[START + b + 1] - 1
        if last != k:  # the bucket holds more than the hole
            _copy(entries, where, last, k)
        book[START + b + 1] = last
        k = last
    for b in range(old, new, -1):  # downwards: the first item
        first = book[START + b]
        if first != k:
            _copy(entries, where, first, k)
        book[START + b] = first + 1
        k = first
    return k


@inline
def _copy(entries, where, source, target):
    entries[target].m = entries[source].m
    entries[target].e = entries[source].e
    entries[target].id = entries[source].id
    where[entries[source].id] = target


@inline
def after_move(book, old, new, n):
    """Bring the highest bucket up to date; True where the entries must be sorted afresh."""
    top = book[TOP]
    book[MOVES] += 1
    book[STALE] = 1
    if new > top or (old == top and book[START + top] == book[START + top + 1]):
        top = max(new, top)
        while book[START + top] == book[START + top + 1]:
            top -= 1
        book[TOP] = top
        book[PEAK] = max(top, book[PEAK])
        # Sort afresh when merged buckets come into the window or rounding of the sum begins to show: at the latest
        # before it matters, but not again and again for one item that goes up and down.
        fall = book[PEAK] - top
        return top < WINDOW or fall > 48 or (fall > WINDOW and book[MOVES] > n // 16) or abs(book[BASE]) > FAR
    return False


@outline
def slide_up(book, total, n, shift):
    """Make room above: the lowest `shift` buckets become one with the bucket above them."""
    for b in range(1, BUCKETS + 1):
        book[START + b] = book[START + b + shift] if b + shift <= BUCKETS else n
    book[BASE] += shift
    book[TOP] = max(book[TOP] - shift, 0)
    book[PEAK] = max(book[PEAK] - shift, 0)
    book[STALE] = 1
    total[0] *= power_of_two(-shift)
    total[1] *= power_of_two(-shift)


@outline
def rebuild(entries, where, book, total):
    """Sort the entries into buckets around the largest exponent and add up everything afresh: O(n), rare."""
    largest = np.int64(NEVER)
    for k in range(where.size):
        largest = max(largest, np.int64(entries[k].e))
    if abs(largest) > FAR // 2:
        _subtract(entries, largest)
        largest = np.int64(0)
    open_book(book, largest)
    _sort(entries, where, book)
    close_book(entries, where, book, total)


@outline
def _subtract(entries, shift):
    """Divide all weights by 2^shift."""
    for k in range(entries.size):
        if entries[k].m > 0.0:
            entries[k].e = max(np.int64(entries[k].e) - shift, LOWEST)


@outline
def _sort(entries, where, book):
    """Counting sort of the entries by bucket, in place: follow each cycle of the permutation."""
    for k in range(where.size):
        book[START + max(entries[k].e - book[BASE], 0) + 1] += 1
    add_up(book)
    for k in range(where.size):  # for now, where[k] is the entry that the item of entry k must go to
        where[k] = next_entry(book, entries[k].e)
    step_back(book)
    for k in range(where.size):
        while where[k] != k:
            _swap(entries, where, k, np.int64(where[k]))


@outline
def open_book(book, largest):
    """Begin to sort: the largest exponent in the middle, no item counted."""
    book[BASE] = largest - 2 * WINDOW
    book[TOP] = 2 * WINDOW
    book[PEAK] = 2 * WINDOW
    book[MOVES] = 0
    for b in range(BUCKETS + 1):
        book[START + b] = 0


@outline
def add_up(book):
    """From the size of bucket b in place b + 1 to where buckets begin."""
    for b in range(BUCKETS):
        book[START + b + 1] += book[START + b]


@inline
def next_entry(book, e):
    """Where the next item of exponent e goes, while beginnings of buckets move to their ends."""
    b = START + max(e - book[BASE], 0)
    k = book[b]
    book[b] = k + 1
    return k


@outline
def step_back(book):
    """From the ends of buckets to their beginnings."""
    for b in range(BUCKETS, 0, -1):
        book[START + b] = book[START + b - 1]
    book[START] = 0


@outline
def close_book(entries, where, book, total):
    """Bring all that follows from the entries up to date."""
    sum_bounds(book)
    total[0] = 0.0
    total[1] = 0.0
    for k in range(where.size):
        where[entries[k].id] = k
        add_exactly(total, entries[k].m * power_of_two(entries[k].e - book[BASE]))


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
