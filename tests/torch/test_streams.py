"""Streams as groups: each is read in its order, parts do not overlap, and a run can be resumed."""

import numpy as np
import pytest

pytest.importorskip("torch.nn", reason='PyTorch is not installed: pip install "banditgrad[torch]"')
import torch
from torch.utils.data import DataLoader, IterableDataset

from banditgrad.torch import GroupBatchSampler, GroupStreams

MIXTURE = {"long": 0.6, "short": 0.3, "rare": 0.1}
SCALE = torch.tensor([0.2, 1.0, 10.0], dtype=torch.float64)

# torchdata 0.11 calls a function that torch 2.13 wants nobody to call.
pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning")


class Count(IterableDataset):
    def __init__(self, first, size):
        self.first, self.size = first, size

    def __iter__(self):
        return iter(range(self.first, self.first + self.size))


def shards(part, parts):
    """As of a set of ten files, of which each reader opens its own."""
    for shard in range(part, 10, parts):
        yield from range(2000 + 10 * shard, 2000 + 10 * shard + 10)


def streams():
    return GroupStreams({"long": Count(0, 1000), "short": Count(1000, 30), "rare": shards})


def sampler_of(data, **options):
    return GroupBatchSampler(data, 10, None, 40, **{"mixture": MIXTURE, "seed": 0, "guard": False, **options})


def run(sampler, loader, stop=None):
    seen = []
    for x, idx in loader:
        seen.append((x.tolist(), idx.tolist(), sampler.weights(idx).tolist()))
        sampler.update(idx, SCALE[idx % 3])
        if len(seen) == stop:
            break
    return seen


def test_streams_are_read_in_order_and_begin_anew():
    data = streams()
    sampler = sampler_of(data)
    seen = run(sampler, DataLoader(data, batch_sampler=sampler))
    x = np.concatenate([x for x, _, _ in seen])
    group = np.concatenate([np.array(idx) % 3 for _, idx, _ in seen])
    assert (group == x // 1000).all()
    for g, (first, size) in enumerate(((0, 1000), (1000, 30), (2000, 100))):
        own = x[group == g]
        assert (own == first + np.arange(own.size) % size).all()
    assert (group == 1).sum() > 30
    assert len({i for _, idx, _ in seen for i in idx}) == 400  # an index is a draw


def test_weights_keep_the_mixture_and_p_follows_the_norms():
    data = streams()
    sampler = GroupBatchSampler(data, 10, None, 2000, mixture=MIXTURE, seed=0, guard=False)
    means = []
    for batch in sampler:
        group = torch.tensor(batch) % 3
        means.append(float((sampler.weights(batch) * torch.tensor([1.0, 10.0, 100.0])[group]).mean()))
        sampler.update(batch, SCALE[group])
    assert abs(np.mean(means) - 13.6) < 4.0 * np.std(means) / len(means) ** 0.5
    best = np.array([0.6, 0.3, 0.1]) * SCALE.numpy()
    floor = 0.1 * (1 / 3 + sampler.mixture)
    np.testing.assert_allclose(sampler.probabilities(), 0.8 * best / best.sum() + floor, rtol=1e-6)


def test_workers_read_parts_that_do_not_overlap():
    data = streams()
    sampler = sampler_of(data)
    seen = run(sampler, DataLoader(data, batch_sampler=sampler, num_workers=2))
    x = [value for values, _, _ in seen for value in values]
    rare = [value for value in x if value >= 2000]
    long = [value for value in x if value < 1000]
    assert len(set(long)) == len(long)
    assert len(set(rare[:40])) == 40
    even, odd = ([v for values, _, _ in seen[part::2] for v in values if v < 1000] for part in (0, 1))
    assert {v % 2 for v in even} == {0}
    assert {v % 2 for v in odd} == {1}


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stateful_loader_resumes_sampler_and_streams(workers, tmp_path):
    stateful = pytest.importorskip(
        "torchdata.stateful_dataloader", reason="torchdata is not installed: pip install torchdata"
    ).StatefulDataLoader

    def new(seed):
        data = streams()
        sampler = sampler_of(data, seed=seed)
        return sampler, stateful(data, batch_sampler=sampler, num_workers=workers)

    sampler, loader = new(0)
    whole = []
    for x, idx in loader:
        whole.append((x.tolist(), idx.tolist(), sampler.weights(idx).tolist()))
        sampler.update(idx, SCALE[idx % 3])
        if len(whole) == 15:
            torch.save(loader.state_dict(), tmp_path / "state.pt")
    sampler, loader = new(7)
    loader.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert run(sampler, loader) == whole[15:]


def test_a_plain_loop_resumes_with_the_two_states():
    data = streams()
    sampler = sampler_of(data)
    loader = iter(DataLoader(data, batch_sampler=sampler))
    run(sampler, loader, stop=15)
    states = data.state_dict(), sampler.state_dict()
    rest = run(sampler, loader)
    data = streams()
    sampler = sampler_of(data, seed=3)
    data.load_state_dict(states[0])
    sampler.load_state_dict(states[1])
    assert run(sampler, DataLoader(data, batch_sampler=sampler)) == rest


def test_what_cannot_be_read_is_told():
    data = GroupStreams([[1, 2], iter(range(3))])
    assert [data[i][0] for i in (0, 0, 0, 1, 1, 1)] == [1, 2, 1, 0, 1, 2]
    with pytest.raises(RuntimeError, match="group 1 can be read only once"):
        data[1]
    with pytest.raises(RuntimeError, match="group 'x' has no samples for this worker"):
        GroupStreams({"x": []})[0]
    with pytest.raises(TypeError, match="got 5 for group 'x'"):
        GroupStreams({"x": 5})
    with pytest.raises(ValueError, match="at least one stream"):
        GroupStreams([])
    with pytest.raises(ValueError, match="steps_per_epoch"):
        GroupBatchSampler(data, 10)
