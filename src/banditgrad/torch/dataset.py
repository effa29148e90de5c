"""A dataset whose samples say which one they are."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset, TensorDataset
from torch.utils.data._utils.collate import collate, default_collate_fn_map


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
        return with_index(self.dataset[i], i)

    def __getitems__(self, indices: Sequence[int]) -> Sequence[Any]:
        """The samples of a whole batch; torch's loaders prefer to ask for this."""
        if type(self.dataset) is TensorDataset:  # one look-up per tensor, not per sample
            chosen = torch.from_numpy(np.array(indices, dtype=np.int64))
            tensors = self.dataset.tensors  # which may lie on a GPU, where an index must lie as well
            return _Batch([tensor.index_select(0, chosen.to(tensor.device)) for tensor in tensors], chosen)
        if hasattr(self.dataset, "__getitems__"):
            samples = self.dataset.__getitems__(indices)
        else:
            samples = [self.dataset[i] for i in indices]
        pairs = zip(samples, indices, strict=True)
        if all(type(sample) is tuple for sample in samples):  # the usual case, without a call per sample
            return [(*sample, i) for sample, i in pairs]
        return [with_index(sample, i) for sample, i in pairs]


def with_index(sample: Any, i: int) -> Any:
    if isinstance(sample, (tuple, list)):
        return (*sample, i)
    if isinstance(sample, Mapping):
        return {**sample, "index": i}
    return sample, i


def without_index(batch: Any) -> tuple[Any, Any]:
    """A batch as a loader of the plain dataset gives it, and the indices of its samples."""
    if isinstance(batch, Mapping) and "index" in batch:
        return {name: value for name, value in batch.items() if name != "index"}, batch["index"]
    if isinstance(batch, (tuple, list)) and len(batch) > 1:
        return batch[:-1], batch[-1]
    raise TypeError(
        f"A batch of {type(batch).__name__} has no index of its samples. Make its loader with bandit_loader, or of an "
        "IndexedDataset."
    )


class _Sample(tuple):
    """A sample of a `_Batch`. Its type tells torch's default collation what to do with the batch it is of."""

    __slots__ = ()


class _Batch(Sequence[_Sample]):
    """Samples that were looked up together: a sequence of tuples, which default collation need not take apart and put
    together again. Both take longer than the look-up."""

    def __init__(self, tensors: list[torch.Tensor], indices: torch.Tensor) -> None:
        self.columns = [*tensors, indices]

    def __len__(self) -> int:
        return len(self.columns[-1])

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            return [*self][k]
        *values, i = (column[k] for column in self.columns)
        return _Sample((*values, int(i)))

    def __iter__(self) -> Iterator[_Sample]:
        *tensors, indices = self.columns
        return map(_Sample, zip(*(tensor.unbind() for tensor in tensors), indices.tolist(), strict=True))


def _collate(batch: Sequence[_Sample], *, collate_fn_map: Any) -> list[torch.Tensor]:
    if isinstance(batch, _Batch):
        return batch.columns
    return collate([tuple(sample) for sample in batch], collate_fn_map=collate_fn_map)


default_collate_fn_map[_Sample] = _collate
