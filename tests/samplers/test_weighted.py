"""The draw structure: exact draws, exact shares, whatever the weights do."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import banditgrad as bg
from banditgrad._random import new_stream, peek, skip, unit
from banditgrad.samplers.weighted import WeightedSampler, fill, fill_equal, new_weighted_sampler


@bg.kernel
def pick_one_by_one(weighted, stream, mixing, counts, draws):
    for _ in range(draws):
        counts[weighted.pick(stream, mixing)] += 1


@bg.kernel
def shares(weighted, out):
    for i in range(out.size):
        out[i] = weighted.share(i)


@bg.kernel
def put_one_by_one(weighted, items, weights):
    for k in range(items.size):
        weighted.put(items[k], weights[k])


@bg.kernel
def multiply_one_by_one(weighted, items, factors):
    for k in range(items.size):
        weighted.multiply(items[k], factors[k])


@bg.kernel
def moving_draws(weighted, stream, eta, strength, excess, variance, steps):
    """Draw while weights move: Σ_t (1[i_t = j] - p_j^t) is a martingale for each of a few items j."""
    n = weighted.where.size
    for _ in range(steps):
        i = weighted.pick(stream, eta)
        for j in range(excess.size):
            p = (1.0 - eta) * weighted.share(j) + eta / n
            excess[j] += (1.0 if i == j else 0.0) - p
            variance[j] += p * (1.0 - p)
        x = unit(peek(stream, 0))
        skip(stream, 3)
        weighted.multiply(i, math.exp(strength * x * x))
        if x < 0.05:  # now and then a weight falls far
            weighted.multiply(i, math.exp(-20.0 * strength * x))


def filled(weights):
    weighted = new_weighted_sampler(len(weights))
    fill(weighted, np.asarray(weights, dtype=float))
    return weighted


def all_shares(weighted):
    out = np.empty(weighted.where.size)
    shares(weighted, out)
    return out


def check_order(weighted):
    """Items lie in the bucket of their exponent, and the map knows where."""
    arrays = {name: getattr(weighted, name) for name in WeightedSampler._fields}
    assert weighted.faults(arrays) == []
    start = weighted.buckets["start"][0]
    bucket = np.searchsorted(start, np.arange(weighted.where.size), side="right") - 1
    np.testing.assert_array_equal(bucket, np.maximum(weighted.entries["e"] - weighted.buckets["base"][0], 0))
    assert start[weighted.buckets["top"][0]] < weighted.where.size == start[weighted.buckets["top"][0] + 1]


def chi_square_passes(counts, p, level=1e-6):
    """Whether counts could be draws from p: cells are pooled, smallest p first, to an expectation of about 50."""
    used = np.argsort(p)[np.count_nonzero(p == 0.0) :]
    expected = counts.sum() * p[used]
    _, cell = np.unique(np.cumsum(expected) // 50, return_inverse=True)
    observed, expected = np.bincount(cell, counts[used]), np.bincount(cell, expected)
    statistic = np.sum((observed - expected) ** 2 / expected)
    return counts[p == 0.0].sum() == 0 and statistic < chi2.isf(level, max(len(observed) - 1, 1))


EXTREMES = {
    "equal": np.ones(1000),
    "log-normal": np.exp(2.0 * np.random.default_rng(0).standard_normal(1000)),
    "120 octaves": 2.0 ** np.linspace(-80, 40, 1000),
    "extremes": np.r_[1e200, np.ones(500), np.full(499, 1e-250)],
    "zeros": np.r_[np.zeros(300), np.arange(700)],
    "one item": np.array([3.0]),
}


@pytest.mark.parametrize("mixing", [0.0, 0.4])
@pytest.mark.parametrize("name", EXTREMES)
def test_a_million_draws_follow_the_weights(name, mixing):
    weights = EXTREMES[name]
    weighted, stream = filled(weights), new_stream(5)
    check_order(weighted)
    p = (1.0 - mixing) * weights / weights.sum() + mixing / len(weights)
    counts = np.zeros(len(weights), np.int64)
    pick_one_by_one(weighted, stream, mixing, counts, 1_000_000)
    assert chi_square_passes(counts, p)
    np.testing.assert_allclose(all_shares(weighted), weights / weights.sum(), rtol=1e-14)


def test_a_wrong_distribution_is_noticed():
    weights = np.exp(np.random.default_rng(0).standard_normal(1000))
    counts = np.zeros(1000, np.int64)
    pick_one_by_one(filled(weights), new_stream(5), 0.0, counts, 1_000_000)
    wrong = weights * np.where(np.arange(1000) % 2, 1.02, 0.98)
    assert not chi_square_passes(counts, wrong / wrong.sum())


@pytest.mark.parametrize("n", [1000, 200_000])
@pytest.mark.parametrize("strength", [0.05, 1.0, 40.0])
def test_draws_are_exact_while_weights_move(n, strength):
    weighted = new_weighted_sampler(n)
    fill_equal(weighted)
    excess, variance = np.zeros(8), np.zeros(8)
    moving_draws(weighted, new_stream(3), 0.3, strength, excess, variance, 300_000)
    assert (np.abs(excess) < 5.5 * np.sqrt(variance) + 1.0).all()
    check_order(weighted)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_any_sequence_of_weights_is_kept(data):
    """Whatever is put, shares are right and every invariant holds."""
    n = data.draw(st.integers(1, 20))
    exponents = st.floats(-280, 280)
    weighted = filled([10.0 ** data.draw(exponents) for _ in range(n)])
    weights = weighted.entries["m"][weighted.where] * 2.0 ** weighted.entries["e"][weighted.where]
    for _ in range(data.draw(st.integers(1, 30))):
        i, w = data.draw(st.integers(0, n - 1)), 10.0 ** data.draw(exponents)
        put_one_by_one(weighted, np.array([i]), np.array([w]))
        weights[i] = w
        check_order(weighted)
        np.testing.assert_allclose(all_shares(weighted), weights / weights.sum(), rtol=1e-12, atol=1e-30)


def test_what_is_not_a_weight_is_ignored():
    weighted = filled([1.0, 2.0, 3.0])
    put_one_by_one(weighted, np.array([0, 1, 2, 0]), np.array([np.nan, np.inf, 0.0, -1.0]))
    np.testing.assert_allclose(all_shares(weighted), np.array([1, 2, 3]) / 6)


def test_log_weights_of_a_hundred_thousand():
    """Two items grow side by side, far beyond what a float holds; the rest stays behind in the underflow bucket."""
    weighted = new_weighted_sampler(50)
    fill_equal(weighted)
    items = np.tile([3, 7], 100_000)
    multiply_one_by_one(weighted, items, np.full(items.size, math.e))
    multiply_one_by_one(weighted, np.array([7]), np.array([3.0]))
    p = all_shares(weighted)
    np.testing.assert_allclose(p[[3, 7]], [0.25, 0.75], rtol=1e-9)
    assert p.sum() == pytest.approx(1.0, abs=1e-15)
    check_order(weighted)
    counts = np.zeros(50, np.int64)
    pick_one_by_one(weighted, new_stream(0), 0.4, counts, 200_000)
    assert chi_square_passes(counts, 0.6 * p + 0.4 / 50)


@pytest.mark.parametrize(("exponent", "factor"), [(2**31 - 300, math.e), (-(2**29), 1.0 / math.e)])
def test_exponents_do_not_run_out_of_bits(exponent, factor):
    """As after more than a thousand million updates of the same few items."""
    weighted = filled([1.0, 2.0, 4.0, 0.0, 3.0])
    positive = weighted.entries["m"] > 0.0
    weighted.entries["e"][positive] += exponent
    weighted.buckets["base"][0] += exponent
    items = np.tile([0, 1, 2, 4], 500)
    multiply_one_by_one(weighted, items, np.full(items.size, factor))
    np.testing.assert_allclose(all_shares(weighted), [0.1, 0.2, 0.4, 0.0, 0.3], rtol=1e-12)
    check_order(weighted)
    assert abs(weighted.buckets["base"][0]) < 2000
    assert weighted.buckets["moves"][0] > 10  # subtracting once was enough


def test_a_weight_that_keeps_falling_stays_positive():
    weighted = filled([1.0, 1.0])
    multiply_one_by_one(weighted, np.array([0]), np.array([1e-300]))
    weighted.entries["e"][weighted.where[0]] = -(2**31) + 400
    multiply_one_by_one(weighted, np.zeros(2, np.int64), np.full(2, 1e-100))
    assert all_shares(weighted).tolist() == [0.0, 1.0]
    check_order(weighted)


def weights_and_total(weighted):
    weights = weighted.entries["m"] * np.exp2(
        np.maximum(weighted.entries["e"] - weighted.buckets["base"][0], -1000).astype(float)
    )
    return math.fsum(weights), weighted.total.sum()


def test_sums_do_not_drift(rng):
    weighted = new_weighted_sampler(2000)
    fill_equal(weighted)
    for _ in range(20):
        items = rng.integers(0, 2000, 500_000)
        multiply_one_by_one(weighted, items, np.exp(rng.normal(0.0, 0.3, items.size)))
    exact, kept = weights_and_total(weighted)
    assert kept == pytest.approx(exact, rel=1e-14)
    check_order(weighted)


@pytest.mark.slow
def test_a_thousand_million_updates(rng):
    weighted = new_weighted_sampler(50_000)
    fill_equal(weighted)
    items = rng.integers(0, 50_000, 10_000_000)
    factors = np.exp(0.01 * rng.random(items.size))
    for _ in range(100):
        multiply_one_by_one(weighted, items, factors)
    exact, kept = weights_and_total(weighted)
    assert kept == pytest.approx(exact, rel=1e-14)
    check_order(weighted)


def test_at_most_24_bytes_per_item():
    n = 100_000
    assert sum(array.nbytes for array in new_weighted_sampler(n)) <= 20 * n + 8192


def test_shares_are_right_after_everything_fell():
    weighted = filled(2.0 ** np.arange(0.0, -100.0, -1.0))
    put_one_by_one(weighted, np.arange(99), np.full(99, 2.0**-200))  # the entries are sorted afresh
    check_order(weighted)
    assert all_shares(weighted)[99] == pytest.approx(1.0)


def test_one_item_that_goes_up_and_down_does_not_sort_again_and_again():
    weighted = filled(np.ones(1000))
    put_one_by_one(weighted, np.tile([5, 5], 25), np.tile([2.0**40, 1.0], 25))
    assert weighted.buckets["moves"][0] > 40  # counted since the last sort
    np.testing.assert_allclose(all_shares(weighted), 1e-3, rtol=1e-12)


def test_an_urn_is_filled_with_weights_only():
    weighted = new_weighted_sampler(3)
    for bad in ([1.0, 2.0], [0.0, 0.0, 0.0], [1.0, np.nan, 1.0], [1.0, -1.0, 1.0]):
        with pytest.raises(ValueError, match="weighted sampler"):
            fill(weighted, np.array(bad))
