"""What of a panel can be drawn, and what must be said of the rest.

On a logarithmic axis zeros and negative numbers are drawn on a floor. A value above 1e100 counts as
diverged. Figures and page share these rules.
"""

import numpy as np
from numpy.typing import NDArray

from banditgrad.report.contents import Panel

# Far inside the range of doubles, so that limits can be computed with margins.
_LARGEST, _LEAST_POSITIVE = 1e100, 1e-100


def drawable(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The values with all that is too large made infinite."""
    return np.where(np.abs(values) > _LARGEST, np.copysign(np.inf, values), values)


def floors(panel: Panel) -> tuple[float | None, float | None]:
    """The least x and y that are drawn on logarithmic axes; None for a linear axis.

    On the x axis half of the least positive value; on the y axis `y_min`, or the largest power of ten below all
    positive values.
    """
    points = [drawable(curve.points) for curve in panel.curves]
    x = min((_least_positive(rows[0]) for rows in points), default=1.0)
    y = min((_least_positive(rows[1:]) for rows in points), default=1.0)
    y_floor = panel.y_min if panel.y_min is not None else float(10.0 ** (np.ceil(np.log10(y)) - 1))
    return (x / 2 if panel.x_log else None, y_floor if panel.y_log else None)


def _least_positive(values: NDArray[np.float64]) -> float:
    positive = values[(values > 0) & np.isfinite(values)]
    return max(float(positive.min()), _LEAST_POSITIVE) if positive.size else 1.0


def notes(panel: Panel) -> list[str]:
    """Sentences on what cannot be seen as it is: divergence, values below the floor or above the axis, gaps."""
    if not panel.curves:
        return ["Nothing was measured."]
    x_floor, y_floor = floors(panel)
    diverged, low, above, missing = [], [], [], []
    for curve in panel.curves:
        x, median, bottom, _ = drawable(curve.points)

        def count(where: NDArray[np.bool_], name: str = curve.name, more: str = "") -> str:
            return f"{name} ({where.sum()} of {where.size} points{more})"

        if (infinite := median == np.inf).any():
            diverged.append(count(infinite, more=f", first at {x[infinite.argmax()]:.4g}"))
        if (nan := ~(median > -np.inf)).any():
            missing.append(count(nan))
        if panel.y_max is not None and (over := (median > panel.y_max) & np.isfinite(median)).any():
            above.append(count(over))
        if y_floor is not None and (under := median < y_floor).any():
            low.append(count(under))
        elif y_floor is not None and (bottom < y_floor).any():
            low.append(f"{curve.name} (the band only)")
    sentences = [
        ("Diverged, marked × at the top: ", diverged),
        (f"Below {y_floor:.4g}, drawn there: ", low) if y_floor is not None else ("", []),
        (f"Above {panel.y_max:.4g}, off the axis: ", above) if panel.y_max is not None else ("", []),
        ("Without a value: ", missing),
    ]
    told = [f"{opening}{_listed(names)}." for opening, names in sentences if names]
    if x_floor is not None and any(curve.points[0, 0] < x_floor for curve in panel.curves):
        told.append(f"Points at zero or less along the axis are drawn at {x_floor:.4g}.")
    return told


def _listed(names: list[str], most: int = 6) -> str:
    """The names, or the first of them where there are many."""
    return ", ".join(names if len(names) <= most else [*names[:most], f"and {len(names) - most} more"])


def limits(values: NDArray[np.float64], log: bool, margin: float) -> tuple[float, float]:
    """The ends of an axis on which the finite values lie, with a share of its length as margin on either side."""
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return (0.1, 1.0) if log else (0.0, 1.0)
    low, high = float(finite.min()), float(finite.max())
    if log:
        a, b = np.log10(low), np.log10(high)
        pad = margin * (b - a) if b > a else 0.5
        return float(10.0 ** (a - pad)), float(10.0 ** (b + pad))
    pad = margin * (high - low) if high > low else 0.1 * abs(low) or 1.0
    return low - pad, high + pad
