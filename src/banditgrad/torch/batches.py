"""The batch sampler that a DataLoader is given."""

import math
import warnings
import zlib
from collections.abc import Iterator, Sized
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Sampler as TorchSampler

from banditgrad.samplers import Importance, Mabs, Sampler, Sampling, Uniform
from banditgrad.torch.arguments import chosen_seed, number_of_samples, whole
from banditgrad.torch.batch_stream import MAX_OUTSTANDING, BatchStream, Draw
from banditgrad.torch.event_log import Event, EventLog
from banditgrad.torch.guard import Guard
from banditgrad.torch.ranks import gather, rank_and_size


class BanditBatchSampler(TorchSampler):
    """Batches drawn with replacement from probabilities p that follow the gradient norms, for any DataLoader.

    The mean over a batch of weights · gradients, weights = 1/(n p), is an unbiased estimate of the mean gradient,
    however far p is from uniform and however late the feedback comes: p is remembered for every batch from its draw
    until its feedback. An epoch is as many draws as there are samples; it does not visit every sample.

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

    Example
    -------
    >>> sampler = BanditBatchSampler(dataset, 256, bg.Mabs(), seed=0)
    >>> for x, y, idx in DataLoader(IndexedDataset(dataset), batch_sampler=sampler, num_workers=2):
    ...     z = model(x)
    ...     loss = F.cross_entropy(z, y, reduction="none")
    ...     (loss * sampler.weights(idx)).mean().backward()
    ...     sampler.update(idx, cross_entropy_bound(z, y))
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
    ) -> None:
        self.n = number_of_samples(dataset)
        self.batch_size = whole(batch_size, "batch_size")
        self.steps_per_epoch = None if steps_per_epoch is None else whole(steps_per_epoch, "steps_per_epoch")
        self.drop_last = bool(drop_last)
        self._rank, self._ranks = rank_and_size()
        seed = chosen_seed(seed, generator)
        self.sampling = self._started(Mabs() if sampler is None else sampler, seed)
        if not isinstance(guard, (Guard, bool)):
            raise TypeError(f"BanditBatchSampler expects a Guard, True or False as guard, got {guard!r}.")
        self._stream = BatchStream(self.sampling, Guard() if guard is True else guard or None, seed)
        self._log = EventLog(self._stream)
        self._epoch_start = 0  # the number of the epoch's first batch
        self._newest = -1  # the newest batch that weights or update were asked about
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
        batches = self.n / (self.batch_size * rank_and_size()[1])
        return math.floor(batches) if self.drop_last else math.ceil(batches)

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

    def update(self, idx: Any, norms: Any) -> None:
        """Learn the gradient norms, or a proxy for them, of a batch; once per batch, in any order, at any time.

        Under torch.distributed every rank calls it for its own slice, and all ranks learn from all slices.
        """
        number, draw = self._find(idx)
        mine = norms.detach() if isinstance(norms, torch.Tensor) else torch.as_tensor(norms)
        if mine.numel() * self._ranks != draw.i.size:
            raise ValueError(
                "BanditBatchSampler.update expects one norm per sample, "
                f"got shape {tuple(mine.shape)} for {len(idx)} samples."
            )
        if self._ranks > 1:
            everyones = gather(mine.reshape(-1), number, zlib.crc32(draw.i.tobytes() + draw.p.tobytes()))
        else:
            everyones = mine.to("cpu", torch.float64, copy=True).numpy().reshape(-1)  # the event log keeps it
        self._log.learn(number, everyones)
        self._rest = []

    def probabilities(self) -> NDArray[np.float64]:
        """p_i of all samples, as learned so far; batches are drawn from it while the guard allows."""
        return self.sampling.probabilities()

    def statistics(self) -> dict[str, float]:
        """How it goes: τ as the guard measures it, whether the next batch is drawn from p, what waits for feedback."""
        return {
            "tau": self._stream.ratio.tau,
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
            "epoch_start": self._epoch_start,
            "newest": self._newest,
            **self._log.state_dict(),
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Go on from a saved state of the same sampler; a StatefulDataLoader calls it by itself."""
        self._rank, self._ranks = rank_and_size()
        mine = {"n": self.n, "global_batch_size": self.batch_size * self._ranks}
        for name, value in mine.items():
            if saved.get(name) != value:
                raise ValueError(
                    f"This state is of another BanditBatchSampler: its {name} is {saved.get(name)}, here it is {value}."
                )
        self._rest = self._log.load_state_dict(saved, saved["newest"])
        self._epoch_start, self._newest = saved["epoch_start"], saved["newest"]
        self._resuming = True

    # --- what an epoch asks -------------------------------------------------------------------------------------------

    def _begin(self) -> tuple[int, int]:
        """Start an epoch, or go on with a loaded one: batches it has had, and the number of the last of them."""
        self._rank, self._ranks = rank_and_size()  # frameworks may start the process group after the sampler is made
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
        left = self.n - position * self.batch_size * self._ranks
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
        key = wanted.astype(np.int64, copy=False).tobytes()
        outstanding = self._stream.outstanding
        for number in chain((self._newest, self._newest + 1), outstanding):
            if number in outstanding and self._indices_of(number).tobytes() == key:
                self._newest = max(self._newest, number)
                return number, outstanding[number]
        raise ValueError(
            f"BanditBatchSampler: these {wanted.size} indices are not a batch that waits for feedback. Pass idx whole "
            "and in order, as the loader gave it; ask for the weights of a batch before its update; update once per "
            f"batch, and no later than {MAX_OUTSTANDING} batches after it was drawn."
        )


class Epoch(Iterator[list[int]]):
    """One epoch's batches. It begins with the first batch, and can be saved as StatefulDataLoader asks for it."""

    def __init__(self, sampler: BanditBatchSampler) -> None:
        self._sampler = sampler
        self._position: int | None = None
        self._last = -1
        self._waiting: list[int] = []

    def __next__(self) -> list[int]:
        if self._position is None:
            self._position, self._last = self._sampler._begin()
            self._waiting = self._sampler._waiting(self._last)
        if self._position >= len(self._sampler):
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
