"""Sets that are generated: the paper's ridge regression, sparse imbalanced classes, and rows most of which are easy."""

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

_BLOCK = 2**15  # rows generated at a time: temporaries stay small


def make_tau(
    tau: float, n: int = 101, d: int = 5, *, noise: float = 1.0, seed: Any = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """y_i = <x_i, β> + N_i, with one row so long that τ = max L_i / mean L_i is `tau`: section 4.1 of the paper.

    β ~ N(0, 10²) and N_i ~ N(0, noise²). Then the row of the largest norm, and not its label, is multiplied by the c
    for which τ = n c² M / (S + c² M), where M is its squared norm and S the sum of the others'. The same seed gives
    the same set but for this row, whatever `tau`.

    The paper has n = 101, d = 5, noise 1 and τ from 3.7 to 83.9, with ``Squared()`` and no penalty. It leaves open how
    the mean and the variance of the features are drawn. Here every feature has a mean from N(0, ½²) and a standard
    deviation from U(0.2, 1): then τ is 2.6 to 4.5 before scaling for eight seeds in ten, and 2.875 for seed 0.

    Parameters
    ----------
    tau : float
        From the τ that the rows have before scaling (c = 1) to below n.
    n, d : int
        Rows and features.
    noise : float
        Standard deviation of N_i.
    seed : int, SeedSequence or numpy.random.Generator
        Same seed, same bits.

    Returns
    -------
    X : array of shape (n, d)
    y : array of shape (n,)
    """
    _check_count("n", n, 2)
    _check_count("d", d, 1)
    _check_range("noise", noise, 0.0, math.inf)
    rng = np.random.default_rng(seed)
    X = rng.normal(rng.normal(0.0, 0.5, d), rng.uniform(0.2, 1.0, d), (n, d))
    y = X @ rng.normal(0.0, 10.0, d) + noise * rng.standard_normal(n)
    norms2 = np.sum(X**2, axis=1)
    longest = int(norms2.argmax())
    M, S = norms2[longest], norms2.sum() - norms2[longest]
    smallest = n * M / (S + M)
    if not smallest <= tau < n:
        raise ValueError(
            f"tau must be from {smallest:.4g}, what these rows have before one is lengthened, to below n = {n}; "
            f"got {tau}. Another seed has another smallest τ."
        )
    X[longest] *= math.sqrt(tau * S / (M * (n - tau)))
    return X, y


def make_imbalanced(
    n: int,
    d: int,
    nonzeros_per_row: int = 20,
    *,
    positive: float = 0.03,
    tail: float = 1.0,
    seed: Any = 0,
) -> tuple[Any, NDArray[np.float64]]:
    """Sparse rows of very different length, few of them positive: x_i = s_i u_i, y_i = +1 where <u_i, β> + e_i is high.

    The features fall into `nonzeros_per_row` groups of equal size (to within one), and each row has one feature of
    each group, as rows of one-hot encoded fields do; its value in u_i is uniform on (0, 1], times √(3 / nonzeros), so
    that E‖u_i‖² = 1. β is normal, and the error e_i has half the spread of <u_i, β>. The scale s_i is log-normal with
    E s_i² = 1, so steps that suit one `tail` suit others. Labels do not depend on s_i: a linear model can tell the
    classes apart, also without an intercept as the values are positive.

    A million rows of 20 entries take a few seconds, and little more memory than X itself (12 bytes per entry).

    Parameters
    ----------
    n, d : int
        Rows and features.
    nonzeros_per_row : int
        Entries of each row, at most d.
    positive : float
        Share of the rows with y_i = +1, above 0 and below 1; rounded so that both classes occur.
    tail : float
        Standard deviation of log s_i, from 0 (rows of about equal norm) to 10.
    seed : int, SeedSequence or numpy.random.Generator
        Same seed, same bits.

    Returns
    -------
    X : scipy.sparse.csr_array of float64, with sorted int32 indices
    y : array of -1.0 and +1.0
    """
    _check_count("n", n, 2)
    _check_count("d", d, 1)
    _check_count("nonzeros_per_row", nonzeros_per_row, 1, d)
    _check_range("tail", tail, 0.0, 10.0)
    if not 0.0 < positive < 1.0:
        raise ValueError(f"positive must be above 0 and below 1, got {positive}.")
    k = nonzeros_per_row
    if n * k >= 2**31:
        raise ValueError(f"n · nonzeros_per_row must be below 2^31, so that int32 counts the entries; got {n * k}.")
    rng = np.random.default_rng(seed)
    beta = rng.standard_normal(d)
    bounds = np.arange(k + 1) * d // k
    scores, data, indices = np.empty(n), np.empty((n, k)), np.empty((n, k), np.int32)
    for start in range(0, n, _BLOCK):
        rows = slice(start, min(start + _BLOCK, n))
        shape = data[rows].shape
        indices[rows] = rng.integers(bounds[:-1], bounds[1:], shape, dtype=np.int32)
        u = (1.0 - rng.random(shape)) * math.sqrt(3.0 / k)
        scores[rows] = np.einsum("ij,ij->i", u, beta[indices[rows]])
        data[rows] = u * np.exp(tail * rng.standard_normal((shape[0], 1)) - tail**2)
    scores += 0.5 * scores.std() * rng.standard_normal(n)
    count = min(max(round(positive * n), 1), n - 1)
    y = np.full(n, -1.0)
    y[np.argpartition(scores, n - count)[n - count :]] = 1.0
    indptr = np.arange(0, n * k + 1, k, dtype=np.int32)
    X = sp.csr_array((data.reshape(-1), indices.reshape(-1), indptr), shape=(n, d))
    X.has_canonical_format = True
    return X, y


def make_borderline(
    n: int,
    d: int,
    nonzeros_per_row: int = 20,
    *,
    borderline: float = 0.01,
    signal: float = 3.0,
    seed: Any = 0,
) -> tuple[Any, NDArray[np.float64]]:
    """Sparse rows of equal norm, most of which are soon learned: what is left to learn is in a few, and nothing that
    is known beforehand tells which.

    Feature 0 or 1, with the value `signal`, gives a row's class away, half of the rows each; the other features are one
    of each of `nonzeros_per_row` - 1 groups of equal size, uniform on (0, 1]. Borderline rows have the latter alone:
    y_i = +1 where <x_i, β> + e_i is above its median, with β normal and an error e_i of half the spread. In the end all
    rows are scaled to norm 1: smoothness constants are equal, and importance sampling is uniform sampling.

    Parameters
    ----------
    n, d : int
        Rows and features.
    nonzeros_per_row : int
        Entries of a row, one fewer where it is borderline; from 2 to d - 1.
    borderline : float
        The share of borderline rows, above 0 and below 1; rounded so that both kinds occur.
    signal : float
        The feature that gives the class away, before rows are scaled; above 0.
    seed : int, SeedSequence or numpy.random.Generator
        Same seed, same bits.

    Returns
    -------
    X : scipy.sparse.csr_array of float64, with sorted int32 indices
    y : array of -1.0 and +1.0
    """
    _check_count("n", n, 4)
    _check_count("d", d, 3)
    _check_count("nonzeros_per_row", nonzeros_per_row, 2, d - 1)
    if not 0.0 < borderline < 1.0:
        raise ValueError(f"borderline must be above 0 and below 1, got {borderline}.")
    if not 0.0 < signal < math.inf:
        raise ValueError(f"signal must be above 0 and finite, got {signal}.")
    rng = np.random.default_rng(seed)
    k = nonzeros_per_row - 1
    bounds = 2 + np.arange(k + 1) * (d - 2) // k
    weak = rng.integers(bounds[:-1], bounds[1:], (n, k), dtype=np.int32)
    u = 1.0 - rng.random((n, k))
    scores = np.einsum("ij,ij->i", u, rng.standard_normal(d)[weak])
    scores += 0.5 * scores.std() * rng.standard_normal(n)
    few = rng.permutation(n)[: min(max(round(borderline * n), 1), n - 1)]
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    y[few] = np.where(scores[few] > np.median(scores[few]), 1.0, -1.0)
    strong = np.full(n, signal)
    strong[few] = 0.0
    indices = np.hstack([(y < 0.0).astype(np.int32)[:, None], weak])
    data = np.hstack([strong[:, None], u])
    data /= np.linalg.norm(data, axis=1)[:, None]
    X = sp.csr_array(
        (data.ravel(), indices.ravel(), np.arange(0, n * (k + 1) + 1, k + 1, dtype=np.int32)), shape=(n, d)
    )
    X.eliminate_zeros()
    return X, y


def _check_count(name: str, value: Any, least: int, most: int = 2**31 - 1) -> None:
    if not isinstance(value, int | np.integer) or not least <= value <= most:
        raise ValueError(f"{name} must be a whole number from {least} to {most}, got {value!r}.")


def _check_range(name: str, value: float, least: float, most: float) -> None:
    if not (least <= value <= most and value < math.inf):
        raise ValueError(f"{name} must be from {least} to {most}, got {value}.")
