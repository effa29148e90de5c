"""Data to train on: the paper's real sets, its synthetic sets, larger ones that need no network, and users' files."""

from banditgrad.datasets.libsvm import Dataset, load
from banditgrad.datasets.svmlight import read_svmlight
from banditgrad.datasets.synthetic import make_borderline, make_imbalanced, make_tau
from banditgrad.datasets.tables import Table, read_table

__all__ = ["Dataset", "Table", "load", "make_borderline", "make_imbalanced", "make_tau", "read_svmlight", "read_table"]
