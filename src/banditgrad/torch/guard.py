"""When does adaptive sampling pay? A running measurement of what it gains over uniform sampling.

    τ = V_uniform / V_p,   V_uniform = (1/n) Σ a_i,   V_p = (1/n²) Σ a_i / p_i,   a_i = ‖∇φ_i‖²

Batches drawn with p make a batch of B samples as quiet as τ B uniform ones. Both sums are estimated without bias from
the feedback that comes in anyway: whatever probability q_i a sample was drawn with, a_i / (n q_i) has the mean
V_uniform, and a_i / (n q_i) / (n p_i) the mean V_p. Katharopoulos and Fleuret ("Not All Samples Are Created Equal",
ICML 2018) switch by the τ of the best p for the batch at hand; here it is the τ of the p that would be used.

Less noise helps only where noise is what limits training. Where that is measured as well (`noise`), the guard decides
by the steps that p would save, which are τ times fewer at the most.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from banditgrad.torch.noise import Advice


@dataclass(frozen=True)
class Guard:
    """Draw with p while what it saves exceeds a threshold, and shuffle without replacement while it does not.

    Parameters
    ----------
    threshold : float
        How many times fewer steps p must save, by the noise scale, to be taken to pay; while no optimiser is watched,
        the least τ. Shuffling visits every sample once per pass, which is worth more than drawing uniformly with
        replacement, so the threshold lies above 1.
    memory : int
        Over how many batches τ is averaged.
    """

    threshold: float = 1.2
    memory: int = 100

    def __post_init__(self) -> None:
        if not 0.0 < self.threshold < math.inf:
            raise ValueError(f"Guard expects a positive, finite threshold, got {self.threshold!r}.")
        if not (self.memory >= 1 and self.memory == int(self.memory)):
            raise ValueError(f"Guard expects a memory of at least one batch, got {self.memory!r}.")

    def allows(self, ratio: "VarianceRatio", advice: Callable[[], Advice]) -> bool:
        """Whether to draw from p."""
        return advice().saving > self.threshold


@dataclass(frozen=True)
class Start:
    """Draw with p as soon as so many batches have been learned from."""

    batches: int

    def allows(self, ratio: "VarianceRatio", advice: Callable[[], Advice]) -> bool:
        return ratio.batches >= self.batches


class VarianceRatio:
    """The running measurement of τ; without feedback, τ is 1."""

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self.batches = 0
        self.uniform = self.adaptive = 0.0  # running means of the two second moments

    @property
    def tau(self) -> float:
        return self.uniform / self.adaptive if self.adaptive > 0.0 else 1.0

    def observe(self, uniform: float, adaptive: float) -> None:
        """Estimates of V_uniform and V_p from one batch."""
        self.batches += 1
        share = 1.0 / min(self.batches, self.memory)
        self.uniform += share * (uniform - self.uniform)
        self.adaptive += share * (adaptive - self.adaptive)

    def state_dict(self) -> dict[str, float]:
        return {"batches": self.batches, "uniform": self.uniform, "adaptive": self.adaptive}

    def load_state_dict(self, saved: dict[str, float]) -> None:
        self.batches = int(saved["batches"])
        self.uniform, self.adaptive = saved["uniform"], saved["adaptive"]
