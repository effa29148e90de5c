"""A dataset whose samples say which one they are."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils.data import Dataset, IterableDataset, TensorDataset


class IndexedDataset(Dataset):
    """`dataset` with the index of every sample appended: ``(*sample, i)``.

    A sample that is not a tuple or list becomes ``(sample, i)``; a dictionary gets the key "index".
    """

    def __init__(self, dataset: Any) -> None:
        if isinstance(dataset, IterableDataset) or not (
            hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
        ):
            raise TypeError(
                f"IndexedDataset expects a dataset with __getitem__ and __len__, got {type(dataset).__name__}: "
                "samples that cannot be asked for by their number cannot be drawn."
            )
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, i: int) -> Any:
        return _with_index(self.dataset[i], i)

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """The samples of a whole batch; torch's loaders prefer to ask for this."""
        if type(self.dataset) is TensorDataset:  # one look-up per tensor, not per sample
            chosen = torch.as_tensor(indices)
            return list(zip(*(tensor[chosen].unbind() for tensor in self.dataset.tensors), indices, strict=True))
        if hasattr(self.dataset, "__getitems__"):
            samples = self.dataset.__getitems__(indices)
        else:
            samples = [self.dataset[i] for i in indices]
        pairs = zip(samples, indices, strict=True)
        if all(type(sample) is tuple for sample in samples):  # the usual case, without a call per sample
            return [(*sample, i) for sample, i in pairs]
        return [_with_index(sample, i) for sample, i in pairs]


def _with_index(sample: Any, i: int) -> Any:
    if isinstance(sample, (tuple, list)):
        return (*sample, i)
    if isinstance(sample, Mapping):
        return {**sample, "index": i}
    return sample, i
