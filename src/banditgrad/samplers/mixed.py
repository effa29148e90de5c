"""What adaptive samplers have in common: draws from p = (1 - θ) w/W + θ q, and a rule by which a drawn weight changes.

A state is a NamedTuple with the fields `weighted`, `floor_of`, `stream` and `theta`, and the rule, `learn`; the class
decorator `mixed` adds what `SamplerState` asks for. Rules that put gradient norms themselves in place of weights need
to know how large a typical norm is: they draw from equal weights during a warm-up of √n + 16 draws, whose mean
feedback is the unit from then on (`warm`).
"""

import math
from typing import Any, Protocol

import numpy as np

from banditgrad._jit import bridge, default, inline
from banditgrad.samplers.base import Sampler, Setup
from banditgrad.samplers.floors import mixed_draws, new_floor
from banditgrad.samplers.importance import require
from banditgrad.samplers.weighted import fill, new_weighted_sampler

WARM_UP = np.dtype([("made", "i8"), ("needed", "i8")])  # draws


@bridge
class Rule(Protocol):
    """What a state says itself."""

    def learn(self, k, p_i, a_i):
        """Learn a_i of the item of entry k, which was drawn with probability p_i."""

    @default
    def floor_share(self):
        """The share of q in p, as of now."""
        return self.theta


def mixed(state: type) -> Any:
    """Class decorator: the methods of `SamplerState` for a state with a `Rule`."""
    for method in (draw, probability, update, draw_many, learn_many):
        setattr(state, method.__name__, method)
    return state


def draw(self):
    return self.floor_of.mixed_draw(self.weighted, self.stream, self.floor_share())


def probability(self, i):
    theta = self.floor_share()
    return (1.0 - theta) * self.weighted.share(i) + theta * self.floor_of.floor(i)


def update(self, i, p_i, a_i):
    self.learn(np.uint64(self.weighted.where[i]), p_i, a_i)


def draw_many(self, block):
    mixed_draws(self.floor_of, self.weighted, self.stream, self.floor_share(), block)


def learn_many(self, block, count):
    self.weighted.fetch_many(block, count)
    for t in range(count):
        self.learn(self.weighted.find(block.i[t], block.entry[t]), block.p[t], block.a[t])


@inline
def warm(state, p_i, a_i):
    """Whether the warm-up is over; until then, average the feedback. A warm-up of zeros goes on."""
    warm_up = state.warm_up[0]
    if warm_up.made >= warm_up.needed and state.unit[0] > 0.0:
        return True
    warm_up.made += 1
    state.unit[0] += (a_i / (state.weighted.where.size * p_i) - state.unit[0]) / warm_up.made
    return False


def equal_weights(setup: Setup, mix: str = "uniform") -> dict[str, Any]:
    """The fields of a mixed state to begin with, except θ: all weights 1, and q."""
    weighted = new_weighted_sampler(setup.n)
    fill(weighted, np.ones(setup.n))
    q = None
    if mix != "uniform":
        q = require(setup.smoothness, f"mix={mix!r}", "smoothness", "the L_i")
        q = q if q.max() > 0.0 else None
        if mix == "blend" and q is not None:
            q = q / q.mean() + 1.0
    return {"weighted": weighted, "floor_of": new_floor(q, setup.n), "stream": setup.stream}


def cold(n: int) -> dict[str, Any]:
    """The fields that `warm` needs, to begin with."""
    return {"unit": np.zeros(1), "warm_up": np.array([(0, math.isqrt(n) + 16)], WARM_UP)}


def expect_mix(sampler: Sampler, mix: str) -> None:
    if mix not in ("uniform", "smoothness", "blend"):
        raise ValueError(f'{type(sampler).__name__} expects mix="uniform", "smoothness" or "blend", got {mix!r}.')


def expect_share(sampler: Sampler, name: str, value: float) -> None:
    if not 0.0 < value <= 1.0:
        raise ValueError(f"{type(sampler).__name__} expects 0 < {name} <= 1, got {value!r}.")


def expect_memory(sampler: Sampler, memory: float) -> None:
    if not 0.0 <= memory < 1.0:
        raise ValueError(f"{type(sampler).__name__} expects 0 <= memory < 1, got {memory!r}.")
