"""Groups of samples as arms: batches are allocated to groups, and each group deals its members in shuffled passes.

A batch of B has B p_g samples of group g, rounded up or down by systematic sampling (Madow 1949), so that it is a
stratified sample as well. Weighted by q_g / p_g, its mean gradient has the expectation Σ_g q_g (mean gradient of g),
whatever p is. For draws that are independent its variance is least for p_g ∝ q_g √(mean squared norm in g), which is
Neyman's optimal allocation (1934) with second moments in place of variances.
"""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from banditgrad._jit import kernel
from banditgrad._random import new_stream, peek, shuffle, skip, unit
from banditgrad.samplers import Sampling
from banditgrad.torch.sources import Draw
from banditgrad.torch.tensors import from_tensors, to_tensors


class Members:
    """The samples of each group, dealt in shuffled passes without replacement."""

    def __init__(self, group_of: NDArray[np.int64], groups: int) -> None:
        self.samples = group_of.size
        self.group_of = group_of
        self.order = np.argsort(group_of, kind="stable")
        self.ends = np.cumsum(np.bincount(group_of, minlength=groups))
        self.dealt = np.diff(self.ends, prepend=0)  # of the pass; all of them: it begins with a shuffle

    def deal(self, groups: NDArray[np.int64], stream: NDArray[np.uint64]) -> NDArray[np.int64]:
        i = np.empty(groups.size, np.int64)
        _deal(self.order, self.ends, self.dealt, groups, stream, i)
        return i

    def groups(self, i: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.group_of[i]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What changes."""
        return {"order": self.order, "dealt": self.dealt}


class StreamMembers:
    """Groups that are streams: the k-th sample that is asked of group g has the number k · groups + g."""

    samples = float("inf")

    def __init__(self, groups: int) -> None:
        self.dealt = np.zeros(groups, np.int64)

    def deal(self, groups: NDArray[np.int64], stream: NDArray[np.uint64]) -> NDArray[np.int64]:
        i = np.empty(groups.size, np.int64)
        _count(self.dealt, groups, i)
        return i

    def groups(self, i: NDArray[np.int64]) -> NDArray[np.int64]:
        return i % self.dealt.size

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"dealt": self.dealt}


class GroupSource:
    """Groups are the arms, with shares q in the mixture."""

    def __init__(
        self, sampling: Sampling, members: Members | StreamMembers, mixture: NDArray[np.float64], seed: int
    ) -> None:
        self.sampling, self.members, self.mixture = sampling, members, mixture
        self.samples: float = members.samples
        self.keeps_mixture = True  # False: gradients are those of the mixture p
        self.one_group = False  # True: a batch has samples of one group only
        self.stream = new_stream(np.random.SeedSequence([seed, 2]))

    def draw(self, size: int, adaptive: bool) -> Draw:
        p = self.sampling.probabilities() if adaptive else self.mixture
        groups = np.empty(1 if self.one_group else size, np.int64)
        _allocate(p, groups, np.arange(p.size), self.stream)
        if self.one_group:
            groups = np.repeat(groups, size)
        return Draw(self.members.deal(groups, self.stream), p[groups], adaptive)

    def pass_size(self, adaptive: bool) -> float:
        return math.inf if adaptive else self.samples

    def arms(self, i: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.members.groups(i)

    def relative(self, arms: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.mixture[arms] * self.mixture.size

    def weights(self, draw: Draw) -> NDArray[np.float64]:
        return self.mixture[self.arms(draw.i)] / draw.p if self.keeps_mixture else np.ones(draw.p.size)

    def state_dict(self) -> dict[str, Any]:
        copies = {name: array.copy() for name, array in self._arrays().items()}
        return {**to_tensors(copies), "mixture": torch.from_numpy(self.mixture)}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        if not np.array_equal(saved["mixture"].numpy(), self.mixture):
            raise ValueError("This state is of a GroupBatchSampler with another mixture.")
        for name, array in from_tensors(saved, mine := self._arrays()).items():
            if name in mine:
                mine[name][...] = array

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"stream": self.stream, **self.members.arrays()}


@kernel
def _allocate(p, groups, order, stream):
    """Fill `groups` such that group g comes T p_g times, rounded up or down, T = groups.size: the T p_g are laid end to
    end in random order, and every whole number after a random offset is a draw; and shuffle it."""
    total, filled = groups.size, 0
    shuffle(order, order.size, stream)
    end = unit(peek(stream, 0))
    skip(stream, 1)
    for g in order:
        end += total * p[g]
        while filled < total and end >= filled + 1:
            groups[filled] = g
            filled += 1
    while filled < total:  # rounding errors may keep the last one back
        groups[filled] = order[-1]
        filled += 1
    shuffle(groups, total, stream)


@kernel
def _deal(order, ends, dealt, groups, stream, i):
    for k in range(groups.size):
        g = groups[k]
        begin = ends[g - 1] if g > 0 else 0
        members = order[begin : ends[g]]
        if dealt[g] == members.size:
            shuffle(members, members.size, stream)
            dealt[g] = 0
        i[k] = members[dealt[g]]
        dealt[g] += 1


@kernel
def _count(dealt, groups, i):
    for k in range(groups.size):
        g = groups[k]
        i[k] = dealt[g] * dealt.size + g
        dealt[g] += 1
