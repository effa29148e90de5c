"""Solvers: what one step does with the row it was given."""

from banditgrad.solvers.base import Solver
from banditgrad.solvers.prox_sgd import ProxSgd
from banditgrad.solvers.sgd import Sgd

__all__ = ["ProxSgd", "Sgd", "Solver"]
