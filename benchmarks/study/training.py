"""One run: steps that shrink linearly to zero, a look at the test set now and then, CPU seconds of everything else."""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from study.rivals import Contender, Way
from study.tasks import Task

LOOKS = 12
SEEN = 10_000  # training samples that the training loss is estimated from
CHUNK = 2048


# and the power of the gain that step sizes go by: 1 for SGD (Johnson et al. 2020), 1/2 for Adam (Malladi et al. 2022)
OPTIMISERS: dict[str, Any] = {
    "sgd": (lambda w, step_size: torch.optim.SGD(w, step_size, momentum=0.9), 1.0),
    "adam": (lambda w, step_size: torch.optim.Adam(w, step_size), 0.5),
}


class Look(NamedTuple):
    """After so many samples and CPU seconds."""

    samples: int
    steps: int
    seconds: float
    loss: float
    error: float  # nan where there are no classes
    macro: float  # the mean over groups of the error, or of the loss where there are no classes


class Outcome(NamedTuple):
    looks: list[Look]
    train_loss: float
    noise_scale: float  # medians over the looks after the first third; nan if not measured
    tau: float
    saving: float  # what the meter promised, over the run: as many times fewer steps
    adaptive: float  # the share of steps whose batch was drawn from p

    @property
    def end(self) -> Look:
        return self.looks[-1]


def train(task: Task, contender: Contender, step_size: float, seed: int) -> Outcome:
    torch.manual_seed(seed)
    model = task.model()
    way = contender.start(task, seed)
    make, power = OPTIMISERS[task.optimiser]
    optimiser = make(model.parameters(), step_size)
    way.watch(optimiser)
    looks, advices, adaptive = [], [], 0
    samples, steps, seconds = 0, 0, 0.0
    for loading, share, (x, y, idx) in _batches(way):
        if share >= len(looks) / LOOKS:
            looks.append(Look(samples, steps, seconds, *evaluate(model, task)))
            if (advice := way.advice()) is not None and advice.measured:
                advices.append((share, advice.noise_scale, advice.tau, advice.saving))
        begin = time.process_time()
        for group in optimiser.param_groups:
            group["lr"] = step_size * way.gain**power * (1.0 - share)
        loss = way.loss(model(x), y, idx)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        seconds += loading + time.process_time() - begin
        samples, steps, adaptive = samples + len(idx), steps + 1, adaptive + way.adaptive
    looks.append(Look(samples, steps, seconds, *evaluate(model, task)))
    part = np.random.default_rng(0).permutation(len(task.train))[:SEEN]
    train_loss = float(_losses(model, task, *task.train[torch.from_numpy(part)])[0].mean())
    late = np.array([advice[1:] for advice in advices if advice[0] >= 1 / 3]).reshape(-1, 3)
    noise, tau, _ = np.median(late, axis=0) if len(late) else (np.nan,) * 3
    saving = 1.0 / np.mean(1.0 / late[:, 2]) if len(late) else np.nan
    return Outcome(looks, train_loss, float(noise), float(tau), float(saving), adaptive / steps)


def _batches(way: Way) -> Iterator[tuple[float, float, Any]]:
    """The CPU seconds that each batch took to come, the share of the run that was done before it, and the batch."""
    share = 0.0
    while share < 1.0:
        begin = time.process_time()
        for batch in way.loader:
            yield time.process_time() - begin, share, batch
            share += way.gain / (len(way.loader) * way.epochs)
            if share >= 1.0 - 1e-9:
                return
            begin = time.process_time()


@torch.no_grad()
def evaluate(model: torch.nn.Module, task: Task) -> tuple[float, float, float]:
    """Mean loss, error, and the mean over the groups' means of the error, or of the loss."""
    losses, wrong = _losses(model, task, *task.test.tensors)
    each = wrong if task.classes else losses
    sizes = np.bincount(task.test_groups)
    means = np.bincount(task.test_groups, each)[sizes > 0] / sizes[sizes > 0]
    return float(losses.mean()), float(wrong.mean()), float(means.mean())


@torch.no_grad()
def _losses(model: torch.nn.Module, task: Task, x: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    losses, wrong = [], []
    for a, b in zip(x.split(CHUNK), y.split(CHUNK), strict=True):
        z = model(a)
        losses.append(task.losses(z, b))
        wrong.append(z.argmax(1) != b if task.classes else torch.full((len(b),), torch.nan))
    return torch.cat(losses).double().numpy(), torch.cat(wrong).double().numpy()
