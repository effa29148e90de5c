"""Who draws the batches without bandits. All get them from an `IndexedDataset`, which looks them up whole."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from banditgrad.torch import IndexedDataset
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

    @property
    def gain(self) -> float:
        """How many steps of plain shuffling a step is worth: the step size and the schedule go by it."""
        return 1.0


class InfoBatchWay(Way):
    def loss(self, z, y, idx):
        losses = self.task.losses(z, y)
        self.sampler.update(idx, losses)
        return (losses * self.sampler.weights(idx)).mean()


class Contender(NamedTuple):
    name: str
    start: Callable[[Task, int], Way]
    budget: float = 1.0  # of shuffling, whose best step size it gets
    ours: bool = False


def shuffling(budget: float = 1.0) -> Contender:
    """As many epochs as `budget` allows, with a schedule that is at its end then."""

    def start(task, seed):
        loader = DataLoader(
            IndexedDataset(task.train), task.batch_size, shuffle=True, generator=torch.Generator().manual_seed(seed)
        )
        return Way(task, loader, budget * task.epochs)

    return Contender("shuffling" if budget == 1.0 else f"shuffling, {budget:g} of the steps", start, budget)


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
