"""The batch sampler whose arms are samples."""

from collections.abc import Sized
from typing import Any

import torch

from banditgrad.samplers import RecentNorm, Sampler, Sampling
from banditgrad.torch.arguments import chosen_guard, chosen_seed, number_of_samples, share, started
from banditgrad.torch.base import AdaptiveBatchSampler
from banditgrad.torch.batch_stream import BatchStream
from banditgrad.torch.guard import Guard
from banditgrad.torch.sources import SampleSource

QUICK = RecentNorm(theta=0.2, memory=0.0)  # norms of a network move: what was seen last tells most


class BanditBatchSampler(AdaptiveBatchSampler):
    """Batches drawn from probabilities p that follow the gradient norms, for any DataLoader.

    The mean over a batch of weights · gradients, weights = 1/(n p), is an unbiased estimate of the mean gradient,
    however far p is from uniform and however late the feedback comes: p is remembered for every batch from its draw
    until its feedback. An epoch is as many draws as there are samples, made at its beginning without replacement:
    sample i comes n p_i times, rounded up or down; where p is uniform, that is shuffling. With replacement, p moves on
    from batch to batch, and the noise of an epoch's draws does not cancel.

    While the guard finds that drawing from p does not pay, at the start in any case, batches come from shuffled passes
    without replacement, with weights of 1, as from a plain DataLoader.

    Parameters
    ----------
    dataset : dataset or int
        What to draw from, or the number of samples.
    batch_size : int
        Samples per batch; under torch.distributed, per rank.
    sampler : Sampler or Sampling, optional
        How p is learned: ``bg.RecentNorm(theta=0.2, memory=0.0)`` unless given, `bg.Mabs()`, ...; or one already
        started.
    steps_per_epoch : int, optional
        Batches per epoch, all of full size; the number of samples over the batch size unless given.
    seed : int, optional
        The same seed gives the same batches. Left out, it comes from `generator` or from torch's global generator.
    generator : torch.Generator, optional
        Where the seed comes from.
    drop_last : bool
        Without `steps_per_epoch`: leave out the last batch of an epoch if it is not full.
    guard : Guard or bool
        When to shuffle instead; False: never.
    replacement : bool
        False: an epoch of T draws has sample i ⌊T p_i⌋ or ⌈T p_i⌉ times, in random order; so has every pass of n draws
        where `steps_per_epoch` asks for more.
    budget : float
        T / n, above 0 and up to 1: the share of a full epoch's draws that an epoch makes.
    feedback_every : int
        Learn from every k-th batch only, and let the feedback of others go: cheaper, and slower to learn.

    Example
    -------
    >>> sampler = BanditBatchSampler(dataset, 256, seed=0)
    >>> for x, y, idx in DataLoader(IndexedDataset(dataset), batch_sampler=sampler, num_workers=2):
    ...     z = model(x)
    ...     loss = F.cross_entropy(z, y, reduction="none")
    ...     sampler.loss(loss, idx, norms=lambda: cross_entropy_bound(z, y)).backward()
    """

    def __init__(
        self,
        dataset: Sized | int,
        batch_size: int,
        sampler: Sampler | Sampling | None = None,
        steps_per_epoch: int | None = None,
        *,
        seed: int | None = None,
        generator: torch.Generator | None = None,
        drop_last: bool = False,
        guard: Guard | bool = True,
        replacement: bool = False,
        budget: float = 1.0,
        feedback_every: int = 1,
    ) -> None:
        self.n = number_of_samples(self._name, dataset)
        self.replacement, self.budget = bool(replacement), share(self._name, "budget", budget)
        if steps_per_epoch is not None and self.budget != 1.0:
            raise ValueError("BanditBatchSampler expects steps_per_epoch or a budget, not both.")
        seed = chosen_seed(self._name, seed, generator)
        sampling = started(self._name, QUICK if sampler is None else sampler, self.n, "the dataset", seed=seed)
        self._source = SampleSource(sampling, seed, self.replacement)
        stream = BatchStream(self._source, chosen_guard(self._name, guard))
        draws = max(1, round(self.n * self.budget))
        super().__init__(stream, batch_size, steps_per_epoch, draws, drop_last, feedback_every)

    def _identity(self) -> dict[str, Any]:
        return {"n": self.n, **super()._identity(), "replacement": self.replacement}

    def _set_ranks(self) -> None:
        super()._set_ranks()
        full = self.batch_size * self._ranks
        if self.steps_per_epoch is not None:
            self._source.deck_size = min(self.steps_per_epoch * full, max(self.n, full))
        else:
            whole_batches = self.drop_last and self._draws >= full
            self._source.deck_size = len(self) * full if whole_batches else self._draws
