"""Data to train on: the paper's real sets, its synthetic sets, and larger ones that need no network."""

from banditgrad.datasets.libsvm import Dataset, load
from banditgrad.datasets.svmlight import read_svmlight
from banditgrad.datasets.synthetic import make_imbalanced, make_tau

__all__ = ["Dataset", "load", "make_imbalanced", "make_tau", "read_svmlight"]
