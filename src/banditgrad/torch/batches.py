"""The batch sampler that a DataLoader is given."""

import math
import warnings
import zlib
from collections.abc import Callable, Iterator, Sized
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Sampler as TorchSampler

from banditgrad.samplers import Importance, Mabs, Sampler, Sampling, Uniform
from banditgrad.torch.arguments import chosen_seed, number_of_samples, share, whole
from banditgrad.torch.batch_stream import MAX_OUTSTANDING, BatchStream, Draw
from banditgrad.torch.event_log import Event, EventLog
from banditgrad.torch.feedback import loss_values
from banditgrad.torch.guard import Guard
from banditgrad.torch.noise import Advice, GradientPairs
from banditgrad.torch.ranks import gather, mean_over_ranks, rank_and_size


class BanditBatchSampler(TorchSampler):
    """Batches drawn from probabilities p that follow the gradient norms, for any DataLoader.

    The mean over a batch of weights · gradients, weights = 1/(n p), is an unbiased estimate of the mean gradient,
    however far p is from uniform and however late the feedback comes: p is remembered for every batch from its draw
    until its feedback. An epoch is as many draws as there are samples; with replacement, p moves from batch to batch,
    and an epoch does not visit every sample. Without, p is that of the epoch's beginning, and sample i comes n p_i
    times, rounded up or down; where p is uniform, that is shuffling.

    While the guard finds that drawing from p does not pay, at the start in any case, batches come from shuffled passes
    without replacement, with weights of 1, as from a plain DataLoader.

    Parameters
    ----------
    dataset : dataset or int
        What to draw from, or the number of samples.
    batch_size : int
        Samples per batch; under torch.distributed, per rank.
    sampler : Sampler or Sampling, optional
        How p is learned: `bg.Mabs()` unless given, `bg.Vrb()`, `bg.RecentNorm()`, ...; or one already started.
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
        False: an epoch of T draws has sample i ⌊T p_i⌋ or ⌈T p_i⌉ times, in random order.
    budget : float
        T / n, above 0 and up to 1: the share of a full epoch's draws that an epoch makes.
    feedback_every : int
        Learn from every k-th batch only, and let the feedback of others go: cheaper, and slower to learn.

    Example
    -------
    >>> sampler = BanditBatchSampler(dataset, 256, bg.Mabs(), seed=0)
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
        replacement: bool = True,
        budget: float = 1.0,
        feedback_every: int = 1,
    ) -> None:
        self.n = number_of_samples(dataset)
        self.batch_size = whole(batch_size, "batch_size")
        self.steps_per_epoch = None if steps_per_epoch is None else whole(steps_per_epoch, "steps_per_epoch")
        self.drop_last, self.feedback_every = bool(drop_last), whole(feedback_every, "feedback_every")
        self.replacement, self.budget = bool(replacement), share(budget, "budget")
        if steps_per_epoch is not None and self.budget != 1.0:
            raise ValueError("BanditBatchSampler expects steps_per_epoch or a budget, not both.")
        self._rank, self._ranks = rank_and_size()
        seed = chosen_seed(seed, generator)
        self.sampling = self._started(Mabs() if sampler is None else sampler, seed)
        if not isinstance(guard, (Guard, bool)):
            raise TypeError(f"BanditBatchSampler expects a Guard, True or False as guard, got {guard!r}.")
        self._stream = BatchStream(self.sampling, Guard() if guard is True else guard or None, seed, self.replacement)
        self._log = EventLog(self._stream)
        self._epoch_start = 0  # the number of the epoch's first batch
        self._newest = -1  # the newest batch that weights or update were asked about
        self._newest_adaptive = False  # whether that one was drawn from p
        self._pairs: GradientPairs | None = None  # of the optimiser that is watched
        self._resuming = False  # a state was loaded that the next epoch goes on from
        self._warned = False  # that feedback never came
        self._rest: list[Event] = []  # what the loaded state says happened later

    def _started(self, sampler: Sampler | Sampling, seed: int) -> Sampling:
        if isinstance(sampler, Sampler):
            return sampler.start(self.n, seed=seed)
        if not isinstance(sampler, Sampling):
            raise TypeError(f"BanditBatchSampler expects a sampler such as bg.Mabs(), got {sampler!r}.")
        if sampler.n != self.n:
            raise ValueError(f"BanditBatchSampler: the sampling has {sampler.n} items, the dataset {self.n}.")
        return sampler

    def __len__(self) -> int:
        """Batches per epoch and rank."""
        if self.steps_per_epoch is not None:
            return self.steps_per_epoch
        batches = self._draws / (self.batch_size * rank_and_size()[1])
        return math.floor(batches) if self.drop_last else math.ceil(batches)

    @property
    def _draws(self) -> int:
        """Of an epoch, unless `steps_per_epoch` is given."""
        return max(1, round(self.n * self.budget))

    def _set_ranks(self) -> None:
        self._rank, self._ranks = rank_and_size()
        full = self.batch_size * self._ranks
        whole_batches = self.steps_per_epoch is not None or (self.drop_last and self._draws >= full)
        self._stream.deck_size = len(self) * full if whole_batches else self._draws

    def __iter__(self) -> "Epoch":
        return Epoch(self)

    def weights(self, idx: Any, *, normalise: bool = False, clip: float | None = None) -> torch.Tensor:
        """1/(n p) for the samples of a batch, with p as it was when this batch was drawn.

        Parameters
        ----------
        idx : tensor of shape (batch,)
            The indices as the loader gave them.
        normalise : bool
            Divide by their mean, so that the step size does not vary. The bias this brings is of order 1/batch:
            the estimate leans towards the samples that p favours.
        clip : float, optional
            Cut weights above this. Biased: samples with n p < 1/clip count for less than they should; none of them
            if the sampler mixes with a uniform share of at least 1/clip (η = 0.4: weights never exceed 2.5).
        """
        _, draw = self._find(idx)
        weights = 1.0 / (self.n * draw.p[self._slice(draw.p.size)])
        if clip is not None:
            if not clip > 0.0:
                raise ValueError(f"BanditBatchSampler.weights expects a positive clip, got {clip!r}.")
            weights = np.minimum(weights, clip)
        if normalise:
            weights /= weights.mean()
        device = idx.device if isinstance(idx, torch.Tensor) else None
        return torch.from_numpy(weights).to(dtype=torch.get_default_dtype(), device=device)

    def loss(
        self, loss_per_sample: torch.Tensor, idx: Any, norms: torch.Tensor | Callable[[], Any] | None = None
    ) -> torch.Tensor:
        """The loss to call ``backward`` on, Σ weights · losses / batch; and the batch's `update`.

        Parameters
        ----------
        loss_per_sample : tensor of shape (batch,)
            As from a loss with ``reduction="none"``.
        idx : tensor of shape (batch,)
            The indices as the loader gave them.
        norms : tensor, or function without arguments that gives one, optional
            What to feed back; the losses themselves, the crudest, unless given. A function is called only for batches
            that are learned from: ``lambda: cross_entropy_bound(z, y)``.
        """
        number, draw = self._find(idx)
        p = draw.p[self._slice(draw.p.size)]
        if loss_per_sample.shape != p.shape:
            raise ValueError(
                f"BanditBatchSampler.loss expects one loss per sample, shape ({p.size},), got "
                f'{tuple(loss_per_sample.shape)}. Compute it with reduction="none", and sum or average what follows '
                "the first axis."
            )
        shares = torch.from_numpy(1.0 / (self.n * p.size * p)).to(loss_per_sample)
        if number % self.feedback_every:
            self._forget(number)
        else:
            values = loss_values(loss_per_sample) if norms is None else norms() if callable(norms) else norms
            self._learn(number, draw, values)
        return torch.dot(loss_per_sample, shares)

    def update(self, idx: Any, norms: Any) -> None:
        """Learn the gradient norms, or a proxy for them, of a batch; once per batch, in any order, at any time.

        Under torch.distributed every rank calls it for its own slice, and all ranks learn from all slices.
        """
        number, draw = self._find(idx)
        if number % self.feedback_every:
            self._forget(number)
        else:
            self._learn(number, draw, norms)

    def _forget(self, number: int) -> None:
        del self._stream.outstanding[number]

    def _learn(self, number: int, draw: Draw, norms: Any) -> None:
        mine = norms.detach() if isinstance(norms, torch.Tensor) else torch.as_tensor(norms)
        if mine.numel() * self._ranks != draw.i.size:
            raise ValueError(
                "BanditBatchSampler.update expects one norm per sample, "
                f"got shape {tuple(mine.shape)} for {draw.i.size // self._ranks} samples."
            )
        if self._ranks > 1:
            everyones = gather(mine.reshape(-1), number, zlib.crc32(draw.i.tobytes() + draw.p.tobytes()))
        else:
            everyones = mine.to("cpu", torch.float64, copy=True).numpy().reshape(-1)  # the event log keeps it
        self._log.learn(number, everyones)
        self._rest = []

    def watch(self, optimiser: torch.optim.Optimizer, *, accumulate: int = 1, every: int = 10) -> Any:
        """Measure the gradient noise scale at the optimiser's steps, for `advice` and for the guard to decide by.

        Of every `every` steps two are measured, with the gradients that the optimiser is about to use; the first is
        copied until the second comes.

        Parameters
        ----------
        optimiser : torch.optim.Optimizer
            With gradients from losses that were multiplied by `weights`.
        accumulate : int
            Batches whose gradients are averaged for a step.
        every : int
            Steps between two measurements.

        Returns
        -------
        handle
            Whose ``remove()`` ends it.
        """
        accumulate = whole(accumulate, "accumulate")
        self._pairs = GradientPairs(whole(every, "every"))

        def measured(square: float, product: float) -> None:
            square, product = mean_over_ranks((square, product))
            size = self.batch_size * self._ranks * accumulate
            self._log.measure(square, product, size, self._newest_adaptive)
            self._rest = []

        return self._pairs.watch(optimiser, measured)

    def advice(self) -> Advice:
        """What drawing from p can save at the present batch size: noise scales, τ and, as its `str`, one sentence."""
        return self._stream.advice()

    def probabilities(self) -> NDArray[np.float64]:
        """p_i of all samples, as learned so far; batches are drawn from it while the guard allows."""
        return self.sampling.probabilities()

    def statistics(self) -> dict[str, float]:
        """How it goes: τ, how many times fewer steps p needs as the guard reckons, whether the next batch is drawn from
        p, what waits for feedback."""
        return {
            "tau": self._stream.ratio.tau,
            "saving": self._stream.advice().saving,
            "adaptive": self._stream.adaptive,
            "batches": self._stream.drawn,
            "outstanding": len(self._stream.outstanding),
        }

    def state_dict(self) -> dict[str, Any]:
        """Everything, with random streams and outstanding batches, in numbers and tensors, for ``torch.save``.

        A run that loads it goes on in the middle of the epoch, with the batches that were drawn but not yet used: all
        after the newest one that `weights` or `update` were asked about. It is the same on all ranks: save it on one.
        """
        return {
            "n": self.n,
            "global_batch_size": self.batch_size * self._ranks,
            "replacement": self.replacement,
            "epoch_start": self._epoch_start,
            "newest": self._newest,
            "steps": self._pairs.steps if self._pairs else 0,
            **self._log.state_dict(),
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Go on from a saved state of the same sampler; a StatefulDataLoader calls it by itself."""
        self._set_ranks()
        mine = {"n": self.n, "global_batch_size": self.batch_size * self._ranks, "replacement": self.replacement}
        for name, value in mine.items():
            if saved.get(name) != value:
                raise ValueError(
                    f"This state is of another BanditBatchSampler: its {name} is {saved.get(name)}, here it is {value}."
                )
        self._rest = self._log.load_state_dict(saved, saved["newest"])
        self._epoch_start, self._newest = saved["epoch_start"], saved["newest"]
        if self._pairs is not None:
            self._pairs.steps = saved["steps"]
        self._resuming = True

    # --- what an epoch asks -------------------------------------------------------------------------------------------

    def _begin(self) -> tuple[int, int]:
        """Start an epoch, or go on with a loaded one: batches it has had, and the number of the last of them."""
        self._set_ranks()  # frameworks may start the process group after the sampler is made
        if not self._resuming:
            self._warn_without_feedback()
            self._epoch_start = self._stream.drawn
            return 0, self._stream.drawn - 1
        self._resuming = False
        last = max(self._newest, self._epoch_start - 1)
        if last + 1 - self._epoch_start >= len(self):  # the loaded one was over
            self._epoch_start = last + 1
        return last + 1 - self._epoch_start, last

    def _warn_without_feedback(self) -> None:
        fixed = isinstance(self.sampling.sampler, (Importance, Uniform)) and self._stream.guard is None
        silent = self._stream.drawn > 0 and self._stream.ratio.batches == 0
        if silent and not fixed and not self._warned:
            self._warned = True
            warnings.warn(
                "BanditBatchSampler: an epoch went by without feedback, so that nothing is learned. Call "
                "sampler.update(idx, norms) for the batches of the training loop.",
                UserWarning,
                stacklevel=4,
            )

    def _go_on(self, position: int, last: int) -> None:
        """A loader says how many batches of the epoch it has delivered, and the number of the last of them."""
        self._rest = self._log.replay(self._rest, last)
        self._epoch_start, self._newest = last + 1 - position, last
        self._resuming = position >= len(self)  # the loader will throw this epoch away and begin the next

    def _waiting(self, last: int) -> list[int]:
        """Batches after `last` that were drawn before a stop and have to be delivered again."""
        return [number for number in self._stream.outstanding if number > last]

    def _draw(self, position: int) -> int:
        self._rest = []
        return self._log.draw(self._size(position) * self._ranks)

    def _size(self, position: int) -> int:
        """Samples per rank in a batch of the epoch: the last one may be short."""
        if self.steps_per_epoch is not None or self.drop_last:
            return self.batch_size
        left = self._draws - position * self.batch_size * self._ranks
        return min(self.batch_size, math.ceil(left / self._ranks))

    def _indices_of(self, number: int) -> NDArray[np.int64]:
        """This rank's slice of a batch."""
        i = self._stream.outstanding[number].i
        return i[self._slice(i.size)]

    # --- matching feedback to draws -----------------------------------------------------------------------------------

    def _slice(self, size: int) -> slice:
        share = size // self._ranks
        return slice(self._rank * share, (self._rank + 1) * share)

    def _find(self, idx: Any) -> tuple[int, Draw]:
        """The outstanding batch with these indices: nearly always the newest one asked about, or the next."""
        wanted = idx.numpy(force=True) if isinstance(idx, torch.Tensor) else np.asarray(idx)
        if wanted.dtype.kind not in "iu" or wanted.ndim != 1:
            raise TypeError(
                f"BanditBatchSampler expects the indices of a batch, got {wanted.dtype} of shape {wanted.shape}. Has "
                'the loader an IndexedDataset(dataset)? Its samples end with their index, or have it as "index".'
            )
        key = wanted.astype(np.int64, copy=False).tobytes()
        outstanding = self._stream.outstanding
        for number in chain((self._newest, self._newest + 1), outstanding):
            if number in outstanding and self._indices_of(number).tobytes() == key:
                if number >= self._newest:
                    self._newest, self._newest_adaptive = number, outstanding[number].adaptive
                return number, outstanding[number]
        raise ValueError(
            f"BanditBatchSampler: these {wanted.size} indices are not a batch that waits for feedback. Pass idx whole "
            "and in order, as a loader of an IndexedDataset gave it; ask for the weights of a batch before its update; "
            f"update once per batch, and no later than {MAX_OUTSTANDING} batches after it was drawn."
        )


class Epoch(Iterator[list[int]]):
    """One epoch's batches. It begins with the first batch, and can be saved as StatefulDataLoader asks for it."""

    def __init__(self, sampler: BanditBatchSampler) -> None:
        self._sampler = sampler
        self._position: int | None = None
        self._length = 0  # asked once: it asks torch.distributed
        self._last = -1
        self._waiting: list[int] = []

    def __next__(self) -> list[int]:
        if self._position is None:
            self._position, self._last = self._sampler._begin()
            self._waiting = self._sampler._waiting(self._last)
        self._length = self._length or len(self._sampler)
        if self._position >= self._length:
            raise StopIteration
        self._last = self._waiting.pop(0) if self._waiting else self._sampler._draw(self._position)
        self._position += 1
        return self._sampler._indices_of(self._last).tolist()

    def state_dict(self) -> dict[str, Any]:
        return {"position": self._position, "last": self._last}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        if saved["position"] is not None:
            self._position, self._last = saved["position"], saved["last"]
            self._sampler._go_on(self._position, self._last)
            self._waiting = self._sampler._waiting(self._last)
