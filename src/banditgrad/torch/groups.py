"""The batch sampler whose arms are groups of samples: classes, domains, shards, clusters, streams."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from banditgrad.samplers import RecentNorm, Sampler, Sampling
from banditgrad.torch.arguments import chosen_guard, chosen_seed, started
from banditgrad.torch.base import AdaptiveBatchSampler
from banditgrad.torch.batch_stream import BatchStream
from banditgrad.torch.group_source import GroupSource, Members, StreamMembers
from banditgrad.torch.guard import Guard, Start
from banditgrad.torch.noise import Advice
from banditgrad.torch.streams import GroupStreams

WARM_UP = 10  # batches from the mixture before an adaptive one begins
LEAST_SAVING = 1.1  # batches from the mixture are stratified like those from p, so that p need not save much to pay
RECENT = RecentNorm(theta=0.2, memory=0.95, mix="blend")


class GroupBatchSampler(AdaptiveBatchSampler):
    """Batches whose allocation to groups is learned; within a group samples come in shuffled passes.

    Of B samples, B p_g are of group g, rounded up or down at random. There are few groups, so that p is learned within
    a fraction of an epoch, also where samples are seen only once or twice.

    Parameters
    ----------
    groups : array or sequence with the group of each sample, or GroupStreams
        Labels may be numbers or strings. The sorted labels are `names`, the order of `mixture` and `probabilities`.
    batch_size : int
        Samples per batch; under torch.distributed, per rank.
    sampler : Sampler or Sampling, optional
        How p is learned; a moving average of second moments, `bg.RecentNorm`, unless given.
    steps_per_epoch : int, optional
        Batches per epoch; the number of samples over the batch size unless given. Streams need it.
    mixture : mapping or array, optional
        q, the shares of the groups in what is minimised: the sizes of the groups unless given, equal for streams.
    objective : "fixed" or "adaptive"
        "fixed": the expected gradient is that of the mixture q, since samples are weighted by q/p, and p makes its
        variance small: p_g ∝ q_g √(mean squared norm in g). "adaptive": weights are 1, and p_g ∝ q_g · (root mean
        square of the rewards of g). What is fed back is then a reward, such as the loss, and **gradients are those of
        the mixture p, not of q**: what is minimised moves with p.
    one_group : bool
        All samples of a batch are of one group, so that they have one weight: for losses that are only known for a
        batch as a whole. Noisier than mixed batches.
    seed, generator, drop_last, feedback_every
        As for `BanditBatchSampler`.
    guard : Guard or bool
        When to draw from the mixture q instead; False: never. A threshold of 1.1 unless given. Only for "fixed";
        "adaptive" draws from q until ten batches were learned from.

    Example
    -------
    >>> sampler = GroupBatchSampler(labels, 64, seed=0)
    >>> for x, y, idx in DataLoader(IndexedDataset(dataset), batch_sampler=sampler):
    ...     z = model(x)
    ...     loss = F.cross_entropy(z, y, reduction="none")
    ...     sampler.loss(loss, idx, norms=lambda: cross_entropy_bound(z, y)).backward()
    """

    def __init__(
        self,
        groups: Sequence[Any] | NDArray[Any] | torch.Tensor | GroupStreams,
        batch_size: int,
        sampler: Sampler | Sampling | None = None,
        steps_per_epoch: int | None = None,
        *,
        mixture: Mapping[Any, float] | Sequence[float] | None = None,
        objective: str = "fixed",
        one_group: bool = False,
        seed: int | None = None,
        generator: torch.Generator | None = None,
        drop_last: bool = False,
        guard: Guard | bool = True,
        feedback_every: int = 1,
    ) -> None:
        if objective not in ("fixed", "adaptive"):
            raise ValueError(f'GroupBatchSampler expects objective="fixed" or "adaptive", got {objective!r}.')
        if objective == "adaptive" and isinstance(guard, Guard):
            raise ValueError('GroupBatchSampler(objective="adaptive") has nothing to guard: leave guard out.')
        if isinstance(groups, GroupStreams):
            if steps_per_epoch is None:
                raise ValueError("GroupBatchSampler expects steps_per_epoch for streams, which have no length.")
            self.names, draws = groups.names, 0
            members: Members | StreamMembers = StreamMembers(len(self.names))
            sizes = np.ones(len(self.names))
        else:
            self.names, group_of = _numbered(groups)
            members, draws = Members(group_of, len(self.names)), group_of.size
            sizes = np.bincount(group_of).astype(np.float64)
        self.objective, self.mixture = objective, _shares(mixture, sizes, self.names)
        seed = chosen_seed(self._name, seed, generator)
        options = {"seed": seed, "smoothness": self.mixture}
        sampling = started(self._name, sampler or RECENT, len(self.names), "there are groups:", **options)
        source = GroupSource(sampling, members, self.mixture, seed)
        source.keeps_mixture, source.one_group = objective == "fixed", bool(one_group)
        self.one_group, self._one_weight = bool(one_group), one_group or objective == "adaptive"
        fixed_guard = chosen_guard(self._name, guard, Guard(threshold=LEAST_SAVING))
        stream = BatchStream(source, fixed_guard if objective == "fixed" else Start(WARM_UP))
        super().__init__(stream, batch_size, steps_per_epoch, draws, drop_last, feedback_every)

    def advice(self) -> Advice:
        """What drawing from p can save at the present batch size, beside batches from the mixture q."""
        if self.objective == "adaptive":
            raise RuntimeError(
                'GroupBatchSampler.advice: with objective="adaptive" p is what is minimised, not a way to save steps; '
                "probabilities() has it."
            )
        return super().advice()

    def statistics(self) -> dict[str, float]:
        """As of `BanditBatchSampler`; without τ, saving and noise scale if the objective is adaptive."""
        every = super().statistics()
        meaningless = ("tau", "saving", "noise_scale") if self.objective == "adaptive" else ()
        return {name: value for name, value in every.items() if name not in meaningless}

    def _identity(self) -> dict[str, Any]:
        own = {"groups": len(self.names), "objective": self.objective, "one_group": self.one_group}
        return {"samples": self._stream.source.samples, **super()._identity(), **own}


def _numbered(groups: Any) -> tuple[list[Any], NDArray[np.int64]]:
    """The sorted names of groups, and each sample's group as its position there."""
    labels = groups.numpy(force=True) if isinstance(groups, torch.Tensor) else np.asarray(groups)
    if labels.ndim != 1 or labels.size == 0 or labels.dtype.kind not in "biuUSO":
        raise TypeError(
            "GroupBatchSampler expects the group of each sample, whole numbers or strings, or GroupStreams, "
            f"got {labels.dtype} of shape {labels.shape}."
        )
    names, group_of = np.unique(labels, return_inverse=True)
    return names.tolist(), group_of.astype(np.int64)


def _shares(mixture: Any, sizes: NDArray[np.float64], names: list[Any]) -> NDArray[np.float64]:
    if mixture is None:
        return sizes / sizes.sum()
    if isinstance(mixture, Mapping):
        if set(mixture) != set(names):
            odd = sorted(map(str, set(mixture) ^ set(names)))
            raise ValueError(f"GroupBatchSampler expects a share for each group in mixture; compare {', '.join(odd)}.")
        mixture = [mixture[name] for name in names]
    shares = np.asarray(mixture, dtype=np.float64)
    if shares.shape != sizes.shape or not (np.isfinite(shares).all() and (shares > 0.0).all()):
        raise ValueError(
            f"GroupBatchSampler expects mixture to have a positive share for each of {sizes.size} groups, "
            f"got {mixture!r}. Leave samples out that are not to count."
        )
    return shares / shares.sum()
