"""Random numbers inside kernels: splitmix64, whose n-th number from now can be computed without the ones before it.

The state is a uint64 array of length one, seeded at the door from a `numpy.random.SeedSequence`: explicit, saved with
the sampler, and independent of NumPy's and numba's global generators.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline, multiply_high

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_ULP = 2.0**-53


def new_stream(seed: Any) -> NDArray[np.uint64]:
    """A generator's state from an int, None, a SeedSequence or a numpy Generator."""
    if isinstance(seed, np.random.Generator):
        return seed.integers(0, 2**64, size=1, dtype=np.uint64)
    if not isinstance(seed, np.random.SeedSequence):
        seed = np.random.SeedSequence(seed)
    return seed.generate_state(1, np.uint64)


@inline
def _mixed(x):
    x = (x ^ (x >> np.uint64(30))) * _MIX_1
    x = (x ^ (x >> np.uint64(27))) * _MIX_2
    return x ^ (x >> np.uint64(31))


@inline
def peek(stream, ahead):
    """The uint64 that will be `ahead` numbers after the next one."""
    return _mixed(stream[0] + np.uint64(ahead + 1) * _GOLDEN)


@inline
def skip(stream, count):
    """Forget the next `count` numbers."""
    stream[0] += np.uint64(count) * _GOLDEN


@inline
def unit(bits):
    """A uint64 as a float in [0, 1), with 53 bits."""
    return np.float64(bits >> np.uint64(11)) * _ULP


@inline
def below(bits, bound):
    """floor(bits / 2^64 * bound): uniform on 0..bound-1 unless `biased`."""
    return multiply_high(bits, bound)


@inline
def biased(bits, bound):
    """Whether Lemire's method must reject `bits`, so that `below` is exactly uniform."""
    low = bits * bound
    return low < bound and low < (np.uint64(0) - bound) % bound


@inline
def uniform_index(stream, n):
    """An index in 0..n-1, all equally likely."""
    bound = np.uint64(n)
    while True:
        bits = peek(stream, 0)
        skip(stream, 1)
        if not biased(bits, bound):
            return np.int64(below(bits, bound))


@inline
def index_from(bits, stream, n):
    """`bits` as an index in 0..n-1, all equally likely; the rare ones that must be rejected are drawn anew."""
    bound = np.uint64(n)
    return uniform_index(stream, n) if biased(bits, bound) else np.int64(below(bits, bound))


@inline
def shuffle(order, count, stream):
    """Put the first `count` entries in random order."""
    for k in range(count - 1, 0, -1):
        other = uniform_index(stream, k + 1)
        order[k], order[other] = order[other], order[k]


@inline
def fill_bits(stream, out, count):
    """The next `count` numbers into `out`: a loop of its own, for vector instructions."""
    start = stream[0]
    for k in range(count):
        out[k] = _mixed(start + np.uint64(k + 1) * _GOLDEN)
    skip(stream, count)


@inline
def fill_units(stream, out, count):
    """Likewise, as floats in [0, 1)."""
    start = stream[0]
    for k in range(count):
        out[k] = unit(_mixed(start + np.uint64(k + 1) * _GOLDEN))
    skip(stream, count)


@inline
def fill_below(bits, bound, real, count):
    """Numbers uniform on 0..bound-1 in place of bits; `real` becomes infinite where they must be rejected."""
    least = (np.uint64(0) - bound) % bound
    for k in range(count):
        low = bits[k] * bound
        bits[k] = below(bits[k], bound)
        if low < least:
            real[k] = np.inf
