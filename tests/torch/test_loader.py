"""One-line use: the loader that brings its sampler, and the loss that weights and feeds back."""

import numpy as np
import pytest
from runs import N, batches, unlike_norms

pytest.importorskip("torch.nn", reason='PyTorch is not installed: pip install "banditgrad[torch]"')
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import banditgrad as bg
from banditgrad.torch import BanditBatchSampler, IndexedDataset, bandit_loader, cross_entropy_bound

EAGER = bg.RecentNorm(theta=0.1, memory=0.0)


def pairs():
    x = torch.arange(N, dtype=torch.float32)[:, None]
    return TensorDataset(x, (x[:, 0] > N / 2).long())


class Dictionaries(Dataset):
    def __len__(self):
        return N

    def __getitem__(self, i):
        return {"x": float(i), "y": i % 2}


def test_a_loader_in_one_line():
    loader = bandit_loader(pairs(), 32, EAGER, seed=3, drop_last=True, num_workers=1)
    assert (loader.num_workers, len(loader)) == (1, 6)
    sampler = BanditBatchSampler(N, 32, EAGER, seed=3, drop_last=True)
    by_hand = DataLoader(IndexedDataset(pairs()), batch_sampler=sampler, num_workers=1)
    norms = unlike_norms()
    for _ in range(3):
        assert batches(loader.batch_sampler, loader, norms) == batches(sampler, by_hand, norms)
    assert bandit_loader(IndexedDataset(pairs()), 32).dataset[0][-1] == 0  # not wrapped twice
    assert len(bandit_loader(IndexedDataset(pairs()), 32).dataset[0]) == 3


def test_samples_that_are_dictionaries():
    loader = bandit_loader(Dictionaries(), 20, EAGER, seed=0, guard=False)
    for _ in range(3):
        for batch in loader:
            assert batch["x"].tolist() == batch["index"].tolist()
            loader.batch_sampler.loss(batch["x"].clone().requires_grad_(), batch["index"]).backward()
    p = loader.batch_sampler.probabilities()
    assert p[N // 2 :].sum() > 2.0 * p[: N // 2].sum()  # the loss is the index


@pytest.mark.parametrize("given", ["norms", "function", "losses"])
def test_the_loss_weights_averages_and_feeds_back(given):
    torch.manual_seed(0)
    net, by_hand_net = nn.Linear(1, 2), nn.Linear(1, 2)
    by_hand_net.load_state_dict(net.state_dict())
    options = {"seed": 0, "guard": False}
    loader = bandit_loader(pairs(), 16, EAGER, **options)
    by_hand = BanditBatchSampler(N, 16, EAGER, **options)
    for _ in range(3):
        for (x, y, idx), batch in zip(loader, by_hand, strict=True):
            assert idx.tolist() == batch
            z = net(x)
            losses, norms = F.cross_entropy(z, y, reduction="none"), cross_entropy_bound(z, y)
            fed = {"norms": norms, "function": lambda norms=norms: norms, "losses": None}[given]
            net.zero_grad()
            loader.batch_sampler.loss(losses, idx, fed).backward()
            by_hand_net.zero_grad()
            losses = F.cross_entropy(by_hand_net(x), y, reduction="none")
            (losses * by_hand.weights(idx)).mean().backward()
            by_hand.update(idx, losses if given == "losses" else norms)
            torch.testing.assert_close(net.weight.grad, by_hand_net.weight.grad)
    np.testing.assert_array_equal(loader.batch_sampler.probabilities(), by_hand.probabilities())
    assert loader.batch_sampler.statistics()["outstanding"] == 0


def test_feedback_of_every_third_batch():
    """As if the others had gone without; a function for their norms is not called."""
    norms, called = unlike_norms(), []
    sampler = BanditBatchSampler(N, 16, EAGER, seed=0, guard=False, feedback_every=3)
    other = BanditBatchSampler(N, 16, EAGER, seed=0, guard=False)
    number = 0
    for _ in range(3):
        for batch, same in zip(sampler, other, strict=True):
            assert batch == same
            idx = torch.tensor(batch)
            sampler.loss(norms[idx], idx, lambda idx=idx, number=number: called.append(number) or norms[idx])
            if number % 3 == 0:
                other.update(idx, norms[idx])
            number += 1
    assert called == list(range(0, number, 3))
    np.testing.assert_array_equal(sampler.probabilities(), other.probabilities())
    assert sampler.statistics()["outstanding"] == 0


def test_a_dataset_without_indices_is_told():
    sampler = BanditBatchSampler(N, 8, seed=0)
    x, y = next(iter(DataLoader(pairs(), batch_sampler=sampler)))
    with pytest.raises(TypeError, match=r"got float32 of shape \(8, 1\). Has the loader an IndexedDataset"):
        sampler.weights(x)
    with pytest.raises(ValueError, match="a loader of an IndexedDataset"):
        sampler.loss(torch.ones(8), y)


def test_bad_input_is_refused_in_words():
    for name in ("shuffle", "batch_sampler"):
        with pytest.raises(TypeError, match=f"expects no {name}"):
            bandit_loader(pairs(), 8, **{name: True})
    with pytest.raises(ValueError, match="feedback_every"):
        bandit_loader(pairs(), 8, feedback_every=0)
    loader = bandit_loader(pairs(), 8, seed=0)
    *_, idx = next(iter(loader))
    for losses in (torch.tensor(1.0), torch.ones(8, 3)):
        with pytest.raises(ValueError, match=r'one loss per sample.*reduction="none"'):
            loader.batch_sampler.loss(losses, idx)
