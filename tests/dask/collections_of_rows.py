"""Rows cut into partitions of given sizes, as dask collections, and the minimum that the local solver finds."""

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp

from banditgrad import linear_model
from banditgrad.datasets import make_imbalanced


def imbalanced(n=3000):
    """Sparse rows of very different norm with labels -1 and 1."""
    X, y = make_imbalanced(n, 30, 6, positive=0.2, seed=1)
    return sp.csr_array(X), y


def sparse_blocks(X, sizes):
    """A dask array of CSR blocks; a size may be zero."""
    ends = np.cumsum(sizes)
    pieces = [X[end - size : end] for end, size in zip(ends, sizes, strict=True)]
    blocks = [da.from_delayed(dask.delayed(piece), piece.shape, float, meta=X[:0]) for piece in pieces]
    return da.concatenate(blocks)


def least_value(X, y, **settings):
    """F at the minimum, by the local estimator."""
    return linear_model.BanditClassifier(random_state=0, tol=1e-9, **settings).fit(X, y).objective_
