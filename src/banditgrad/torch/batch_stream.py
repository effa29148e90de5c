"""The state machine under the batch sampler: draws numbered batches, and learns from feedback that may come late.

Everything here is about whole batches (of all ranks together) and NumPy arrays. The same calls in the same order give
the same batches, on every rank and in every replay.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from banditgrad._jit import kernel
from banditgrad.torch.guard import Guard, Start, VarianceRatio
from banditgrad.torch.noise import Advice, NoiseAverages
from banditgrad.torch.sources import Draw, Source
from banditgrad.torch.tensors import from_tensors, to_tensors

MAX_OUTSTANDING = 1024  # batches; whoever never gives feedback must not fill the memory
LOT = 8  # batches: feedback is learned from so many at a time, for code that training keeps pushing out of the caches
NOISE_MEMORY = 50  # measurements of the noise scale that are averaged
GOLDEN = 0.6180339887498949
LARGEST_NORM = 1e150  # its square is finite


class Feedback(NamedTuple):
    """A batch whose norms are known."""

    number: int
    draw: Draw
    norms: NDArray[np.float64]


class BatchStream:
    """Draws batches from the p that a source's `Sampling` learns, or, while the guard says that this does not pay, from
    the user's own mixture."""

    def __init__(self, source: Source, guard: Guard | Start | None) -> None:
        self.source, self.sampling, self.guard = source, source.sampling, guard
        self._learn = _learn.chosen(self.sampling.state)
        self.ratio = VarianceRatio(guard.memory if isinstance(guard, Guard) else Guard().memory)
        self.noise = NoiseAverages(NOISE_MEMORY)  # of batches from the user's mixture
        self.step_size = 1  # samples per step of the optimiser that is watched
        self._decision: bool | None = None  # the guard's, until something new is measured
        self.drawn = 0  # batches so far; the number of the next one
        self.outstanding: dict[int, Draw] = {}  # drawn and without feedback, by number, oldest first
        self.pending: list[Feedback] = []  # to be learned from when there are LOT of them

    @property
    def adaptive(self) -> bool:
        """Whether the next batch is drawn from p."""
        if self._decision is None:
            self._decision = self.guard is None or self.guard.allows(self.ratio, self.advice)
        return self._decision

    def advice(self) -> Advice:
        tau, uniform = self.ratio.tau, self.noise.scale
        return Advice(self.step_size, uniform, max((1.0 + uniform) / tau - 1.0, 0.0), tau)

    def draw(self, size: int) -> int:
        """Draw the next batch; return its number."""
        number = self.drawn
        self.outstanding[number] = self.source.draw(size, self.adaptive)
        self.drawn += 1
        if len(self.outstanding) > MAX_OUTSTANDING:
            del self.outstanding[next(iter(self.outstanding))]
        return number

    def learn(self, number: int, norms: NDArray[np.float64]) -> None:
        """Take the gradient norms of an outstanding batch."""
        if not _are_norms(norms):
            raise ValueError(
                "update expects norms that are finite and not negative, got "
                f"{norms.min()} to {norms.max()}. To leave a batch out, such as one whose loss overflowed, do not "
                "call update for it."
            )
        self.pending.append(Feedback(number, self.outstanding.pop(number), norms))
        if len(self.pending) >= LOT:
            self._learn_pending()

    def _learn_pending(self) -> None:
        draws = [one.draw for one in self.pending]
        i, p = (np.concatenate([getattr(draw, name) for draw in draws]) for name in ("i", "p"))
        norms = np.concatenate([one.norms for one in self.pending])
        ends = np.cumsum([draw.i.size for draw in draws])
        offsets = np.array([-1.0 if one.draw.adaptive else one.number * GOLDEN % 1.0 for one in self.pending])
        self.pending = []
        arms = self.source.arms(i)
        moments = np.empty((2, len(draws)))
        self.sampling.apply(
            self._learn, self.sampling.n, arms, p, self.source.relative(arms), norms, ends, offsets, moments
        )
        for uniform, adaptive in moments.T.tolist():
            self.ratio.observe(uniform, adaptive)
        self._decision = None

    def measure(self, square: float, product: float, size: int, adaptive: bool) -> None:
        """Take the mean square and the product of two gradients of batches of `size` samples, both from p or not.

        Batches of one pass of T draws without replacement have a covariance of -tr Σ / (T - 1): exactly if it is
        shuffled, nearly if it is a deck.
        """
        draws = self.source.pass_size(adaptive)
        noise = size * (square - product) * (1.0 - 1.0 / draws)
        signal = product + noise / max(draws - 1, 1)
        if adaptive:
            noise = (signal + noise) * self.ratio.tau - signal  # |G|² + tr Σ is τ times as large if drawn uniformly
        self.noise.observe(signal, noise)
        self.step_size, self._decision = size, None

    def state_dict(self) -> dict[str, Any]:
        """All of it, as copies, in numbers and tensors."""
        return {
            "sampling": to_tensors(self.sampling.state_dict()),
            "ratio": self.ratio.state_dict(),
            "noise": {**self.noise.state_dict(), "step_size": self.step_size},
            "source": self.source.state_dict(),
            "drawn": self.drawn,
            "outstanding": _packed(self.outstanding),
            "pending": {
                **_packed({one.number: one.draw for one in self.pending}),
                "norms": torch.from_numpy(_joined([one.norms for one in self.pending])),
            },
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self.sampling.load_state_dict(from_tensors(saved["sampling"], self.sampling.state_dict()))
        self.ratio.load_state_dict(saved["ratio"])
        self.noise.load_state_dict(saved["noise"])
        self.step_size = saved["noise"]["step_size"]
        self.source.load_state_dict(saved["source"])
        self.drawn, self._decision = saved["drawn"], None
        self.outstanding = _unpacked(saved["outstanding"])
        waiting = _unpacked(saved["pending"])
        norms = _split(saved["pending"]["norms"], saved["pending"]["size"])
        self.pending = [Feedback(*one, each) for one, each in zip(waiting.items(), norms, strict=False)]


def _packed(draws: dict[int, Draw]) -> dict[str, Any]:
    """Numbered draws in numbers and tensors."""
    each = draws.values()
    return {
        "number": list(draws),
        "adaptive": [draw.adaptive for draw in each],
        "size": [draw.i.size for draw in each],
        **to_tensors({name: _joined([getattr(draw, name) for draw in each]) for name in ("i", "p")}),
    }


def _unpacked(saved: dict[str, Any]) -> dict[int, Draw]:
    parts = zip(*(_split(saved[name], saved["size"]) for name in ("i", "p")), strict=True)
    return {
        number: Draw(i, p, adaptive)
        for number, (i, p), adaptive in zip(saved["number"], parts, saved["adaptive"], strict=False)
    }


def _split(joined: torch.Tensor, sizes: list[int]) -> list[NDArray[Any]]:
    return np.split(joined.numpy().copy(), np.cumsum(sizes, dtype=np.int64)[:-1])


def _joined(arrays: list[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0)


@kernel
def _norms_end(norms):
    """How many there are before the first that is none: negative, too large, or nan."""
    for k in range(norms.size):
        if not (norms[k] >= 0.0 and norms[k] < LARGEST_NORM):
            return k
    return norms.size


def _are_norms(norms: NDArray[np.float64]) -> bool:
    return bool(_norms_end.dispatcher(norms) == norms.size)


@kernel
def _learn(state, n, arms, p, relative, norms, ends, offsets, moments):
    """Feed back batches that end at `ends`, and estimate from each the two second moments whose ratio is τ. `relative`
    is n q: an arm's term in the variance is (n q · norm)².

    Samplers reckon with arms that come as often as p says. One of a batch that was drawn from q (offset >= 0) is
    therefore fed back p/q times in the mean: this is rounded up or down along the batch, from an offset that differs
    from batch to batch.
    """
    begin = 0
    for batch in range(ends.size):
        end, uniform, adaptive = ends[batch], 0.0, 0.0
        for k in range(begin, end):
            square = norms[k] * norms[k] * relative[k] / (n * p[k])
            uniform += square
            # this also fetches, at a time, what updates will touch one by one
            adaptive += square * relative[k] / (n * state.probability(arms[k]))
        moments[0, batch], moments[1, batch] = uniform / (end - begin), adaptive / (end - begin)
        position = offsets[batch]
        for k in range(begin, end):
            p_i, copies = p[k], 1
            if offsets[batch] >= 0.0:
                p_i = state.probability(arms[k])
                copies = int(position + p_i / p[k])
                position += p_i / p[k] - copies
            term = relative[k] * norms[k]
            for _ in range(copies):
                state.update(arms[k], p_i, term * term)
        begin = end
