"""What the PyTorch sampler costs: per training step beside a plain DataLoader, and per draw at 10 million samples.

One process, one thread, CPU time; contenders take turns step by step. Overhead is the median difference to the plain
step of the same turn over the median plain step: the machine may be busy with other things.
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

BATCH, STEPS, SLOW_STEPS, N = 256, 400, 15, 20_000


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


class Contender:
    """One way of training, a step at a time."""

    def __init__(self, model, data, feedback=None, guard=False):
        torch.manual_seed(0)
        self.model = model()
        self.optimiser = torch.optim.SGD(self.model.parameters(), 0.01)
        self.feedback = feedback(self.model) if feedback else None
        if feedback:
            self.sampler = BanditBatchSampler(data, BATCH, seed=0, steps_per_epoch=10**9, guard=guard)
            self.batches = iter(DataLoader(IndexedDataset(data), batch_sampler=self.sampler))
        else:
            self.batches = self.endless(DataLoader(data, BATCH, shuffle=True, drop_last=True))

    @staticmethod
    def endless(loader):
        while True:
            yield from loader

    def step(self):
        x, y, *idx = next(self.batches)
        z = self.model(x)
        self.optimiser.zero_grad()
        if self.feedback is None:
            F.cross_entropy(z, y).backward()
        else:
            loss = F.cross_entropy(z, y, reduction="none")
            (loss * self.sampler.weights(idx[0])).mean().backward()
            self.sampler.update(idx[0], self.feedback(x, y, z, loss))
        self.optimiser.step()


def last_layer(model):
    head = LastLayer(model[-1])
    return lambda x, y, z, loss: head.norms(cross_entropy_bound(z, y))


FEEDBACK = {
    "loss value": lambda model: lambda x, y, z, loss: loss_values(loss),
    "last-layer bound": lambda model: lambda x, y, z, loss: cross_entropy_bound(z, y),
    "last layer, exact": last_layer,
    "whole gradient, exact": lambda model: (
        lambda x, y, z, loss: gradient_norms(model, nn.CrossEntropyLoss(), x, y, chunk_size=64)
    ),
}


def step_costs(console):
    table = Table(title=f"A training step, batch {BATCH}, {STEPS} turns: median CPU time", title_justify="left")
    for column in ("model and dataset", "sampler and feedback", "ms", "overhead, ms", "overhead"):
        table.add_column(column, justify="right" if column.startswith(("ms", "over")) else "left")
    tensors = TensorDataset(torch.randn(N, 784), torch.randint(0, 10, (N,)))
    for name, model, data in (
        ("MLP, TensorDataset", mlp, tensors),
        ("MLP, any other", mlp, OneByOne(tensors)),
        ("CNN, TensorDataset", cnn, tensors),
        ("CNN, any other", cnn, OneByOne(tensors)),
    ):
        contenders = {"plain DataLoader, shuffled": Contender(model, data)}
        for title, feedback in FEEDBACK.items():
            contenders[f"MABS, {title}"] = Contender(model, data, feedback)
        contenders["guarded MABS, last-layer bound"] = Contender(model, data, FEEDBACK["last-layer bound"], guard=True)
        times = {title: [] for title in contenders}
        for turn in range(STEPS):
            for title, contender in contenders.items():
                if turn < SLOW_STEPS or "whole gradient" not in title:
                    begin = time.process_time()
                    contender.step()
                    times[title].append(1e3 * (time.process_time() - begin))
        plain = np.array(times["plain DataLoader, shuffled"])
        for title, spent in times.items():
            extra = np.median(np.array(spent) - plain[: len(spent)])
            table.add_row(name, title, f"{np.median(spent):.2f}", f"{extra:.2f}", f"{extra / np.median(plain):.1%}")
        table.add_section()
    console.print(table)


def draw_costs(console):
    table = Table(title="A batch of 256 of n samples, microseconds: fastest (median)", title_justify="left")
    for column in ("n", "sampler", "draw", "weights", "update", "bytes per sample"):
        table.add_column(column, justify="left" if column == "sampler" else "right")
    for n in (10_000, 10_000_000, 2**24 + 10**6):
        for rule in (bg.Mabs(), bg.RecentNorm()):
            sampler = BanditBatchSampler(n, BATCH, rule, seed=0, steps_per_epoch=10**9, guard=False)
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
