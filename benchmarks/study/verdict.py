"""What a contender's end is worth, in samples of plain shuffling.

Shuffling is run with several budgets, each with a schedule that is fully decayed at its end, so that a contender that
takes fewer samples is compared with shuffling that takes fewer as well.
"""

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from study.training import Outcome

WORSE = 1.02  # of the baseline's loss
FURTHEST = 2.0  # times the largest budget: what is worth more is not told apart
LIMITED = 0.98  # what half of the samples must cost in loss for samples to be what limits


class Row(NamedTuple):
    """A contender on a task: medians over seeds."""

    share: float  # of the baseline's samples
    loss: float
    error: float
    macro: float
    train_loss: float
    seconds: float
    reached: float  # the share of the baseline's samples after which its final loss was reached; inf: never
    reached_seconds: float  # of the baseline's CPU seconds
    noise_scale: float
    tau: float
    promised: float
    adaptive: float


def row(outcomes: Iterable[Outcome], baseline: Iterable[Outcome]) -> Row:
    """Seed by seed beside the baseline's median."""
    base = list(baseline)
    samples = np.median([one.end.samples for one in base])
    goal = float(np.median([one.end.loss for one in base]))
    seconds = float(np.median([one.end.seconds for one in base]))
    columns = []
    for one in outcomes:
        there = next((look for look in one.looks if look.loss <= goal), None)
        reached = (math.inf, math.inf) if there is None else (there.samples / samples, there.seconds / seconds)
        end = (one.end.samples / samples, one.end.loss, one.end.error, one.end.macro, one.train_loss, one.end.seconds)
        columns.append((*end, *reached, one.noise_scale, one.tau, one.saving, one.adaptive))
    return Row(*np.median(columns, axis=0).tolist())


def budget_needed(ladder: Mapping[float, float], loss: float) -> float:
    """The least budget with which shuffling comes down to a loss, by straight lines in the logarithm of the budget
    between those that were run; beyond the largest the last line goes on, at most to FURTHEST times as much."""
    budgets = sorted(ladder)
    if ladder[budgets[0]] <= loss:
        return budgets[0]
    for less, more in itertools.pairwise(budgets):
        if ladder[more] <= loss or more == budgets[-1]:
            fall = ladder[less] - ladder[more]
            way = (ladder[less] - loss) / fall if fall > 0.0 else math.inf
            return min(less * (more / less) ** min(way, 100.0), FURTHEST * budgets[-1])
    return math.inf


def limited_by_samples(ladder: Mapping[float, float]) -> bool:
    """Whether shuffling ends clearly worse with the least budget than with all of it; else no budget can be told from
    another, and no sampler from shuffling."""
    return ladder[1.0] < LIMITED * ladder[min(ladder)]
