"""Batches in which every item is or is not, independently of all others: K-Vib's way, for any sampler.

A Poisson number of draws, of mean K, hits item i a Poisson number of times, of mean K p_i, and these numbers are
independent. So the items that were hit at all are independent too, with probabilities

    π_i = 1 - exp(-K p_i),    and  Σ_{i in the batch} g_i / (n π_i)  is unbiased, with variance  Σ (1 - π_i) a_i / π_i.

No item comes twice, and what is in every batch (K p_i large) adds no variance; draws with replacement have neither.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditgrad.samplers.base import Sampling


def draw_independent(
    sampling: Sampling, mean_draws: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """A batch of distinct items, each in it independently of the others, and their probabilities π_i to be in it.

    Parameters
    ----------
    sampling : Sampling
        Whose p is drawn from: `Vrb` makes this K-Vib.
    mean_draws : float
        K. The batch has at most so many items on average: fewer where an item is drawn again. It may be empty.
    rng : numpy Generator
        Where the number of draws comes from.

    Example
    -------
    >>> i, pi = draw_independent(sampling, 32, rng)
    >>> estimate = (gradients(i) / (n * pi[:, None])).sum(axis=0)
    >>> sampling.update(i, (gradients(i) ** 2).sum(axis=1), pi / 32)

    References
    ----------
    Zhao, Wang et al., "Enhanced Federated Optimization: Adaptive Unbiased Client Sampling with Reduced Variance"
    (K-Vib), arXiv:2310.02698, 2023, who cap π at 1 where this saturates.
    """
    if not 0.0 < mean_draws < np.inf:
        raise ValueError(f"draw_independent expects a positive, finite mean_draws, got {mean_draws!r}.")
    draws: tuple[Any, Any] = sampling.draw(int(rng.poisson(mean_draws)))
    items, first = np.unique(draws[0], return_index=True)
    return items, -np.expm1(-mean_draws * draws[1][first])
