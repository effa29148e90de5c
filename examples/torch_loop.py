"""Bandit sampling in a plain PyTorch loop: the three lines that change are marked.

A small network on scikit-learn's digits, of which the odd ones were made rare. Prints, epoch by epoch, the test loss
and what drawing from p can save, by the gradient noise scale.
"""

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import banditgrad as bg
from banditgrad.torch import BanditBatchSampler, IndexedDataset, cross_entropy_bound


def rare_odd_digits():
    """Training set with one odd digit in ten, and a test set drawn likewise."""
    x, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    kept = rng.permutation(np.flatnonzero((y % 2 == 0) | (rng.random(len(y)) < 0.1)))
    whole = TensorDataset(torch.tensor(x[kept] / 16, dtype=torch.float32), torch.tensor(y[kept]))
    return torch.utils.data.random_split(whole, [0.7, 0.3], torch.Generator().manual_seed(0))


def main(epochs=25):
    torch.manual_seed(0)
    train, test = rare_odd_digits()
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimiser = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    sampler = BanditBatchSampler(train, 32, bg.RecentNorm(), seed=0)
    sampler.watch(optimiser)  # is there noise to reduce? the guard decides by it
    loader = DataLoader(IndexedDataset(train), batch_sampler=sampler)
    x_test, y_test = next(iter(DataLoader(test, len(test))))
    for epoch in range(epochs):
        for x, y, idx in loader:
            z = model(x)
            loss = F.cross_entropy(z, y, reduction="none")  # one loss per sample
            optimiser.zero_grad()
            (loss * sampler.weights(idx)).mean().backward()  # weighted by 1/(n p)
            sampler.update(idx, cross_entropy_bound(z, y))  # what p is learned from
            optimiser.step()
        with torch.no_grad():
            test_loss = F.cross_entropy(model(x_test), y_test)
        way = "drawing from p" if sampler.statistics()["adaptive"] else "shuffling"
        print(f"epoch {epoch + 1:2d}: test loss {test_loss:.4f}, {way}; {sampler.advice()}")
    return float(test_loss)


if __name__ == "__main__":
    main()
