"""Newton's method for losses of several margins."""

from banditgrad.solvers.multinomial.solver import MultinomialNewton, approach, sample_sizes

__all__ = ["MultinomialNewton", "approach", "sample_sizes"]
