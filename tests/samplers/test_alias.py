"""The alias table: draws from weights that do not change."""

import numpy as np
import pytest

import banditgrad as bg
from banditgrad._random import new_stream
from banditgrad.samplers.alias import new_alias_table, shares_of
from banditgrad.samplers.blocks import new_block
from samplers.test_weighted import chi_square_passes


@bg.kernel
def one_by_one(table, stream, counts, draws):
    for _ in range(draws):
        counts[table.alias_draw(stream)] += 1


@bg.kernel
def in_blocks(table, stream, block, counts, rounds):
    for _ in range(rounds):
        table.alias_draws(stream, block, block.i.size)
        for t in range(block.i.size):
            counts[block.bits[t]] += 1


@pytest.mark.parametrize(
    "weights",
    [
        np.ones(1000),
        np.exp(2.0 * np.random.default_rng(0).standard_normal(1000)),
        np.r_[1e12, np.ones(500), np.zeros(499)],
        np.r_[np.zeros(300), np.arange(700)],
        np.full(997, 1.0 / 3.0),
        np.array([3.0]),
    ],
    ids=["equal", "log-normal", "one giant", "zeros", "rounded", "one item"],
)
def test_draws_follow_the_weights(weights):
    q = weights / weights.sum()
    table, n = new_alias_table(q), len(q)
    np.testing.assert_allclose(shares_of(table.cells), q, rtol=1e-9, atol=1e-15)
    for single in (True, False):
        counts = np.zeros(n, np.int64)
        if single:
            one_by_one(table, new_stream(5), counts, 500_000)
        else:
            in_blocks(table, new_stream(5), new_block(n, 50), counts, 10_000)
        assert chi_square_passes(counts, q)


def test_a_damaged_table_is_refused():
    sampling = bg.Mabs(mix=np.arange(1.0, 11.0)).start(10, seed=0)
    saved = sampling.state_dict()
    saved["floor_of.table.cells"]["other"][3] = 10
    with pytest.raises(ValueError, match="alias table names items"):
        sampling.load_state_dict(saved)
    saved = sampling.state_dict()
    saved["floor_of.q"] = saved["floor_of.q"][::-1]
    with pytest.raises(ValueError, match="not those of its alias table"):
        sampling.load_state_dict(saved)
