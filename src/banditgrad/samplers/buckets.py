"""The book of a weighted sampler: where buckets of slots begin, what their proposal bounds add up to, how items move.

A weight is m 2^e with m in [1, 2). Slots of equal e, a *bucket*, lie together, in ascending e. Bucket b holds the
exponent BASE + b; bucket 0 also holds all that is lighter, with exponents of its own. When the highest bucket leaves
the book, the base slides up and low buckets become one; when it falls, the slots are sorted afresh. Exponents are held
in 32 bits: when the base is FAR from zero, the next sort subtracts the largest from all of them.

Sums of bounds are brought up to date when they are next needed: many moves may come before that. Helpers take single
arrays rather than the weighted: a tuple of arrays is dear to compile.
"""

import numpy as np

from banditgrad._jit import bits_float, inline, outline

SLOT = np.dtype([("m", "f8"), ("e", "i4"), ("id", "i4")])
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
OFFSETS = ENDS + WINDOW + 1  # what leads from a number below the sum of bounds to a slot, by depth below the top
START = OFFSETS + WINDOW + 1  # bucket b is slots[start[b]:start[b + 1]]
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
def slot_of(book, r, depth):
    """The slot that r falls on in the bucket at this depth."""
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
def move(slots, where, book, k, old, new):
    """Make a hole for the item of slot k in bucket `new`, and return the hole."""
    for b in range(old, new):  # upwards: the last item of each bucket fills the hole
        last = book[START + b + 1] - 1
        if last != k:  # the bucket holds more than the hole
            _copy(slots, where, last, k)
        book[START + b + 1] = last
        k = last
    for b in range(old, new, -1):  # downwards: the first item
        first = book[START + b]
        if first != k:
            _copy(slots, where, first, k)
        book[START + b] = first + 1
        k = first
    return k


@inline
def _copy(slots, where, source, target):
    slots[target].m = slots[source].m
    slots[target].e = slots[source].e
    slots[target].id = slots[source].id
    where[slots[source].id] = target


@inline
def after_move(book, old, new, n):
    """Bring the highest bucket up to date; True where the slots must be sorted afresh."""
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
def rebuild(slots, where, book, total):
    """Sort the slots into buckets around the largest exponent and add up everything afresh: O(n), rare."""
    largest = np.int64(NEVER)
    for k in range(where.size):
        largest = max(largest, np.int64(slots[k].e))
    if abs(largest) > FAR // 2:
        _subtract(slots, largest)
        largest = np.int64(0)
    open_book(book, largest)
    _sort(slots, where, book)
    close_book(slots, where, book, total)


@outline
def _subtract(slots, shift):
    """Divide all weights by 2^shift."""
    for k in range(slots.size):
        if slots[k].m > 0.0:
            slots[k].e = max(np.int64(slots[k].e) - shift, LOWEST)


@outline
def _sort(slots, where, book):
    """Counting sort of the slots by bucket, in place: follow each cycle of the permutation."""
    for k in range(where.size):
        book[START + max(slots[k].e - book[BASE], 0) + 1] += 1
    add_up(book)
    for k in range(where.size):  # for now, where[k] is the slot that the item of slot k must go to
        where[k] = next_slot(book, slots[k].e)
    step_back(book)
    for k in range(where.size):
        while where[k] != k:
            _swap(slots, where, k, np.int64(where[k]))


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
def next_slot(book, e):
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
def close_book(slots, where, book, total):
    """Bring all that follows from the slots up to date."""
    sum_bounds(book)
    total[0] = 0.0
    total[1] = 0.0
    for k in range(where.size):
        where[slots[k].id] = k
        add_exactly(total, slots[k].m * power_of_two(slots[k].e - book[BASE]))


@inline
def _swap(slots, where, k, target):
    m, e, item = slots[target].m, slots[target].e, slots[target].id
    slots[target].m = slots[k].m
    slots[target].e = slots[k].e
    slots[target].id = slots[k].id
    slots[k].m = m
    slots[k].e = e
    slots[k].id = item
    where[k], where[target] = where[target], where[k]
