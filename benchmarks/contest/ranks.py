"""Ranks over many problems, and whether they could be chance: Friedman's test, Nemenyi's critical difference, and
Wilcoxon's test of each sampler against one, with Holm's correction (Demšar 2006)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Table = dict[str, NDArray[np.float64]]  # sampler → one number a problem, less is better


class Standing(NamedTuple):
    ranks: dict[str, float]  # means over the problems, 1 is best
    p_value: float  # of Friedman's test: that all are alike
    difference: float  # mean ranks that differ by more are told apart, at 5 %
    problems: int


def standing(table: Table) -> Standing:
    values = np.array(list(table.values()))
    samplers, problems = values.shape
    ranks = np.apply_along_axis(stats.rankdata, 0, values).mean(axis=1)
    told_apart = (values != values[0]).any()
    p_value = float(stats.friedmanchisquare(*values).pvalue) if samplers > 2 and told_apart else 1.0
    quantile = stats.studentized_range.ppf(0.95, samplers, np.inf) / np.sqrt(2.0)
    difference = float(quantile * np.sqrt(samplers * (samplers + 1) / (6.0 * problems)))
    return Standing(dict(zip(table, ranks.tolist(), strict=True)), p_value, difference, problems)


def against(table: Table, reference: str) -> dict[str, float]:
    """For every other sampler the p-value, after Holm's correction, that it and the reference are alike.

    Of the signs and ranks of the logarithms of their ratios; where neither has a number they are level.
    """
    raw = {}
    for name, values in table.items():
        if name != reference:
            ratios = np.array([_log_ratio(x, y) for x, y in zip(values, table[reference], strict=True)])
            raw[name] = float(stats.wilcoxon(ratios, zero_method="zsplit").pvalue) if ratios.any() else 1.0
    corrected, largest = {}, 0.0
    for k, (name, p) in enumerate(sorted(raw.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, p * (len(raw) - k)))
        corrected[name] = largest
    return {name: corrected[name] for name in raw}


def _log_ratio(x: float, y: float) -> float:
    """Finite: one that never arrives is a million times slower."""
    if np.isinf(x) and np.isinf(y):
        return 0.0
    return float(np.clip(np.log(max(x, 1e-300)) - np.log(max(y, 1e-300)), -np.log(1e6), np.log(1e6)))
