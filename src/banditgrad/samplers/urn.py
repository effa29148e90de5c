"""Drawing from weights that change at every step, exactly and in expected O(1): the structure under the samplers.

A weight is m 2^e with m in [1, 2) and e an integer, so that nothing overflows and no pass over all items is ever
needed to rescale. The slots are a permutation of the items in which items of equal e, a *bucket*, lie together, in
ascending e. To draw: choose a bucket with probability ∝ count · 2^(e+1), an integer computation without rounding;
a uniform slot in it; accept with probability m/2; at most about two tries. To change a weight: store m, and when e
changes move the item over the buckets in between, one swap each.

Only the 32 buckets below the highest are told apart when drawing. What lies below is *dust*: it is proposed as one
bucket with a bound of its own and accepted with its own, tiny probability, so it stays exact and can grow back.

16 bytes per item for a slot, 4 for the map from item to slot. Helpers take single arrays rather than the urn: a tuple
of arrays is dear to compile.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import bits_float, bridge, float_bits, inline, kernel, outline, prefetch
from banditgrad._random import below, biased, peek, skip, unit

SLOT = np.dtype([("m", "f8"), ("e", "i4"), ("id", "i4")])
BUCKETS = 256
WINDOW = 32  # with fewer than 2^31 items the sum of bounds fits 63 bits
NEVER = -(2**30)  # the exponent of a weight of zero
MAX_ITEMS = 2**31 - 1

# The layout of `book`.
BASE, TOP = 0, 1  # exponent of bucket 0; highest bucket in use
LAST, BEFORE = 2, 3  # the slots of the item last drawn and of the one before it, which solvers tell of a draw later
PEAK, MOVES = 4, 5  # the highest bucket and the number of moves since the last sort
ENDS = 6  # sums of proposal bounds over the highest 1, 2, .. 32 buckets and over all, in units of 2^(BASE + TOP - 31)
START = ENDS + WINDOW + 1  # bucket b is slots[start[b]:start[b + 1]]
BOOK_SIZE = START + BUCKETS + 1

# Random numbers come in tickets of three (coin, place, acceptance), so that it is known which ones a later draw uses.
TICKET = 3
AHEAD = 16 * TICKET
PREFETCH_FROM = 1 << 12  # with fewer items the slots are in the processor's cache anyway


@bridge
class Urn(NamedTuple):
    """n items with weights; made by `empty_urn` and filled. Items are numbered 0..n-1 and never leave."""

    slots: NDArray[np.void]  # SLOT records, a permutation of the items
    where: NDArray[np.int32]  # item -> its slot
    book: NDArray[np.int64]
    total: NDArray[np.float64]  # the sum of the weights in units of 2^BASE, and what rounding left out of it

    def pick(self, stream, mixing):
        """Draw an item: uniformly with probability `mixing`, else in proportion to the weights."""
        n = np.int64(self.where.size)
        uniform = unit(peek(stream, 0)) < mixing
        while True:
            if n >= PREFETCH_FROM:
                prefetch(self.slots, _guess(self.book, stream, mixing, n))
            bits, accept = peek(stream, 1), unit(peek(stream, 2))
            skip(stream, TICKET)
            bound = n if uniform else self.book[ENDS + WINDOW]
            if biased(bits, np.uint64(bound)):
                continue
            r = np.int64(below(bits, np.uint64(bound)))
            k, bound_exponent = _place(self.book, r)
            k = r if uniform else k  # selected, not branched on: nobody can foretell the coin
            chance = self.slots[k].m * power_of_two(self.slots[k].e - bound_exponent)
            if accept < (1.0 if uniform else chance):
                break
        self.book[BEFORE] = self.book[LAST]
        self.book[LAST] = k
        return np.int64(self.slots[k].id)

    def find(self, i):
        """The slot of item i; for the two last drawn without a look at the map, which would have to be fetched."""
        k = self.book[LAST]
        if self.slots[k].id != i:
            k = self.book[BEFORE]
            if self.slots[k].id != i:
                k = np.int64(self.where[i])
        return k

    def share(self, i):
        """The weight of item i over the sum of all weights."""
        k = self.find(i)
        w = self.slots[k].m * power_of_two(self.slots[k].e - self.book[BASE])
        return w / (self.total[0] + self.total[1])

    def multiply(self, i, factor):
        """Multiply the weight of item i by a positive factor."""
        k = self.find(i)
        bits = float_bits(self.slots[k].m * factor)
        self.store(k, mantissa(bits), np.int64(self.slots[k].e) + exponent(bits))

    def weight(self, i):
        """The weight of item i as a float; meant for weights that were put as floats."""
        k = self.find(i)
        return self.slots[k].m * power_of_two(self.slots[k].e)

    def put(self, i, weight):
        """Set the weight of item i; what is not a positive, finite number is ignored."""
        if weight > 1e-300 and weight < 1e300:
            bits = float_bits(weight)
            self.store(self.find(i), mantissa(bits), exponent(bits))

    def store(self, k, m, e):
        """Give the item in slot k the weight m 2^e."""
        slots, where, book = self.slots, self.where, self.book
        old_m, old_e, item = slots[k].m, np.int64(slots[k].e), slots[k].id
        if e - book[BASE] >= BUCKETS:
            _slide_up(book, self.total, where.size, e - book[BASE] - BUCKETS // 2)
        base = book[BASE]
        _add(self.total, m * power_of_two(e - base))
        _add(self.total, -old_m * power_of_two(old_e - base))
        slots[k].m = m
        if e == old_e:
            return
        old, new = max(old_e - base, 0), max(e - base, 0)
        k = _move(slots, where, book, k, old, new)
        slots[k].m = m
        slots[k].e = e
        slots[k].id = item
        where[item] = k
        book[LAST] = k
        if _after_move(book, old, new, where.size):
            _rebuild(slots, where, book, self.total)

    def faults(self, arrays: dict[str, NDArray[Any]]) -> list[str]:
        """What is wrong with arrays to be loaded: compiled code trusts what the urn holds."""
        slots, where, book, total = (arrays[name] for name in ("slots", "where", "book", "total"))
        n, m, e = where.size, slots["m"], slots["e"].astype(np.int64)
        start, top = book[START:], book[TOP]
        if not (where.min() >= 0 and where.max() < n and (slots["id"][where] == np.arange(n)).all()):
            return ["the map of its urn does not fit the slots"]
        weights = ((m >= 1.0) & (m < 2.0)) | ((m == 0.0) & (e == NEVER))
        bucket = np.searchsorted(start, np.arange(n), side="right") - 1
        sound = (
            weights.all()
            and m.max() > 0.0
            and start[0] == 0
            and start[-1] == n
            and (start[1:] >= start[:-1]).all()
            and (bucket == np.maximum(e - book[BASE], 0)).all()
            and 0 <= book[LAST] < n
            and 0 <= book[BEFORE] < n
            and top == bucket[-1] <= book[PEAK] < BUCKETS
        )
        if not sound:
            return ["the slots of its urn do not fit together"]
        copy = book.copy()
        _sum_bounds(copy)
        exact = float(np.sum(np.ldexp(m, np.maximum(e - book[BASE], -1000))))
        sums = (copy == book).all() and abs(total.sum() - exact) <= 1e-6 * exact
        return [] if sums else ["the sums of its urn do not fit the slots"]


def empty_urn(n: int) -> Urn:
    """An urn of n items, to be filled."""
    return Urn(np.zeros(n, SLOT), np.zeros(n, np.int32), np.zeros(BOOK_SIZE, np.int64), np.zeros(2))


def fill(urn: Urn, weights: NDArray[np.float64]) -> None:
    """Give every item its weight: finite, not negative, not all zero. An item of weight zero is never drawn."""
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    if weights.shape != urn.where.shape:
        raise ValueError(f"The urn has {urn.where.size} items, got weights of shape {weights.shape}.")
    if not (np.isfinite(weights).all() and weights.min() >= 0.0 and weights.max() > 0.0):
        raise ValueError("The weights of an urn must be finite, not negative and not all zero.")
    _fill(urn, weights)


@kernel
def _fill(urn, weights):
    """The same slots as by `_rebuild`, each written once."""
    slots, where, book = urn.slots, urn.where, urn.book
    largest = np.int64(NEVER)
    for i in range(weights.size):
        largest = max(largest, _exponent_of(weights[i]))
    _open(book, largest)
    for i in range(weights.size):
        book[START + max(_exponent_of(weights[i]) - book[BASE], 0) + 1] += 1
    _add_up(book)
    for i in range(weights.size):
        e = _exponent_of(weights[i])
        k = _next_slot(book, e)
        slots[k].m = mantissa(float_bits(weights[i])) if weights[i] > 0.0 else 0.0
        slots[k].e = e
        slots[k].id = i
    _step_back(book)
    _close(slots, where, book, urn.total)


@inline
def _exponent_of(weight):
    return exponent(float_bits(weight)) if weight > 0.0 else np.int64(NEVER)


@kernel
def fill_equal(urn):
    """Give all items the same weight."""
    equalise(urn.slots, urn.where, urn.book, urn.total)


@outline
def equalise(slots, where, book, total):
    for i in range(where.size):
        slots[i].m = 1.75  # accepted 7 times in 8, with room to grow
        slots[i].e = 0
        slots[i].id = i
    _rebuild(slots, where, book, total)


@inline
def power_of_two(k):
    """2^k; zero below the range of normal numbers."""
    return bits_float((np.int64(k) + 1023) << 52) if k > -1023 else 0.0


@inline
def mantissa(bits):
    return bits_float((bits & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000)


@inline
def exponent(bits):
    return np.int64((bits >> 52) - 1023)


@inline
def _place(book, r):
    """The slot that r, uniform below the sum of bounds, falls on, and the exponent of the bound of its bucket."""
    above = 0
    while above < WINDOW and r >= book[ENDS + above]:
        above += 1
    if above > 0:
        r -= book[ENDS + above - 1]
    shift = WINDOW - above
    first = book[START + max(book[TOP] - above, 0)] if shift > 0 else 0
    return first + (r >> shift), book[BASE] + book[TOP] + 1 - above


@inline
def _guess(book, stream, mixing, n):
    """The slot that a later draw will most likely look at. Only a hint: that draw will use the state of its time."""
    bits = peek(stream, AHEAD + 1)
    if unit(peek(stream, AHEAD)) < mixing:
        return np.int64(below(bits, np.uint64(n)))
    k, _ = _place(book, np.int64(below(bits, np.uint64(book[ENDS + WINDOW]))))
    return k


@inline
def _add(total, x):
    """total += x; what rounding leaves out of the first number is added up in the second (Knuth's two-sum)."""
    old = total[0]
    new = old + x
    part = new - old
    total[0] = new
    total[1] += (old - (new - part)) + (x - part)


@inline
def _move(slots, where, book, k, old, new):
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
def _after_move(book, old, new, n):
    """Bring the highest bucket and the bounds up to date; True where the slots must be sorted afresh."""
    top = book[TOP]
    book[MOVES] += 1
    if new > top or (old == top and book[START + top] == book[START + top + 1]):
        top = max(new, top)
        while book[START + top] == book[START + top + 1]:
            top -= 1
        book[TOP] = top
        book[PEAK] = max(top, book[PEAK])
        # Sort afresh when merged buckets come into the window or rounding of the sum begins to show: at the latest
        # before it matters, but not again and again for one item that goes up and down.
        fall = book[PEAK] - top
        if top < WINDOW or fall > 48 or (fall > WINDOW and book[MOVES] > n // 16):
            return True
    _sum_bounds(book)
    return False


@inline
def _sum_bounds(book):
    """Add up the proposal bounds from the highest bucket down."""
    top = book[TOP]
    end = np.int64(0)
    for j in range(WINDOW):
        if j <= top:
            end += (book[START + top - j + 1] - book[START + top - j]) << (WINDOW - j)
        book[ENDS + j] = end
    book[ENDS + WINDOW] = end + book[START + max(top - WINDOW + 1, 0)]


@outline
def _slide_up(book, total, n, shift):
    """Make room above: the lowest `shift` buckets become one with the bucket above them."""
    for b in range(1, BUCKETS + 1):
        book[START + b] = book[START + b + shift] if b + shift <= BUCKETS else n
    book[BASE] += shift
    book[TOP] = max(book[TOP] - shift, 0)
    book[PEAK] = max(book[PEAK] - shift, 0)
    total[0] *= power_of_two(-shift)
    total[1] *= power_of_two(-shift)


@outline
def _rebuild(slots, where, book, total):
    """Sort the slots into buckets around the largest exponent and add up everything afresh: O(n), rare."""
    largest = np.int64(NEVER)
    for k in range(where.size):
        largest = max(largest, np.int64(slots[k].e))
    _open(book, largest)
    _sort(slots, where, book)
    _close(slots, where, book, total)


@outline
def _sort(slots, where, book):
    """Counting sort of the slots by bucket, in place: follow each cycle of the permutation."""
    for k in range(where.size):
        book[START + max(slots[k].e - book[BASE], 0) + 1] += 1
    _add_up(book)
    for k in range(where.size):  # for now, where[k] is the slot that the item of slot k must go to
        where[k] = _next_slot(book, slots[k].e)
    _step_back(book)
    for k in range(where.size):
        while where[k] != k:
            _swap(slots, where, k, np.int64(where[k]))


@outline
def _open(book, largest):
    """Begin to sort: the largest exponent in the middle, no item counted."""
    book[BASE] = largest - 2 * WINDOW
    book[TOP] = 2 * WINDOW
    book[PEAK] = 2 * WINDOW
    book[MOVES] = 0
    book[LAST] = 0
    book[BEFORE] = 0
    for b in range(BUCKETS + 1):
        book[START + b] = 0


@outline
def _add_up(book):
    """From the size of bucket b in place b + 1 to where buckets begin."""
    for b in range(BUCKETS):
        book[START + b + 1] += book[START + b]


@inline
def _next_slot(book, e):
    """Where the next item of exponent e goes, while beginnings of buckets move to their ends."""
    b = START + max(e - book[BASE], 0)
    k = book[b]
    book[b] = k + 1
    return k


@outline
def _step_back(book):
    """From the ends of buckets to their beginnings."""
    for b in range(BUCKETS, 0, -1):
        book[START + b] = book[START + b - 1]
    book[START] = 0


@outline
def _close(slots, where, book, total):
    """Bring all that follows from the slots up to date."""
    _sum_bounds(book)
    total[0] = 0.0
    total[1] = 0.0
    for k in range(where.size):
        where[slots[k].id] = k
        _add(total, slots[k].m * power_of_two(slots[k].e - book[BASE]))


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
