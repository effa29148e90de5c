"""Samplers: how the next row is chosen."""

from banditgrad.samplers.auto import Auto
from banditgrad.samplers.base import Sampler, SamplerState, Sampling, Setup
from banditgrad.samplers.ema_norm import EmaNorm
from banditgrad.samplers.forgetting_mabs import ForgettingMabs
from banditgrad.samplers.importance import Importance
from banditgrad.samplers.mabs import Mabs
from banditgrad.samplers.recent_norm import RecentNorm
from banditgrad.samplers.replay import Replay
from banditgrad.samplers.uniform import Uniform
from banditgrad.samplers.vrb import Vrb

__all__ = [
    "Auto",
    "EmaNorm",
    "ForgettingMabs",
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
