"""Newton's method for losses of several margins."""

from banditgrad.solvers.multinomial.solver import MultinomialNewton

__all__ = ["MultinomialNewton"]
