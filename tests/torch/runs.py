"""Small training loops and datasets that the tests share."""

import numpy as np
import pytest

pytest.importorskip("torch.nn", reason='PyTorch is not installed: pip install "banditgrad[torch]"')
import torch
from torch.utils.data import DataLoader, TensorDataset

from banditgrad.torch import IndexedDataset

N = 200


def dataset(n=N):
    x = torch.arange(n, dtype=torch.float32)[:, None]
    return IndexedDataset(TensorDataset(x, 2 * x))


def unlike_norms(n=N):
    """Gradient norms that differ a lot from sample to sample."""
    return torch.from_numpy(np.exp(1.5 * np.random.default_rng(3).standard_normal(n)))


def equal_norms(n=N):
    return torch.ones(n)


def batches(sampler, loader, norms, stop=None, late=0):
    """Go through a loader, feeding back `late` batches later; the batches' indices and weights."""
    seen, waiting = [], []
    for _, _, idx in loader:
        seen.append((idx.tolist(), sampler.weights(idx).tolist()))
        waiting.append(idx)
        if len(waiting) > late:
            idx = waiting.pop(0)
            sampler.update(idx, norms[idx])
        if len(seen) == stop:
            break
    for idx in waiting:
        sampler.update(idx, norms[idx])
    return seen


def loader_of(sampler, workers=0, kind=DataLoader, n=None):
    return kind(dataset(n or sampler.n), batch_sampler=sampler, num_workers=workers)
