"""The state machine under the batch sampler: draws numbered batches, and learns from feedback that may come late.

Everything here is about whole batches (of all ranks together) and NumPy arrays. The same calls in the same order give
the same batches, on every rank and in every replay.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import kernel
from banditgrad.torch.guard import Guard, Start, VarianceRatio
from banditgrad.torch.noise import Advice, NoiseAverages
from banditgrad.torch.sources import Draw, Source
from banditgrad.torch.tensors import from_tensors, to_tensors

MAX_OUTSTANDING = 1024  # batches; whoever never gives feedback must not fill the memory
NOISE_MEMORY = 50  # measurements of the noise scale that are averaged
GOLDEN = 0.6180339887498949
LARGEST_NORM = 1e150  # its square is finite


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
        draw = self.outstanding[number]
        offset = -1.0 if draw.adaptive else number * GOLDEN % 1.0
        arms = self.source.arms(draw.i)
        relative = self.source.relative(arms)
        learned, *moments = self.sampling.apply(self._learn, self.sampling.n, arms, draw.p, relative, norms, offset)
        if not learned:
            raise ValueError(
                "update expects norms that are finite and not negative, got "
                f"{norms.min()} to {norms.max()}. To leave a batch out, such as one whose loss overflowed, do not "
                "call update for it."
            )
        del self.outstanding[number]
        self.ratio.observe(*moments)
        self._decision = None

    def measure(self, square: float, product: float, size: int, adaptive: bool) -> None:
        """Take the mean square and the product of two gradients of batches of `size` samples, both from p or not.

        Batches of one shuffled pass have a covariance of -tr Σ / (n - 1).
        """
        if adaptive:
            second_moment = product + size * (square - product)  # |G|² + tr Σ, of p
            signal, noise = product, second_moment * self.ratio.tau - product
        else:
            noise = size * (square - product) * (1.0 - 1.0 / self.source.samples)
            signal = product + noise / max(self.source.samples - 1, 1)
        self.noise.observe(signal, noise)
        self.step_size, self._decision = size, None

    def state_dict(self) -> dict[str, Any]:
        """All of it, as copies, in numbers and tensors."""
        draws = self.outstanding.values()
        return {
            "sampling": to_tensors(self.sampling.state_dict()),
            "ratio": self.ratio.state_dict(),
            "noise": {**self.noise.state_dict(), "step_size": self.step_size},
            "source": self.source.state_dict(),
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
        self.noise.load_state_dict(saved["noise"])
        self.step_size = saved["noise"]["step_size"]
        self.source.load_state_dict(saved["source"])
        self.drawn, self._decision = saved["drawn"], None
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
def _learn(state, n, arms, p, relative, norms, offset):
    """Feed back a batch, and estimate from it the two second moments whose ratio is τ; nothing, and False, where a norm
    is not one. `relative` is n q: an arm's term in the variance is (n q · norm)².

    Samplers reckon with arms that come as often as p says. One of a batch that was drawn from q (offset >= 0) is
    therefore fed back p/q times in the mean: this is rounded up or down along the batch, from an offset that differs
    from batch to batch.
    """
    uniform, adaptive = 0.0, 0.0
    for k in range(arms.size):
        if not (norms[k] >= 0.0 and norms[k] < LARGEST_NORM):  # or nan
            return False, 0.0, 0.0
        square = norms[k] * norms[k] * relative[k] / (n * p[k])
        uniform += square
        # this also fetches, at a time, what updates will touch one by one
        adaptive += square * relative[k] / (n * state.probability(arms[k]))
    position = offset
    for k in range(arms.size):
        p_i, copies = p[k], 1
        if offset >= 0.0:
            p_i = state.probability(arms[k])
            copies = int(position + p_i / p[k])
            position += p_i / p[k] - copies
        term = relative[k] * norms[k]
        for _ in range(copies):
            state.update(arms[k], p_i, term * term)
    return True, uniform / arms.size, adaptive / arms.size
