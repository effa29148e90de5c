"""Bandit sampling for PyTorch: an adaptive, unbiased batch sampler for any DataLoader.

from banditgrad.torch import BanditBatchSampler, IndexedDataset, cross_entropy_bound

sampler = BanditBatchSampler(dataset, batch_size=256, seed=0)
for x, y, idx in DataLoader(IndexedDataset(dataset), batch_sampler=sampler):
    z = model(x)
    loss = (F.cross_entropy(z, y, reduction="none") * sampler.weights(idx)).mean()
    ...
    sampler.update(idx, cross_entropy_bound(z, y))
"""

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(
        'banditgrad.torch needs PyTorch, which is not installed. Run: pip install "banditgrad[torch]"', name="torch"
    ) from error

from banditgrad.torch.batches import BanditBatchSampler
from banditgrad.torch.dataset import IndexedDataset
from banditgrad.torch.feedback import (
    LastLayer,
    binary_cross_entropy_bound,
    cross_entropy_bound,
    gradient_norms,
    loss_values,
    squared_error_bound,
)
from banditgrad.torch.guard import Guard
from banditgrad.torch.noise import Advice, NoiseMeter

__all__ = [
    "Advice",
    "BanditBatchSampler",
    "Guard",
    "IndexedDataset",
    "LastLayer",
    "NoiseMeter",
    "binary_cross_entropy_bound",
    "cross_entropy_bound",
    "gradient_norms",
    "loss_values",
    "squared_error_bound",
]
