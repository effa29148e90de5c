"""SAGA (Defazio, Bach and Lacoste-Julien 2014):

w ← prox(w - γ ((∇φ_i(w) - ∇φ_i(w̃_i)) / (n p_i) + (1/n) Σ_j ∇φ_j(w̃_j)), γ),    then w̃_i is the w before the step.
"""

from dataclasses import dataclass
from typing import Any

from banditgrad.solvers.reduced import Reduced


@dataclass(frozen=True, eq=False)
class Saga(Reduced):
    """SAGA with any sampler; its table is two numbers per row. It starts from the gradients at w0.

    Parameters
    ----------
    step_size : float or "auto"
        γ; "auto" finds it while running.
    """

    step_size: Any = "auto"

    def bins(self, problem: Any, gamma: float) -> None:
        return None
