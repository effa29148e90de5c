"""The state machine under the batch sampler: draws numbered batches, and learns from feedback that may come late.

Everything here is about whole batches (of all ranks together) and NumPy arrays. The same calls in the same order give
the same batches, on every rank and in every replay.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import kernel
from banditgrad.samplers import Sampling
from banditgrad.torch.guard import Guard, VarianceRatio
from banditgrad.torch.shuffle import Shuffle
from banditgrad.torch.tensors import from_tensors, to_tensors

MAX_OUTSTANDING = 1024  # batches; whoever never gives feedback must not fill the memory
GOLDEN = 0.6180339887498949
LARGEST_NORM = 1e150  # its square is finite


class Draw(NamedTuple):
    """A batch that was drawn: what was drawn, and the probabilities it was drawn with."""

    i: NDArray[np.int64]
    p: NDArray[np.float64]
    adaptive: bool  # False: from a shuffled pass, p = 1/n


class BatchStream:
    """Draws batches from a `Sampling`, or from shuffled passes while the guard says that it does not pay."""

    def __init__(self, sampling: Sampling, guard: Guard | None, seed: int) -> None:
        self.sampling, self.guard, self.n = sampling, guard, sampling.n
        self.ratio = VarianceRatio(guard.memory if guard else Guard().memory)
        self.shuffle = Shuffle(self.n, seed)
        self.drawn = 0  # batches so far; the number of the next one
        self.outstanding: dict[int, Draw] = {}  # drawn and without feedback, by number, oldest first

    @property
    def adaptive(self) -> bool:
        """Whether the next batch is drawn from p."""
        return self.guard is None or self.ratio.tau > self.guard.threshold

    def draw(self, size: int) -> int:
        """Draw the next batch; return its number."""
        if self.adaptive:
            draw = Draw(*self.sampling.draw(size), adaptive=True)
        else:
            draw = Draw(self.shuffle.draw(size), np.full(size, 1.0 / self.n), adaptive=False)
        number = self.drawn
        self.outstanding[number] = draw
        self.drawn += 1
        if len(self.outstanding) > MAX_OUTSTANDING:
            del self.outstanding[next(iter(self.outstanding))]
        return number

    def learn(self, number: int, norms: NDArray[np.float64]) -> None:
        """Take the gradient norms of an outstanding batch."""
        draw = self.outstanding[number]
        moments = np.empty(2)
        offset = -1.0 if draw.adaptive else number * GOLDEN % 1.0
        learned = self.sampling.apply(_learn, self.n, draw.i, draw.p, norms, offset, moments)
        if not learned:
            raise ValueError(
                "BanditBatchSampler.update expects norms that are finite and not negative, got "
                f"{norms.min()} to {norms.max()}. To leave a batch out, such as one whose loss overflowed, do not "
                "call update for it."
            )
        del self.outstanding[number]
        self.ratio.observe(*moments.tolist())

    def state_dict(self) -> dict[str, Any]:
        """All of it, as copies, in numbers and tensors."""
        draws = self.outstanding.values()
        return {
            "sampling": to_tensors(self.sampling.state_dict()),
            "ratio": self.ratio.state_dict(),
            "shuffle": self.shuffle.state_dict(),
            "drawn": self.drawn,
            "outstanding": {
                "number": list(self.outstanding),
                "adaptive": [draw.adaptive for draw in draws],
                "size": [draw.i.size for draw in draws],
                **to_tensors({name: _joined([getattr(draw, name) for draw in draws]) for name in ("i", "p")}),
            },
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self.sampling.load_state_dict(from_tensors(saved["sampling"], self.sampling.state_dict()))
        self.ratio.load_state_dict(saved["ratio"])
        self.shuffle.load_state_dict(saved["shuffle"])
        self.drawn = saved["drawn"]
        waiting = saved["outstanding"]
        ends = np.cumsum(waiting["size"], dtype=np.int64)[:-1]
        parts = zip(*(np.split(waiting[name].numpy().copy(), ends) for name in ("i", "p")), strict=True)
        self.outstanding = {
            number: Draw(i, p, adaptive)
            for number, (i, p), adaptive in zip(waiting["number"], parts, waiting["adaptive"], strict=False)
        }


def _joined(arrays: list[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0)


@kernel
def _learn(state, n, i, p, norms, offset, moments):
    """Feed back a batch, and estimate from it the two second moments whose ratio is τ; nothing, and False, where a norm
    is not one.

    Samplers reckon with items that come as often as p says. An item of a shuffled batch (offset >= 0) is therefore fed
    back n p_i times in the mean: n p_i is rounded up or down along the batch, from an offset that differs from batch to
    batch.
    """
    uniform, adaptive = 0.0, 0.0
    for k in range(i.size):
        if not (norms[k] >= 0.0 and norms[k] < LARGEST_NORM):  # or nan
            return False
        square = norms[k] * norms[k] / (n * p[k])
        uniform += square
        adaptive += square / (
            n * state.probability(i[k])
        )  # also fetches, at a time, what updates will touch one by one
    moments[0] = uniform / i.size
    moments[1] = adaptive / i.size
    position = offset
    for k in range(i.size):
        p_i, copies = p[k], 1
        if offset >= 0.0:
            p_i = state.probability(i[k])
            copies = int(position + n * p_i)
            position += n * p_i - copies
        for _ in range(copies):
            state.update(i[k], p_i, norms[k] * norms[k])
    return True
