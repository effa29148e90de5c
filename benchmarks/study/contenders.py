"""Who draws the batches. All get them from an `IndexedDataset`, which looks them up whole."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from banditgrad.samplers import Mabs, RecentNorm, Sampler, Vrb
from banditgrad.torch import BanditBatchSampler, GroupBatchSampler, IndexedDataset
from study.infobatch import InfoBatch
from study.tasks import Task

LESS = 0.7  # of the draws of full epochs


class Way:
    """One run's batches, and what becomes of their losses."""

    def __init__(self, task: Task, loader: DataLoader, epochs: float, sampler: Any = None) -> None:
        self.task, self.loader, self.sampler = task, loader, sampler
        self.epochs = epochs  # of the loader, which the schedule goes by

    def watch(self, optimiser: torch.optim.Optimizer) -> None:
        pass

    def loss(self, z: Tensor, y: Tensor, idx: Tensor) -> Tensor:
        return self.task.losses(z, y).mean()

    def advice(self) -> Any:
        return None

    @property
    def adaptive(self) -> bool:
        """Whether the next batch is drawn from p."""
        return False


class BanditWay(Way):
    def watch(self, optimiser):
        self.sampler.watch(optimiser)

    def loss(self, z, y, idx):
        return self.sampler.loss(self.task.losses(z, y), idx, norms=lambda: self.task.norms(z, y))

    def advice(self):
        return self.sampler.advice()

    @property
    def adaptive(self):
        return bool(self.sampler.statistics()["adaptive"])


class InfoBatchWay(Way):
    def loss(self, z, y, idx):
        losses = self.task.losses(z, y)
        self.sampler.update(idx, losses)
        return (losses * self.sampler.weights(idx)).mean()


class Contender(NamedTuple):
    name: str
    start: Callable[[Task, int], Way]


def shuffling(budget: float = 1.0) -> Contender:
    """As many epochs as `budget` allows, with a schedule that is at its end then."""

    def start(task, seed):
        loader = DataLoader(
            IndexedDataset(task.train), task.batch_size, shuffle=True, generator=torch.Generator().manual_seed(seed)
        )
        return Way(task, loader, budget * task.epochs)

    return Contender("shuffling" if budget == 1.0 else f"shuffling, {budget:g} of the steps", start)


def random_pruning() -> Contender:
    """All epochs, on a random part of the samples."""

    def start(task, seed):
        kept = np.random.default_rng(seed).permutation(len(task.train))[: round(LESS * len(task.train))]
        part = type(task.train)(*task.train[torch.from_numpy(kept)])
        loader = DataLoader(
            IndexedDataset(part), task.batch_size, shuffle=True, generator=torch.Generator().manual_seed(seed)
        )
        return Way(task, loader, task.epochs)

    return Contender(f"random pruning to {LESS:g}", start)


def infobatch() -> Contender:
    def start(task, seed):
        sampler = InfoBatch(len(task.train), task.batch_size, task.epochs, seed=seed)
        return InfoBatchWay(task, DataLoader(IndexedDataset(task.train), batch_sampler=sampler), task.epochs, sampler)

    return Contender("InfoBatch", start)


def bandit(name: str, sampler: Sampler | None = None, **options: Any) -> Contender:
    def start(task, seed):
        batches = BanditBatchSampler(task.train, task.batch_size, sampler, seed=seed, **options)
        loader = DataLoader(IndexedDataset(task.train), batch_sampler=batches)
        return BanditWay(task, loader, task.epochs, batches)

    return Contender(name, start)


def groups() -> Contender:
    def start(task, seed):
        batches = GroupBatchSampler(task.groups, task.batch_size, seed=seed)
        loader = DataLoader(IndexedDataset(task.train), batch_sampler=batches)
        return BanditWay(task, loader, task.epochs, batches)

    return Contender("groups", start)


def candidates() -> list[Contender]:
    """Rules among which the default is chosen, on tasks of the tuning half, without a guard to hide behind."""
    rules = (
        *(Mabs(), RecentNorm(), RecentNorm(0.4, 0.0), RecentNorm(0.2, 0.5), RecentNorm(0.2, 0.0)),
        *(RecentNorm(0.1, 0.0), Vrb()),
    )
    return [bandit(repr(rule), rule, guard=False) for rule in rules]


LADDER = (0.5, LESS, 1.0, 1.5)  # budgets of shuffling: what a contender's end is compared with


def all_contenders() -> list[Contender]:
    return [
        *map(shuffling, sorted(LADDER, key=lambda budget: budget != 1.0)),
        random_pruning(),
        infobatch(),
        bandit("bandit"),
        bandit("bandit, no guard", guard=False),
        bandit("MABS, no guard", Mabs(), guard=False),
        bandit(f"bandit, {LESS:g} of the steps", budget=LESS),
        bandit(f"without replacement, {LESS:g} of the steps", replacement=False, budget=LESS),
        groups(),
    ]
