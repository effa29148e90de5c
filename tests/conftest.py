import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

os.environ.setdefault("OMP_NUM_THREADS", "1")  # test workers share the machine's cores; PyTorch would take them all


@pytest.fixture
def rng():
    return np.random.default_rng(12345)


@pytest.fixture(scope="session")
def small_data():
    """60 sparse rows of very different norm, signs as labels; with an empty row and an empty column."""
    rng = np.random.default_rng(7)
    X = sp.random(60, 12, 0.3, random_state=rng, data_rvs=rng.standard_normal).toarray()
    X *= np.exp(rng.standard_normal(60))[:, None]
    X[5], X[:, 3] = 0.0, 0.0
    y = np.where(X @ rng.standard_normal(12) + 0.3 * rng.standard_normal(60) > 0, 1.0, -1.0)
    return X, y


@pytest.fixture(scope="session")
def real_data():
    """A function that loads a LIBSVM set, or skips the test."""
    folder = os.environ.get("BANDITGRAD_DATA")

    def load(name):
        if not folder or not (Path(folder) / name).exists():
            pytest.skip(f"{name} is not here; set BANDITGRAD_DATA to the folder that has it")
        from sklearn.datasets import load_svmlight_file

        return load_svmlight_file(str(Path(folder) / name))

    return load
