"""Who draws the batches with bandits, and all contenders."""

from typing import Any

from torch.utils.data import DataLoader

from banditgrad.samplers import Mabs, RecentNorm, Sampler, Vrb
from banditgrad.torch import BanditBatchSampler, GroupBatchSampler, IndexedDataset
from study.rivals import LESS, Contender, Way, infobatch, random_pruning, shuffling


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


class GainWay(BanditWay):
    """Steps as much larger, and a schedule as much faster, as the meter says that batches from p are worth."""

    @property
    def gain(self):
        return self.sampler.gain


def bandit(name: str, sampler: Sampler | None = None, way: type[Way] = BanditWay, **options: Any) -> Contender:
    def start(task, seed):
        batches = BanditBatchSampler(task.train, task.batch_size, sampler, seed=seed, **options)
        loader = DataLoader(IndexedDataset(task.train), batch_sampler=batches)
        return way(task, loader, task.epochs, batches)

    return Contender(name, start, ours=True)


def groups(name: str, way: type[Way] = BanditWay) -> Contender:
    def start(task, seed):
        batches = GroupBatchSampler(task.groups, task.batch_size, seed=seed)
        loader = DataLoader(IndexedDataset(task.train), batch_sampler=batches)
        return way(task, loader, task.epochs, batches)

    return Contender(name, start, ours=True)


def candidates() -> list[Contender]:
    """Rules among which the default is chosen, on tasks of the tuning half, without a guard to hide behind."""
    rules = (
        *(Mabs(), RecentNorm(), RecentNorm(0.4, 0.0), RecentNorm(0.2, 0.5), RecentNorm(0.2, 0.0)),
        *(RecentNorm(0.1, 0.0), Vrb()),
    )
    return [bandit(repr(rule), rule, guard=False) for rule in rules]


LADDER = (1.0, LESS, 0.5)  # budgets of shuffling: what a contender's end is compared with


def all_contenders() -> list[Contender]:
    return [
        *map(shuffling, LADDER),
        random_pruning(),
        infobatch(),
        bandit("bandit"),
        bandit("bandit, no guard", guard=False),
        bandit("bandit, steps by gain", way=GainWay),
        bandit("with replacement, steps by gain", way=GainWay, replacement=True),
        bandit(f"bandit, {LESS:g} of the steps", budget=LESS),
        groups("groups"),
        groups("groups, steps by gain", GainWay),
    ]
