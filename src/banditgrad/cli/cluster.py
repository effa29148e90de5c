"""The option `--scheduler`: runs on a Dask cluster instead of in this process."""

from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any

import typer

Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Make the runs on a Dask cluster: the address of its scheduler (tcp://HOST:8786), or `local` for "
        "processes of this machine.",
    ),
]


def sweep(scheduler: str | None) -> AbstractContextManager[Any]:
    """What makes the runs: a sweep on the cluster, or None for this process."""
    if scheduler is None:
        return nullcontext()
    from banditgrad.dask.sweeps import sweep_on  # needs the extra [dask]

    return sweep_on(scheduler)
