"""A loader in one line."""

import inspect
from typing import Any

from torch.utils.data import DataLoader

from banditgrad.samplers import Sampler, Sampling
from banditgrad.torch.batches import BanditBatchSampler
from banditgrad.torch.dataset import IndexedDataset

_OF_THE_SAMPLER = inspect.signature(BanditBatchSampler).parameters.keys() - {"dataset"}
_TAKEN = ("shuffle", "batch_sampler")


def bandit_loader(
    dataset: Any, batch_size: int, sampler: Sampler | Sampling | None = None, **options: Any
) -> DataLoader[Any]:
    """A DataLoader whose batches a `BanditBatchSampler` draws; samples come with their index, as from `IndexedDataset`.

    Its ``batch_sampler`` is the sampler. Options of `BanditBatchSampler` (``seed``, ``replacement``, ``guard``, ...) go
    there, all others (``num_workers``, ``collate_fn``, ...) to DataLoader.

    Example
    -------
    >>> loader = bandit_loader(dataset, 64, seed=0, num_workers=2)
    >>> sampler = loader.batch_sampler
    >>> for x, y, idx in loader:
    ...     loss = sampler.loss(F.cross_entropy(model(x), y, reduction="none"), idx)
    """
    for name in _TAKEN:
        if name in options:
            raise TypeError(f"bandit_loader expects no {name}: the order of samples is the BanditBatchSampler's.")
    own = {name: options.pop(name) for name in _OF_THE_SAMPLER & options.keys()}
    indexed = dataset if isinstance(dataset, IndexedDataset) else IndexedDataset(dataset)
    return DataLoader(indexed, batch_sampler=BanditBatchSampler(indexed, batch_size, sampler, **own), **options)
