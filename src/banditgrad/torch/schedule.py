"""Fewer steps for the same end: a schedule that goes by what the meter promises.

Batches from p are as quiet as uniform ones that are τ times as large, and a step with them is worth r steps with
uniform ones, r = (B + B_uniform) / (B + B_p), as in `noise`. Less noise alone does not shorten a run whose step size
was chosen for more of it, and whose schedule averages the noise away in any case. As AdaScale does for larger batches
(Johnson, Agrawal, Gu and Guestrin, "AdaScale SGD", ICML 2020), the step size is therefore multiplied by r, and the
schedule goes on by r steps at a time. For Adam and its like it is multiplied by √r (Malladi et al., NeurIPS 2022).
"""

from collections.abc import Callable

import torch

from banditgrad.torch.arguments import whole
from banditgrad.torch.base import AdaptiveBatchSampler


def linear(share: float) -> float:
    """Falls to zero."""
    return 1.0 - share


class GainSchedule:
    """Step sizes for a run as long as `steps` steps of plain shuffling, in as many fewer as the sampler's batches save.

    Parameters
    ----------
    optimiser : torch.optim.Optimizer
        With the step sizes that are best for plain shuffling. It is watched, unless the sampler watches one already.
    sampler : BanditBatchSampler or GroupBatchSampler
    steps : int
        Of plain shuffling, that this run is to be worth.
    shape : function
        The factor of the step size after a share of the run; falls linearly to zero unless given.
    power : float, optional
        The step size is multiplied by gain ** power: 1/2 for torch's adaptive optimisers (Adam, RMSprop, Adagrad, ...),
        1 for others, unless given.

    Example
    -------
    >>> schedule = GainSchedule(optimiser, sampler, steps=20 * len(loader))
    >>> while not schedule.over:
    ...     for x, y, idx in loader:
    ...         ...                                    # as ever, up to optimiser.step()
    ...         schedule.step()
    ...         if schedule.over:
    ...             break
    """

    def __init__(
        self,
        optimiser: torch.optim.Optimizer,
        sampler: AdaptiveBatchSampler,
        steps: int,
        *,
        shape: Callable[[float], float] = linear,
        power: float | None = None,
    ) -> None:
        self.optimiser, self.sampler, self.shape = optimiser, sampler, shape
        self.steps, self.done = whole("GainSchedule", "steps", steps), 0.0
        adaptive = any(word in type(optimiser).__name__ for word in ("Adam", "RMSprop", "Adagrad", "Adadelta"))
        self.power = power if power is not None else 0.5 if adaptive else 1.0
        for group in optimiser.param_groups:
            group.setdefault("initial_lr", group["lr"])  # as torch's own schedulers do
        if not sampler.watching:
            sampler.watch(optimiser)
        self._set(self.shape(0.0))

    @property
    def over(self) -> bool:
        return self.done >= self.steps - 1e-9

    def step(self) -> None:
        """After every step of the optimiser."""
        gain = self.sampler.gain
        self.done += gain
        self._set(self.shape(min(self.done / self.steps, 1.0)) * gain**self.power)

    def _set(self, factor: float) -> None:
        self._factor = factor
        for group in self.optimiser.param_groups:
            group["lr"] = group["initial_lr"] * factor

    def state_dict(self) -> dict[str, float]:
        """To be saved beside the states of the optimiser and the sampler."""
        return {"done": self.done, "steps": self.steps, "factor": self._factor}

    def load_state_dict(self, saved: dict[str, float]) -> None:
        self.done, self.steps = saved["done"], int(saved["steps"])
        self._set(saved["factor"])
