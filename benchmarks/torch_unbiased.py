"""Is the weighted batch gradient unbiased? The mean over ever more batches, beside the gradient of all samples.

A small network at fixed parameters on an imbalanced problem; the sampler learns all the while, from feedback that
comes eight batches late, as with a prefetching loader. An unbiased estimate's error falls as 1/√batches for ever; a
biased one's comes to rest at its bias.
"""

from collections import deque
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

import banditgrad as bg
from banditgrad.torch import BanditBatchSampler, cross_entropy_bound, gradient_norms

FIGURE = Path(__file__).parent.parent / "docs" / "figures" / "torch-unbiased.png"
N, BATCH, BATCHES, LATE, SEEDS = 2000, 32, 20_000, 8, 5
ESTIMATES = {
    "weights": ("1/(n p)", "#AA3377"),
    "clipped": ("1/(n p), clipped at 1.5", "#CCBB44"),
    "normalised": ("1/(n p), normalised", "#228833"),
    "none": ("no weights", "#4477AA"),
}


def sample_gradients():
    """The gradients of all samples, one row each, and their bounds, at parameters trained for a while."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.standard_normal((N, 5)), dtype=torch.float32)
    y = (x.norm(dim=1) > 3.0).long()
    model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 2))
    optimiser = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(200):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimiser.step()

    def flat(i):
        gradients = torch.autograd.grad(
            nn.functional.cross_entropy(model(x[i : i + 1]), y[i : i + 1]), model.parameters()
        )
        return torch.cat([g.flatten() for g in gradients])

    rows = torch.stack([flat(i) for i in range(N)]).double()
    assert torch.allclose(rows.norm(dim=1).float(), gradient_norms(model, nn.CrossEntropyLoss(), x, y), atol=1e-5)
    return rows, cross_entropy_bound(model(x), y)


def errors(rows, bounds, rule, seed):
    """‖mean of the first k batch gradients − gradient‖ / ‖gradient‖, for each estimate; and the last τ."""
    full = rows.mean(0)
    sampler = BanditBatchSampler(N, BATCH, rule, BATCHES, seed=seed, guard=False)
    sums = {name: torch.zeros_like(full) for name in ESTIMATES}
    curves, late = {name: [] for name in ESTIMATES}, deque()
    marks = set(np.unique(np.geomspace(10, BATCHES - LATE, 60).astype(int)).tolist())
    done = 0
    for batch in sampler:
        late.append(torch.tensor(batch))
        if len(late) <= LATE:
            continue
        idx = late.popleft()
        weights = {
            "weights": sampler.weights(idx),
            "clipped": sampler.weights(idx, clip=1.5),
            "normalised": sampler.weights(idx, normalise=True),
            "none": torch.ones(BATCH),
        }
        gradients = rows[idx]
        for name, weight in weights.items():
            sums[name] += weight.double() @ gradients / BATCH
        sampler.update(idx, bounds[idx])
        done += 1
        if done in marks:
            for name, total in sums.items():
                curves[name].append(float((total / done - full).norm() / full.norm()))
    return sorted(marks), curves, sampler.statistics()["tau"]


def main():
    torch.set_num_threads(1)
    rows, bounds = sample_gradients()
    figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
    runs = [errors(rows, bounds, bg.RecentNorm(), seed) for seed in range(SEEDS)]
    marks = runs[0][0]
    print(f"τ = {np.median([tau for *_, tau in runs]):.2f}; relative error after {marks[-1]} batches, root mean square")
    for name, (label, colour) in ESTIMATES.items():
        error = np.sqrt(np.mean([np.square(curves[name]) for _, curves, _ in runs], axis=0))
        axis.loglog(marks, error, color=colour, label=label)
        print(f"{label:26s} {error[-1]:.4f}  (after {marks[len(marks) // 2]}: {error[len(marks) // 2]:.4f})")
    slope = 2.0 * np.sqrt(marks[0] / np.array(marks))
    axis.loglog(marks, slope, "k:", linewidth=0.8, label="∝ 1/√batches")
    axis.set(xlabel="batches averaged", ylabel="error of the mean gradient / its norm")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURE, dpi=80)


if __name__ == "__main__":
    main()
