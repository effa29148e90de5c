"""What the PyTorch sampler costs: per training step beside shuffling, and per draw at 10 million samples.

One process, one thread, CPU time; contenders take turns of some steps, as many as bring back the caches that a single
training run has for itself, and the baseline is shuffling of the same `IndexedDataset`. Overhead is the difference of
medians over all steps, and of the fastest tenth: the machine may be busy with other things.
"""

import time

import numpy as np
import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import banditgrad as bg
from banditgrad.torch import (
    BanditBatchSampler,
    IndexedDataset,
    LastLayer,
    cross_entropy_bound,
    gradient_norms,
    loss_values,
)

BATCH, STEPS, TURN, SLOW_STEPS, N = 64, 1500, 50, 15, 20_000


def mlp():
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))


def cnn():
    return nn.Sequential(
        *(nn.Unflatten(1, (1, 28, 28)), nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 25, 10)),
    )


class OneByOne(Dataset):
    """The same samples in a dataset that has to be asked for each of them, as those with files or transforms have."""

    def __init__(self, data):
        self.data = data

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return self.data[i]


class Dictionaries(OneByOne):
    """As the datasets of Hugging Face."""

    def __getitem__(self, i):
        x, y = self.data[i]
        return {"x": x, "y": y}


class Contender:
    """One way of training, a step at a time."""

    def __init__(self, model, data, feedback=None, plain=False, **options):
        torch.manual_seed(0)
        self.model = model()
        self.optimiser = torch.optim.SGD(self.model.parameters(), 0.01)
        self.feedback = feedback(self.model) if feedback else None
        indexed = data if plain else IndexedDataset(data)
        if feedback:
            self.sampler = BanditBatchSampler(data, BATCH, seed=0, steps_per_epoch=10**9, **options)
            self.sampler.watch(self.optimiser)
            self.batches = iter(DataLoader(indexed, batch_sampler=self.sampler))
        else:
            self.batches = self.endless(DataLoader(indexed, BATCH, shuffle=True, drop_last=True))

    @staticmethod
    def endless(loader):
        while True:
            yield from loader

    def step(self):
        batch = next(self.batches)
        x, y, *idx = batch.values() if isinstance(batch, dict) else batch
        z = self.model(x)
        self.optimiser.zero_grad()
        if self.feedback is None:
            F.cross_entropy(z, y).backward()
        else:
            loss = F.cross_entropy(z, y, reduction="none")
            self.sampler.loss(loss, idx[0], lambda: self.feedback(x, y, z, loss)).backward()
        self.optimiser.step()


def last_layer(model):
    head = LastLayer(model[-1])
    return lambda x, y, z, loss: head.norms(cross_entropy_bound(z, y))


def bound(model):
    return lambda x, y, z, loss: cross_entropy_bound(z, y)


def losses(model):
    return lambda x, y, z, loss: loss_values(loss)


def whole_gradient(model):
    return lambda x, y, z, loss: gradient_norms(model, nn.CrossEntropyLoss(), x, y, chunk_size=64)


SHUFFLING = "shuffling"  # the baseline


def contenders(model, data):
    return {
        SHUFFLING: Contender(model, data),
        "shuffling, without indices": Contender(model, data, plain=True),
        "bandit, bound": Contender(model, data, bound),
        "bandit, bound of every 4th batch": Contender(model, data, bound, feedback_every=4),
        "bandit, losses": Contender(model, data, losses),
        "bandit, bound, no guard": Contender(model, data, bound, guard=False),
        "bandit, bound, no guard, every 4th": Contender(model, data, bound, guard=False, feedback_every=4),
        "bandit, bound, no guard, with replacement": Contender(model, data, bound, guard=False, replacement=True),
        "bandit, last layer, exact": Contender(model, data, last_layer, guard=False),
        "bandit, whole gradient, exact": Contender(model, data, whole_gradient, guard=False),
    }


def step_costs(console):
    table = Table(
        title=f"A training step, batch {BATCH}, {STEPS} steps in turns of {TURN}: CPU time", title_justify="left"
    )
    for column in ("model and dataset", "sampler and feedback", "ms", "overhead, ms", "overhead", "of the fastest, ms"):
        table.add_column(column, justify="right" if column.startswith(("ms", "over", "of")) else "left")
    tensors = TensorDataset(torch.randn(N, 784), torch.randint(0, 10, (N,)))
    for name, model, data in (
        ("MLP, TensorDataset", mlp, tensors),
        ("MLP, any other", mlp, OneByOne(tensors)),
        ("MLP, dictionaries", mlp, Dictionaries(tensors)),
        ("CNN, TensorDataset", cnn, tensors),
    ):
        each = contenders(model, data)
        times = {title: [] for title in each}
        for _ in range(0, STEPS if model is mlp else STEPS // 10, TURN):
            for title, contender in each.items():
                for _ in range(TURN):
                    if len(times[title]) < SLOW_STEPS or "whole gradient" not in title:
                        begin = time.process_time()
                        contender.step()
                        times[title].append(1e3 * (time.process_time() - begin))
        plain = np.array(times[SHUFFLING])
        for title, spent in times.items():
            extra = np.median(spent) - np.median(plain)
            fastest = fast(spent) - fast(plain)
            shares = f"{np.median(spent):.2f}", f"{extra:+.3f}", f"{extra / np.median(plain):+.1%}", f"{fastest:+.3f}"
            table.add_row(name, title, *shares)
        table.add_section()
    console.print(table)


def fast(times):
    """The median of the fastest tenth."""
    return np.quantile(times, 0.05)


def draw_costs(console):
    table = Table(title=f"A batch of {BATCH} of n samples, microseconds: fastest (median)", title_justify="left")
    for column in ("n", "sampler", "draw", "weights", "update", "bytes per sample"):
        table.add_column(column, justify="left" if column == "sampler" else "right")
    for n in (10_000, 10_000_000, 2**24 + 10**6):
        for rule in (bg.Mabs(), bg.RecentNorm()):
            options = {"steps_per_epoch": 10**9, "guard": False, "replacement": True}
            sampler = BanditBatchSampler(n, BATCH, rule, seed=0, **options)
            epoch, norms = iter(sampler), torch.rand(BATCH)
            times = []
            for _ in range(3000):
                laps = [time.perf_counter()]
                batch = next(epoch)
                laps.append(time.perf_counter())
                idx = torch.tensor(batch)
                between = time.perf_counter()
                sampler.weights(idx)
                laps.append(time.perf_counter() - between + laps[-1])
                between = time.perf_counter()
                sampler.update(idx, norms)
                laps.append(time.perf_counter() - between + laps[-1])
                times.append(1e6 * np.diff(laps))
            best, middle = np.min(times, axis=0), np.median(times, axis=0)
            size = sum(array.nbytes for array in sampler.sampling.state_dict().values()) / n
            columns = [f"{one:.0f} ({other:.0f})" for one, other in zip(best, middle, strict=True)]
            table.add_row(f"{n:,}", type(rule).__name__, *columns, f"{size:.1f}")
    console.print(table)


def main():
    torch.set_num_threads(1)
    console = Console(width=110)
    step_costs(console)
    draw_costs(console)


if __name__ == "__main__":
    main()
