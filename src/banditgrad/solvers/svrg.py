"""SVRG and its kin: steps beside a snapshot w̃, which moves at the end of a *bin* of them,

w ← prox(w - γ ((∇φ_i(w) - ∇φ_i(w̃)) / (n p_i) + ∇f(w̃)), γ).

Proximal SVRG (Xiao and Zhang 2014), as the paper runs it: bins of n steps, w̃ the mean of the previous bin's iterates.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import inline, kernel
from banditgrad._random import new_stream
from banditgrad.objective import full_gradient
from banditgrad.solvers.base import BAD_INDEX
from banditgrad.solvers.parts.bins import FixedBins, GeometricBins
from banditgrad.solvers.parts.minibatch import Minibatch, next_minibatch, row_ahead
from banditgrad.solvers.parts.safeguard import Safeguard, approve, go_back
from banditgrad.solvers.parts.step_size.smoothness import SmoothnessRule, bursts
from banditgrad.solvers.parts.step_size.stability import Stability
from banditgrad.solvers.parts.variance_reduction import (
    VarianceReduced,
    difference,
    leapt,
    new_state,
    stabilise,
    start_over,
    step_limit,
    weigh,
)

Vector = NDArray[np.float64]

BIN = np.dtype([("left", "i8"), ("length", "i8")])  # steps; a length of 0: there is no bin to take the mean of
NOISE = np.dtype([("adaptive", "f8"), ("uniform", "f8")])  # Σ n² a_i / (n p_i)² and Σ n² a_i / (n p_i)
DONE, NOT_FINITE, BURST = 0, 1, 2  # how an inner loop may end, beside BAD_INDEX


class SnapshotState(NamedTuple):
    iterate: Any
    table: Any
    minibatch: Minibatch
    rule: SmoothnessRule
    safeguard: Safeguard
    stability: Stability
    bins: Any
    bin: NDArray[np.void]  # one BIN record
    snapshot: Vector  # w̃
    stream: NDArray[np.uint64]
    noise: NDArray[np.void]  # one NOISE record, or none where it is not asked for


class SnapshotMethod(VarianceReduced):
    """Base of the solvers with snapshots: a subclass says how bins end."""

    @abstractmethod
    def bins(self, problem: Any, gamma: float) -> Any:
        """The lengths of bins, a part of the kind `Bins`, for a run that begins with steps of length γ."""

    def wants_mean(self) -> bool:
        """Whether a snapshot is the mean of its bin's iterates rather than the last one."""
        return False

    def start(self, problem: Any, w: Vector, seed: Any) -> SnapshotState:
        state = new_state(problem, self.step_size, w, means=self.wants_mean())
        return SnapshotState(
            *state,
            bins=self.bins(problem, float(state.iterate.clock["gamma"][0])),
            bin=np.zeros(1, BIN),
            snapshot=np.zeros(w.size),
            stream=new_stream(seed),
            noise=np.zeros(0, NOISE),
        )

    def advance(self, problem: Any, state: SnapshotState, sampler: Any, steps: int) -> int:
        return int(_svrg(problem.parts, state, sampler, steps))

    def feedback(self, problem: Any, state: SnapshotState) -> Vector:
        if not state.bin["length"][0]:  # the snapshot that is yet to be taken will be w
            return np.zeros(problem.n)
        return super().feedback(problem, state)


@dataclass(frozen=True, eq=False)
class ProxSvrg(SnapshotMethod):
    """Proximal SVRG with any sampler.

    Parameters
    ----------
    step_size : float or "auto"
        γ; "auto" finds it while running.
    snapshot : "mean" or "last"
        Whether w̃ is the mean of the previous bin's iterates, the paper's definition, or the last of them.
    """

    step_size: Any = "auto"
    snapshot: str = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.snapshot not in ("mean", "last"):
            raise ValueError(f'ProxSvrg expects snapshot="mean" or snapshot="last", got {self.snapshot!r}.')

    def bins(self, problem: Any, gamma: float) -> FixedBins:
        return FixedBins(float(problem.n))

    def wants_mean(self) -> bool:
        return self.snapshot == "mean"


@dataclass(frozen=True, eq=False)
class LSvrg(SnapshotMethod):
    """Loopless SVRG (Kovalev, Horváth and Richtárik 2020): w̃ becomes w with probability 1/n at every step.

    Parameters
    ----------
    step_size : float or "auto"
        γ; "auto" finds it while running.
    """

    step_size: Any = "auto"

    def bins(self, problem: Any, gamma: float) -> GeometricBins:
        return GeometricBins(float(problem.n))


@kernel
def _svrg(parts, state, sampler, steps):
    iterate, safeguard, this_bin, done = state.iterate, state.safeguard, state.bin[0], 0
    while done < steps:
        if this_bin.left == 0:
            _take_snapshot(parts, state, sampler)
        made, end = inner_loop(parts, state, sampler, min(this_bin.left, steps - done), step_limit(state))
        this_bin.left -= made
        done += made
        if end == BAD_INDEX:
            return BAD_INDEX
        if end == NOT_FINITE:
            if not state.rule.automatic:
                return done
            go_back(safeguard, iterate.w, iterate.clock[0].gamma)
            _begin_anew(parts, state)
            done += 1
        elif end == BURST and leapt(parts, state):
            _begin_anew(parts, state)
    return done


@inline
def inner_loop(parts, state, sampler, steps, limit):
    """At most so many steps beside the snapshot, γ at most `limit`: how many were made, and why there are no more."""
    iterate, table, minibatch, noise = state.iterate, state.table, state.minibatch, state.noise
    for step in range(steps):
        if not next_minibatch(parts, sampler, minibatch):
            return step, BAD_INDEX
        i = minibatch.i[0]
        parts.terms.fetch_of(table, row_ahead(minibatch))
        z, _, change, energy = difference(parts, state, i)  # ∇φ_i(w) - ∇φ_i(w̃) = change · x_i
        if not (abs(z) < np.inf and energy < np.inf):
            return step, NOT_FINITE
        factor = weigh(parts, state, i, z, change, energy, limit)  # change / (n p_i)
        parts.terms.move_along(parts.rows, iterate, minibatch.scratch, i, factor, 0.0)
        if noise.size > 0:
            weight = 1.0 / (parts.norms2.size * minibatch.p[0])
            noise[0].adaptive += energy * weight * weight
            noise[0].uniform += energy * weight
        if state.rule.automatic and bursts(state.rule):
            return step + 1, BURST
    return steps, DONE


@inline
def _take_snapshot(parts, state, sampler):
    """Move w̃ to the mean of the bin's iterates, or the last one, and compute ∇f(w̃); F comes with it."""
    iterate, snapshot, this_bin, safeguard = state.iterate, state.snapshot, state.bin[0], state.safeguard
    automatic = state.rule.automatic
    iterate.flush()
    mean = iterate.total.size > 0 and this_bin.length > 0
    for j in range(snapshot.size):
        snapshot[j] = iterate.total[j] / this_bin.length if mean else iterate.w[j]
    if mean:
        state.rule.measured[0].caution = 1.0
    value = full_gradient(parts, state.minibatch.scratch, snapshot, state.table, iterate.g, automatic)
    if automatic:
        value += safeguard.penalty.total_cost(snapshot, safeguard.penalised)
        if not approve(safeguard, snapshot, value, this_bin.length, iterate.clock[0].gamma):
            for j in range(snapshot.size):
                iterate.w[j] = snapshot[j]
            _begin_anew(parts, state)
            full_gradient(parts, state.minibatch.scratch, snapshot, state.table, iterate.g, False)
        stabilise(parts, state, sampler)
    for j in range(iterate.total.size):
        iterate.total[j] = 0.0
    iterate.resume()
    this_bin.length = state.bins.bin_length(state.stream)
    this_bin.left = this_bin.length


@inline
def _begin_anew(parts, state):
    """Go on from w, which is to be the snapshot."""
    start_over(parts, state)
    state.bin[0].left = 0
    state.bin[0].length = 0
    state.iterate.resume()
