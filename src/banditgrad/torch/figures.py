"""What frameworks log of a batch sampler."""

import math

from banditgrad.torch.base import AdaptiveBatchSampler

NAMES = ("saving", "tau", "noise_scale", "adaptive")


def figures(sampler: AdaptiveBatchSampler) -> dict[str, float]:
    """By name, the meter's figures as far as they are measured."""
    known = sampler.statistics()
    return {f"bandit/{name}": float(known[name]) for name in NAMES if math.isfinite(known.get(name, math.nan))}
