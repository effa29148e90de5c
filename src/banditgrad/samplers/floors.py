"""What an adaptive sampler mixes its weights with, so that no probability comes near zero:  p = (1 - η) w/W + η q."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import bridge
from banditgrad._random import peek, skip, unit
from banditgrad.samplers.urn import TICKET, Urn, empty_urn, fill


@bridge
class EvenFloor(NamedTuple):
    """q_i = 1/n."""

    share_of_each: float

    def mixed_draw(self, urn, stream, eta):
        return urn.pick(stream, eta)

    def floor(self, i):
        return self.share_of_each


class UnevenFloor(NamedTuple):
    """Any q_i, drawn from an urn of its own."""

    urn: Urn
    q: NDArray[np.float64]  # the same once more: p_i is asked of rows that this urn did not draw

    def mixed_draw(self, urn, stream, eta):
        coin = unit(peek(stream, 0))
        skip(stream, TICKET)
        if coin < eta:
            return self.urn.pick(stream, 0.0)
        return urn.pick(stream, 0.0)

    def floor(self, i):
        return self.q[i]

    def faults(self, arrays: dict[str, NDArray[np.float64]]) -> list[str]:
        q = arrays["q"]
        return [] if q.min() >= 0.0 and abs(q.sum() - 1.0) < 1e-6 else ["the shares it mixes with do not sum to 1"]


def new_floor(q: NDArray[np.float64] | None, n: int) -> EvenFloor | UnevenFloor:
    """q up to a factor; None for uniform."""
    if q is None:
        return EvenFloor(1.0 / n)
    urn = empty_urn(n)
    q = q / q.max()  # the sum is then finite
    fill(urn, q)
    return UnevenFloor(urn, q / q.sum())
