"""Safe adaptive sampling: the p that is best in the worst case, given bounds on every gradient norm.

The norm of item i was seen when the iterate was elsewhere; since ∇φ_i is Lipschitz, it has since stayed in

    [l_i, u_i] = √a_i ± L_i/n · (the length of the path that the iterate has gone since).

Over p the largest Σ (c_i²/p_i) / Σ c_i² with c between l and u is least for p ∝ c = min(max(m, l), u), m = Σ c² / Σ c:
the most even point of the box. Bounds are drawn up again eight times in n draws.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline, outline
from banditgrad.samplers.base import Sampler, Setup
from banditgrad.samplers.blocks import NONE
from banditgrad.samplers.floors import EvenFloor
from banditgrad.samplers.importance import require
from banditgrad.samplers.mixed import equal_weights, expect_share, mixed
from banditgrad.samplers.renewal import fill_again
from banditgrad.samplers.weighted import WeightedSampler

# how far the iterate has gone over its step size, that step size, draws learnt and until bounds are drawn up again
PATH = np.dtype([("length", "f8"), ("step", "f8"), ("updates", "i8"), ("renew_every", "i8")])
SEEN = np.dtype([("norm", "f8"), ("at", "f8")])  # √a_i, or NONE, and where on the path
LEAST = 1e-12  # a weight over the largest


@mixed
class SafeBoundsState(NamedTuple):
    weighted: WeightedSampler
    floor_of: EvenFloor
    stream: NDArray[np.uint64]
    seen: NDArray[np.void]
    bounds: NDArray[np.float64]  # on √a_i over the whole run, or infinity
    lipschitz: NDArray[np.float64]  # L_i / n
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    path: NDArray[np.void]
    theta: float
    learns_step: bool

    def learn(self, k, p_i, a_i):
        i, path, norm = self.weighted.entries[k].id, self.path[0], math.sqrt(a_i)
        if self.learns_step and self.seen[i].norm != NONE:
            gone = self.lipschitz[i] * (path.length - self.seen[i].at)
            if gone > 0.0:
                path.step = max(path.step, abs(norm - self.seen[i].norm) / gone)
        self.seen[i].norm = norm
        self.seen[i].at = path.length
        path.length = min(path.length + norm / p_i, 1e150)
        path.updates += 1
        if path.updates % path.renew_every == 0:
            draw_up(self)
            safest(self.lower, self.upper)
            fill_again(self.weighted, self.lower)


@inline
def draw_up(state):
    """The bounds as of now."""
    path = state.path[0]
    for i in range(state.seen.size):
        state.lower[i], state.upper[i] = 0.0, state.bounds[i]
        if state.seen[i].norm != NONE:
            change = state.lipschitz[i] * path.step * (path.length - state.seen[i].at)
            state.lower[i] = max(state.seen[i].norm - change, 0.0)
            state.upper[i] = max(min(state.seen[i].norm + change, state.bounds[i]), state.lower[i])


@outline
def safest(lower, upper):
    """min(max(m, l), u) with m = Σ c² / Σ c, in place of the l, over the largest and not below LEAST."""
    low, high = 0.0, 0.0
    for i in range(lower.size):
        high = max(high, upper[i] if upper[i] < math.inf else lower[i])
    m = 0.5 * high
    for _ in range(200):  # Newton's method on Σ c (c - m), which falls in m, kept between bounds
        squares, total = 0.0, 0.0
        for i in range(lower.size):
            c = lower[i] if lower[i] > m else upper[i]
            if lower[i] > m or upper[i] < m:
                squares += c * c
                total += c
        if not total > 0.0:  # m itself is in every box
            break
        if squares > m * total:
            low = m
        else:
            high = m
        newton = squares / total
        if newton == m or high - low <= 1e-15 * high:
            break
        m = newton if low < newton < high else 0.5 * (low + high)
    largest = 0.0
    for i in range(lower.size):
        lower[i] = min(max(m, lower[i]), upper[i])
        largest = max(largest, lower[i])
    for i in range(lower.size):
        lower[i] = max(lower[i] / largest, LEAST) if largest > 0.0 else 1.0


@dataclass(frozen=True)
class SafeBounds(Sampler):
    """The safest p given what is known of all gradient norms; for SGD on losses with Lipschitz gradients.

    Parameters
    ----------
    step_size : float, optional
        The constant step of the solver, from which follows how far the iterate goes. Unless given, it is learned as the
        least one that explains the changes seen: the bounds are then estimates and no longer safe.
    theta : float
        The share of uniform draws, for rows whose gradient may grow from zero before bounds are drawn up again.

    Notes
    -----
    Needs `smoothness`, and uses `bounds` where there are any. The feedback must be that of plain gradients: a penalty's
    prox adds to the path, and the differences of a variance-reduced solver jump when its table or snapshot changes.
    A draw costs O(1), and an eighth of a pass O(n).

    References
    ----------
    Stich, Raj and Jaggi, "Safe Adaptive Importance Sampling", NeurIPS 2017.
    """

    step_size: float | None = None
    theta: float = 0.1

    def __post_init__(self) -> None:
        expect_share(self, "theta", self.theta)
        if self.step_size is not None and not 0.0 < self.step_size < math.inf:
            raise ValueError(f"SafeBounds expects a positive, finite step_size, got {self.step_size!r}.")

    def state(self, setup: Setup) -> Any:
        n, L = setup.n, require(setup.smoothness, "SafeBounds", "smoothness", "the L_i")
        seen = np.zeros(n, SEEN)
        seen["norm"] = NONE
        return SafeBoundsState(
            **equal_weights(setup),
            seen=seen,
            bounds=np.full(n, np.inf) if setup.bounds is None else np.sqrt(setup.bounds),
            lipschitz=L / n,
            lower=np.zeros(n),
            upper=np.zeros(n),
            path=np.array([(0.0, self.step_size or 0.0, 0, max(1, n // 8))], PATH),
            theta=float(self.theta),
            learns_step=self.step_size is None,
        )
