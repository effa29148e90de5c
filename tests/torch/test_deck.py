"""Importance epochs without replacement: how often samples come, and that the expected gradient is that of the set."""

import numpy as np
import pytest
from runs import N, batches, equal_norms, loader_of, unlike_norms

pytest.importorskip("torch.nn", reason='PyTorch is not installed: pip install "banditgrad[torch]"')
import torch

import banditgrad as bg
from banditgrad.torch import BanditBatchSampler
from banditgrad.torch.deck import Deck

P = np.exp(np.random.default_rng(2).standard_normal(N))
P /= P.sum()


def counts(deck, total, p=P):
    i, drawn_with = deck.draw(total, total, lambda: p)
    np.testing.assert_array_equal(drawn_with, p[i])
    return np.bincount(i, minlength=N)


@pytest.mark.parametrize("total", [1, 50, N, 3 * N])
def test_a_deck_has_each_item_as_often_as_p_says(total):
    deck, seen = Deck(N, seed=0), np.zeros(N)
    for _ in range(4000):
        seen += counts(deck, total)
    expected = total * P
    again = counts(Deck(N, seed=1), total)
    assert again.sum() == total
    assert (again >= np.floor(expected)).all()
    assert (again <= np.ceil(expected)).all()
    part = expected % 1.0
    error = (seen / 4000 - expected) / np.sqrt(part * (1.0 - part) / 4000)
    assert np.abs(error).max() < 4.5


@pytest.mark.parametrize("n", [3, 49, 200, 1021])
def test_a_full_deck_of_equal_items_is_a_permutation(n):
    i, _ = Deck(n, seed=0).draw(n, n, lambda: np.full(n, 1.0 / n))
    assert sorted(i) == list(range(n))


def test_the_order_of_a_deck_tells_nothing():
    """The batches of a deck have the same expected gradient: each place has item i with probability p_i."""
    deck = Deck(N, seed=0)
    first = [deck.draw(N, N, lambda: P)[0][[0, N // 2, -1]] for _ in range(20_000)]
    for place in np.array(first).T:
        seen = np.bincount(place, minlength=N) / 20_000
        assert np.abs((seen - P) / np.sqrt(P / 20_000)).max() < 4.5


def test_an_epoch_is_a_deck():
    sampler = BanditBatchSampler(N, 32, bg.RecentNorm(memory=0.0), seed=0, guard=False, replacement=False)
    for epoch in range(6):
        p = sampler.probabilities()
        drawn = batches(sampler, loader_of(sampler), unlike_norms())
        i = np.array([i for idx, _ in drawn for i in idx])
        weights = np.array([w for _, ws in drawn for w in ws])
        seen = np.bincount(i, minlength=N)
        assert (seen >= np.floor(N * p - 1e-6)).all()
        assert (seen <= np.ceil(N * p + 1e-6)).all()
        np.testing.assert_allclose(weights, 1.0 / (N * p[i]), rtol=1e-6)
        assert epoch > 0 or (seen == 1).all()
    assert seen.max() > 3
    assert sampler.statistics()["tau"] > 1.5


@pytest.mark.parametrize(
    ("options", "sizes"),
    [({}, [32, 32, 32, 4]), ({"drop_last": True}, [32] * 3), ({"replacement": True}, [32, 32, 32, 4])],
)
def test_a_budget_shortens_the_epoch(options, sizes):
    sampler = BanditBatchSampler(N, 32, seed=0, **{"replacement": False, "budget": 0.5, "guard": False, **options})
    for _ in range(3):
        assert [len(idx) for idx, _ in batches(sampler, loader_of(sampler), unlike_norms())] == sizes
        assert len(sampler) == len(sizes)


def test_weighted_sums_over_epochs_are_the_whole_set_and_quieter_than_draws_with_replacement():
    """The epoch's mean of weights · values has the set's mean; with replacement it spreads more."""
    values = torch.from_numpy(np.random.default_rng(5).standard_normal(N)) * unlike_norms()
    spread = {}
    for replacement in (True, False):
        sampler = BanditBatchSampler(N, 25, bg.RecentNorm(), seed=0, guard=False, replacement=replacement, budget=0.5)
        means = []
        for _ in range(400):
            seen = batches(sampler, loader_of(sampler), unlike_norms())
            terms = [w * float(values[i]) for idx, ws in seen for i, w in zip(idx, ws, strict=True)]
            means.append(np.mean(terms))
        means = np.array(means[20:])
        assert abs(means.mean() - values.mean()) < 4.0 * means.std() / len(means) ** 0.5
        spread[replacement] = means.std()
    assert spread[False] < 0.8 * spread[True]


def test_while_the_guard_shuffles_nothing_is_dealt():
    sampler = BanditBatchSampler(N, 32, seed=0, replacement=False)
    for _ in range(3):
        drawn = batches(sampler, loader_of(sampler), equal_norms())
        assert sorted(i for idx, _ in drawn for i in idx) == list(range(N))
        assert {w for _, ws in drawn for w in ws} == {1.0}
    assert sampler._source.deck.made == 0
