"""Generated data, each with one thing that goes wrong in practice."""

import math

import numpy as np
import scipy.sparse as sp

from sets import data_set
from sets.real import signs


def noisy_signs(rng, score, noise=0.5):
    return signs(score + noise * score.std() * rng.standard_normal(score.size) > 0.0)


def amounts(seed):
    """Raw amounts: log-normal columns over seven decades, mostly zero, and rare flags."""
    rng = np.random.default_rng(seed)
    n, d, flags = 20_000, 40, 20
    X = np.exp(3.0 * rng.standard_normal((n, d))) * (rng.random((n, d)) < 0.3)
    X = np.hstack([X * 10.0 ** rng.uniform(-2.0, 5.0, d), rng.random((n, flags)) < 0.01])
    z = np.log1p(X) @ rng.standard_normal(d + flags)
    return X, signs(z > np.median(z))


@data_set("amounts")
def amounts_1():
    return amounts(1)


@data_set("amounts")
def amounts_3():
    return amounts(3)


@data_set("amounts")
def amounts_6():
    X, y = amounts(6)
    return sp.csr_array(X), y


@data_set("copies")
def copies():
    """Columns that are the same, or sums of others, or constant."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 20))
    X = np.hstack([X, X[:, :10], X[:, :5] + X[:, 5:10], np.full((4000, 2), 30.0), np.zeros((4000, 1))])
    return X, noisy_signs(rng, X[:, :20] @ rng.standard_normal(20))


@data_set("wide-dense")
def wide_dense():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 1000))
    return X, noisy_signs(rng, X[:, :10].sum(axis=1))


@data_set("wide-sparse")
def wide_sparse():
    """Fewer rows than columns, most of which are met once or never."""
    rng = np.random.default_rng(0)
    X = sp.csr_array(sp.random_array((2000, 30_000), density=1e-3, rng=rng, format="csr"))
    return X, noisy_signs(rng, X @ rng.standard_normal(30_000))


@data_set("separable")
def separable():
    """Classes far apart: without a penalty there is no minimiser."""
    rng = np.random.default_rng(0)
    y = signs(rng.random(3000) < 0.5)
    X = rng.standard_normal((3000, 15))
    X[:, 0] += 8.0 * y
    return X, y


@data_set("huge-row")
def huge_row():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 12))
    y = noisy_signs(rng, X @ rng.standard_normal(12))
    X[77] *= 1e4
    return X, y


@data_set("huge-column")
def huge_column():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 12))
    y = noisy_signs(rng, X @ rng.standard_normal(12))
    X[:, 5] *= 1e7
    return X, y


@data_set("imbalance")
def imbalance():
    """One positive in 10,000."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000, 10))
    score = X @ rng.standard_normal(10) + 2.0 * rng.standard_normal(100_000)
    return X, signs(score > np.sort(score)[-11])


@data_set("tiny")
def tiny():
    rng = np.random.default_rng(0)
    return rng.standard_normal((7, 3)), np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0, -1.0])


@data_set("single-precision")
def single_precision():
    rng = np.random.default_rng(0)
    X = (10.0 ** rng.uniform(-3.0, 3.0, 30) * rng.standard_normal((10_000, 30))).astype(np.float32)
    return X, noisy_signs(rng, (X / X.std(axis=0)) @ rng.standard_normal(30))


@data_set("counts")
def counts():
    """Whole numbers by Zipf's law, documents of very different length."""
    rng = np.random.default_rng(0)
    n, d = 8000, 3000
    zipf, lengths = 1.0 / (np.arange(d) + 5.0), np.exp(math.log(30.0) + 1.2 * rng.standard_normal(n)).astype(int) + 1
    rows = np.repeat(np.arange(n), lengths)
    columns = rng.choice(d, rows.size, p=zipf / zipf.sum())
    X = sp.csr_array(sp.coo_array((np.ones(rows.size), (rows, columns)), shape=(n, d)).astype(np.int64))
    return X, noisy_signs(rng, np.log1p(X) @ rng.standard_normal(d))


@data_set("correlated")
def correlated():
    """Columns that are nearly sums of their neighbours: a condition number of 1e8."""
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.standard_normal((6000, 60)), axis=1) + 1e-2 * rng.standard_normal((6000, 60))
    return X, noisy_signs(rng, np.diff(X, axis=1) @ rng.standard_normal(59))


@data_set("dear-targets")
def dear_targets():
    """Regression on amounts of money: targets of a million, far from zero."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 25)) * 10.0 ** rng.uniform(-2.0, 3.0, 25)
    return X, 1e6 + 1e5 * (X / X.std(axis=0)) @ rng.standard_normal(25) + 1e5 * rng.standard_normal(5000)


@data_set("click-log")
def click_log():
    """One-hot columns of many levels, most of them rare; 3 % positive."""
    rng = np.random.default_rng(0)
    n, fields, levels = 30_000, 12, 4000
    columns = np.minimum((levels * rng.random((n, fields)) ** 6).astype(int), levels - 1) + levels * np.arange(fields)
    X = sp.csr_array((np.ones(n * fields), columns.ravel(), np.arange(0, n * fields + 1, fields)))
    X.resize(n, fields * levels)
    score = X @ rng.standard_normal(fields * levels) + rng.standard_normal(n)
    return X, signs(score > np.quantile(score, 0.97))
