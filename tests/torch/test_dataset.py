import pytest

pytest.importorskip("torch.nn", reason='PyTorch is not installed: pip install "banditgrad[torch]"')
import torch
from torch.utils.data import Dataset, IterableDataset, TensorDataset, default_collate
from torch.utils.data._utils.collate import collate

from banditgrad.torch import IndexedDataset


class Words(Dataset):
    """Samples one by one, of whatever kind."""

    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        return self.samples[i]


class WordsAtOnce(Words):
    def __getitems__(self, indices):
        return [self.samples[i] for i in indices]


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(3))


@pytest.mark.parametrize("kind", [Words, WordsAtOnce])
@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([("a", 0), ("b", 1)], ("b", 1, 1)),
        ([["a", 0], ["b", 1]], ("b", 1, 1)),
        (["a", "b"], ("b", 1)),
        ([{"word": "a"}, {"word": "b"}], {"word": "b", "index": 1}),
    ],
)
def test_the_index_comes_with_the_sample(kind, samples, expected):
    dataset = IndexedDataset(kind(samples))
    assert len(dataset) == 2
    assert dataset[1] == expected
    assert dataset.__getitems__([0, 1, 1])[1:] == [expected, expected]


def test_tensors_at_once_are_the_samples_one_by_one():
    rows = torch.arange(12.0).reshape(4, 3)
    dataset = IndexedDataset(TensorDataset(rows, rows[:, 0].long()))
    for sample, i in zip(dataset.__getitems__([3, 0, 3]), [3, 0, 3], strict=True):
        for one, other in zip(sample, dataset[i], strict=True):
            assert torch.equal(torch.as_tensor(one), torch.as_tensor(other))
        assert sample[1].dtype == torch.int64


def test_indices_collate_to_whole_numbers():
    dataset = IndexedDataset(TensorDataset(torch.zeros(3, 2)))
    _, idx = default_collate(dataset.__getitems__([2, 0]))
    assert idx.dtype == torch.int64
    assert idx.tolist() == [2, 0]


def test_tensors_at_once_collate_like_the_samples_one_by_one():
    rows = torch.arange(12.0).reshape(4, 3)
    dataset = IndexedDataset(TensorDataset(rows, rows[:, 0].long()))
    batch, chosen = dataset.__getitems__([3, 0, 3]), [3, 0, 3]
    expected = default_collate([dataset[i] for i in chosen])
    custom = collate(
        batch, collate_fn_map={torch.Tensor: lambda batch, collate_fn_map: torch.stack(batch), int: _whole}
    )
    for collated in (default_collate(batch), default_collate(list(batch)), default_collate(batch[0:3]), custom):
        for one, other in zip(collated, expected, strict=True):
            assert torch.equal(one, other)
            assert one.dtype == other.dtype
    assert len(batch) == 3
    assert batch[-1][2] == 3
    rows.zero_()
    assert batch[0][0].tolist() == [9.0, 10.0, 11.0]  # a copy


def _stacked(batch, collate_fn_map):
    return torch.stack(batch)


def _whole(batch, collate_fn_map):
    return torch.tensor(batch)


def test_streams_are_refused():
    with pytest.raises(TypeError, match="cannot be asked for by their number"):
        IndexedDataset(Stream())
    with pytest.raises(TypeError, match="got generator"):
        IndexedDataset(i for i in range(3))
