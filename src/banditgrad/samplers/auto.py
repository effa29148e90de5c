"""The sampler for those who do not want to choose: adaptive where it pays, uniform where it does not.

A bandit's step costs more than a uniform one, by a fifth to a half on short rows and by three quarters on the shortest
of very many, and it needs something to find. While drawing uniformly, `Auto` remembers the a_i of
every eighth item, and when one is drawn again asks what `RecentNorm` would have made of it meanwhile,

    gain = mean(a) / mean(a / (n p)),    n p = (1 - θ) ĝ / mean(ĝ) + θ n q,

with the ĝ of the draws before: a table like SAGA's makes the a_i of a row small once it is drawn, so that the norm of
the last draw tells nothing of the next, or the contrary. It switches `RecentNorm` on where the gain is worth the cost:
not while the a_i themselves fall fast from pass to pass, as those of a variance-reduced solver do on rows that are
alike. There the number of rows sets the pace, every row must be met before its part of the variance goes, and a gain at
each step saves next to no passes. While `RecentNorm` draws, every eighth a_i tells the gain that it has, mean(a) over
mean(a / (n p)) with the p that was used; where that is too little, it is uniform again, and for twice as long before
the next try.

Where a few L_i are far above the mean, uniform is not quite so: a twentieth of the draws go by the L_i. This adds at
most a twentieth to the variance, and no L_i / (n p_i), which the safe step of a solver must heed, is above twenty times
the mean of the L_i.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline
from banditgrad._random import peek, skip, uniform_index, unit
from banditgrad.samplers.base import Sampler, Setup
from banditgrad.samplers.lots import NONE
from banditgrad.samplers.rivals import RecentNorm, RecentNormState
from banditgrad.samplers.uniform import uniform_draws

WORTH_TRYING = 2.0  # the gain that must be promised
WORTH_KEEPING = 1.5  # the gain that must be had, once there was time to learn
HARMFUL = 0.95  # a gain below this ends a try before
FALLING = 0.6  # a mean of the a_i below this part of what it was a pass before needs no help
LOOK_EVERY = 8
QUARTERS = 4  # verdicts in a pass
LESSON = 2  # passes that it is given to learn, and that items are remembered for
ENOUGH = 32  # draws of remembered items from which a promise is taken
TILT = 0.05  # how much of p goes by the L_i while uniform, if any

# indices into `clock`
ON, DRAWS, LOOKS, WAIT, VERDICTS, SLOW = 0, 1, 2, 3, 4, 5  # whether adaptive; draws and looks since the last verdict;
# draws until the next one; verdicts since it was switched; the last of them without a fast fall
AGAIN, KNOWN, OFFSET = 6, 7, 8  # looks at remembered items; how many are; the first of every eighth
# indices into `sums`
MEAN, MEAN_AGAIN, MEAN_OTHER, NORMS = 0, 1, 2, 3  # of a; of a and a / (n p) where p is, or would be, adaptive; of ĝ


class AutoState(NamedTuple):
    adaptive: RecentNormState
    stream: NDArray[np.uint64]
    clock: NDArray[np.int64]
    sums: NDArray[np.float64]
    n: int
    patience: NDArray[np.int64]  # draws between two verdicts while uniform; the least
    past: NDArray[np.float64]  # the mean of the a_i at the last QUARTERS verdicts
    norms: NDArray[np.float64]  # ĝ of every eighth item, or NONE
    tilt: float  # the share of the floor while uniform

    def draw(self):
        if self.clock[ON] == 1:
            return self.adaptive.draw()
        i = uniform_index(self.stream, self.n)
        if self.tilt > 0.0:
            coin = unit(peek(self.stream, 0))
            skip(self.stream, 1)
            if coin < self.tilt:
                i = self.adaptive.floor_of.mixed_draw(self.adaptive.urn, self.stream, 1.0)
        return i

    def probability(self, i):
        if self.clock[ON] == 1:
            return self.adaptive.probability(i)
        return (1.0 - self.tilt) / self.n + self.tilt * self.adaptive.floor_of.floor(i)

    def update(self, i, p_i, a_i):
        if self.clock[ON] == 1:
            self.adaptive.update(i, p_i, a_i)
        _watch(self, i, p_i, a_i)

    def draw_many(self, lot):
        if self.clock[ON] == 1:
            self.adaptive.draw_many(lot)
        else:
            uniform_draws(self.stream, self.n, lot)
            if self.tilt > 0.0:
                self.adaptive.floor_of.tilt(self.stream, self.tilt, lot)

    def learn_many(self, lot, count):
        if self.clock[ON] == 1:
            self.adaptive.learn_many(lot, count)
        for t in range(count):
            _watch(self, lot.i[t], lot.p[t], lot.a[t])

    def statistics(self):
        return {"adaptive": bool(self.clock[ON])}


@inline
def _watch(state, i, p_i, a_i):
    """Look at an eighth of the a_i, and judge when it is time."""
    clock = state.clock
    clock[DRAWS] += 1
    if clock[ON] == 1 and clock[DRAWS] % LOOK_EVERY == 0:
        _look(state, state.n * p_i, state.n * p_i, a_i)
    if clock[ON] == 0 and i % LOOK_EVERY == clock[OFFSET]:
        clock[LOOKS] += 1
        state.sums[MEAN] += a_i / (state.n * p_i)
        _remember(state, i, state.n * p_i, a_i)
    if clock[DRAWS] >= clock[WAIT]:
        _judge(state)


@inline
def _look(state, n_p, adaptive, a_i):
    """Take down the a_i of an item drawn with n p_i, which is, or would be, `adaptive` for `RecentNorm`."""
    state.clock[AGAIN] += 1
    state.sums[MEAN_AGAIN] += a_i / n_p
    state.sums[MEAN_OTHER] += a_i / (n_p * adaptive)


@inline
def _remember(state, i, n_p, a_i):
    clock, sums, adaptive, k = state.clock, state.sums, state.adaptive, i // LOOK_EVERY
    before, norm = state.norms[k], math.sqrt(a_i)
    if before == NONE:
        clock[KNOWN] += 1
        before = 0.0
    else:
        share = before * clock[KNOWN] / sums[NORMS] if sums[NORMS] > 0.0 else 1.0
        floor = state.n * adaptive.floor_of.floor(i)
        _look(state, n_p, (1.0 - adaptive.theta) * share + adaptive.theta * floor, a_i)
        norm = math.sqrt(adaptive.memory * before * before + (1.0 - adaptive.memory) * a_i)
    sums[NORMS] += norm - before
    state.norms[k] = norm


@inline
def _judge(state):
    """Switch on or off where the gain says so."""
    clock, sums, patience = state.clock, state.sums, state.patience
    gain = sums[MEAN_AGAIN] / sums[MEAN_OTHER] if sums[MEAN_OTHER] > 0.0 else 1.0
    clock[DRAWS] = 0
    if clock[ON] == 0:
        falls = _falls(state, sums[MEAN] / max(clock[LOOKS], 1))
        clock[WAIT] = patience[0]
        if not falls and clock[AGAIN] >= ENOUGH and gain > WORTH_TRYING:
            _switch(state, 1)
        elif clock[VERDICTS] * patience[0] % (LESSON * state.n) < patience[0]:
            _forget(state)
        sums[MEAN] = 0.0
        clock[LOOKS] = 0
        return
    clock[VERDICTS] += 1
    learnt = clock[VERDICTS] >= LESSON * QUARTERS
    if gain < HARMFUL or (learnt and gain < WORTH_KEEPING):
        patience[0] *= 2
        _switch(state, 0)
    elif learnt:
        patience[0] = patience[1]
        clock[VERDICTS] -= QUARTERS
        _forget(state)


@inline
def _switch(state, on):
    clock = state.clock
    clock[ON] = on
    clock[VERDICTS] = 0
    clock[SLOW] = QUARTERS
    clock[WAIT] = state.patience[1 if on == 1 else 0]
    _forget(state)


@inline
def _forget(state):
    """Begin to measure the gain anew, with other items."""
    clock, sums = state.clock, state.sums
    clock[OFFSET] = (clock[OFFSET] + 1) % min(LOOK_EVERY, state.n)
    clock[AGAIN] = 0
    clock[KNOWN] = 0
    sums[MEAN_AGAIN] = 0.0
    sums[MEAN_OTHER] = 0.0
    sums[NORMS] = 0.0
    for k in range(state.norms.size):
        state.norms[k] = NONE


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

    Where the L_i are known, `RecentNorm` has a floor made half of 1/n and half of shares ∝ L_i: with such a floor the
    safe step of a solver follows the mean of the L_i, not the largest.
    """

    def state(self, setup: Setup) -> Any:
        L = setup.smoothness
        heavy = L is not None and TILT * L.max() > L.mean()
        patience = max(256, setup.n // QUARTERS)
        return AutoState(
            adaptive=RecentNorm(theta=0.5, mix="uniform" if L is None else "blend").state(setup),
            stream=setup.stream,
            clock=np.array([0, 0, 0, patience, 0, QUARTERS, 0, 0, 0]),
            sums=np.zeros(4),
            n=setup.n,
            patience=np.array([patience, patience]),
            past=np.zeros(QUARTERS),
            norms=np.full(setup.n // LOOK_EVERY + 1, NONE),
            tilt=2.0 * TILT if heavy else 0.0,  # half of the floor is uniform
        )
