"""What a batch sampler is given, checked in words."""

from collections.abc import Sized
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch.utils.data import Sampler as TorchSampler

from banditgrad.torch.ranks import agreed_seed


def number_of_samples(dataset: Sized | int) -> int:
    if isinstance(dataset, TorchSampler):
        raise TypeError(
            f"BanditBatchSampler draws from a dataset, not from another sampler, got {type(dataset).__name__}. It "
            "shares batches among ranks by itself: with Lightning, pass Trainer(use_distributed_sampler=False)."
        )
    if not isinstance(dataset, (int, np.integer)) and not hasattr(dataset, "__len__"):
        raise TypeError(f"BanditBatchSampler expects a dataset with a length, or a number of samples, got {dataset!r}.")
    return whole(len(dataset) if hasattr(dataset, "__len__") else dataset, "the number of samples")


def whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"BanditBatchSampler expects {name} to be a whole number of at least 1, got {value!r}.")
    return int(value)


def share(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < float(value) <= 1.0:
        raise ValueError(f"BanditBatchSampler expects {name} to be a number above 0 and up to 1, got {value!r}.")
    return float(value)


def chosen_seed(seed: int | None, generator: torch.Generator | None) -> int:
    """The seed given, or one from the generator (torch's global one, if None), the same on all ranks."""
    if seed is None:
        return agreed_seed(int(torch.randint(2**62, (), generator=generator)))
    if generator is not None:
        raise ValueError("BanditBatchSampler expects a seed or a generator, not both.")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ValueError(f"BanditBatchSampler expects seed to be a whole number, not negative, got {seed!r}.")
    return int(seed)
