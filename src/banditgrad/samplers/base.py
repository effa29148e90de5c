"""What a sampler is: a specification that users write, a state that compiled loops draw from, and a handle on it.

``bg.Mabs(eta=0.4)`` is a `Sampler`, a small specification. Its `start` makes a `Sampling`: the state of one run, with
arrays to draw into and learn from, usable from Python for any algorithm with an unbiased gradient estimator. The
state inside, a NamedTuple with the methods of `SamplerState`, is what solvers hand to their kernels.
"""

import copy
import math
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditgrad._jit import bridge, check_part, default, kernel
from banditgrad._random import new_stream
from banditgrad.samplers.blocks import Block, new_block
from banditgrad.samplers.weighted import MAX_ITEMS

LARGEST_BLOCK = 4096


@bridge
class SamplerState(Protocol):
    """What a sampler's state offers to compiled loops.

    A state may also offer, to Python, ``statistics() -> dict``.
    """

    def draw(self) -> int:
        """An index i, drawn with probability p_i."""
        ...

    def probability(self, i: int) -> float:
        """p_i, as of now."""
        ...

    def update(self, i: int, p_i: float, a_i: float) -> None:
        """Learn that item i, drawn with probability p_i, had a_i, its term in the effective variance (equation 9)."""
        ...

    @default
    def draw_many(self, block):
        """Draw a whole `Block`, all from one p: its i and p."""
        for t in range(block.i.size):
            i = self.draw()
            block.i[t] = i
            block.p[t] = self.probability(i) if i >= 0 and i < block.n else 1.0

    @default
    def learn_many(self, block, count):
        """Learn from the a of its first `count` places."""
        for t in range(count):
            self.update(block.i[t], block.p[t], block.a[t])


class Setup(NamedTuple):
    """What a run tells a sampler at its start."""

    n: int
    horizon: int | None  # T, the number of draws to come, if it is known
    stream: NDArray[np.uint64]  # the random stream of the run
    smoothness: NDArray[np.float64] | None  # L_i
    bounds: NDArray[np.float64] | None  # bounds on the a_i over the whole run


class Sampler(ABC):
    """Base of all samplers: a subclass says how its state is made."""

    @abstractmethod
    def state(self, setup: Setup) -> Any:
        """A fresh state: a NamedTuple with the methods of `SamplerState`."""

    def start(
        self,
        n: int,
        *,
        horizon: float | None = None,
        seed: Any = None,
        smoothness: ArrayLike | None = None,
        bounds: ArrayLike | None = None,
    ) -> "Sampling":
        """Start a run.

        Parameters
        ----------
        n : int
            The number of items.
        horizon : int, optional
            T, how many draws the run will make; where it is not known, samplers that need it double a guess.
        seed : int, SeedSequence or numpy Generator, optional
            The same seed gives the same draws.
        smoothness : array of shape (n,), optional
            L_i, for samplers that ask for it.
        bounds : array of shape (n,), optional
            Bounds a_i on the feedback of each item, for samplers that ask for them.
        """
        n = self._check_count(n)
        if horizon is not None and not 1 <= horizon < math.inf:
            raise ValueError(f"horizon must be at least 1, got {horizon!r}.")
        setup = Setup(
            n=n,
            horizon=None if horizon is None else math.ceil(horizon),
            stream=new_stream(seed),
            smoothness=None if smoothness is None else not_negative(smoothness, n, "smoothness"),
            bounds=None if bounds is None else not_negative(bounds, n, "bounds"),
        )
        return Sampling(self, n, self.state(setup))

    def _check_count(self, n: Any) -> int:
        if not isinstance(n, (int, np.integer)) or not 1 <= n <= MAX_ITEMS:
            raise ValueError(f"{type(self).__name__}.start expects a number of items from 1 to {MAX_ITEMS}, got {n!r}.")
        return int(n)


class Sampling:
    """The sampler of one run.

    Example
    -------
    >>> sampling = bg.Mabs().start(n, horizon=T, seed=0)
    >>> i, p = sampling.draw(32)                       # indices and the probabilities they were drawn with
    >>> estimate = (gradients(i) / (n * p[:, None])).mean(axis=0)
    >>> sampling.update(i, (gradients(i) ** 2).sum(axis=1))
    """

    def __init__(self, sampler: Sampler, n: int, state: Any) -> None:
        self.sampler, self.n = sampler, n
        self.state = check_part(state, SamplerState, f"the state of {type(sampler).__name__}", floats=False)
        self._open()

    def _open(self) -> None:
        self._lock = threading.Lock()  # compiled code runs without the GIL
        self._last_block: Block | None = None
        self._draw = _draw.chosen(self.state)
        with _no_fork:
            _open_samplings.add(self)

    def __getstate__(self) -> dict[str, Any]:
        """For pickles and copies, which never share arrays with the original: they would not share its lock."""
        own = {name: value for name, value in vars(self).items() if name not in ("_lock", "_last_block", "_draw")}
        return {**own, "state": self.apply(copy.deepcopy)}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        vars(self).update(attributes)
        self._open()

    def apply(self, function: Callable[..., Any], *args: Any) -> Any:
        """function(state, *args), a kernel for one, while no other thread uses the state."""
        with self._lock:
            return function(self.state, *args)

    def _block(self, size: int) -> Block:
        """Room for `size` draws: that of the last time if it had the same size."""
        if self._last_block is None or self._last_block.i.size != size:
            self._last_block = new_block(self.n, size)
        return self._last_block

    @overload
    def draw(self) -> tuple[int, float]: ...

    @overload
    def draw(self, size: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]: ...

    def draw(self, size: int | None = None) -> tuple[Any, Any]:
        """Draw `size` indices with replacement, all from the same p; return them and their probabilities."""
        count = 1 if size is None else size
        if not isinstance(count, (int, np.integer)) or count < 0:
            raise ValueError(f"size must be a whole number, not negative, got {size!r}.")
        i, p = np.empty(count, np.int64), np.empty(count)
        with self._lock:
            for piece in _pieces(count):
                block = self._block(piece.stop - piece.start)
                self._draw(self.state, block)
                i[piece], p[piece] = block.i, block.p
        if count and not i.view(np.uint64).max() < self.n:
            who = type(self.sampler).__name__
            raise IndexError(f"{who} drew an index outside 0..{self.n - 1}: a fault in the sampler.")
        return (int(i[0]), float(p[0])) if size is None else (i, p)

    def update(self, i: ArrayLike, a: ArrayLike, p: ArrayLike | None = None) -> None:
        """Learn a_i, the items' terms in the effective variance up to a common factor: ‖∇φ_i‖² for plain SGD.

        Every entry counts, also where an index comes twice. `p` are the probabilities at the time of the draw; they
        may be left out when no other feedback was given since.
        """
        i = self._check_items(i)
        a = not_negative(np.atleast_1d(a), i.size, "a")
        if p is None:
            p = self._probability(i)
        p = not_negative(np.atleast_1d(p), i.size, "p")
        if i.size and not (p.min() > 0.0 and p.max() <= 1.0 + 1e-9):
            raise ValueError(f"p must hold probabilities above 0 and up to 1, got {p.min()} to {p.max()}.")
        with self._lock:
            for piece in _pieces(i.size):
                block = self._block(piece.stop - piece.start)
                block.i[:], block.p[:], block.a[:] = i[piece], p[piece], a[piece]
                _learn(self.state, block)

    def probability(self, i: ArrayLike) -> Any:
        """p_i, the probability with which a draw made now gives item i."""
        p = self._probability(self._check_items(i))
        return float(p[0]) if np.ndim(i) == 0 else p

    def probabilities(self) -> NDArray[np.float64]:
        """p_i of all items."""
        return self._probability(np.arange(self.n))

    def statistics(self) -> dict[str, float]:
        """How the run went: the largest probability, and what the sampler itself counts."""
        own = self.apply(lambda state: state.statistics()) if hasattr(self.state, "statistics") else {}
        return {"largest_probability": float(self.probabilities().max()), **own}

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """The whole state as arrays, by name; copies, exact to the bit."""
        return self.apply(lambda state: {name: np.array(value) for name, value in _leaves(state)})

    def load_state_dict(self, saved: dict[str, ArrayLike]) -> None:
        """Go on from a saved state of the same sampler with the same n."""
        leaves = dict(_leaves(self.state))
        who = type(self.sampler).__name__
        if leaves.keys() != saved.keys():
            odd = sorted(leaves.keys() ^ saved.keys())
            raise ValueError(f"This is not a state of {who}: {', '.join(odd)} missing or not expected.")
        arrays = {name: np.asarray(saved[name]) for name in leaves}
        for name, mine in leaves.items():
            theirs = arrays[name]
            if theirs.dtype != np.asarray(mine).dtype or theirs.shape != np.shape(mine):
                raise ValueError(
                    f"This is a state of another run: {name} has {theirs.dtype} {theirs.shape}, "
                    f"{who} with n = {self.n} has {np.asarray(mine).dtype} {np.shape(mine)}."
                )
            if not isinstance(mine, np.ndarray) and theirs != mine:
                raise ValueError(f"This is a state of another {who}: its {name} is {theirs}, here it is {mine}.")
        for check in _checks(self.state, arrays):
            raise ValueError(f"This state of {who} is damaged: {check}.")
        with self._lock:
            for name, mine in leaves.items():
                if isinstance(mine, np.ndarray):
                    mine[...] = arrays[name]

    def _probability(self, i: NDArray[np.int64]) -> NDArray[np.float64]:
        p = np.empty(i.size)
        self.apply(_probabilities, i, p)
        return p

    def _check_items(self, i: ArrayLike) -> NDArray[np.int64]:
        items = np.atleast_1d(np.asarray(i))
        if items.ndim != 1 or (items.dtype.kind not in "iu" and items.size):
            raise ValueError(f"Indices must be a list of whole numbers, got {items.dtype} of shape {items.shape}.")
        if items.size and not (items.min() >= 0 and items.max() < self.n):
            raise ValueError(f"Indices must be from 0 to {self.n - 1}, got {items.min()} to {items.max()}.")
        return items.astype(np.int64)


_open_samplings: weakref.WeakSet[Sampling] = weakref.WeakSet()
_no_fork = threading.Lock()


def _before_fork() -> None:
    """Wait for what other threads do with samplings: the child gets whole states, and locks that it can open."""
    _no_fork.acquire()
    for sampling in _open_samplings:
        sampling._lock.acquire()


def _after_fork() -> None:
    for sampling in _open_samplings:
        sampling._lock.release()
    _no_fork.release()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


def _pieces(count: int) -> list[slice]:
    """0..count in pieces that the processor's cache can hold."""
    return [slice(first, min(first + LARGEST_BLOCK, count)) for first in range(0, count, LARGEST_BLOCK)]


def not_negative(values: ArrayLike, n: int, name: str) -> NDArray[np.float64]:
    """Finite numbers >= 0, one per item, as a fresh-enough float64 array."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {array.shape}.")
    if not (array.min(initial=0.0) >= 0.0 and array.max(initial=0.0) < math.inf):  # nor where one is NaN
        k = np.flatnonzero(~(np.isfinite(array) & (array >= 0.0)))[0]
        raise ValueError(f"{name} must be finite and not negative, got {array[k]} at position {k}.")
    return array


def _leaves(state: Any, path: str = "") -> Any:
    for field, value in zip(state._fields, state, strict=True):
        if isinstance(value, tuple):
            yield from _leaves(value, f"{path}{field}.")
        else:
            yield path + field, value


def _checks(state: Any, arrays: dict[str, NDArray[Any]], path: str = "") -> Any:
    """What parts of a state that check themselves (`faults`) say of arrays about to be loaded."""
    for field, value in zip(state._fields, state, strict=True):
        if isinstance(value, tuple):
            yield from _checks(value, arrays, f"{path}{field}.")
    if hasattr(state, "faults"):
        mine = {name.removeprefix(path): array for name, array in arrays.items() if name.startswith(path)}
        yield from state.faults(mine)


@kernel
def _draw(state, block):
    state.draw_many(block)


@kernel
def _learn(state, block):
    state.learn_many(block, block.i.size)


@kernel
def _probabilities(state, i, p):
    for k in range(i.size):
        p[k] = state.probability(i[k])
