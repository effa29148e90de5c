"""What a batch sampler is given, checked in words."""

from collections.abc import Sized
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch.utils.data import Sampler as TorchSampler

from banditgrad.samplers import Sampler, Sampling
from banditgrad.torch.guard import Guard
from banditgrad.torch.ranks import agreed_seed


def number_of_samples(who: str, dataset: Sized | int) -> int:
    if isinstance(dataset, TorchSampler):
        raise TypeError(
            f"{who} draws from a dataset, not from another sampler, got {type(dataset).__name__}. It "
            "shares batches among ranks by itself: with Lightning, pass Trainer(use_distributed_sampler=False)."
        )
    if not isinstance(dataset, (int, np.integer)) and not hasattr(dataset, "__len__"):
        raise TypeError(f"{who} expects a dataset with a length, or a number of samples, got {dataset!r}.")
    return whole(who, "the number of samples", len(dataset) if hasattr(dataset, "__len__") else dataset)


def whole(who: str, name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{who} expects {name} to be a whole number of at least 1, got {value!r}.")
    return int(value)


def share(who: str, name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < float(value) <= 1.0:
        raise ValueError(f"{who} expects {name} to be a number above 0 and up to 1, got {value!r}.")
    return float(value)


def chosen_seed(who: str, seed: int | None, generator: torch.Generator | None) -> int:
    """The seed given, or one from the generator (torch's global one, if None), the same on all ranks."""
    if seed is None:
        return agreed_seed(int(torch.randint(2**62, (), generator=generator)))
    if generator is not None:
        raise ValueError(f"{who} expects a seed or a generator, not both.")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ValueError(f"{who} expects seed to be a whole number, not negative, got {seed!r}.")
    return int(seed)


def started(who: str, sampler: Any, n: int, what: str, **options: Any) -> Sampling:
    """The sampling of n items, `what` they are called: started, or as it was given."""
    if isinstance(sampler, Sampler):
        return sampler.start(n, **options)
    if not isinstance(sampler, Sampling):
        raise TypeError(f"{who} expects a sampler such as bg.Mabs(), got {sampler!r}.")
    if sampler.n != n:
        raise ValueError(f"{who}: the sampling has {sampler.n} items, {what} {n}.")
    return sampler


def chosen_guard(who: str, guard: Any, default: Guard | None = None) -> Guard | None:
    """The guard given, the default one for True, none for False."""
    if not isinstance(guard, (Guard, bool)):
        raise TypeError(f"{who} expects a Guard, True or False as guard, got {guard!r}.")
    return (default or Guard()) if guard is True else guard or None
