"""Weights made afresh for all items from time to time, for rules whose p is not a product of single updates.

    p = max(ε, c v),  Σ p = 1:    the point of {p >= ε} that is closest to v, or has the least Σ v²/p

asks for a c that every single change of v moves. Here c stays, the weighted sampler holds max(ε, c v) and knows their
sum, so that draws and reported probabilities are exact; c is found again after n updates, or once the sum is off by a
quarter. That is O(n) work in n draws, and p >= 0.8 ε in between.
"""

from banditgrad._jit import float_bits, inline, outline
from banditgrad.samplers.buckets import exponent, mantissa, power_of_two, rebuild

FAR_OFF = 1.25


@inline
def total_of(weighted):
    """The sum of all weights, for weights that were put as floats."""
    return power_of_two(weighted.buckets[0].base) / weighted.unit_share()


@inline
def far_off(weighted):
    """Whether weights that summed to 1 do so no longer."""
    total = total_of(weighted)
    return total > FAR_OFF or total * FAR_OFF < 1.0


@outline
def truncation_scale(values, floor):
    """c with Σ max(floor, c v) = 1, for n · floor < 1. Newton's method from above, which ends at the solution."""
    total = 0.0
    for i in range(values.size):
        total += values[i]
    c = 1.0 / total
    while True:
        rest, above = 1.0, 0.0
        for i in range(values.size):
            if c * values[i] > floor:
                above += values[i]
            else:
                rest -= floor
        if not above > 0.0 or not rest / above < c * (1.0 - 1e-15):
            return c
        c = rest / above


@outline
def truncate(values, floor):
    """max(floor, c v), which sum to 1, in place of the v; returns c."""
    c = truncation_scale(values, floor)
    for i in range(values.size):
        values[i] = max(floor, c * values[i])
    return c


@outline
def read_weights(entries, out):
    """The weights of all items, which were put as floats."""
    for k in range(entries.size):
        out[entries[k].id] = entries[k].m * power_of_two(entries[k].e)


@outline
def refill(entries, where, index, total, weights):
    """Give every item its weight: positive and finite."""
    for i in range(where.size):
        bits = float_bits(weights[i])
        entries[i].m = mantissa(bits)
        entries[i].e = exponent(bits)
        entries[i].id = i
    rebuild(entries, where, index, total)


@inline
def fill_again(weighted, weights):
    refill(weighted.entries, weighted.where, weighted.buckets[0], weighted.total, weights)


def check_alpha(sampler: object, alpha: float) -> None:
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"{type(sampler).__name__} expects 0 < alpha < 1, got {alpha!r}.")
