"""Blocks: drawn together and learnt from together, they are what single draws and updates are."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import banditgrad as bg
from banditgrad._random import fill_below, new_stream, uniform_index
from banditgrad.samplers.blocks import NONE, gather_feedback, new_block
from banditgrad.samplers.buckets import BUCKET_INDEX, WINDOW, depth_of, fill_depths
from banditgrad.samplers.mabs import _exp
from banditgrad.samplers.weighted import fill_equal, new_weighted_sampler
from samplers.test_samplers import N, feedback, started  # noqa: F401
from samplers.test_weighted import EXTREMES, check_order, chi_square_passes, filled, weights_and_total
from tables import SAMPLERS


@bg.kernel
def single_steps(state, i, p, steps):
    for k in range(steps):
        i[k] = state.draw()
        p[k] = state.probability(i[k])


RESETTING = bg.Mabs(delta="bound", reset_every=700)  # which is in the middle of a block
BY_BLOCKS = (
    "Auto",
    "Mabs",
    "Mabs(mix=smoothness)",
    "Mabs(reset_every)",
)  # switches between blocks only; learn mean(a²)


@pytest.mark.parametrize("name", [*(name for name in SAMPLERS if name not in BY_BLOCKS), "resetting"])
def test_learning_a_lot_is_learning_one_by_one(name, feedback):  # noqa: F811
    a, bounds, smoothness = feedback
    sampler = RESETTING if name == "resetting" else SAMPLERS[name]
    together, apart = (sampler.start(N, seed=0, bounds=bounds, smoothness=smoothness) for _ in range(2))
    rng = np.random.default_rng(3)
    for _ in range(62):  # past warm-ups, doubled horizons and resets
        i, p = apart.draw(300)
        values = a[i] * np.exp(rng.standard_normal(300))
        together.update(i, values, p)
        for k in range(300):
            apart.update(i[k], values[k], p[k])
    np.testing.assert_allclose(together.probabilities(), apart.probabilities(), rtol=1e-9)
    assert together.statistics() == pytest.approx(apart.statistics())


def test_while_it_is_uniform_auto_looks_at_the_same_draws(feedback):  # noqa: F811
    together, apart = bg.Auto().start(N, seed=0), bg.Auto().start(N, seed=0)
    rng = np.random.default_rng(3)
    while not apart.state.clock[0]:
        i, p = apart.draw(int(rng.integers(1, 40)))
        together.update(i, feedback[0][i], p)
        for k in range(i.size):
            apart.update(i[k], feedback[0][i[k]], p[k])
        np.testing.assert_array_equal(together.state.clock, apart.state.clock)
        np.testing.assert_array_equal(together.state.sums, apart.state.sums)


@pytest.mark.parametrize("mix", ["uniform", "bounds"])
@pytest.mark.parametrize("size", [1, 7, 300, 900])  # in the last, a block is more than n draws
def test_a_lot_is_learnt_with_the_scale_known_at_its_end(size, mix, rng):
    n, T, eta = 500, 20_000, 0.4
    scale = np.exp(2.0 * rng.standard_normal(n))
    sampling = bg.Mabs(eta, mix=mix).start(n, horizon=T, bounds=scale, seed=0)
    q = scale**0.4 / np.sum(scale**0.4) if mix == "bounds" else np.full(n, 1.0 / n)
    weights, moment, updates = np.ones(n), 0.0, 0
    for _ in range(6000 // size):
        i, p = sampling.draw(size)
        np.testing.assert_allclose(p, (1.0 - eta) * weights[i] / weights.sum() + eta * q[i], rtol=1e-10)
        a = scale[i] * np.exp(0.5 * rng.standard_normal(size))
        sampling.update(i, a, p)
        updates += size
        memory = max(min(updates, n), size)
        moment = (1.0 - size / memory) * moment + np.sum((a / (n * q[i]) ** 2) ** 2 / (n * p)) / memory
        x = eta**2 * np.sqrt(n * np.log(n) / T) * a / np.sqrt(moment) / (n * p) ** 3
        np.multiply.at(weights, i, np.exp(np.minimum(x, 1.0)))
    assert weights.max() > 1.5


@pytest.mark.parametrize("mix", ["uniform", "array"])
def test_mabs_goes_on_learning_after_feedback_beyond_all_bounds(mix):
    """Its square is kept finite, whatever p is, so that the estimate of mean(a²) comes down again."""
    n = 100
    q = np.where(np.arange(n) == 0, 1e-12, 1.0) if mix == "array" else "uniform"
    sampling = bg.Mabs(mix="uniform" if mix == "uniform" else q).start(n, horizon=10**6, seed=0)
    sampling.update([0], [1e300], [1e-14])
    for _ in range(20):
        sampling.update(*[np.arange(n), np.full(n, 1.0)])
    assert np.isfinite(sampling.state.level).all()
    before = sampling.probabilities()
    for _ in range(400_000 // (40 * n)):
        sampling.update(np.tile(np.arange(n), 40), np.tile(np.arange(n) == 7, 40) + 0.0)
    assert sampling.probabilities()[7] > before[7]


@bg.kernel
def gather(block, out):
    out[0] = gather_feedback(block)


@pytest.mark.parametrize("holes", [[], [0], [5], [9], [0, 1, 5, 9], range(10)], ids=str)
def test_draws_without_feedback_are_left_out(holes):
    block = new_block(100, 10)
    block.i[:], block.p[:], block.entry[:] = np.arange(10) * 7, np.arange(10) / 10, np.arange(10) * 3
    block.a[:] = np.arange(10) + 0.5
    block.a[list(holes)] = NONE
    kept, known = [k for k in range(10) if k not in holes], np.zeros(1, np.int64)
    gather(block, known)
    assert known[0] == len(kept)
    for got, expected in ((block.i, 7.0), (block.p, 0.1), (block.entry, 3.0)):
        np.testing.assert_allclose(got[: known[0]], np.array(kept) * expected)
    np.testing.assert_array_equal(block.a[: known[0]], np.array(kept) + 0.5)


@pytest.mark.parametrize("name", SAMPLERS)
def test_single_draws_follow_the_p_of_blocks(name, feedback):  # noqa: F811
    """What a solver of one's own calls: `draw` and `probability`."""
    sampling = started(name, feedback)
    for _ in range(20):
        i, p = sampling.draw(200)
        sampling.update(i, feedback[0][i], p)
    i, p = np.zeros(300_000, np.int64), np.zeros(300_000)
    single_steps(sampling.state, i, p, i.size)
    np.testing.assert_array_equal(p, sampling.probabilities()[i])
    assert chi_square_passes(np.bincount(i, minlength=N), sampling.probabilities())


@bg.kernel
def moving_blocks(weighted, stream, block, strength, excess, variance, rounds):
    """Draw blocks while weights move: Σ_t (1[i_t = j] - p_j^t) is a martingale for each of a few items j."""
    size = block.i.size
    for _ in range(rounds):
        for t in range(size):
            block.todo[t] = t
        weighted.pick_many(stream, block, size)
        weighted.read_many(block)
        for j in range(excess.size):
            p = weighted.share(j)
            variance[j] += size * p * (1.0 - p)
            excess[j] -= size * p
        for t in range(size):
            if block.i[t] < excess.size:
                excess[block.i[t]] += 1.0
            block.other[t] = math.exp(strength * uniform_index(stream, 100) / 100.0)
        weighted.multiply_many(block, size)
        weighted.multiply(uniform_index(stream, weighted.where.size), math.exp(-min(20.0 * strength, 700.0)))


@pytest.mark.parametrize("n", [3, 1000])
@pytest.mark.parametrize("strength", [0.05, 1.0, 40.0])
def test_lots_are_exact_while_weights_move(n, strength):
    weighted = new_weighted_sampler(n)
    fill_equal(weighted)
    excess, variance = np.zeros(min(n, 8)), np.zeros(min(n, 8))
    moving_blocks(weighted, new_stream(3), new_block(n, 64), strength, excess, variance, 5000)
    assert (np.abs(excess) < 5.5 * np.sqrt(variance) + 1.0).all()
    check_order(weighted)


@bg.kernel
def depths(index, r, one_by_one, together):
    for k in range(r.size):
        one_by_one[k] = depth_of(index[0], np.int64(r[k]))
    fill_depths(index[0], r, together, r.size)


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.integers(0, 1000), min_size=WINDOW + 1, max_size=WINDOW + 1).filter(any), st.integers(1, WINDOW + 1))
def test_the_bucket_is_found_without_a_branch(counts, used):
    index = np.zeros(1, BUCKET_INDEX)
    counts = np.where(np.arange(WINDOW + 1) < used, counts, 0)
    counts[0] += not counts.any()
    ends = index["ends"][0] = np.cumsum(counts)
    r = np.unique(np.clip(np.r_[0, ends - 1, ends], 0, ends[-1] - 1)).astype(np.uint64)
    one_by_one, together = np.empty((2, r.size), np.uint64)
    depths(index, r, one_by_one, together)
    np.testing.assert_array_equal(one_by_one, np.searchsorted(ends, r, side="right"))
    np.testing.assert_array_equal(together, one_by_one)


@bg.kernel
def numbers_below(bits, bound, real):
    fill_below(bits, bound, real, bits.size)


@pytest.mark.parametrize("bound", [1, 3, 2**32 - 1, 2**62 + 2**61, 2**63 + 1])
def test_numbers_below_a_bound_are_exactly_uniform(bound, rng):
    """Lemire's method: below the bound, and rejected just where one number would have more bits to it than others."""
    bits = np.r_[rng.integers(0, 2**64, 2000, np.uint64), np.arange(50, dtype=np.uint64)]
    out, real = bits.copy(), np.full(bits.size, 0.5)
    numbers_below(out, np.uint64(bound), real)
    for b, got, mark in zip(bits.tolist(), out.tolist(), real, strict=True):
        assert got == b * bound >> 64
        assert (mark == np.inf) == (b * bound % 2**64 < 2**64 % bound)


@bg.kernel
def exps(x, out):
    for k in range(x.size):
        out[k] = _exp(x[k])


def test_exp_is_right_to_the_last_digits():
    x = np.linspace(0.0, 1.0, 10_001)
    out = np.empty_like(x)
    exps(x, out)
    np.testing.assert_allclose(out, np.exp(x), rtol=1e-15)
    assert out[0] == 1.0


@bg.kernel
def multiply_blocks(weighted, block, items, factors):
    for first in range(0, items.size, block.i.size):
        for t in range(block.i.size):
            block.i[t], block.other[t] = items[first + t], factors[first + t]
        weighted.multiply_many(block, block.i.size)


def test_sums_of_lots_do_not_drift(rng):
    weighted, block = new_weighted_sampler(2000), new_block(2000, 100)
    fill_equal(weighted)
    for _ in range(20):
        items = rng.integers(0, 2000, 500_000)
        multiply_blocks(weighted, block, items, np.exp(np.abs(rng.normal(0.0, 0.01, items.size))))
    exact, kept = weights_and_total(weighted)
    assert kept == pytest.approx(exact, rel=1e-14)
    check_order(weighted)


@bg.kernel
def count_blocks(weighted, stream, block, counts, rounds):
    for _ in range(rounds):
        for t in range(block.i.size):
            block.todo[t] = t
        weighted.pick_many(stream, block, block.i.size)
        weighted.read_many(block)
        for t in range(block.i.size):
            counts[block.i[t]] += 1


@pytest.mark.parametrize("name", EXTREMES)
def test_lots_follow_extreme_weights(name):
    weights = EXTREMES[name]
    counts = np.zeros(len(weights), np.int64)
    count_blocks(filled(weights), new_stream(5), new_block(len(weights), 100), counts, 5000)
    assert chi_square_passes(counts, weights / weights.sum())


class Recorder(NamedTuple):
    """A user's sampler that draws 0, 1, .. n-1, 0, .. with p_i of its own, and writes down what it is told."""

    clock: np.ndarray
    p: np.ndarray
    told: np.ndarray

    def draw(self):
        self.clock[0] += 1
        return (self.clock[0] - 1) % self.p.size

    def probability(self, i):
        return self.p[i]

    def update(self, i, p_i, a_i):
        k = self.clock[1]
        self.clock[1] += 1
        self.told[k, 0], self.told[k, 1], self.told[k, 2] = i, p_i, a_i


class Recording(bg.Sampler):
    def state(self, setup):
        p = np.arange(1.0, setup.n + 1.0)
        return Recorder(np.zeros(2, np.int64), p / p.sum(), np.zeros((100_000, 3)))


@pytest.mark.parametrize(
    ("n", "size"), [(50, 1), (3000, 1), (9000, 1), (50, 7), (50, 60), (3000, 7), (3000, 100), (3000, 200)]
)
def test_every_draw_is_used_and_told_of_once_in_order(n, size):
    """Whatever the sizes of blocks and of batches, and however a run is cut into pieces."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, 3)), rng.choice([-1.0, 1.0], n)
    problem = bg.Problem(X, y)
    result = bg.minimise(problem, bg.Sgd(1e-9, batch_size=size), Recording(), passes=3, seed=0, record_every=0.3)
    state, steps = result.sampling.state, math.ceil(3 * n / size)
    drawn, told = state.clock
    assert steps * size <= drawn <= (steps + 1) * size + 2 * max(size, 128)
    assert told >= steps * size - 2 * max(size, 128)
    i = np.arange(told) % n
    np.testing.assert_array_equal(state.told[:told, 0], i)
    np.testing.assert_array_equal(state.told[:told, 1], state.p[i])
    expected = (problem.gradient_norms(np.zeros(3)) / n) ** 2  # w hardly moves
    np.testing.assert_allclose(state.told[:told, 2], expected[i], rtol=1e-4)


class Astray(bg.Sampler):
    """Draws what is not a row once, long after the first blocks."""

    def state(self, setup):
        return AstrayState(np.zeros(1, np.int64), setup.n)


class AstrayState(NamedTuple):
    clock: np.ndarray
    n: int

    def draw(self):
        self.clock[0] += 1
        return self.n if self.clock[0] == 5000 else 0

    def probability(self, i):
        return 1.0 / self.n

    def update(self, i, p_i, a_i):
        pass


def test_an_index_that_is_not_a_row_is_refused_in_any_block(rng):
    problem = bg.Problem(rng.standard_normal((3000, 3)), rng.choice([-1.0, 1.0], 3000))
    with pytest.raises(IndexError, match="Astray drew an index outside"):
        bg.minimise(problem, bg.Saga(0.01), Astray(), passes=3, seed=0)


class InLots(NamedTuple):
    """A user's sampler with loops of its own: 0, 1, .. in blocks."""

    clock: np.ndarray
    n: int

    def draw(self):
        return 0

    def probability(self, i):
        return 1.0 / self.n

    def update(self, i, p_i, a_i):
        pass

    def draw_many(self, block):
        for t in range(block.i.size):
            block.i[t] = (self.clock[0] + t) % self.n
            block.p[t] = 1.0 / self.n
        self.clock[0] += block.i.size

    def learn_many(self, block, count):
        self.clock[1] += count


class OwnLots(bg.Sampler):
    def state(self, setup):
        return InLots(np.zeros(2, np.int64), setup.n)


def test_a_users_own_lots_are_used():
    sampling = OwnLots().start(10)
    i, p = sampling.draw(10_000)
    np.testing.assert_array_equal(i, np.arange(10_000) % 10)
    sampling.update(i, np.ones(10_000), p)
    sampling.update([], [])
    assert sampling.draw(0)[0].size == 0
    assert sampling.state.clock.tolist() == [10_000, 10_000]


def test_lots_of_ones_own_are_checked():
    class Wrong(InLots):
        def draw_many(self, block, extra):
            pass

    class Blocks(bg.Sampler):
        def state(self, setup):
            return Wrong(np.zeros(2, np.int64), setup.n)

    with pytest.raises(TypeError, match="draw_many"):
        Blocks().start(10)
