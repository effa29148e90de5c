"""The step of SGD and its kin: a given schedule, or found while running.

Found, it is the distance travelled over the gradients met (Ivgi, Hinder and Carmon 2023),

    γ_t = max_{s<=t} ‖w_s - w_0‖ / √(Σ_{s<=t} ‖ĝ_s‖²),

which needs no constant of the problem, falls like 1/√t once noise rules, and takes the sampler into account by itself:
less variance, smaller ‖ĝ‖², longer steps. Distances are measured at the ends of blocks of steps, so that sparse rows
stay cheap.

One draw of a row far longer than others would throw w as far as it has come. So no row's part of a step goes further
than `overshoot` times the minimiser of its own term: γ r_i is limited by it, r_i = L_i / (n p_i), as for
variance-reduced solvers (`stability`). A quasi-Newton direction v goes no further than to where the model
<ĝ, v> γ - γ²/2 <v, Ĥ v> of its own batch is largest.

Beside the best of several hand-chosen multiples of 1/mean L_i, after 30 passes on six problems with three samplers, it
was between 0.1 and 3 times as far from the minimum (one seed), and it never diverged.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import bridge, inline
from banditgrad.rows import dot
from banditgrad.schedules import Constant, InverseTime, ShiftedInverseTime, as_schedule
from banditgrad.solvers.shrinkage import settle
from banditgrad.solvers.stability import overshoot

Vector = NDArray[np.float64]

REACH, SQUARES, LIMIT = 0, 1, 2  # indices into `numbers`: the largest distance; the sum of ‖ĝ‖²; γ, at most
FIRST_STEP = 0.5  # the first steps are about this over max L_i
BLOCKS_PER_PASS = 32


@bridge
class Given(NamedTuple):
    """Steps from a schedule."""

    schedule: Any

    def step_at(self, t):
        """γ_t."""
        return self.schedule.at(t)

    def measure_batch(self, parts, batch):
        """Take note of ĝ = Σ_k factor_k x_{i_k}; factors of rows that would go too far are made smaller."""

    def measure_direction(self, parts, batch, v):
        """Take note of the direction v that was made of this batch's ĝ."""

    @property
    def constant(self) -> bool:
        return isinstance(self.schedule, Constant)

    @property
    def falling(self) -> bool:
        return isinstance(self.schedule, (Constant, InverseTime, ShiftedInverseTime))


class Distance(NamedTuple):
    """Steps from distance over gradients; within a block they only fall."""

    origin: Vector
    numbers: Vector
    scratch: Vector  # of zeros; empty for batches of one row
    longest: float
    block: int
    smoothness: Vector  # L_i
    overshoot: float  # γ r_i, at most

    def step_at(self, t):
        reach, squares = self.numbers[REACH], self.numbers[SQUARES]
        return min(reach / math.sqrt(squares), self.longest, self.numbers[LIMIT]) if squares > 0.0 else 0.0

    def measure_batch(self, parts, batch):
        if self.scratch.size == 0:
            self.numbers[SQUARES] += batch.factor[0] * batch.factor[0] * parts.norms2[batch.i[0]]
        else:
            self.numbers[SQUARES] += _squared_norm(parts.rows, batch, self.scratch)
        gamma = self.step_at(0)
        for k in range(batch.i.size):  # r_i of its share of the batch
            ratio = self.smoothness[batch.i[k]] / (batch.i.size * parts.norms2.size * batch.p[k])
            if gamma * ratio > self.overshoot:
                batch.factor[k] *= self.overshoot / (gamma * ratio)

    def measure_direction(self, parts, batch, v):
        for j in range(v.size):
            self.numbers[SQUARES] += v[j] * v[j]
        slope, bend = 0.0, 0.0  # <ĝ, v> and <v, Ĥ v>
        for k in range(batch.i.size):
            i = batch.i[k]
            along = dot(parts.rows, i, v)
            slope += batch.factor[k] * along
            if parts.norms2[i] > 0.0:
                curve = self.smoothness[i] / parts.norms2[i]
                bend += curve * along * along / (batch.i.size * parts.norms2.size * batch.p[k])
        self.numbers[LIMIT] = slope / bend if slope > 0.0 and bend > 0.0 else math.inf

    @property
    def constant(self) -> bool:
        return False

    @property
    def falling(self) -> bool:
        return True


@inline
def _squared_norm(rows, batch, scratch):
    """‖Σ_k factor_k x_{i_k}‖², in time O(non-zeros); `scratch` is zero before and after."""
    last, total = scratch.size - 1, 0.0
    for k in range(batch.i.size):
        i = batch.i[k]
        for e in range(rows.begin(i), rows.end(i)):
            scratch[rows.column(i, e)] += batch.factor[k] * rows.entry(i, e)
        scratch[last] += batch.factor[k] * rows.intercept
    for k in range(batch.i.size):
        i = batch.i[k]
        for e in range(rows.begin(i), rows.end(i)):
            j = rows.column(i, e)
            total += scratch[j] * scratch[j]
            scratch[j] = 0.0
    total += scratch[last] * scratch[last]
    scratch[last] = 0.0
    return total


def new_stride(problem: Any, step_size: Any, w: Vector, batch_size: int, *, longest: float = math.inf) -> Any:
    """`step_size` as users write it, a number, a schedule or "auto", for a run that starts at w."""
    if not isinstance(step_size, str):
        return Given(as_schedule(step_size))
    largest = float(problem.smoothness.max())
    typical = math.sqrt(float(np.mean(problem.gradient_norms(w) ** 2)))
    reach = FIRST_STEP / largest * typical if largest > 0.0 else 0.0
    scratch = np.zeros(0 if batch_size == 1 else problem.dimension)
    block = max(1, problem.n // (BLOCKS_PER_PASS * batch_size))
    return Distance(
        origin=w.copy(),
        numbers=np.array([reach, 0.0, math.inf]),
        scratch=scratch,
        longest=longest,
        block=max(block, 16),
        smoothness=problem.smoothness,
        overshoot=overshoot(problem.n),
    )


def check_stride(owner: Any, step_size: Any) -> None:
    """A number, a schedule or "auto"."""
    if isinstance(step_size, str):
        if step_size != "auto":
            name = type(owner).__name__
            raise TypeError(
                f'{name} expects step_size to be a positive number, a schedule or "auto", got {step_size!r}.'
            )
        return
    as_schedule(step_size)


def stride_along(advance: Any, state: Any, steps: int) -> int:
    """`advance(steps)`, block by block where the distance must be measured."""
    stride = state.stride
    if isinstance(stride, Given):
        return int(advance(steps))
    done = 0
    while True:
        left = stride.block - int(state.time[0]) % stride.block
        asked = min(left, steps - done)
        made = int(advance(asked))
        if made < 0:
            return made
        done += made
        if made == left:
            settle(state.shrinkage, state.w)
            reach = float(np.linalg.norm(state.w - stride.origin))
            stride.numbers[REACH] = max(stride.numbers[REACH], reach if math.isfinite(reach) else 0.0)
        if made < asked or done >= steps:
            return done
