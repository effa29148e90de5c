"""Is training limited by gradient noise at all? The gradient noise scale of McCandlish, Kaplan, Amodei et al. ("An
Empirical Model of Large-Batch Training", arXiv:1812.06162, 2018), measured while training:

    B_noise = tr Σ / |G|²,   G the mean gradient, Σ the covariance of a sample's gradient

To a given loss, batches of B samples need S steps, S ∝ 1 + B_noise / B: below B_noise a batch twice as large halves the
steps, above it, hardly anything is saved. Sampling from p makes Σ smaller and leaves G: with V = |G|² + tr Σ, and τ as
in `guard`, 1 + B_noise becomes (1 + B_noise) / τ, and steps are saved by a factor of

    (B + B_uniform) / (B + B_p)

|G|² and tr Σ come from the gradients g, h of two successive steps, whose batches are independent: g·h has the mean
|G|², and (|g|² + |h|²) / 2 the mean |G|² + tr Σ / B, but for what the step between them changes.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

LEAST_PAIRS = 5  # of gradients, before anything is concluded from them
LITTLE = 1.1  # a saving that nobody would notice


@dataclass(frozen=True)
class Advice:
    """What sampling can save, and why. `str` of it is one sentence.

    Attributes
    ----------
    batch_size : int
        Samples per step.
    noise_scale : float
        B_noise of uniform batches; nan while not measured, infinite where noise hides the mean gradient.
    noise_scale_adaptive : float
        B_noise of batches drawn from p.
    tau : float
        V_uniform / V_p, which bounds the saving, and is reached where noise is all.
    """

    batch_size: int
    noise_scale: float
    noise_scale_adaptive: float
    tau: float

    @property
    def measured(self) -> bool:
        return not math.isnan(self.noise_scale)

    @property
    def critical_batch_size(self) -> float:
        """Where larger uniform batches cease to pay: as many steps as B_noise leaves are twice the least."""
        return max(self.noise_scale, 1.0)

    @property
    def saving(self) -> float:
        """How many times fewer steps batches from p need than uniform ones; τ, the most it can be, if not measured."""
        if not self.measured or math.isinf(self.noise_scale):
            return self.tau
        return (self.batch_size + self.noise_scale) / (self.batch_size + self.noise_scale_adaptive)

    def steps(self, batch_size: float) -> float:
        """Steps of uniform batches of another size, by those of the present one."""
        if math.isinf(self.noise_scale):
            return self.batch_size / batch_size
        return (1.0 + self.noise_scale / batch_size) / (1.0 + self.noise_scale / self.batch_size)

    def __str__(self) -> str:
        if not self.measured:
            return f"Noise not measured (τ = {self.tau:.3g}): watch(optimiser) tells whether less of it would help."
        here = f"noise scale {self.noise_scale:.3g} at batch {self.batch_size}"
        if self.saving >= LITTLE:
            how = "noise-limited" if self.noise_scale > self.batch_size else "noise tells"
            return f"{here}: {how}, up to {self.saving:.2g}x fewer steps by sampling (τ = {self.tau:.3g})."
        if self.noise_scale > self.batch_size:
            return (
                f"{here}: noise-limited, but p is no better than uniform (τ = {self.tau:.3g}); larger batches would be."
            )
        smaller = 2 ** max(0, math.ceil(math.log2(self.critical_batch_size)))
        if smaller >= self.batch_size:
            return f"{here}: nothing to gain by sampling."
        return (
            f"{here}: nothing to gain by sampling; a batch of {smaller} takes {self.steps(smaller):.2g}x the steps "
            f"and {self.steps(smaller) * smaller / self.batch_size:.2g}x the samples."
        )


class NoiseMeter:
    """Measures the gradient noise scale of a training run, whatever draws its batches.

    Parameters
    ----------
    batch_size : int
        Samples per step, of all ranks and accumulated batches together.
    every : int
        Steps between two measurements. One takes the gradients of two steps, a copy of the model's size.
    memory : int
        Over how many measurements |G|² and tr Σ are averaged.

    Example
    -------
    >>> meter = NoiseMeter(batch_size=256)
    >>> meter.watch(optimiser)
    >>> ...                           # train as ever
    >>> print(meter.advice())
    noise scale 40 at batch 256: nothing to gain by sampling; a batch of 64 takes 1.4x the steps and 0.35x the samples.
    """

    def __init__(self, batch_size: int, *, every: int = 20, memory: int = 50) -> None:
        for name, value, least in (("batch_size", batch_size, 1), ("every", every, 2), ("memory", memory, 1)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"NoiseMeter expects {name} to be a whole number of at least {least}, got {value!r}.")
        self.batch_size, self.every = batch_size, every
        self.averages = NoiseAverages(memory)
        self.pairs = GradientPairs(every)

    def watch(self, optimiser: torch.optim.Optimizer) -> Any:
        """Measure before the steps of an optimiser, with the gradients it is about to use; ``remove()`` what this
        returns to end it."""
        return self.pairs.watch(optimiser, self._observe)

    def step(self, parameters: Iterable[Tensor]) -> None:
        """Measure with the gradients that parameters have now; for loops without an optimiser, once per step."""
        if (pair := self.pairs.step(parameters)) is not None:
            self._observe(*pair)

    def _observe(self, square: float, product: float) -> None:
        self.averages.observe(product, self.batch_size * (square - product))

    @property
    def noise_scale(self) -> float:
        """B_noise: nan before there are five measurements, infinite where noise hides the mean gradient."""
        return self.averages.scale

    def advice(self) -> Advice:
        """With the τ of uniform batches, which is 1."""
        return Advice(self.batch_size, self.noise_scale, self.noise_scale, 1.0)

    def state_dict(self) -> dict[str, float]:
        return {"steps": self.pairs.steps, **self.averages.state_dict()}

    def load_state_dict(self, saved: dict[str, float]) -> None:
        """Go on; a measurement between whose two steps the state was saved is lost."""
        self.pairs.steps = int(saved["steps"])
        self.averages.load_state_dict(saved)


class NoiseAverages:
    """Running means of estimates of |G|² and tr Σ, each of which may well be below zero."""

    def __init__(self, memory: int) -> None:
        self.memory, self.count = memory, 0
        self.signal = self.noise = 0.0

    def observe(self, signal: float, noise: float) -> None:
        self.count += 1
        share = 1.0 / min(self.count, self.memory)
        self.signal += share * (signal - self.signal)
        self.noise += share * (noise - self.noise)

    @property
    def scale(self) -> float:
        if self.count < LEAST_PAIRS:
            return math.nan
        if self.noise <= 0.0:
            return 0.0
        return self.noise / self.signal if self.signal > 0.0 else math.inf

    def state_dict(self) -> dict[str, float]:
        return {"count": self.count, "signal": self.signal, "noise": self.noise}

    def load_state_dict(self, saved: dict[str, float]) -> None:
        self.count, self.signal, self.noise = int(saved["count"]), saved["signal"], saved["noise"]


class GradientPairs:
    """Two successive steps out of `every`: the mean square of their gradients, and the product."""

    def __init__(self, every: int) -> None:
        self.every, self.steps = every, 0
        self._first: list[Tensor | None] = []

    def watch(self, optimiser: torch.optim.Optimizer, report: Callable[[float, float], None]) -> Any:
        def before_step(optimiser: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
            if self.steps % self.every > 1:
                self.steps += 1
            elif pair := self.step(w for group in optimiser.param_groups for w in group["params"]):
                report(*pair)

        if not isinstance(optimiser, torch.optim.Optimizer):
            raise TypeError(f"watch expects a torch.optim.Optimizer, got {type(optimiser).__name__}.")
        return optimiser.register_step_pre_hook(before_step)

    def step(self, parameters: Iterable[Tensor]) -> tuple[float, float] | None:
        """The mean square and the product, at the second step of a pair whose gradients are finite."""
        position = self.steps % self.every
        self.steps += 1
        if position == 0:
            self._first = [None if (g := _gradient(w)) is None else g.clone() for w in parameters]
        if position != 1 or not self._first:
            return None
        square, product = torch.zeros(()), torch.zeros(())
        for g, w in zip(self._first, parameters, strict=True):
            h = _gradient(w)
            if g is not None and h is not None:
                g, h = g.flatten(), h.flatten()
                square = square.to(g.device) + 0.5 * (torch.dot(g, g) + torch.dot(h, h))
                product = product.to(g.device) + torch.dot(g, h)
        self._first = []
        pair = float(square), float(product)
        return pair if all(map(math.isfinite, pair)) else None


def _gradient(w: Tensor) -> Tensor | None:
    if w.grad is None:
        return None
    g = w.grad.detach()
    return (g.to_dense() if g.is_sparse else g).to(torch.promote_types(g.dtype, torch.float32))
