"""One pass over rows that may never come again: AdaGrad (Duchi, Hazan and Singer 2011), for all targets at a time.

With the slopes g_k of row x for the targets k, the step of feature j for target k is

    w_jk ← w_jk - h_jk g_k x_j ,  h_jk = RATE · unit / (max |x_j| √(N G_jk)) ,  G_jk = Σ x_j² ‖g‖² · Σ g_k² / Σ ‖g‖² ,

with sums and the maximum over all rows so far. That G is a product of a number per feature and one per target, as in
Adafactor (Shazeer and Stern 2018), takes d + K numbers instead of d K, and a step costs no more than one of plain SGD.
The division by max |x_j| makes the units of a column irrelevant; when the maximum grows, w_jk shrinks by as much (Ross,
Mineiro and Langford 2013). `unit` is that of margins, the root mean square of y, which is 1 for classes, and N the mean
of Σ_j (x_j / max |x_j|)²: how many features move a margin together. A loss with bounded slope cannot step too far; for
others the step is implicit, with the slope where the step ends: for squares, a division.

The penalty's part of missed steps is made as one long proximal step when a row needs the feature.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import bridge, inline, kernel
from banditgrad.problem import Problem

Vector = NDArray[np.float64]

RATE = 0.5  # how far, in units of the margin, the first step moves a feature that is alone
INTERCEPT = 0.5  # the share of it that the intercept moves: in every row, it would be ahead of rare features
TINY = 1e-290  # a feature whose gradients are smaller stays at zero: steps would overflow
SLICE = 1 << 14  # rows between two looks for Ctrl-C


class Memory(NamedTuple):
    """What a stream remembers of the rows it has seen; the intercept comes last, as a feature that is always 1."""

    largest: Vector  # max |x_j|
    squares: Vector  # Σ x_j² Σ_k g_k²
    by_target: Vector  # Σ g_k²
    sums: Vector  # over the rows: Σ y², Σ_j (x_j / max |x_j|)², 1


class PassScratch(NamedTuple):
    rate: Vector  # h_jk without the share of k
    balance: Vector  # 1 / √(share of k)
    margin: Vector
    slope: Vector
    total: Vector  # one number: Σ ‖g‖²
    done: NDArray[np.int64]  # steps of this call that a feature has made
    together: int  # numbers that a penalty knows for each feature: one, or where the targets are one problem one each


@bridge
class Apart(NamedTuple):
    """The slopes of a row for each target, of a loss of one margin."""

    loss: Any
    targets: Vector  # one column for each

    def write_slopes(self, i, margin, out):
        for k in range(out.size):
            out[k] = self.loss.derivative(margin[k], self.targets[i, k])


class Together(NamedTuple):
    """Likewise, of a loss of all margins and the only target."""

    loss: Any
    targets: Vector

    def write_slopes(self, i, margin, out):
        self.loss.derivatives(margin, self.targets[i, 0], out)


def _costs(problem: Problem, targets: Vector) -> Apart | Together:
    return (Together if problem.vector else Apart)(problem.loss, targets)


def new_memory(d: int, targets: int) -> Memory:
    largest = np.zeros(d + 1)
    largest[d] = 1.0
    return Memory(largest, np.zeros(d + 1), np.zeros(targets), np.zeros(3))


def recalled(problem: Problem, targets: Vector, w: Vector, seen: int) -> Memory:
    """What would be remembered had all rows seen before been like these, with the slopes they have at w."""
    memory = new_memory(problem.d, w.shape[1])
    _, scratch = _ready(problem, memory, w, 0.0)
    _look_at_columns(problem.parts.rows, problem.n, memory.largest)
    _pass(
        problem.parts,
        problem.penalty,
        _costs(problem, targets),
        np.arange(problem.n),
        0,
        w.copy(),
        memory,
        scratch,
        0.0,
        0.0,
    )
    times = max(1.0, seen / problem.n)
    _rate(problem, targets, memory)
    return Memory(memory.largest, times * memory.squares, times * memory.by_target, times * memory.sums)


def one_pass(
    problem: Problem, targets: Vector, w: Vector, memory: Memory, order: NDArray[np.int64]
) -> tuple[Vector, Memory]:
    """w, one column per target, and the memory after a step on each row of `order`."""
    memory = Memory(*(array.copy() for array in memory))
    rate = _rate(problem, targets, memory)
    w, scratch = _ready(problem, memory, w, rate)
    caution = 0.0 if problem.loss.slope_bound() < math.inf else float(problem.loss.curvature())
    arguments = (w, memory, scratch, rate, caution)
    for begin in range(0, order.size, SLICE):
        _pass(problem.parts, problem.penalty, _costs(problem, targets), order[begin : begin + SLICE], begin, *arguments)
    _settle(problem.penalty, problem.d, order.size, w, scratch)
    return w, memory


def _rate(problem: Problem, targets: Vector, memory: Memory) -> float:
    """RATE · unit / √(features in a row), with these rows counted in."""
    largest = memory.largest.copy()
    _look_at_columns(problem.parts.rows, problem.n, largest)
    squares = float(problem.n)  # of classes that are one target, whose numbers mean nothing
    if not problem.vector:
        squares = np.einsum("ik,ik->", targets, targets) / targets.shape[1]
    memory.sums[:] += squares, _relative_squares(problem.parts.rows, problem.n, largest), problem.n
    squares, features, count = memory.sums
    return RATE * math.sqrt(squares / count / max(1.0, features / count))


def _ready(problem: Problem, memory: Memory, w: Vector, rate: float) -> tuple[Vector, PassScratch]:
    d, targets, total = problem.d, memory.by_target.size, memory.by_target.sum(keepdims=True)
    scale = memory.largest * np.sqrt(memory.squares)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rates = np.where(scale > TINY, rate / scale, 0.0)
        shares = memory.by_target / total
        balance = np.where(shares > 0.0, 1.0 / np.sqrt(shares), 1.0)
    room, done = (np.zeros(targets), np.zeros(targets), total), np.zeros(d, np.int64)
    return w.copy(), PassScratch(rates, balance, *room, done, problem.margins)


@kernel
def _pass(parts, penalty, costs, order, first, w, memory, scratch, rate, caution):
    rows, weights = parts.rows, parts.terms.weights
    margin, slope, rates, balance = scratch.margin, scratch.slope, scratch.rate, scratch.balance
    count, last = margin.size, w.shape[0] - 1
    for step in range(order.size):
        i = order[step]
        weight = weights[i] if weights.size > 0 else 1.0
        for k in range(count):
            margin[k] = rows.intercept * w[last, k]
        for e in range(rows.begin(i), rows.end(i)):
            x, j = np.float64(rows.entry(i, e)), rows.column(i, e)
            if x != 0.0:
                _catch_up(penalty, w, j, first + step, scratch)
                if abs(x) > memory.largest[j]:
                    _enlarge(w, j, abs(x), memory.largest)
                if count == 1:  # a loop of one turn would take longer than all else
                    margin[0] += x * w[j, 0]
                else:
                    for k in range(count):
                        margin[k] += x * w[j, k]
        energy = 0.0
        costs.write_slopes(i, margin, slope)
        for k in range(count):
            slope[k] *= weight
            memory.by_target[k] += slope[k] * slope[k]
            energy += slope[k] * slope[k]
        if energy == 0.0:
            continue
        scratch.total[0] += energy
        memory.squares[last] += energy
        rates[last] = INTERCEPT * rows.intercept * rate / math.sqrt(memory.squares[last])
        length = rates[last]
        for e in range(rows.begin(i), rows.end(i)):
            x, j = np.float64(rows.entry(i, e)), rows.column(i, e)
            if x != 0.0:
                memory.squares[j] += energy * x * x
                scale = memory.largest[j] * math.sqrt(memory.squares[j])
                rates[j] = rate / scale if scale > TINY else 0.0
                length += rates[j] * x * x
        for k in range(count):
            balance[k] = math.sqrt(scratch.total[0] / memory.by_target[k]) if memory.by_target[k] > 0.0 else 1.0
            slope[k] *= balance[k] / (1.0 + caution * weight * length * balance[k])
            w[last, k] -= rates[last] * slope[k]
        for e in range(rows.begin(i), rows.end(i)):
            x, j = np.float64(rows.entry(i, e)), rows.column(i, e)
            if x != 0.0:
                move = rates[j] * x
                if count == 1:
                    w[j, 0] -= move * slope[0]
                else:
                    for k in range(count):
                        w[j, k] -= move * slope[k]


@inline
def _catch_up(penalty, w, j, now, scratch):
    """The penalty's part of the steps that feature j has missed."""
    missed = scratch.rate[j] * (now - scratch.done[j])
    scratch.done[j] = now
    balance, together = scratch.balance, scratch.together
    if balance.size == 1:
        w[j, 0] = penalty.prox(w[j, 0], missed * balance[0], j)
    else:
        for k in range(balance.size):
            w[j, k] = penalty.prox(w[j, k], missed * balance[k], j * together + k % together)


@inline
def _enlarge(w, j, size, largest):
    shrink = largest[j] / size if largest[j] > 0.0 else 1.0
    largest[j] = size
    for k in range(w.shape[1]):
        w[j, k] *= shrink


@kernel
def _settle(penalty, d, now, w, scratch):
    for j in range(d):
        if scratch.rate[j] > 0.0:
            _catch_up(penalty, w, j, now, scratch)


@kernel
def _look_at_columns(rows, n, largest):
    for i in range(n):
        for e in range(rows.begin(i), rows.end(i)):
            j = rows.column(i, e)
            largest[j] = max(largest[j], abs(np.float64(rows.entry(i, e))))


@kernel
def _relative_squares(rows, n, largest):
    total = 0.0
    for i in range(n):
        for e in range(rows.begin(i), rows.end(i)):
            x, j = np.float64(rows.entry(i, e)), rows.column(i, e)
            if x != 0.0:
                total += (x / largest[j]) ** 2
    return total
