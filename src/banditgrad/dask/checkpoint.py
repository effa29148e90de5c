"""Where a fit's rounds have come to, in a file, so that one that was stopped goes on from there.

A point is all that is kept: from wherever rounds begin they come to the same minimiser. Bandits and the memory of
earlier steps begin anew, as they do for partitions that are lost with a worker.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditgrad._files import write_atomically
from banditgrad.dask.partitions import Task

Vector = NDArray[np.float64]


class Checkpoint:
    """A file of the points that the problems of one task have reached."""

    def __init__(self, path: str | Path, task: Task, features: int) -> None:
        self.path = Path(path)
        labels = task.labels if task.classes else task.positive
        parts = (task.loss, task.penalty, task.fit_intercept, labels, features)
        self._problem = "; ".join(map(_words, parts))  # minimised: a point of another is of no use

    def read(self) -> Vector | None:
        """A point per problem; None where no round has been written."""
        if not self.path.exists():
            return None
        with np.load(self.path, allow_pickle=False) as saved:
            problem, points = str(saved["problem"]), saved["points"]
        if problem != self._problem:
            raise ValueError(
                f"{self.path} is of another fit: it has [{problem}], this one [{self._problem}]. Remove the file, or "
                "give each fit a checkpoint of its own."
            )
        return points

    def write(self, points: Sequence[Vector]) -> None:
        content = io.BytesIO()
        np.savez(content, problem=np.array(self._problem), points=np.array(points))
        write_atomically(self.path, content.getvalue())


def _words(part: Any) -> str:
    return str(part.tolist()) if isinstance(part, np.ndarray) else str(part)
