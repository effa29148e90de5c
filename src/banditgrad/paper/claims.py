"""From measurements to verdicts, and the table of all claims."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditgrad.report import Claim, Figure, Table, Verdict

LOW, HIGH = 0.1, 0.9  # the quantiles of a band


@dataclass
class Section:
    """What one part of the evaluation adds to the report."""

    claims: list[Claim] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)


def judge(parts: Sequence[bool]) -> Verdict:
    """Holds if all parts do, partly if some do."""
    if not parts:
        return Verdict.NOT_MEASURED
    return Verdict.HOLDS if all(parts) else Verdict.HOLDS_PARTLY if any(parts) else Verdict.DOES_NOT_HOLD


def quantiles(runs: ArrayLike) -> NDArray[np.float64]:
    """Median, low and high over the first axis; of what was measured, not between, so that infinity may be among it."""
    return np.quantile(np.asarray(runs, dtype=np.float64), (0.5, LOW, HIGH), axis=0, method="inverted_cdf")


def trend(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's rank correlation: 1 for a rise from each point to the next, -1 for a fall."""
    first, second = (np.argsort(np.argsort(values)) for values in (x, y))
    return float(np.corrcoef(first, second)[0, 1]) if first.size > 1 else 0.0


def number(value: float) -> str:
    """Three digits: 0.0123, 4.56e-07, 12.3; infinity means diverged."""
    if np.isposinf(value):
        return "diverged"
    return f"{value:.2e}" if value != 0 and not 1e-3 <= abs(value) < 1e4 else f"{value:.3g}"


def times(value: float) -> str:
    return "∞ times" if np.isposinf(value) else f"{number(value)} times"


def markdown(claims: Sequence[Claim]) -> str:
    """The claims as a Markdown table."""
    rows = [f"| {claim.statement} | {claim.measured} | **{claim.verdict.value}** |" for claim in claims]
    return "\n".join(["| the paper says | measured | |", "|---|---|---|", *rows]) + "\n"
