"""Newton's method on sampled rows."""

from banditgrad.solvers.newton.solver import SampledNewton

__all__ = ["SampledNewton"]
