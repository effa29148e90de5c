"""Samplers: how the next row is chosen."""

from banditgrad.samplers.ada_osmd import AdaOsmd
from banditgrad.samplers.auto import Auto
from banditgrad.samplers.avare import Avare
from banditgrad.samplers.base import Sampler, SamplerState, Sampling, Setup
from banditgrad.samplers.ema_norm import EmaNorm
from banditgrad.samplers.forgetting_mabs import ForgettingMabs
from banditgrad.samplers.importance import Importance
from banditgrad.samplers.independent import draw_independent
from banditgrad.samplers.mabs import Mabs
from banditgrad.samplers.osmd import Osmd
from banditgrad.samplers.recent_norm import RecentNorm
from banditgrad.samplers.replay import Replay
from banditgrad.samplers.safe_bounds import SafeBounds
from banditgrad.samplers.tracking import Tracking
from banditgrad.samplers.uniform import Uniform
from banditgrad.samplers.vrb import Vrb

__all__ = [
    "AdaOsmd",
    "Auto",
    "Avare",
    "EmaNorm",
    "ForgettingMabs",
    "Importance",
    "Mabs",
    "Osmd",
    "RecentNorm",
    "Replay",
    "SafeBounds",
    "Sampler",
    "SamplerState",
    "Sampling",
    "Setup",
    "Tracking",
    "Uniform",
    "Vrb",
    "draw_independent",
]
