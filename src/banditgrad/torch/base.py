"""What batch samplers have in common: epochs, weights, feedback, ranks and saved states, over a `BatchStream`."""

import math
import warnings
import zlib
from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Sampler as TorchSampler

from banditgrad.samplers import Importance, Uniform
from banditgrad.torch.arguments import whole
from banditgrad.torch.batch_stream import MAX_OUTSTANDING, BatchStream
from banditgrad.torch.epoch import Epoch
from banditgrad.torch.event_log import Event, EventLog
from banditgrad.torch.feedback import loss_values
from banditgrad.torch.noise import Advice, GradientPairs
from banditgrad.torch.ranks import gather, mean_over_ranks, rank_and_size
from banditgrad.torch.sources import Draw

_OF_NUMPY = (torch.float32, torch.float64)


class AdaptiveBatchSampler(TorchSampler):
    """Base of `BanditBatchSampler` and `GroupBatchSampler`, which say what is drawn from."""

    _one_weight = False  # True: all samples of a batch have the same

    def __init__(
        self,
        stream: BatchStream,
        batch_size: int,
        steps_per_epoch: int | None,
        draws: int,
        drop_last: bool,
        feedback_every: int,
    ) -> None:
        self._stream, self._draws = stream, draws  # per epoch, unless steps_per_epoch is given
        self.sampling = stream.sampling
        self.batch_size = whole(self._name, "batch_size", batch_size)
        self.steps_per_epoch = (
            None if steps_per_epoch is None else whole(self._name, "steps_per_epoch", steps_per_epoch)
        )
        self.drop_last, self.feedback_every = bool(drop_last), whole(self._name, "feedback_every", feedback_every)
        self._rank, self._ranks = rank_and_size()
        self._log = EventLog(self._stream)
        self._epoch_start = 0  # the number of the epoch's first batch
        self._newest = -1  # the newest batch that weights or update were asked about
        self._newest_adaptive = False  # whether that one was drawn from p
        self._pairs: GradientPairs | None = None  # of the optimiser that is watched
        self._steps = 0  # of the optimiser that will be watched, by a loaded state
        self._resuming = False  # a state was loaded that the next epoch goes on from
        self._warned = False  # that feedback never came
        self._rest: list[Event] = []  # what the loaded state says happened later

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _identity(self) -> dict[str, Any]:
        """What a saved state must agree with."""
        return {"global_batch_size": self.batch_size * self._ranks}

    def __len__(self) -> int:
        """Batches per epoch and rank."""
        if self.steps_per_epoch is not None:
            return self.steps_per_epoch
        batches = self._draws / (self.batch_size * rank_and_size()[1])
        return math.floor(batches) if self.drop_last else math.ceil(batches)

    def _set_ranks(self) -> None:
        self._rank, self._ranks = rank_and_size()

    def __iter__(self) -> Epoch:
        return Epoch(self)

    def weights(self, idx: Any, *, normalise: bool = False, clip: float | None = None) -> torch.Tensor:
        """q / p for the samples of a batch, with p as it was when this batch was drawn; q is 1/n, or the mixture.

        Parameters
        ----------
        idx : tensor of shape (batch,)
            The indices as the loader gave them.
        normalise : bool
            Divide by their mean, so that the step size does not vary. The bias this brings is of order 1/batch:
            the estimate leans towards the samples that p favours.
        clip : float, optional
            Cut weights above this. Biased: samples with p < q/clip count for less than they should; none of them
            if the sampler mixes q in with a share of at least 1/clip (η = 0.4: weights never exceed 2.5).
        """
        weights = self._weights(self._find(idx)[1])
        if clip is not None:
            if not clip > 0.0:
                raise ValueError(f"{self._name}.weights expects a positive clip, got {clip!r}.")
            weights = np.minimum(weights, clip)
        if normalise:
            weights /= weights.mean()
        device = idx.device if isinstance(idx, torch.Tensor) else None
        return torch.from_numpy(weights).to(dtype=torch.get_default_dtype(), device=device)

    def loss(self, loss: torch.Tensor, idx: Any, norms: torch.Tensor | Callable[[], Any] | None = None) -> torch.Tensor:
        """The loss to call ``backward`` on, Σ weights · losses / batch; and the batch's `update`.

        Parameters
        ----------
        loss : tensor of shape (batch,), or scalar
            As from a loss with ``reduction="none"``. The mean over the batch will do for a `GroupBatchSampler` whose
            batches have one weight: with ``one_group=True`` or ``objective="adaptive"``.
        idx : tensor of shape (batch,)
            The indices as the loader gave them.
        norms : tensor, or function without arguments that gives one, optional
            What to feed back, one value per sample or one for all; the losses themselves, the crudest, unless given. A
            function is called only for batches that are learned from: ``lambda: cross_entropy_bound(z, y)``.
        """
        number, draw = self._find(idx)
        size = draw.i.size // self._ranks
        if loss.shape != (size,) and not (self._one_weight and loss.ndim == 0):
            raise ValueError(
                f"{self._name}.loss expects one loss per sample, shape ({size},), got "
                f'{tuple(loss.shape)}. Compute it with reduction="none", and sum or average what follows the first '
                "axis; where only the batch's mean is to be had, see GroupBatchSampler(one_group=True)."
            )
        self._feed_back(number, draw, (lambda: loss_values(loss)) if norms is None else norms)
        if not draw.adaptive:  # weights are 1
            return loss.mean()
        weights = self._weights(draw)
        if loss.ndim == 0:
            return loss * float(weights[0])
        kind = np.float32 if loss.dtype is torch.float32 else np.float64
        return torch.dot(loss, torch.from_numpy((weights / size).astype(kind)).to(loss))

    def update(self, idx: Any, norms: Any) -> None:
        """Learn the gradient norms, or a proxy for them, of a batch; once per batch, in any order, at any time.

        One value per sample, or one for all of them. Under torch.distributed every rank calls it for its own slice, and
        all ranks learn from all slices.
        """
        self._feed_back(*self._find(idx), norms)

    def _feed_back(self, number: int, draw: Draw, norms: Any) -> None:
        if number % self.feedback_every:
            del self._stream.outstanding[number]
        else:
            self._learn(number, draw, norms() if callable(norms) else norms)

    def _learn(self, number: int, draw: Draw, norms: Any) -> None:
        mine = norms.detach() if isinstance(norms, torch.Tensor) else torch.as_tensor(norms)
        if mine.ndim == 0:
            mine = mine.expand(draw.i.size // self._ranks)
        if mine.numel() * self._ranks != draw.i.size:
            raise ValueError(
                f"{self._name}.update expects one norm per sample, "
                f"got shape {tuple(mine.shape)} for {draw.i.size // self._ranks} samples."
            )
        if self._ranks > 1:
            everyones = gather(mine.reshape(-1), number, zlib.crc32(draw.i.tobytes() + draw.p.tobytes()))
        else:
            plain = mine if mine.dtype in _OF_NUMPY else mine.double()
            everyones = plain.numpy(force=True).astype(np.float64).reshape(-1)  # a copy, which the event log keeps
        self._log.learn(number, everyones)
        self._rest = []

    def watch(self, optimiser: torch.optim.Optimizer, *, accumulate: int = 1, every: int = 20) -> Any:
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
        accumulate = whole(self._name, "accumulate", accumulate)
        self._pairs = GradientPairs(whole(self._name, "every", every))
        self._pairs.steps, self._steps = self._steps, 0

        def measured(square: float, product: float) -> None:
            square, product = mean_over_ranks((square, product))
            size = self.batch_size * self._ranks * accumulate
            self._log.measure(square, product, size, self._newest_adaptive)
            self._rest = []

        return self._pairs.watch(optimiser, measured)

    def advice(self) -> Advice:
        """What drawing from p can save at the present batch size: noise scales, τ and, as its `str`, one sentence."""
        return self._stream.advice()

    @property
    def watching(self) -> bool:
        """Whether an optimiser is watched."""
        return self._pairs is not None

    @property
    def gain(self) -> float:
        """How many steps of plain shuffling a step with the newest batch is worth, as far as that was measured: 1 while
        batches are not drawn from p. `GainSchedule` has step sizes and the length of a run go by it."""
        advice = self._stream.advice()
        return advice.saving if self._newest_adaptive and advice.measured else 1.0

    def probabilities(self) -> NDArray[np.float64]:
        """p of all samples, or groups, as learned so far; batches are drawn from it while the guard allows."""
        return self.sampling.probabilities()

    def statistics(self) -> dict[str, float]:
        """How it goes: τ, how many times fewer steps p needs as the guard reckons, whether the next batch is drawn from
        p, what waits for feedback, and the noise scale of uniform batches (nan while not measured)."""
        advice = self._stream.advice()
        return {
            "tau": advice.tau,
            "saving": advice.saving,
            "noise_scale": advice.noise_scale,
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
            **self._identity(),
            "epoch_start": self._epoch_start,
            "newest": self._newest,
            "newest_adaptive": self._newest_adaptive,
            "steps": self._pairs.steps if self._pairs else 0,
            **self._log.state_dict(),
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Go on from a saved state of the same sampler; a StatefulDataLoader calls it by itself."""
        self._set_ranks()
        for name, value in self._identity().items():
            if saved.get(name) != value:
                raise ValueError(
                    f"This state is of another {self._name}: its {name} is {saved.get(name)}, here it is {value}."
                )
        self._rest = self._log.load_state_dict(saved, saved["newest"])
        self._epoch_start, self._newest = saved["epoch_start"], saved["newest"]
        self._newest_adaptive = saved["newest_adaptive"]
        if self._pairs is None:
            self._steps = saved["steps"]
        else:
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
        silent = self._stream.drawn > 0 and not (self._stream.ratio.batches or self._stream.pending)
        if silent and not fixed and not self._warned:
            self._warned = True
            warnings.warn(
                f"{self._name}: {self._stream.drawn} batches went by without feedback: nothing is learned. Call "
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
        if self._stream.drawn == MAX_OUTSTANDING:  # epochs may be very long
            self._warn_without_feedback()
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
        return i if self._ranks == 1 else i[self._slice(i.size)]

    # --- matching feedback to draws -----------------------------------------------------------------------------------

    def _weights(self, draw: Draw) -> NDArray[np.float64]:
        """Of this rank's slice."""
        weights = self._stream.source.weights(draw)
        return weights if self._ranks == 1 else weights[self._slice(draw.i.size)]

    def _slice(self, size: int) -> slice:
        share = size // self._ranks
        return slice(self._rank * share, (self._rank + 1) * share)

    def _find(self, idx: Any) -> tuple[int, Draw]:
        """The outstanding batch with these indices: nearly always the newest one asked about, or the next."""
        wanted = idx.numpy(force=True) if isinstance(idx, torch.Tensor) else np.asarray(idx)
        if wanted.dtype.kind not in "iu" or wanted.ndim != 1:
            raise TypeError(
                f"{self._name} expects the indices of a batch, got {wanted.dtype} of shape {wanted.shape}. Has "
                'the loader an IndexedDataset(dataset)? Its samples end with their index, or have it as "index".'
            )
        key = wanted.astype(np.int64, copy=False).tobytes()
        outstanding = self._stream.outstanding
        for number in chain((self._newest + 1, self._newest), outstanding):
            draw = outstanding.get(number)
            if draw is not None and (draw.i if self._ranks == 1 else self._indices_of(number)).tobytes() == key:
                if number >= self._newest:
                    self._newest, self._newest_adaptive = number, draw.adaptive
                return number, draw
        raise ValueError(
            f"{self._name}: these {wanted.size} indices are not a batch that waits for feedback. Pass idx whole "
            "and in order, as a loader of an IndexedDataset gave it; ask for the weights of a batch before its update; "
            f"update once per batch, and no later than {MAX_OUTSTANDING} batches after it was drawn."
        )
