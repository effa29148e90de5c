"""Generated data of the race: what a zoo of many fits has no time for."""

import math

import numpy as np
import scipy.sparse as sp

import banditgrad as bg
from sets import data_set
from sets.generated import noisy_signs
from sets.real import signs


@data_set("million", zoo=False)
def million():
    """20 entries per row, rows of log-normal length (σ = 1)."""
    return bg.datasets.make_imbalanced(1_000_000, 1000, 20, positive=0.3, tail=1.0, seed=0)


@data_set("dense", zoo=False)
def dense():
    """Normal features, rows of length about 1; 5 % of the features matter."""
    n, d, rng = 50_000, 4000, np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    X /= math.sqrt(d)
    beta = rng.standard_normal(d) * (rng.random(d) < 0.05)
    score = X @ beta
    return X, noisy_signs(rng, score)


@data_set("words", zoo=False)
def words():
    """Word counts as they are: Zipf's law over d words, and documents of very different length (τ > 500).

    The two classes prefer different words, mildly. The length is log-normal with σ = 1.2 and a median of 30, at most
    4000.
    """
    n, d, rng = 30_000, 3000, np.random.default_rng(0)
    y = signs(rng.random(n) < 0.5)
    lengths = np.clip(np.exp(math.log(30.0) + 1.2 * rng.standard_normal(n)), 1, 4000).astype(np.int64)
    zipf, lean = 1.0 / (np.arange(d) + 5.0), 0.5 * rng.standard_normal(d)
    indices = np.empty(lengths.sum(), np.int32)
    ends = np.cumsum(lengths)
    for label in (-1.0, 1.0):
        p = zipf * np.exp(label * lean)
        mine = np.repeat(y == label, lengths)
        indices[mine] = rng.choice(d, int(mine.sum()), p=p / p.sum())
    indptr = np.concatenate([[0], ends]).astype(np.int32)
    X = sp.csr_array((np.ones(indices.size), indices, indptr), shape=(n, d))
    X.sum_duplicates()
    return X, y


@data_set("counts", zoo=False)
def counts_wide():
    """Whole numbers by Zipf's law over more words than there are documents."""
    rng = np.random.default_rng(0)
    n, d = 40_000, 100_000
    zipf, lengths = 1.0 / (np.arange(d) + 5.0), np.exp(math.log(60.0) + rng.standard_normal(n)).astype(int) + 1
    columns = rng.choice(d, lengths.sum(), p=zipf / zipf.sum())
    coordinates = (np.repeat(np.arange(n), lengths), columns)
    X = sp.csr_array(sp.coo_array((np.ones(columns.size), coordinates), shape=(n, d)))
    return X, noisy_signs(rng, np.log1p(X) @ rng.standard_normal(d))


@data_set("click-log", zoo=False)
def click_log_wide():
    """A million one-hot columns, most of them met once or never; 3 % positive."""
    rng = np.random.default_rng(0)
    n, fields, levels = 200_000, 20, 50_000
    columns = np.minimum((levels * rng.random((n, fields)) ** 6).astype(int), levels - 1) + levels * np.arange(fields)
    indptr = np.arange(0, n * fields + 1, fields)
    X = sp.csr_array((np.ones(n * fields), columns.ravel(), indptr), shape=(n, fields * levels))
    score = X @ rng.standard_normal(fields * levels) + rng.standard_normal(n)
    return X, signs(score > np.quantile(score, 0.97))


@data_set("images", zoo=False)
def images():
    """Smooth pictures of 24 x 24 grey levels with a dark rim: neighbours are alike, and half of them are zero."""
    rng = np.random.default_rng(0)
    n, side = 20_000, 24
    distance = (np.arange(side)[:, None] - np.arange(side)) ** 2
    blur = np.exp(-distance / 8.0)
    X = (blur @ rng.standard_normal((n, side, side)) @ blur).reshape(n, -1)
    template = (blur @ rng.standard_normal((side, side)) @ blur).ravel()
    y = noisy_signs(rng, X @ template)
    X = np.clip(X + 0.02 * y[:, None] * template, 0.0, None)
    return X / X.max(), y
