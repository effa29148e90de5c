"""Samplers: how the next row is chosen."""

from banditgrad.samplers.auto import Auto
from banditgrad.samplers.base import Sampler, SamplerState, Sampling, Setup
from banditgrad.samplers.importance import Importance
from banditgrad.samplers.mabs import Mabs
from banditgrad.samplers.replay import Replay
from banditgrad.samplers.rivals import RecentNorm, Vrb
from banditgrad.samplers.uniform import Uniform

__all__ = [
    "Auto",
    "Importance",
    "Mabs",
    "RecentNorm",
    "Replay",
    "Sampler",
    "SamplerState",
    "Sampling",
    "Setup",
    "Uniform",
    "Vrb",
]
