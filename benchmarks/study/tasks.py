"""What is trained: real data but for the recommender's, a small network, a loss per sample, and what is fed back.

A task's family decides whether defaults may be chosen on it (`sets.half`).
"""

import math
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from banditgrad.torch import cross_entropy_bound, squared_error_bound
from sets import half
from sets.real import debian, kdd_table, path, standardised

LEAST_CLASS = 3  # samples: a class with fewer is left out
TEST = 10_000


class Task(NamedTuple):
    name: str
    family: str
    train: TensorDataset
    test: TensorDataset
    groups: np.ndarray  # the group of each training sample
    test_groups: np.ndarray
    model: Callable[[], nn.Module]
    optimiser: str  # "sgd", with momentum 0.9, or "adam"
    step_sizes: tuple[float, ...]
    batch_size: int
    epochs: int
    losses: Callable[[Tensor, Tensor], Tensor]  # one per sample
    norms: Callable[[Tensor, Tensor], Tensor]  # one per sample
    classes: bool  # whether there is an accuracy

    @property
    def half(self) -> str:
        return half(self.family)


TASKS: dict[str, Callable[[float], Task]] = {}


def task(make: Callable[[float], Any]) -> Callable[[float], Any]:
    """Decorator: registers a function from the size (1: the whole, less: fewer samples) to a task, under its name."""
    TASKS[make.__name__.replace("_", "-")] = make
    return make


def cross_entropies(z: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(z, y, reduction="none")


def _classification(name, family, train, test, model, **settings):
    """Groups are the classes."""
    (x, y), (x_test, y_test) = train, test
    return Task(
        name, family, TensorDataset(x, y), TensorDataset(x_test, y_test), y.numpy(), y_test.numpy(), model,
        losses=cross_entropies, norms=cross_entropy_bound, classes=True, **settings,
    )  # fmt: skip


def _split(x, y, size, seed=0):
    """Test samples, and a share `size` of the others."""
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(y)))
    test, train = order[:TEST], order[TEST : TEST + round(size * (len(y) - TEST))]
    return (x[train], y[train]), (x[test], y[test])


# --- Fashion-MNIST ----------------------------------------------------------------------------------------------------


def _fashion(size):
    data = np.load(path("fashion-mnist.npz"))
    x, y = torch.from_numpy(data["X"].astype(np.float32) / 255.0), torch.from_numpy(data["y"].astype(np.int64))
    return _split(x, y, size)


def _clothes():
    return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))


CLOTHES = {"optimiser": "sgd", "step_sizes": (0.01, 0.03, 0.1), "batch_size": 64, "epochs": 10}


@task
def fashion(size):
    return _classification("fashion", "fashion", *_fashion(size), _clothes, **CLOTHES)


@task
def fashion_long_tail(size):
    """The commonest class a hundred times as frequent as the rarest; the test set is balanced."""
    (x, y), test = _fashion(1.0)
    counts = [round(size * 6000 * 100.0 ** (-c / 9.0)) for c in range(10)]
    kept = torch.cat([torch.nonzero(y == c)[:count, 0] for c, count in enumerate(counts)])
    settings = {**CLOTHES, "epochs": 30}
    return _classification("fashion-long-tail", "fashion", (x[kept], y[kept]), test, _clothes, **settings)


@task
def fashion_noisy(size):
    """One training label in ten is drawn at random from the others."""
    (x, y), test = _fashion(size)
    rng = torch.Generator().manual_seed(0)
    wrong = torch.rand(len(y), generator=rng) < 0.1
    y = torch.where(wrong, (y + torch.randint(1, 10, y.shape, generator=rng)) % 10, y)
    return _classification("fashion-noisy", "fashion", (x, y), test, _clothes, **CLOTHES)


# --- sections of Debian's packages ------------------------------------------------------------------------------------

WORDS, LENGTH = 2**14, 16


def _tokens(text):
    words = text.lower().split()[:LENGTH]
    numbers = [1 + zlib.crc32(word.encode()) % (WORDS - 1) for word in words]
    return numbers + [0] * (LENGTH - len(numbers))


@task
def debian_sections(size):
    docs, section = debian()
    x = torch.tensor([_tokens(text) for text in docs])
    y = torch.from_numpy(np.unique(section, return_inverse=True)[1].astype(np.int64))

    def model():
        return nn.Sequential(nn.EmbeddingBag(WORDS, 32, mode="mean", padding_idx=0), nn.Linear(32, int(y.max()) + 1))

    settings = {"optimiser": "adam", "step_sizes": (1e-3, 3e-3, 1e-2), "batch_size": 64, "epochs": 8}
    return _classification("debian-sections", "debian", *_split(x, y, size), model, **settings)


# --- kinds of network connections, most of them of three kinds --------------------------------------------------------


@task
def kdd_types(size):
    amounts, flags, kind = kdd_table()
    y = np.unique(kind, return_inverse=True)[1]
    frequent = np.isin(y, np.flatnonzero(np.bincount(y) >= LEAST_CLASS))
    x = np.hstack([standardised(amounts), flags]).astype(np.float32)[frequent]
    y = np.unique(y[frequent], return_inverse=True)[1]

    def model():
        return nn.Sequential(nn.Linear(x.shape[1], 64), nn.ReLU(), nn.Linear(64, int(y.max()) + 1))

    order = np.random.default_rng(0).permutation(y.size)  # half of it is for testing: classes are rare
    middle = y.size // 2
    train, test = order[: round(size * middle)], order[middle:]
    pairs = [(torch.from_numpy(x[part]), torch.from_numpy(y[part].astype(np.int64))) for part in (train, test)]
    settings = {"optimiser": "sgd", "step_sizes": (0.003, 0.01, 0.03), "batch_size": 64, "epochs": 3}
    return _classification("kdd-types", "kdd", *pairs, model, **settings)


# --- a neural field: colour from position -----------------------------------------------------------------------------


class Field(nn.Module):
    """Random Fourier features (Tancik et al. 2020) and two hidden layers."""

    def __init__(self):
        super().__init__()
        self.register_buffer("frequencies", 8.0 * torch.randn(2, 64))
        self.layers = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))

    def forward(self, x):
        angle = 2.0 * math.pi * x @ self.frequencies
        return self.layers(torch.cat([angle.sin(), angle.cos()], dim=1))


@task
def neural_field(size):
    """All pixels are trained on, and all count at the end; groups are squares of the image."""
    from sklearn.datasets import load_sample_image

    image = torch.from_numpy(load_sample_image("china.jpg").copy()).float() / 255.0
    image = F.avg_pool2d(image.permute(2, 0, 1)[None], 4 if size >= 1.0 else 6)[0].permute(1, 2, 0)
    rows, columns = torch.meshgrid(*(torch.linspace(0.0, 1.0, k) for k in image.shape[:2]), indexing="ij")
    x = torch.stack([rows, columns], dim=-1).reshape(-1, 2)
    pixels = TensorDataset(x, image.reshape(-1, 3))
    squares = ((7.99 * x).floor() @ torch.tensor([8.0, 1.0])).long().numpy()
    return Task(
        "neural-field", "china", pixels, pixels, squares, squares, Field, "adam", (1e-3, 3e-3, 1e-2), 128, 20,
        lambda z, y: (z - y).square().sum(1), squared_error_bound, classes=False,
    )  # fmt: skip


# --- a recommender: ratings of items, few of which have many ----------------------------------------------------------


class Factors(nn.Module):
    def __init__(self, users, items, rank=8):
        super().__init__()
        self.user, self.item = nn.Embedding(users, rank + 1), nn.Embedding(items, rank + 1)
        for table in (self.user, self.item):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, x):
        u, v = self.user(x[:, 0]), self.item(x[:, 1])
        return (u[:, 1:] * v[:, 1:]).sum(1) + u[:, 0] + v[:, 0]


@task
def recommender(size):
    """Generated: items are as frequent as 1/rank, ratings are of rank 4 with noise; groups are tenths of the items by
    frequency."""
    rng = np.random.default_rng(0)
    users, items, count = 3000, 1500, TEST + round(100_000 * size)
    user, item = rng.integers(users, size=count), rng.choice(items, count, p=_inverse_ranks(items))
    of_users, of_items = rng.standard_normal((users, 4)), rng.standard_normal((items, 4))
    bias = rng.standard_normal(items)
    rating = (of_users[user] * of_items[item]).sum(1) / 2.0 + bias[item] + 0.3 * rng.standard_normal(count)
    x, y = torch.from_numpy(np.stack([user, item], axis=1)), torch.from_numpy(rating.astype(np.float32))
    tenth = item * 10 // items
    return Task(
        "recommender", "recommender", TensorDataset(x[TEST:], y[TEST:]), TensorDataset(x[:TEST], y[:TEST]),
        tenth[TEST:], tenth[:TEST], lambda: Factors(users, items), "adam", (1e-3, 3e-3, 1e-2), 128, 8,
        lambda z, y: (z - y).square(), squared_error_bound, classes=False,
    )  # fmt: skip


def _inverse_ranks(items):
    share = 1.0 / np.arange(1.0, items + 1.0)
    return share / share.sum()


# --- a language model of characters, on Python's own sources ----------------------------------------------------------

CONTEXT, WINDOW = 96, 32  # characters told apart; characters per sample


class Characters(nn.Module):
    """Causal convolutions over what was read; logits of shape (batch, characters, positions)."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(CONTEXT, 32)
        self.layers = nn.ModuleList(nn.Conv1d(32 if d == 1 else 64, 64, 2, dilation=d) for d in (1, 2, 4, 8))
        self.head = nn.Conv1d(64, CONTEXT, 1)

    def forward(self, x):
        h = self.embedding(x).transpose(1, 2)
        for layer in self.layers:
            h = layer(F.pad(h, (layer.dilation[0], 0))).relu()
        return self.head(h)


@task
def python_sources(size):
    """Samples are pieces of the standard library's modules, groups are the modules; every twentieth piece is for
    testing."""
    modules = sorted(Path(os.__file__).parent.glob("*.py"))[:60]
    pieces, group = [], []
    for k, module in enumerate(modules):
        text = np.frombuffer(module.read_text(encoding="utf-8", errors="ignore").encode("ascii", "ignore"), np.uint8)
        numbers = np.where(text == 10, CONTEXT - 1, np.clip(text.astype(np.int64) - 32, 0, CONTEXT - 2))
        whole = numbers[: (numbers.size - 1) // WINDOW * WINDOW + 1]
        for begin in range(0, whole.size - 1, WINDOW):
            pieces.append(whole[begin : begin + WINDOW + 1])
            group.append(k)
    table, group = torch.from_numpy(np.stack(pieces)), np.array(group)
    test = np.arange(len(group)) % 20 == 0
    rest = np.random.default_rng(0).permutation(np.flatnonzero(~test))
    train = rest[: round(size * rest.size)]
    data = [TensorDataset(table[part, :-1], table[part, 1:]) for part in (train, np.flatnonzero(test))]
    return Task(
        "python-sources", "python-sources", *data, group[train], group[test], Characters, "adam",
        (1e-3, 3e-3, 1e-2), 32, 4, lambda z, y: F.cross_entropy(z, y, reduction="none").mean(1), cross_entropy_bound,
        classes=False,
    )  # fmt: skip
