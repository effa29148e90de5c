"""banditgrad: train models with bandit sampling.

    import banditgrad as bg

    problem = bg.Problem(X, y, loss=bg.Logistic(), penalty=bg.L1(1e-4))
    result = bg.minimise(problem, bg.ProxSgd(step_size=0.1), bg.Mabs(), passes=30, seed=0)

The method is that of Salehi, Celis and Thiran, "Stochastic Optimization with Bandit Sampling".
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from banditgrad import datasets
from banditgrad._jit import kernel
from banditgrad.geometries import Euclidean, PNorm
from banditgrad.losses import (
    ComplementaryLogLog,
    Gamma,
    Hinge,
    Huber,
    Logistic,
    ModifiedHuber,
    Poisson,
    Quantile,
    SmoothedHinge,
    SmoothedQuantile,
    Softmax,
    Squared,
    SquaredHinge,
    Tweedie,
)
from banditgrad.minimise import History, Progress, Reason, Result, minimise
from banditgrad.path import Path, path
from banditgrad.penalties import L1, Box, ElasticNet, GroupLasso, SparseGroupLasso, SquaredL2, Weighted, Zero
from banditgrad.problem import Problem
from banditgrad.samplers import (
    AdaOsmd,
    Auto,
    Avare,
    EmaNorm,
    ForgettingMabs,
    Importance,
    Mabs,
    Osmd,
    RecentNorm,
    Replay,
    SafeBounds,
    Sampler,
    Sampling,
    Setup,
    Tracking,
    Uniform,
    Vrb,
    draw_independent,
)
from banditgrad.schedules import Constant, InverseTime, ShiftedInverseTime
from banditgrad.solvers import LSvrg, ProxSgd, ProxSvrg, S2gd, Saga, SampledNewton, Sgd, Solver, Sqn

if TYPE_CHECKING:  # the others are imported when asked for, see __getattr__
    from banditgrad import linear_model
    from banditgrad.report.comparison import compare

__version__ = "0.1.0"

__all__ = [
    "L1",
    "AdaOsmd",
    "Auto",
    "Avare",
    "Box",
    "ComplementaryLogLog",
    "Constant",
    "ElasticNet",
    "EmaNorm",
    "Euclidean",
    "ForgettingMabs",
    "Gamma",
    "GroupLasso",
    "Hinge",
    "History",
    "Huber",
    "Importance",
    "InverseTime",
    "LSvrg",
    "Logistic",
    "Mabs",
    "ModifiedHuber",
    "Osmd",
    "PNorm",
    "Path",
    "Poisson",
    "Problem",
    "Progress",
    "ProxSgd",
    "ProxSvrg",
    "Quantile",
    "Reason",
    "RecentNorm",
    "Replay",
    "Result",
    "S2gd",
    "SafeBounds",
    "Saga",
    "SampledNewton",
    "Sampler",
    "Sampling",
    "Setup",
    "Sgd",
    "ShiftedInverseTime",
    "SmoothedHinge",
    "SmoothedQuantile",
    "Softmax",
    "Solver",
    "SparseGroupLasso",
    "Sqn",
    "Squared",
    "SquaredHinge",
    "SquaredL2",
    "Tracking",
    "Tweedie",
    "Uniform",
    "Vrb",
    "Weighted",
    "Zero",
    "compare",
    "datasets",
    "draw_independent",
    "kernel",
    "linear_model",
    "minimise",
    "path",
]


def __getattr__(name: str) -> Any:
    """What is imported when asked for: scikit-learn takes a while, and few need a report."""
    if name == "linear_model":
        return import_module("banditgrad.linear_model")
    if name == "compare":
        return import_module("banditgrad.report.comparison").compare
    raise AttributeError(f"module 'banditgrad' has no attribute {name!r}")
