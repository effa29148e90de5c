"""Real data, from the files in $BANDITGRAD_DATA; a set whose file is not there raises FileNotFoundError."""

import json
import lzma
import os
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import banditgrad as bg
from sets import data_set

RARE_INTRUSIONS = ("guess_passwd", "warezclient", "warezmaster", "imap", "ftp_write", "multihop", "phf", "spy")


def path(name: str) -> Path:
    folder = os.environ.get("BANDITGRAD_DATA")
    if not folder:
        raise FileNotFoundError(f"{name}: set BANDITGRAD_DATA to the folder that has it.")
    return Path(folder) / name


def signs(positive) -> np.ndarray:
    return np.where(positive, 1.0, -1.0)


def standardised(X: np.ndarray) -> np.ndarray:
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)


# --- KDD Cup 1999, 10 %: network connections, amounts up to 1e9, 23 classes -------------------------------------------


@cache
def kdd_table():
    """Amounts, one-hot columns and classes."""
    import pandas as pd

    table = pd.read_csv(path("kddcup.data_10_percent.gz"), header=None)
    flags = pd.get_dummies(table[[1, 2, 3]].astype(str), dtype=np.float64).to_numpy()
    amounts = table.drop(columns=[1, 2, 3, 41]).to_numpy(np.float64)
    return amounts, flags, table[41].str.rstrip(".").to_numpy(str)


def _kdd_raw():
    amounts, flags, _ = kdd_table()
    return sp.csr_array(np.hstack([amounts, flags]))


def _kdd_standardised(rows=None):
    amounts, flags, _ = kdd_table()
    return np.hstack([standardised(amounts[:rows]), flags[:rows]])


@data_set("kdd")
def kdd_raw():
    return _kdd_raw(), signs(kdd_table()[2] == "normal")


@data_set("kdd")
def kdd_raw_rare():
    return _kdd_raw(), signs(np.isin(kdd_table()[2], RARE_INTRUSIONS))


@data_set("kdd")
def kdd_std():
    return _kdd_standardised(), signs(kdd_table()[2] == "normal")


@data_set("kdd")
def kdd_std_rare():
    return _kdd_standardised(), signs(np.isin(kdd_table()[2], RARE_INTRUSIONS))


@data_set("kdd")
def kdd_60k_std():
    """The first rows, which are of few kinds: columns that hardly vary, or not at all."""
    return _kdd_standardised(60_000), signs(kdd_table()[2][:60_000] == "normal")


# --- descriptions of Debian's packages --------------------------------------------------------------------------------


@cache
def debian():
    with lzma.open(path("debian-descriptions.json.xz"), "rt") as file:
        table = json.load(file)
    return table["docs"], np.array(table["section"])


def _libraries():
    return signs(np.isin(debian()[1], ("libs", "libdevel")))


@cache
def _tfidf():
    from sklearn.feature_extraction.text import TfidfVectorizer

    return sp.csr_array(TfidfVectorizer(ngram_range=(1, 2)).fit_transform(debian()[0]))


@data_set("debian")
def debian_tfidf():
    return _tfidf(), _libraries()


@data_set("debian")
def debian_tfidf_rare():
    return _tfidf(), signs(debian()[1] == "science")


@data_set("debian")
def debian_counts():
    from sklearn.feature_extraction.text import CountVectorizer

    X = CountVectorizer(dtype=np.float64).fit_transform(debian()[0][:16_000])
    return sp.csr_array(X), _libraries()[:16_000]


@data_set("debian")
def debian_char():
    """Counts of characters in groups of two to five, hashed."""
    from sklearn.feature_extraction.text import HashingVectorizer

    hashing = HashingVectorizer(analyzer="char", ngram_range=(2, 5), n_features=2**18, norm=None, alternate_sign=False)
    return sp.csr_array(hashing.transform(debian()[0])), _libraries()


@data_set("debian", zoo=False)
def debian_58():
    """All sections."""
    return _tfidf(), np.unique(debian()[1], return_inverse=True)[1].astype(np.float64)


# --- Fashion-MNIST ----------------------------------------------------------------------------------------------------


@cache
def _fashion():
    with np.load(path("fashion-mnist.npz")) as file:
        return file["X"], file["y"]


@data_set("fashion")
def fashion():
    X, y = _fashion()
    return X / 255.0, signs(y == 6)


@data_set("fashion")
def fashion_raw():
    """Grey levels as they are, and every seventh picture."""
    X, y = _fashion()
    return X[::7].astype(np.float32), signs(y[::7] == 6)


@data_set("fashion", zoo=False)
def fashion_10():
    X, y = _fashion()
    return X / 255.0, y.astype(np.float64)


@data_set("digits", zoo=False)
def digits():
    """1797 small pictures that scikit-learn has."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X / 16.0, y.astype(np.float64)


# --- small sets of LIBSVM's collection --------------------------------------------------------------------------------


def _svmlight(name):
    return bg.datasets.read_svmlight(path(name))


@data_set("australian")
def australian():
    """Raw columns."""
    X, y = _svmlight("australian.xz")
    return X, signs(y > 0)


@data_set("australian")
def australian_std():
    X, y = _svmlight("australian.xz")
    return standardised(X.toarray()), signs(y > 0)


@data_set("svmguide1")
def svmguide1():
    """Raw columns."""
    X, y = _svmlight("svmguide1.xz")
    return X.toarray(), signs(y > 0)


@data_set("mushrooms")
def mushrooms():
    X, y = _svmlight("mushrooms.xz")
    return X, signs(y == y.max())


@data_set("abalone")
def abalone():
    X, y = _svmlight("abalone_scale.xz")
    return X.toarray(), y


@data_set("abalone")
def abalone_dear():
    """Targets of a million, as amounts of money are."""
    X, y = _svmlight("abalone_scale.xz")
    return X.toarray(), 1e5 * y


# --- the paper's ------------------------------------------------------------------------------------------------------


@data_set("w8a")
def w8a():
    data = bg.datasets.load("w8a")
    return data.X, data.y


@data_set("ijcnn1")
def ijcnn1():
    data = bg.datasets.load("ijcnn1")
    return data.X, data.y


@data_set("a9a")
def a9a():
    data = bg.datasets.load("a9a")
    return data.X, data.y
