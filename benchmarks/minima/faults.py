"""What is wrong with a fit.

A *stall*: a fit that promises the minimum ends more than 1e-6 of F* above it.
An *explosion*: F at a record is above F(w0), with a stochastic method above 1.5 F(w0) or at the end above F(w0); or the
result is above the best record, or something was raised.
A *false reason*: "converged" where it did not, or "passes done" after F rose; or a fit is below a certified bound.
"""

from collections.abc import Iterable

import numpy as np

from minima.fits import Fit
from minima.optimum import FLOOR, Optimum

NEAR = 1e-6  # relative to F*
ROUNDING = 1e-9  # relative to F(w0)
NOISY = 1.5  # times F(w0): what F of a stochastic method may come to on its way
SORTS = {"stall": "stalls", "explosion": "explosions", "false reason": "false reasons"}


def is_far(fit: Fit, least: float) -> bool:
    return not fit.value - least <= NEAR * abs(least) + FLOOR * abs(fit.start)


def faults(fit: Fit, optimum: Optimum) -> list[str]:
    """Each begins with what sort of fault it is."""
    found, slack, far = [], ROUNDING * abs(fit.start), is_far(fit, optimum.value)
    above = (fit.value - optimum.value) / max(abs(optimum.value), 1e-300)
    if fit.promises and far:
        found.append(f"stall: {above:.1e} above F*, {fit.reason}")
    most = fit.start + slack if fit.promises else NOISY * fit.start
    if ":" in fit.reason:
        found.append(f"explosion: {fit.reason}")
    elif not (np.isfinite(fit.value) and fit.highest <= most):
        found.append(f"explosion: F rose to {fit.highest / fit.start:.3g} times F(w0)")
    elif fit.reason == "DIVERGED" or fit.last > fit.start + slack:
        found.append(f"explosion: {fit.reason}, F ends at {fit.last / fit.start:.3g} times F(w0)")
    elif fit.value > fit.least + slack:
        found.append(f"explosion: the result is {fit.value - fit.least:.1e} above the best record")
    if fit.reason == "CONVERGED" and far:
        found.append(f"false reason: converged, {above:.1e} above F*")
    if fit.reason == "PASSES_DONE" and fit.last > fit.start + slack:
        found.append("false reason: passes done, and F rose")
    if fit.value < optimum.bound - slack:
        found.append(f"false reason: F* was certified to be at least {optimum.bound:.12g}, and is {fit.value:.12g}")
    return found


def summary(title: str, fits: int, problems: int, found: Iterable[str]) -> str:
    found = list(found)
    counts = [f"{name} {sum(fault.startswith(sort) for fault in found)}" for sort, name in SORTS.items()]
    return f"{title}: {fits} fits of {problems} problems; {', '.join(counts)}"
