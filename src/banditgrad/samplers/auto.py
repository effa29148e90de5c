"""The sampler for those who do not want to choose: adaptive where it pays, uniform where it does not.

A bandit's step costs more than a uniform one, by a fifth to a half on short rows and by three quarters on the shortest
of very many, and it needs something to find. While drawing uniformly, `Auto` looks at every eighth a_i and
asks what `RecentNorm` would make of them,

    gain = mean(a) / mean(a / (n p)),    n p = (1 - θ) √a / mean(√a) + θ,

and switches it on where the gain is worth the cost: not while the a_i themselves fall fast from pass to pass, as those
of a variance-reduced solver do on rows that are alike. There the number of rows sets the pace, every row must be met
before its part of the variance goes, and a gain at each step saves next to no passes. While `RecentNorm` draws, the
same a_i tell the gain that it has, mean(a) over mean(a / (n p)) with the p that was used; where that is too little, it
is uniform again, and for twice as long before the next try.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline
from banditgrad._random import uniform_index
from banditgrad.samplers.base import Sampler, Setup
from banditgrad.samplers.rivals import RecentNorm, RecentNormState
from banditgrad.samplers.uniform import uniform_draws

WORTH_TRYING = 2.5  # the gain that must be promised
WORTH_KEEPING = 1.5  # the gain that must be had
FALLING = 0.6  # a mean of the a_i below this part of what it was a pass before needs no help
LOOK_EVERY = 8
QUARTERS = 4  # verdicts in a pass of uniform draws

ON, DRAWS, LOOKS, WAIT, VERDICTS, SLOW = 0, 1, 2, 3, 4, 5  # indices into `clock`: whether adaptive; draws and looks
# since the last verdict; draws until the next one; verdicts since it is uniform; the last of them without a fast fall
MEAN, MEAN_ROOT, MEAN_OTHER, ROOT = 0, 1, 2, 3  # indices into `sums`: of a, √a and a / (n p); the last mean of √a


class AutoState(NamedTuple):
    adaptive: RecentNormState
    stream: NDArray[np.uint64]
    clock: NDArray[np.int64]
    sums: NDArray[np.float64]
    n: int
    patience: NDArray[np.int64]  # draws between two verdicts while uniform; the least
    past: NDArray[np.float64]  # the mean of the a_i at the last QUARTERS verdicts

    def draw(self):
        return self.adaptive.draw() if self.clock[ON] == 1 else uniform_index(self.stream, self.n)

    def probability(self, i):
        return self.adaptive.probability(i) if self.clock[ON] == 1 else 1.0 / self.n

    def update(self, i, p_i, a_i):
        if self.clock[ON] == 1:
            self.adaptive.update(i, p_i, a_i)
        _watch(self, p_i, a_i)

    def draw_many(self, lot):
        if self.clock[ON] == 1:
            self.adaptive.draw_many(lot)
        else:
            uniform_draws(self.stream, self.n, lot)

    def learn_many(self, lot, count):
        if self.clock[ON] == 1:
            self.adaptive.learn_many(lot, count)
        for t in range(count):
            _watch(self, lot.p[t], lot.a[t])

    def statistics(self):
        return {"adaptive": bool(self.clock[ON])}


@inline
def _watch(state, p_i, a_i):
    """Look at every eighth a_i, and judge when it is time."""
    clock = state.clock
    clock[DRAWS] += 1
    if clock[DRAWS] % LOOK_EVERY == 0:
        _look(state, p_i, a_i)
        if clock[DRAWS] >= clock[WAIT]:
            _judge(state)


@inline
def _look(state, p_i, a_i):
    sums, n_p = state.sums, state.n * p_i
    root, theta = math.sqrt(a_i), state.adaptive.theta
    state.clock[LOOKS] += 1
    sums[MEAN] += a_i / n_p
    sums[MEAN_ROOT] += root / n_p
    other = n_p
    if state.clock[ON] == 0:
        other = (1.0 - theta) * root / sums[ROOT] + theta if sums[ROOT] > 0.0 else 1.0
    sums[MEAN_OTHER] += a_i / (n_p * other)


@inline
def _judge(state):
    """Switch on or off, and begin to count anew."""
    clock, sums, patience = state.clock, state.sums, state.patience
    gain = sums[MEAN] / sums[MEAN_OTHER] if sums[MEAN_OTHER] > 0.0 else 1.0
    if clock[ON] == 1 and gain < WORTH_KEEPING:
        clock[ON] = 0
        clock[VERDICTS] = 0
        clock[SLOW] = QUARTERS
        patience[0] *= 2
        clock[WAIT] = patience[0]
    elif clock[ON] == 0 and not _falls(state, sums[MEAN] / clock[LOOKS]) and gain > WORTH_TRYING:
        clock[ON] = 1
        clock[WAIT] = 2 * state.n  # it needs a pass to learn
    elif clock[ON] == 1:
        clock[WAIT] = state.n
        patience[0] = patience[1]
    else:
        clock[WAIT] = patience[0]
    sums[ROOT] = sums[MEAN_ROOT] / clock[LOOKS]
    sums[MEAN] = 0.0
    sums[MEAN_ROOT] = 0.0
    sums[MEAN_OTHER] = 0.0
    clock[DRAWS] = 0
    clock[LOOKS] = 0


@inline
def _falls(state, mean):
    """Whether the a_i fell fast at some time in the last pass; remembers their mean, smoothed over verdicts."""
    clock, past, patience = state.clock, state.past, state.patience[0]
    verdicts = clock[VERDICTS]
    if verdicts > 0:
        last = past[(verdicts - 1) % QUARTERS]
        mean = last + (mean - last) / QUARTERS
    back = max(1, min(QUARTERS, state.n // patience))  # verdicts in a pass
    fast = verdicts >= back and mean < past[(verdicts - back) % QUARTERS] * FALLING ** (back * patience / state.n)
    past[verdicts % QUARTERS] = mean
    clock[VERDICTS] += 1
    clock[SLOW] = 0 if fast else clock[SLOW] + 1
    return clock[SLOW] < back


@dataclass(frozen=True)
class Auto(Sampler):
    """`RecentNorm` where it pays, uniform where it does not, as measured while running.

    Where the L_i are known and differ much, it starts as `RecentNorm`, with a floor made half of 1/n and half of
    shares ∝ L_i: with such a floor the safe step of a solver follows the mean of the L_i, not the largest.
    """

    def state(self, setup: Setup) -> Any:
        L = setup.smoothness
        differ = L is not None and L.max() > 0.0 and L.mean() > WORTH_KEEPING * np.sqrt(L).mean() ** 2
        mix = "uniform" if L is None else "blend"
        patience = max(256, setup.n // QUARTERS)
        return AutoState(
            adaptive=RecentNorm(theta=0.5, mix=mix).state(setup),
            stream=setup.stream,
            clock=np.array([int(differ), 0, 0, 2 * max(setup.n, 256) if differ else patience, 0, QUARTERS]),
            sums=np.zeros(4),
            n=setup.n,
            patience=np.array([patience, patience]),
            past=np.zeros(QUARTERS),
        )
