"""Newton's method on sampled rows."""

from banditgrad.solvers.newton.solver import Continued, SampledNewton

__all__ = ["Continued", "SampledNewton"]
