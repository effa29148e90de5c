"""The batch sampler in a DataLoader: what it draws, and that feedback finds its own draw."""

import itertools

import numpy as np
import pytest
from runs import N, batches, dataset, loader_of, unlike_norms

pytest.importorskip("torch.nn", reason='PyTorch is not installed: pip install "banditgrad[torch]"')
import torch
from torch.utils.data import DataLoader, SequentialSampler, WeightedRandomSampler

import banditgrad as bg
from banditgrad.torch import BanditBatchSampler
from banditgrad.torch.batch_stream import MAX_OUTSTANDING

EAGER = bg.RecentNorm(theta=0.1, memory=0.0)  # p jumps with every feedback


@pytest.mark.filterwarnings("ignore:.*batches went by without feedback")
@pytest.mark.parametrize("guard", [True, False])
@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({}, [32] * 6 + [8]),
        ({"drop_last": True}, [32] * 6),
        ({"steps_per_epoch": 3}, [32] * 3),
        ({"steps_per_epoch": 9, "drop_last": True}, [32] * 9),
    ],
)
def test_an_epoch_has_the_batches_that_its_length_says(options, sizes, guard):
    sampler = BanditBatchSampler(dataset(), 32, seed=0, guard=guard, **options)
    for _ in range(2):
        drawn = list(sampler)
        sampler.update(drawn[-1], torch.ones(sizes[-1]))  # an epoch without any feedback would be warned of
        assert [len(batch) for batch in drawn] == sizes
        assert len(sampler) == len(sizes)
        assert all(type(i) is int and 0 <= i < N for batch in drawn for i in batch)


def test_the_seed_decides():
    def first(**options):
        sampler = BanditBatchSampler(N, 16, guard=False, **options)
        return batches(sampler, loader_of(sampler), unlike_norms())

    assert first(seed=5) == first(seed=5)
    assert first(seed=5) != first(seed=6)
    one, other = (torch.Generator().manual_seed(1) for _ in range(2))
    assert first(generator=one) == first(generator=other)
    assert first(generator=one) != first(seed=1)
    torch.manual_seed(3)
    drawn = first()
    assert drawn != first()
    torch.manual_seed(3)
    assert drawn == first()


@pytest.mark.parametrize("workers", [0, 2])
def test_weights_are_those_of_the_draw_however_far_p_has_moved(workers):
    sampler = BanditBatchSampler(N, 10, EAGER, steps_per_epoch=150, seed=0, guard=False, replacement=True)
    drawn, draw = [], sampler.sampling.draw

    def spying_draw(size):
        drawn.append(draw(size))
        return drawn[-1]

    sampler.sampling.draw = spying_draw
    norms, moved = unlike_norms(), 0
    for step, (x, _, idx) in enumerate(loader_of(sampler, workers)):
        i, p = drawn[step]
        assert idx.tolist() == i.tolist() == x[:, 0].tolist()
        torch.testing.assert_close(sampler.weights(idx), torch.tensor(1.0 / (N * p), dtype=torch.float32))
        moved += not np.allclose(sampler.sampling.probability(i), p)
        sampler.update(idx, norms[idx])
    assert step == 149
    assert (moved > 50) == (workers > 0)  # with prefetching, p moves between the draw and the feedback


@pytest.mark.parametrize("replacement", [True, False])
def test_the_weighted_batch_gradient_is_unbiased_with_late_feedback(replacement):
    """A linear model at a fixed w: the mean over many batches is the full gradient; without weights it is not."""
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.standard_normal((N, 3)) * np.exp(rng.standard_normal((N, 1))), dtype=torch.float64)
    y = torch.tensor(rng.standard_normal(N))
    w = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
    (full,) = torch.autograd.grad(((x @ w - y) ** 2).mean(), w)
    sampler = BanditBatchSampler(N, 16, steps_per_epoch=2500, seed=0, guard=False, replacement=replacement)
    late, weighted, plain = [], [], []
    for batch in sampler:
        late.append(torch.tensor(batch))
        if len(late) < 6:
            continue
        idx = late.pop(0)
        loss = (x[idx] @ w - y[idx]) ** 2
        weighted += torch.autograd.grad((loss * sampler.weights(idx)).mean(), w, retain_graph=True)
        plain += torch.autograd.grad(loss.mean(), w)
        sampler.update(idx, loss.sqrt() * x[idx].norm(dim=1))
    assert sampler.statistics()["tau"] > 1.3
    for gradients, unbiased in ((weighted, True), (plain, False)):
        gradients = torch.stack(gradients)
        error = (gradients.mean(0) - full).abs() / (gradients.std(0) / len(gradients) ** 0.5)
        assert (error.max() < 4.0) == unbiased, error


def test_feedback_may_come_in_any_order():
    sampler = BanditBatchSampler(N, 8, EAGER, seed=0, guard=False)
    epoch = iter(sampler)
    drawn = [torch.tensor(next(epoch)) for _ in range(5)]
    before = [sampler.weights(idx) for idx in drawn]
    for k in (3, 0, 4):
        sampler.update(drawn[k], unlike_norms()[drawn[k]])
    for k in (1, 2):
        torch.testing.assert_close(sampler.weights(drawn[k]), before[k], rtol=0, atol=0)
    assert sampler.statistics()["outstanding"] == 2


def test_feedback_that_matches_no_draw_is_refused():
    sampler = BanditBatchSampler(N, 8, seed=0)
    idx = torch.tensor(next(iter(sampler)))
    for wrong in (idx[:4], idx.flip(0), [0] * 8):
        with pytest.raises(ValueError, match="not a batch that waits"):
            sampler.weights(wrong)
    with pytest.raises(ValueError, match=r"one norm per sample, got shape \(3,\) for 8"):
        sampler.update(idx, torch.ones(3))
    for bad in (float("nan"), float("inf"), -1.0):
        with pytest.raises(ValueError, match="finite and not negative"):
            sampler.update(idx, torch.tensor([1.0] * 7 + [bad]))
    sampler.update(idx, torch.ones(8, requires_grad=True))
    with pytest.raises(ValueError, match="not a batch that waits"):
        sampler.update(idx, torch.ones(8))


@pytest.mark.filterwarnings("ignore:.*batches went by without feedback")
def test_batches_without_feedback_are_forgotten_in_the_end():
    sampler = BanditBatchSampler(N, 4, steps_per_epoch=MAX_OUTSTANDING + 10, seed=0)
    drawn = list(sampler)
    assert sampler.statistics()["outstanding"] == MAX_OUTSTANDING
    with pytest.raises(ValueError, match="no later than"):
        sampler.update(drawn[0], torch.ones(4))
    sampler.update(drawn[10], torch.ones(4))


def test_weights_normalised_and_clipped():
    sampler = BanditBatchSampler(N, 32, EAGER, steps_per_epoch=20, seed=0, guard=False)
    batches(sampler, loader_of(sampler), unlike_norms())
    idx = torch.tensor(next(iter(sampler)))
    plain = sampler.weights(idx)
    assert plain.max() > 2.0
    torch.testing.assert_close(sampler.weights(idx, clip=2.0), plain.clamp(max=2.0))
    torch.testing.assert_close(sampler.weights(idx, normalise=True), plain / plain.mean())
    assert sampler.weights(idx, normalise=True, clip=2.0).mean() == pytest.approx(1.0)
    with pytest.raises(ValueError, match="positive clip"):
        sampler.weights(idx, clip=0.0)


def test_the_mixing_bounds_the_weights():
    """What the documentation of clip says: with η = 0.4 no weight exceeds 2.5."""
    sampler = BanditBatchSampler(N, 32, bg.Mabs(delta=1.0), steps_per_epoch=100, seed=0, guard=False)
    weights = [w for _, ws in batches(sampler, loader_of(sampler), unlike_norms()) for w in ws]
    assert 2.4 < max(weights) <= 2.5 + 1e-6


def test_more_than_2_to_the_24_samples():
    n = 2**24 + 2**20
    sampler = BanditBatchSampler(n, 256, seed=0, guard=False)
    beyond = torch.arange(2**24 + 1, 2**24 + 101, 2)  # float32 could not tell these from their neighbours
    epoch = iter(sampler)
    for _ in range(100):
        idx = torch.tensor(next(epoch))
        sampler.update(idx, torch.ones(256))
    sampler.sampling.update(beyond.numpy(), np.full(50, 1e9))
    p = sampler.sampling.probability(beyond.numpy())
    assert (p > 1.5 * sampler.sampling.probability(beyond.numpy() + 1)).all()
    assert max(max(next(epoch)) for _ in range(10)) > 2**24
    with pytest.raises(RuntimeError, match="2\\^24"):
        next(iter(WeightedRandomSampler(torch.ones(n), 1)))


def test_a_sampling_already_started_is_taken_as_it_is():
    sampling = bg.Mabs(mix="smoothness").start(N, seed=0, smoothness=np.arange(1.0, N + 1))
    sampler = BanditBatchSampler(N, 1000, sampling, guard=False, steps_per_epoch=1)
    (batch,) = sampler
    assert np.mean(batch) > 0.52 * N
    with pytest.raises(ValueError, match="has 200 items, the dataset 100"):
        BanditBatchSampler(100, 10, sampling)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dataset": 0}, "number of samples"),
        ({"dataset": 2.5}, "dataset with a length"),
        ({"dataset": SequentialSampler(range(N))}, "use_distributed_sampler=False"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": 2.0}, "batch_size"),
        ({"sampler": bg.Mabs}, r"such as bg.Mabs\(\)"),
        ({"steps_per_epoch": 0}, "steps_per_epoch"),
        ({"seed": -1}, "seed"),
        ({"seed": 1, "generator": "any"}, "not both"),
        ({"guard": 1.5}, "Guard"),
        ({"budget": 0.0}, "budget"),
        ({"budget": 1.5}, "budget"),
        ({"budget": 0.5, "steps_per_epoch": 3}, "not both"),
    ],
)
def test_bad_input_is_refused_in_words(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        BanditBatchSampler(**{"dataset": N, "batch_size": 8, **options})


def test_a_dataset_loader_and_collation_of_ones_own():
    """Indices survive a custom collate_fn and pinned order; the loader is torch's own."""
    sampler = BanditBatchSampler(dataset(), 25, seed=0)
    loader = DataLoader(dataset(), batch_sampler=sampler, collate_fn=lambda samples: [i for *_, i in samples])
    for idx in loader:
        sampler.update(idx, torch.ones(25))
    assert sampler.statistics()["outstanding"] == 0


def test_probabilities_are_those_that_batches_are_drawn_from():
    sampler = BanditBatchSampler(N, 20, seed=0, guard=False)
    batches(sampler, loader_of(sampler), unlike_norms())
    idx = torch.tensor(next(iter(sampler)))
    weights = sampler.weights(idx).double().numpy()
    np.testing.assert_allclose(1.0 / (N * sampler.probabilities()[idx.numpy()]), weights, rtol=1e-6)
    assert sampler.probabilities().sum() == pytest.approx(1.0)


def test_an_epoch_without_feedback_is_told_once():
    sampler = BanditBatchSampler(N, 50, seed=0)
    list(sampler)
    with pytest.warns(UserWarning, match=r"without feedback.* Call sampler.update\(idx, norms\)"):
        list(sampler)
    list(sampler)  # warnings are errors here


def test_an_epoch_that_is_long_need_not_end_for_it():
    sampler = BanditBatchSampler(N, 50, steps_per_epoch=10**9, seed=0)
    first = itertools.islice(sampler, MAX_OUTSTANDING + 1)
    with pytest.warns(UserWarning, match=f"{MAX_OUTSTANDING} batches went by without feedback"):
        list(first)


def test_a_fixed_p_needs_no_feedback():
    sampler = BanditBatchSampler(N, 50, bg.Importance(by=np.arange(1.0, N + 1.0)), seed=0, guard=False)
    for _ in range(2):
        list(sampler)
