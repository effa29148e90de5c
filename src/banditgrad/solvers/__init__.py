"""Solvers: what one step does with the row it was given."""

from banditgrad.solvers.automatic import automatic_solver
from banditgrad.solvers.base import Solver
from banditgrad.solvers.newton import SampledNewton
from banditgrad.solvers.prox_sgd import ProxSgd
from banditgrad.solvers.s2gd import S2gd
from banditgrad.solvers.saga import Saga
from banditgrad.solvers.sgd import Sgd
from banditgrad.solvers.sqn import Sqn
from banditgrad.solvers.svrg import LSvrg, ProxSvrg

__all__ = ["LSvrg", "ProxSgd", "ProxSvrg", "S2gd", "Saga", "SampledNewton", "Sgd", "Solver", "Sqn", "automatic_solver"]
