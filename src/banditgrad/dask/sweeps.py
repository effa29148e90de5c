"""Many independent runs on a cluster: the data is sent once, a run that is lost with its worker is made again."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from logging import CRITICAL
from typing import Any
from uuid import uuid4

import distributed
from distributed.scheduler import KilledWorker

LOCAL = "local"
PATIENCE = 10.0  # seconds to wait for a scheduler


class Sweep:
    """Runs function(data, job) for many jobs, on the workers of a client."""

    def __init__(self, client: Any) -> None:
        self._client = client

    @property
    def threads(self) -> int:
        """How many runs are made at a time."""
        return max(1, sum(self._client.nthreads().values()))

    def as_done(self, function: Callable[..., Any], data: Any, jobs: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """The number of each job and its result, as they come. Given up, it cancels the others."""
        left = dict(enumerate(jobs))
        futures: dict[Any, int] = {}
        try:
            while left:
                shared = self._client.scatter(data, broadcast=True, hash=False)
                name = f"{function.__name__}-{uuid4().hex}"
                futures = {
                    self._client.submit(function, shared, job, key=f"{name}-{k}", pure=False): k
                    for k, job in left.items()
                }
                for future in distributed.as_completed(futures):
                    if future.status == "cancelled":  # every worker that had the data is gone: send it again
                        continue
                    k = futures.pop(future)
                    del left[k]
                    yield k, _result(future)
        finally:
            if left:
                self._client.cancel(list(futures))

    def in_order(self, function: Callable[..., Any], data: Any, jobs: Sequence[Any]) -> Iterator[Any]:
        """The results in the order of the jobs."""
        early: dict[int, Any] = {}
        due = 0
        for k, result in self.as_done(function, data, jobs):
            early[k] = result
            while due in early:
                yield early.pop(due)
                due += 1


@contextmanager
def sweep_on(scheduler: str) -> Iterator[Sweep]:
    """A sweep on the cluster at an address such as tcp://10.0.0.1:8786, or on processes of this machine: "local"."""
    if scheduler == LOCAL:
        with (
            distributed.LocalCluster(threads_per_worker=1, dashboard_address=":0", silence_logs=CRITICAL) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield Sweep(client)
        return
    try:
        client = distributed.Client(scheduler, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"No Dask scheduler answers at {scheduler!r} ({error or type(error).__name__}). "
            "Pass its address, as `dask scheduler` prints it (tcp://HOST:8786), or local."
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError as error:
            raise ValueError(f"The Dask scheduler at {scheduler!r} has no workers. Start one: dask worker.") from error
        yield Sweep(client)


def _result(future: Any) -> Any:
    try:
        return future.result()
    except KilledWorker as error:
        raise ValueError(
            "One of the runs was on every worker that died, and is given up: it may need more memory than they have."
        ) from error
