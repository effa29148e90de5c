"""Streams of samples, one per group, for `GroupBatchSampler` to draw from: iterable datasets, shards, generators."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from torch.utils.data import Dataset, get_worker_info

from banditgrad.torch.dataset import with_index
from banditgrad.torch.ranks import rank_and_size

Stream = Iterable[Any] | Callable[[int, int], Iterable[Any]]


class GroupStreams(Dataset):
    """A dataset that takes the next sample of the group it is asked for; samples end with their index, as those of
    `IndexedDataset` do.

    The sampler stays in the main process, where feedback arrives, and tells workers which streams to go on with. Each
    worker of each rank reads a part of its own; a stream that is at its end begins anew.

    Parameters
    ----------
    streams : mapping or sequence
        One per group, each an iterable that can be read again and again (an IterableDataset, a list), of which every
        worker takes every parts-th sample; or a function ``open(part, parts)`` that gives an iterator over one of
        `parts` parts, such as every parts-th shard, which spares workers what others read.

    Example
    -------
    >>> streams = GroupStreams({"code": code_dataset, "prose": lambda part, parts: samples_of(shards[part::parts])})
    >>> sampler = GroupBatchSampler(streams, 64, steps_per_epoch=1000, mixture={"code": 0.3, "prose": 0.7})
    >>> for x, y, idx in DataLoader(streams, batch_sampler=sampler, num_workers=2):
    """

    def __init__(self, streams: Mapping[Any, Stream] | Sequence[Stream]) -> None:
        named = dict(streams) if isinstance(streams, Mapping) else dict(enumerate(streams))
        if not named:
            raise ValueError("GroupStreams expects at least one stream, got none.")
        for name, stream in named.items():
            if not (callable(stream) or isinstance(stream, Iterable)) or isinstance(stream, (str, bytes)):
                raise TypeError(
                    f"GroupStreams expects iterables or functions open(part, parts), got {stream!r} for group {name!r}."
                )
        self.names = list(named)
        self._streams = list(named.values())
        self._taken = [0] * len(named)  # samples of each, by this process
        self._open: list[Iterator[Any] | None] = [None] * len(named)

    def __getitem__(self, i: int) -> Any:
        """The next sample of group i % (number of groups)."""
        g = int(i) % len(self._streams)
        self._taken[g] += 1
        return with_index(self._next(g), int(i))

    def _next(self, g: int) -> Any:
        nothing = object()
        for _ in range(2):
            begins = self._open[g] is None
            iterator = self._open[g] = self._opened(g) if begins else self._open[g]
            sample = next(iterator, nothing)  # type: ignore[arg-type]
            if sample is not nothing:
                return sample
            self._open[g] = None
            if begins:
                break
        once = isinstance(self._streams[g], Iterator)
        raise RuntimeError(
            f"GroupStreams: the stream of group {self.names[g]!r} "
            + ("can be read only once, and is at its end. Pass an iterable, or a function that opens it again."
               if once else "has no samples for this worker. Use fewer workers, or more shards.")
        )  # fmt: skip

    def _opened(self, g: int) -> Iterator[Any]:
        rank, ranks = rank_and_size()
        worker = get_worker_info()
        part, parts = (
            (rank, ranks) if worker is None else (rank * worker.num_workers + worker.id, ranks * worker.num_workers)
        )
        stream = self._streams[g]
        if callable(stream):
            return iter(stream(part, parts))
        return itertools.islice(stream, part, None, parts)

    def state_dict(self) -> dict[str, Any]:
        """How many samples of each stream this process has taken; StatefulDataLoader asks workers for theirs."""
        return {"taken": list(self._taken)}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Read on from there: streams begin anew, and what was taken is read over."""
        self._open = [None] * len(self._streams)
        self._taken = list(saved["taken"])
        for g, taken in enumerate(self._taken):
            for _ in range(taken):
                self._next(g)
