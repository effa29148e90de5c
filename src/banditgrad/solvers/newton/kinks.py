"""Losses with a kink, which have no second derivative: smoothed, by less and less, so that models of F can be made.

A slope u_i of the smoothed loss is one between the slopes on both sides of the kink k_i. So F(w) is above its minimum
by no more than the model says and, for the rows within the smoothed part, (1/n) Σ_i φ_i(z_i) - u_i (z_i - k_i).
"""

from typing import Any

import numpy as np

from banditgrad._jit import kernel
from banditgrad.losses import can_be_smoothed, has_kinks
from banditgrad.solvers.newton.descent import Descent

FINEST = 1e-9  # of the scale of residuals: the last width that a kink is smoothed to


def without_kinks(problem: Any) -> Any:
    """The problem, or one with its loss smoothed as little as second derivatives can be computed with."""
    if not has_kinks(problem.loss):
        return problem
    if not can_be_smoothed(problem.loss):
        raise TypeError(
            f"SampledNewton needs second derivatives, which {type(problem.loss).__name__} does not have. Use Sgd or "
            "ProxSgd with it, or give it the methods width, smoothed and kink."
        )
    weights = 1.0 if problem.sample_weight is None else problem.sample_weight
    curvature = float(np.mean(problem.curvatures) / np.mean(weights))  # of slopes over the scale of residuals
    return problem.with_loss(problem.loss.smoothed(FINEST * float(problem.loss.slope_bound()) / curvature))


class SmoothedDescent:
    """What a descent on a smoothed loss knows of the problem with the kink.

    Attributes
    ----------
    value : F
    gradient : that of the smoothed data term
    predicted : the decrease that the model predicts, or what smoothing hides
    """

    def __init__(self, problem: Any, descent: Descent) -> None:
        terms, smoothed = problem.parts.terms, descent.subset.parts.terms
        kinks = problem.loss.kink(terms.targets)
        mean, hidden = _mean_and_hidden(terms, smoothed, descent.subset.margins, kinks)
        self.value, self.gradient = mean + descent.penalty(descent.w), descent.gradient
        self.predicted = max(descent.predicted, hidden)


@kernel
def _mean_and_hidden(terms, smoothed, margins, kinks):
    n, mean, hidden = margins.size, 0.0, 0.0
    for i in range(n):
        value, slope = terms.term(i, margins[i]), smoothed.slope(i, margins[i])
        mean += value
        hidden += value - slope * (terms.shifted(i, margins[i]) - kinks[i])
    return mean / n, hidden / n
