"""The sampler for those who do not want to choose: adaptive where it pays, uniform where it does not.

A bandit's step costs more than a uniform one, by a fifth to a half on short rows and by three quarters on the shortest
of very many, and it needs something to find. While drawing uniformly, `Auto` remembers the norms √a_i of every eighth
item, and when one is drawn again asks what `RecentNorm` would have made of it meanwhile,

    gain = mean(a) / mean(a / (n p)),    n p = (1 - θ) ĝ / mean(ĝ) + θ n q,

with the ĝ of the draws before. It switches `RecentNorm` on where the gain is worth the cost. From then on every draw
tells the gain that there is, with the p that was used; where that is too little once there was time to learn, or at any
time less than none, it is uniform again, and for twice as long before the next try.

Norms are measured in units of their mean over the last few hundred draws. Those of a variance-reduced solver change by
orders of magnitude, within a bin and from one to the next, all together: what an item had long ago tells how it
compares with others, not how large it is now.

A table like SAGA's is the exception. A draw uses up the norm of its item, which then grows with time: norms are smaller
where an item is drawn again soon. There the unit is fixed when `RecentNorm` begins. As norms fall, items not drawn
since keep the larger weights, and come first. What this saves is passes more than variance, and nothing measured before
could promise it: it is tried.

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
from banditgrad.samplers.blocks import NONE
from banditgrad.samplers.recent_norm import RecentNorm, RecentNormState
from banditgrad.samplers.uniform import uniform_draws

WORTH = 1.5  # the gain that must be promised, and had once there was time to learn
HARMFUL = 0.95  # a gain below this ends a try before
USED_UP = 0.75  # norms of items drawn not long ago below this part of others' are used up by the draw
LOOK_EVERY = 8
LEVEL_OVER = 512  # draws that the level of the norms is a mean of
FADE = 0.75  # how much of the sums is left after a verdict while adaptive
LESSON = 2  # passes that it is given to learn, and that items are remembered for
ENOUGH = 32  # draws of remembered items from which a promise is taken
TILT = 0.05  # how much of p goes by the L_i while uniform, if any

# indices into `clock`
ON, DRAWS, WAIT, VERDICTS = 0, 1, 2, 3  # whether adaptive; draws since the last verdict and until the next; verdicts
# since it was switched
KNOWN, AGAIN, OFFSET, FIXED = 4, 5, 6, 7  # items remembered; looks at them; the first of every eighth; whether ĝ is
# measured in a fixed unit
# indices into `sums`
LEVEL, MEAN, MEAN_OTHER = 0, 1, 2  # the mean of √a; of a and a / (n p) where p is, or would be, adaptive
NORMS, FIRST, LATER = 3, 4, 5  # of ĝ; of √a of items met first, and of those met again, in units of the level


class AutoState(NamedTuple):
    adaptive: RecentNormState
    stream: NDArray[np.uint64]
    clock: NDArray[np.int64]
    sums: NDArray[np.float64]
    n: int
    patience: NDArray[np.int64]  # draws between two verdicts while uniform; the least of these; while adaptive
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
                i = self.adaptive.floor_of.mixed_draw(self.adaptive.weighted, self.stream, 1.0)
        return i

    def probability(self, i):
        if self.clock[ON] == 1:
            return self.adaptive.probability(i)
        return (1.0 - self.tilt) / self.n + self.tilt * self.adaptive.floor_of.floor(i)

    def update(self, i, p_i, a_i):
        if self.clock[ON] == 1:
            self.adaptive.update(i, p_i, a_i)
        _watch(self, i, p_i, a_i)

    def draw_many(self, block):
        if self.clock[ON] == 1:
            self.adaptive.draw_many(block)
        else:
            uniform_draws(self.stream, self.n, block)
            if self.tilt > 0.0:
                self.adaptive.floor_of.tilt(self.stream, self.tilt, block)

    def learn_many(self, block, count):
        if self.clock[ON] == 1:
            self.adaptive.learn_many(block, count)
        for t in range(count):
            _watch(self, block.i[t], block.p[t], block.a[t])

    def statistics(self):
        return {"adaptive": bool(self.clock[ON])}


@inline
def _watch(state, i, p_i, a_i):
    """Look at an eighth of the a_i, or while adaptive at all, and judge when it is time."""
    clock, n_p = state.clock, state.n * p_i
    clock[DRAWS] += 1
    if clock[ON] == 1:
        _look(state, n_p, n_p, _in_units(state, math.sqrt(a_i), n_p, 1.0 / LEVEL_OVER))
    elif i % LOOK_EVERY == clock[OFFSET]:
        _remember(state, i, n_p, _in_units(state, math.sqrt(a_i), n_p, LOOK_EVERY / LEVEL_OVER))
    if clock[DRAWS] >= clock[WAIT]:
        _judge(state)


@inline
def _in_units(state, norm, n_p, share):
    """The norm in units of the mean of all, which it counts in."""
    sums = state.sums
    sums[LEVEL] += (norm / n_p - sums[LEVEL]) * (share if sums[LEVEL] > 0.0 else 1.0)
    square = sums[LEVEL] * sums[LEVEL]
    if state.clock[FIXED] == 0 and square > 0.0:
        state.adaptive.unit[0] = square
    return norm / sums[LEVEL] if sums[LEVEL] > 0.0 else 1.0


@inline
def _look(state, n_p, adaptive, norm):
    """Take down the norm of an item drawn with n p_i, which is, or would be, `adaptive` for `RecentNorm`."""
    a = norm * norm / n_p
    state.sums[MEAN] += a
    state.sums[MEAN_OTHER] += a / adaptive


@inline
def _remember(state, i, n_p, norm):
    clock, sums, adaptive, k = state.clock, state.sums, state.adaptive, i // LOOK_EVERY
    before = state.norms[k]
    if before == NONE:
        clock[KNOWN] += 1
        sums[FIRST] += norm / n_p
        before = 0.0
    else:
        clock[AGAIN] += 1
        sums[LATER] += norm / n_p
        share = before * clock[KNOWN] / sums[NORMS] if sums[NORMS] > 0.0 else 1.0
        floor = state.n * adaptive.floor_of.floor(i)
        _look(state, n_p, (1.0 - adaptive.theta) * share + adaptive.theta * floor, norm)
        norm = math.sqrt(adaptive.memory * before * before + (1.0 - adaptive.memory) * norm * norm)
    sums[NORMS] += norm - before
    state.norms[k] = norm


@inline
def _judge(state):
    """Switch on or off where the gain says so."""
    clock, sums, patience = state.clock, state.sums, state.patience
    gain = sums[MEAN] / sums[MEAN_OTHER] if sums[MEAN_OTHER] > 0.0 else 1.0
    clock[DRAWS] = 0
    clock[VERDICTS] += 1
    if clock[ON] == 0:
        used_up = sums[LATER] * clock[KNOWN] < USED_UP * sums[FIRST] * clock[AGAIN]
        if clock[AGAIN] >= ENOUGH and (gain > WORTH or used_up):
            clock[FIXED] = 1 if used_up else 0
            _switch(state, 1)
        elif clock[VERDICTS] * patience[0] % (LESSON * state.n) < patience[0]:
            _forget(state)
        return
    sums[MEAN] *= FADE
    sums[MEAN_OTHER] *= FADE
    learnt = clock[VERDICTS] * patience[2] >= LESSON * state.n
    if gain < HARMFUL or (learnt and gain < WORTH):
        patience[0] *= 2
        _switch(state, 0)
    elif learnt:
        patience[0] = patience[1]


@inline
def _switch(state, on):
    clock = state.clock
    clock[ON] = on
    clock[VERDICTS] = 0
    clock[WAIT] = state.patience[2 if on == 1 else 0]
    _forget(state)


@inline
def _forget(state):
    """Begin to measure the gain anew, with other items."""
    clock, sums = state.clock, state.sums
    clock[OFFSET] = (clock[OFFSET] + 1) % min(LOOK_EVERY, state.n)
    clock[AGAIN] = 0
    clock[KNOWN] = 0
    sums[MEAN : LATER + 1] = 0.0
    for k in range(state.norms.size):
        state.norms[k] = NONE


def begins_uniform(L: NDArray[np.float64]) -> bool:
    """Whether it takes these L_i for so alike that it only watches at first."""
    return not (_heavy(L) or _differ(L))


def _heavy(L: NDArray[np.float64]) -> bool:
    return bool(TILT * L.max() > L.mean())


def _differ(L: NDArray[np.float64]) -> bool:
    return bool(L.mean() > WORTH * np.sqrt(L).mean() ** 2)


@dataclass(frozen=True)
class Auto(Sampler):
    """`RecentNorm` where it pays, uniform where it does not, as measured while running.

    Where the L_i are known, `RecentNorm` has a floor made half of 1/n and half of shares ∝ L_i: with such a floor the
    safe step of a solver follows the mean of the L_i, not the largest. Where they differ much, it starts as
    `RecentNorm`.
    """

    def state(self, setup: Setup) -> Any:
        L = setup.smoothness
        heavy, differ = L is not None and _heavy(L), L is not None and _differ(L)
        patience = [max(256, setup.n // part) for part in (4, 4, 16)]
        clock = np.zeros(8, np.int64)
        clock[ON], clock[WAIT] = differ, patience[2 if differ else 0]
        return AutoState(
            adaptive=RecentNorm(theta=0.5, mix="uniform" if L is None else "blend").state(setup),
            stream=setup.stream,
            clock=clock,
            sums=np.zeros(6),
            n=setup.n,
            patience=np.array(patience),
            norms=np.full(setup.n // LOOK_EVERY + 1, NONE),
            tilt=2.0 * TILT if heavy else 0.0,  # half of the floor is uniform
        )
