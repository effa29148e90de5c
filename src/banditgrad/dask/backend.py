"""Where the work on partitions is done: on a cluster's workers, next to the rows, or in threads of this process."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any

import dask
import distributed
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

FAN_IN = 8  # answers that one task of the tree sums
PATIENCE = 600.0  # seconds to wait for a worker where all are gone
LOOK_EVERY = 1.0  # seconds between two looks at whether the workers that were given work are still there


def current_backend() -> "Cluster | Threads":
    """The current client's cluster, or threads where there is none."""
    try:
        client = distributed.get_client()
    except ValueError:
        return Threads()
    if client.asynchronous:
        raise TypeError("The current dask client is asynchronous. Make one with Client(..., asynchronous=False).")
    return Cluster(client)


@contextmanager
def thread_given_back() -> Iterator[None]:
    """In a task of a cluster, give the worker's thread back while waiting for other tasks, which may need it."""
    try:
        distributed.secede()
    except (ValueError, KeyError, AttributeError):  # not in a task, or in one that gave its thread back before
        yield
        return
    try:
        yield
    finally:
        distributed.rejoin()


class Threads:
    """Partitions held by this process, one thread per core: compiled loops run without the GIL."""

    bytes_moved = 0

    def load(self, delayed: Sequence[Any]) -> list[Any]:
        return list(dask.compute(*delayed, scheduler="threads"))

    def make(self, function: Callable[..., Any], held: Sequence[Any], *args: Any) -> list[Any]:
        return [function(k, each, *args) for k, each in enumerate(held)]

    def each(self, function: Callable[..., Any], held: Sequence[Any], *args: Any) -> list[Any]:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(lambda each: function(each, *args), held))

    def total(self, function: Callable[..., Any], held: Sequence[Any], shares: Sequence[float], *args: Any) -> Any:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return sum_answers(list(pool.map(lambda each, share: function(each, share, *args), held, shares)))

    def later(self, function: Callable[..., Any], held: Any, *args: Any) -> Any:
        """A delayed value."""
        return dask.delayed(function)(held, *args)


class Cluster:
    """Partitions held by workers as Dask's futures; what is lost with a worker, Dask makes anew.

    Work on a partition is pinned to the worker that holds it, for Dask would otherwise move rows to idle workers now
    and then. Where a worker is gone its partitions are pinned to others, and where one has come, it gets its part.
    """

    def __init__(self, client: Any) -> None:
        self.client, self.bytes_moved = client, 0
        self._places: dict[str, str] = {}  # worker by the key of what it holds
        self._workers: set[str] = set()

    def load(self, delayed: Sequence[Any]) -> list[Any]:
        held = self.client.compute(list(delayed))
        distributed.wait(held)
        return held

    def make(self, function: Callable[..., Any], held: Sequence[Any], *args: Any) -> list[Any]:
        """Futures of function(k, each, *args), which stay where they are made; not pinned, to be remade anywhere."""
        made = [self.client.submit(function, k, each, *args, pure=False) for k, each in enumerate(held)]
        distributed.wait(made)
        self._places = {}
        self._workers = set(self.client.nthreads())
        return made

    def each(self, function: Callable[..., Any], held: Sequence[Any], *args: Any) -> list[Any]:
        return list(self.client.gather([self.client.submit(function, one, *args, pure=False) for one in held]))

    def total(self, function: Callable[..., Any], held: Sequence[Any], shares: Sequence[float], *args: Any) -> Any:
        """The sum of function(each, share, *args), by a tree whose root is here."""
        self._place(held)
        while True:
            leaves = [
                self.client.submit(function, one, share, *args, pure=False, workers=[self._places[one.key]])
                for one, share in zip(held, shares, strict=True)
            ]
            try:
                answers = self._wait(self._few(leaves))
            except BaseException:
                self.client.cancel(leaves)
                raise
            if answers is not None:
                total = sum_answers(answers)
                self.bytes_moved += len(held) * (_bytes(args) + _bytes(total))
                return total
            self.client.cancel(leaves)
            self._place(held)

    def later(self, function: Callable[..., Any], held: Any, *args: Any) -> Any:
        """A delayed value, which the cluster begins to compute, so that it can let go of the partition."""
        return dask.delayed(self.client.submit(function, held, *args, pure=False))

    def _few(self, futures: list[Any]) -> list[Any]:
        while len(futures) > FAN_IN:
            groups = [futures[begin : begin + FAN_IN] for begin in range(0, len(futures), FAN_IN)]
            futures = [self.client.submit(sum_answers, group, pure=False) for group in groups]
        return futures

    def _wait(self, futures: list[Any]) -> list[Any] | None:
        """The results, or None if a worker that was given work is gone.

        Both the work and the fetching of what it gave have an end: a result that is lost with its worker before it is
        fetched would be awaited for ever, because it is pinned there.
        """
        fetching = LOOK_EVERY
        while True:
            try:
                distributed.wait(futures, timeout=LOOK_EVERY)
                return list(self._gather(futures, timeout=fetching))
            except TimeoutError:
                if not self._workers <= set(self.client.nthreads()):
                    return None
                fetching *= 2.0  # large answers may take long on a slow line

    def _gather(self, futures: list[Any], timeout: float) -> Any:
        """As the client's `gather`, which waits without end."""
        return self.client.sync(lambda: self.client.gather(futures, asynchronous=True), callback_timeout=timeout)

    def _place(self, held: Sequence[Any]) -> None:
        """Decide where each partition's work is done: where it is, but evenly once workers have gone or come."""
        workers = set(self.client.nthreads())
        while not workers:
            try:
                self.client.wait_for_workers(1, timeout=PATIENCE)
            except TimeoutError as error:
                raise TimeoutError(f"The Dask cluster has had no workers for {PATIENCE:g} seconds.") from error
            workers = set(self.client.nthreads())
        holders = self.client.who_has(list(held))
        for one in held:
            if self._places.get(one.key) not in holders[one.key]:
                self._places[one.key] = next(iter(sorted(holders[one.key])), "")
        if workers != self._workers or "" in self._places.values():
            self._workers = workers
            self._spread(held)

    def _spread(self, held: Sequence[Any]) -> None:
        """Give what is nowhere, and what is more than a worker's part, to those that have least."""
        load = dict.fromkeys(sorted(self._workers), 0)
        for one in held:
            if (place := self._places[one.key]) in load:
                load[place] += 1
        for one in held:
            place, idlest = self._places[one.key], min(load, key=load.__getitem__)
            if place not in load or load[place] > load[idlest] + 1:
                if place in load:
                    load[place] -= 1
                load[idlest] += 1
                self._places[one.key] = idlest


def sum_answers(answers: Sequence[Sequence[Vector]]) -> list[Vector]:
    return [np.sum(each, axis=0) for each in zip(*answers, strict=True)]


def _bytes(values: Any) -> int:
    """The numbers in arguments and answers, in bytes."""
    if isinstance(values, np.ndarray):
        return values.nbytes
    if isinstance(values, (list, tuple)):
        return sum(map(_bytes, values))
    if isinstance(values, dict):
        return sum(map(_bytes, values.values()))
    if is_dataclass(values):
        return sum(_bytes(getattr(values, each.name)) for each in fields(values))
    return 8 if isinstance(values, (int, float)) else 0
