"""What all iterates have in common."""

from typing import Any

import numpy as np

from banditgrad._jit import kernel
from banditgrad.rows import Csr


def lazy_strengths(problem: Any) -> tuple[float, float] | None:
    """(l1, l2) where coordinates can wait, on sparse rows with a penalty in closed form; else None."""
    strengths = problem.shrinkage if isinstance(problem.parts.rows, Csr) else None
    return None if strengths is None or np.ndim(strengths[0]) else strengths


def segment_length(problem: Any) -> int:
    """Steps after which tables are used up and all is flushed; that costs about one coordinate per step."""
    return max(1024, min(problem.penalised, 1 << 20))


def flushed(iterate: Any) -> Any:
    """A copy with every coordinate up to date; the run is not touched."""
    copies = [value.copy() if isinstance(value, np.ndarray) else value for value in iterate]
    copy = type(iterate)(*copies)
    flush(copy)
    return copy


@kernel
def flush(iterate):
    """Bring an iterate up to date in place."""
    iterate.flush()
