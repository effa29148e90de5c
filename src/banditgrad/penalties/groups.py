"""Penalties of groups of coordinates, which keep or drop a group as one (Yuan and Lin 2006; Simon et al. 2013).

The proximal step of a group, with a step s_j for each coordinate, first takes the l1 norm's soft thresholds v. Then

    u = 0 where ‖v / s‖ <= μ,  else  u_j = v_j t / (t + s_j μ)  with  Σ_j (v_j / (t + s_j μ))² = 1,  t = ‖u‖.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditgrad._jit import bridge, inline, part
from banditgrad.penalties.weighted import as_numbers

Vector = NDArray[np.float64]
Indices = NDArray[np.int64]

STEPS, CLOSE = 60, 1e-15  # of Newton's method for t, and its relative accuracy


@bridge
class VectorPenalty(Protocol):
    """What a penalty that is no sum over coordinates offers to compiled loops; the first d are penalised.

    It may also offer ``prox_each(self, w, steps, d)``, with a step for each coordinate, and
    ``add_subgradient(self, w, scale, out, d)``, which `Sgd` and `Sqn` ask for. To Python, ``over(self, features,
    margins)`` may return the penalty as it is to be used on W, features by margins with its rows one after another.
    """

    def total_cost(self, w, d):
        """λ r(w)."""
        ...

    def prox_all(self, w, step, d):
        """w ← argmin_u  step · λ r(u) + ½ ‖u - w‖²."""
        ...


class Groups(NamedTuple):
    """Sets that share no coordinate: the members of group b are members[begins[b]], ..., members[begins[b + 1] - 1]."""

    members: Indices
    begins: Indices
    numbers: float  # how many numbers w has, or zero while members are features


@part
class SparseGroupLasso(NamedTuple):
    """strength · (l1_ratio ‖w‖₁ + (1 - l1_ratio) Σ_b weights_b ‖w_b‖), where w_b are the coordinates of group b.

    Parameters
    ----------
    groups : list of lists, or array
        The features of each group; features of no group are free of this norm. Or for each feature the number of its
        group, from 0. For losses of several margins a feature stands for its row of W.
    strength : float
    l1_ratio : float
    weights : array, optional
        One for each group; the square root of how many features it has unless given.
    """

    groups: Any
    strength: float = 1.0
    l1_ratio: float = 0.5
    weights: Any = None

    def total_cost(self, w, d):
        return self.strength * (
            (1.0 - self.l1_ratio) * _norms(self.groups, self.weights, w) + self.l1_ratio * _l1_norm(w, d)
        )

    def prox_all(self, w, step, d):
        _threshold(w, step * self.strength * self.l1_ratio, d)
        _shrink(self.groups, self.weights, step * self.strength * (1.0 - self.l1_ratio), w)

    def prox_each(self, w, steps, d):
        for j in range(d):
            w[j] = soft(w[j], steps[j] * self.strength * self.l1_ratio)
        _shrink_each(self.groups, self.weights, self.strength * (1.0 - self.l1_ratio), steps, w)

    def add_subgradient(self, w, scale, out, d):
        _add_directions(self.groups, self.weights, scale * self.strength * (1.0 - self.l1_ratio), w, out)
        for j in range(d):
            out[j] += math.copysign(scale * self.strength * self.l1_ratio, w[j]) if w[j] != 0.0 else 0.0

    def blocks(self):
        """The groups, the strength of each norm, and that of the l1 norm."""
        return self.groups, self.strength * (1.0 - self.l1_ratio) * self.weights, self.strength * self.l1_ratio

    def over(self, features, margins):
        return self._replace(groups=_over(self, features, margins))

    def prepared(self):
        return _with_groups(self)

    def validate(self):
        _check(self)
        if not 0.0 <= self.l1_ratio <= 1.0:
            raise ValueError(f"SparseGroupLasso expects an l1_ratio between 0 and 1, got {self.l1_ratio!r}.")


@part
class GroupLasso(NamedTuple):
    """strength · Σ_b weights_b ‖w_b‖, where w_b are the coordinates of group b; parameters as in `SparseGroupLasso`."""

    groups: Any
    strength: float = 1.0
    weights: Any = None

    def total_cost(self, w, d):
        return self.strength * _norms(self.groups, self.weights, w)

    def prox_all(self, w, step, d):
        _shrink(self.groups, self.weights, step * self.strength, w)

    def prox_each(self, w, steps, d):
        _shrink_each(self.groups, self.weights, self.strength, steps, w)

    def add_subgradient(self, w, scale, out, d):
        _add_directions(self.groups, self.weights, scale * self.strength, w, out)

    def blocks(self):
        return self.groups, self.strength * self.weights, 0.0

    def over(self, features, margins):
        return self._replace(groups=_over(self, features, margins))

    def prepared(self):
        return _with_groups(self)

    def validate(self):
        _check(self)


def _with_groups(penalty: Any) -> Any:
    """With groups and weights as compiled code takes them."""
    who = type(penalty).__name__
    groups = penalty.groups if isinstance(penalty.groups, Groups) else as_groups(penalty.groups, who)
    if penalty.weights is None:
        return penalty._replace(groups=groups, weights=np.sqrt(np.diff(groups.begins)))
    weights = as_numbers(penalty.weights, who, "weights")
    if weights.size != groups.begins.size - 1:
        raise ValueError(f"{who} expects a weight for each of {groups.begins.size - 1} groups, got {weights.size}.")
    return penalty._replace(groups=groups, weights=weights)


def as_groups(groups: ArrayLike | Sequence[ArrayLike], who: str) -> Groups:
    lists = groups if isinstance(groups, (list, tuple)) and not all(np.ndim(g) == 0 for g in groups) else None
    if lists is None:
        labels = np.asarray(groups)
        if labels.ndim != 1 or labels.dtype.kind not in "iu" or labels.size == 0 or labels.min() < 0:
            raise ValueError(
                f"{who} expects lists of features, or for each feature its group's number; got {groups!r}."
            )
        lists = [np.flatnonzero(labels == b) for b in np.unique(labels)]
    arrays = [np.asarray(group) for group in lists]
    if not arrays or any(a.ndim != 1 or a.dtype.kind not in "iu" or a.size == 0 or a.min() < 0 for a in arrays):
        raise ValueError(f"{who} expects each group to be a list of the numbers of its features, got {groups!r}.")
    members = np.concatenate(arrays).astype(np.int64)
    if np.unique(members).size < members.size:
        raise ValueError(f"{who} expects a feature to be in one group at most; overlapping groups are not known here.")
    return Groups(members, np.append(0, np.cumsum([a.size for a in arrays])).astype(np.int64), 0.0)


def _over(penalty: Any, features: int, margins: int) -> Groups:
    """The groups of the numbers of W."""
    groups, who = penalty.groups, type(penalty).__name__
    if groups.numbers > 0.0:
        if groups.numbers != features * margins:
            raise ValueError(f"{who} is that of a problem with other features. Make another of its groups.")
        return groups
    if groups.members.max() >= features:
        raise ValueError(f"{who} has a group with feature {groups.members.max()}; the rows have {features}, from 0.")
    members = (groups.members[:, None] * margins + np.arange(margins)).reshape(-1)
    return Groups(members, groups.begins * margins, float(features * margins))


def _check(penalty: Any) -> None:
    who = type(penalty).__name__
    if not 0.0 <= penalty.strength < math.inf:
        raise ValueError(f"{who} expects a strength that is finite and not negative, got {penalty.strength!r}.")
    if not (np.isfinite(penalty.weights).all() and np.all(penalty.weights >= 0.0)):
        raise ValueError(f"{who} expects weights that are finite and not negative, got {penalty.weights!r}.")


@inline
def soft(w, threshold):
    return math.copysign(max(abs(w) - threshold, 0.0), w)


@inline
def _l1_norm(w, d):
    total = 0.0
    for j in range(d):
        total += abs(w[j])
    return total


@inline
def _threshold(w, by, d):
    if by > 0.0:
        for j in range(d):
            w[j] = soft(w[j], by)


@inline
def _norm(groups, b, w):
    largest, total = 0.0, 0.0
    for m in range(groups.begins[b], groups.begins[b + 1]):
        largest = max(largest, abs(w[groups.members[m]]))
    if not largest > 0.0:
        return largest
    for m in range(groups.begins[b], groups.begins[b + 1]):  # relative to the largest: no square overflows
        total += (w[groups.members[m]] / largest) ** 2
    return largest * math.sqrt(total)


@inline
def _norms(groups, weights, w):
    total = 0.0
    for b in range(weights.size):
        total += weights[b] * _norm(groups, b, w)
    return total


@inline
def _shrink(groups, weights, by, w):
    for b in range(weights.size):
        norm, less = _norm(groups, b, w), by * weights[b]
        factor = 1.0 - less / norm if norm > less else 0.0
        for m in range(groups.begins[b], groups.begins[b + 1]):
            w[groups.members[m]] *= factor


@inline
def _shrink_each(groups, weights, by, steps, w):
    for b in range(weights.size):
        shrink_block(groups.members, groups.begins[b], groups.begins[b + 1], by * weights[b], steps, w)


@inline
def shrink_block(members, begin, end, mu, steps, v):
    """v ← argmin_u μ ‖u‖ + Σ_j (u_j - v_j)² / (2 s_j) over the members of one group."""
    if mu == 0.0:
        return
    slope = 0.0
    for m in range(begin, end):
        j = members[m]
        if v[j] != 0.0:
            slope += (v[j] / steps[j]) ** 2
    if not slope > mu * mu:
        for m in range(begin, end):
            v[members[m]] = 0.0
        return
    t = 0.0
    for _ in range(STEPS):  # 1/√φ - 1 is concave, with φ(t) = Σ_j (v_j / (t + s_j μ))²: from the left, none overshoots
        square, fall = 0.0, 0.0
        for m in range(begin, end):
            j = members[m]
            if v[j] != 0.0:
                share = t + steps[j] * mu
                square += (v[j] / share) ** 2
                fall += (v[j] / share) ** 2 / share
        move = square / fall * (math.sqrt(square) - 1.0)
        t += move
        if not abs(move) > CLOSE * t:
            break
    for m in range(begin, end):
        j = members[m]
        v[j] *= t / (t + steps[j] * mu)


@inline
def _add_directions(groups, weights, scale, w, out):
    for b in range(weights.size):
        norm = _norm(groups, b, w)
        factor = scale * weights[b] / norm if norm > 0.0 else 0.0
        for m in range(groups.begins[b], groups.begins[b + 1]):
            out[groups.members[m]] += factor * w[groups.members[m]]
