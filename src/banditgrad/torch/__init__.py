"""Bandit sampling for PyTorch: an adaptive, unbiased batch sampler for any DataLoader.

from banditgrad.torch import bandit_loader, cross_entropy_bound

loader = bandit_loader(dataset, batch_size=256, seed=0)
sampler = loader.batch_sampler
for x, y, idx in loader:
    z = model(x)
    loss = sampler.loss(F.cross_entropy(z, y, reduction="none"), idx, norms=lambda: cross_entropy_bound(z, y))
    ...
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
from banditgrad.torch.groups import GroupBatchSampler
from banditgrad.torch.guard import Guard
from banditgrad.torch.loader import bandit_loader
from banditgrad.torch.noise import Advice, NoiseMeter
from banditgrad.torch.schedule import GainSchedule
from banditgrad.torch.streams import GroupStreams

__all__ = [
    "Advice",
    "BanditBatchSampler",
    "GainSchedule",
    "GroupBatchSampler",
    "GroupStreams",
    "Guard",
    "IndexedDataset",
    "LastLayer",
    "NoiseMeter",
    "bandit_loader",
    "binary_cross_entropy_bound",
    "cross_entropy_bound",
    "gradient_norms",
    "loss_values",
    "squared_error_bound",
]
