"""Who fits: the defaults, the estimators, every solver; and what is kept of a fit."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import banditgrad as bg
from banditgrad.linear_model import BanditClassifier, BanditRegressor
from minima.problems import FEW, Case

PASSES, FIRST_ORDER_PASSES = 300, 20


@dataclass(frozen=True)
class Fit:
    """F on the way of one fit: at its start, then the highest, the least and the last of its records; and its result.

    `reason` is the name of a `Reason`, or the words of what was raised.
    """

    set: str
    kind: str
    solver: str
    seed: int
    promises: bool  # the minimum
    start: float
    highest: float
    least: float
    last: float
    value: float
    reason: str
    passes: float = 0.0
    seconds: float = 0.0


class OutOfTime(Exception):
    """The time for this problem is over: nothing is known of the fit."""


class Fitter(NamedTuple):
    """One way to fit. `run` takes a case, a seed and a callback, and returns what a `Fit` tells of F."""

    run: Callable[[Case, int, Any], dict[str, Any]]
    promises: Callable[[Case], bool]
    everywhere: bool = True  # else on few problems: each costs its compilation
    can: Callable[[Case], bool] = lambda case: True


def minimised(solver: Any, sampler: Any, passes: int, case: Case, seed: int, callback: Any) -> dict[str, Any]:
    result = bg.minimise(case.problem, solver, sampler, passes=passes, seed=seed, callback=callback)
    if result.reason is bg.Reason.CALLBACK:
        raise OutOfTime
    return {**told(result.history.value, result.value, result.reason.name), "passes": result.passes}


def estimated(case: Case, seed: int, callback: Any) -> dict[str, Any]:
    """The estimator with its own defaults but for loss and penalty, judged by the same F."""
    kind, problem = case.kind, case.problem
    losses = {"Logistic": "log_loss", "SquaredHinge": "squared_hinge", "Squared": "squared_error", "Huber": "huber"}
    penalties = {"L1": "l1", "SquaredL2": "l2", "ElasticNet": "elasticnet", "Zero": None}
    settings = {
        "loss": losses[type(kind.loss).__name__],
        "penalty": penalties[type(kind.penalty).__name__],
        "alpha": kind.penalty.strength,
        "l1_ratio": getattr(kind.penalty, "l1_ratio", 0.5),
        "fit_intercept": kind.intercept,
        "random_state": seed,
    }
    if isinstance(kind.loss, bg.Huber):
        settings["epsilon"] = kind.loss.delta
    classifies = settings["loss"] in ("log_loss", "squared_hinge")
    estimator = (BanditClassifier if classifies else BanditRegressor)(**settings)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        estimator.fit(case.X, case.y, sample_weight=problem.sample_weight)
    w = np.append(estimator.coef_.ravel(), estimator.intercept_) if kind.intercept else estimator.coef_.ravel()
    reason = "PASSES_DONE" if warned else "CONVERGED"
    return {**told(estimator.history_[0].value, problem.value(w), reason), "passes": float(estimator.n_iter_)}


def told(values: np.ndarray, value: float, reason: str) -> dict[str, Any]:
    extremes = {"highest": float(values.max()), "least": float(values.min())}
    return {"start": float(values[0]), **extremes, "last": float(values[-1]), "value": float(value), "reason": reason}


def twice_differentiable(case: Case) -> bool:
    return hasattr(case.kind.loss, "second_derivative")


def nothing(case: Case) -> bool:
    return False


def from_solver(solver: Any, sampler: Any = "auto", everywhere: bool = True) -> Fitter:
    """One that promises nothing."""
    return Fitter(partial(minimised, solver, sampler, FIRST_ORDER_PASSES), nothing, everywhere)


FITTERS: dict[str, Fitter] = {
    "minimise": Fitter(partial(minimised, "auto", "auto", PASSES), twice_differentiable),
    "estimator": Fitter(estimated, twice_differentiable, can=twice_differentiable),
    "SampledNewton": Fitter(
        partial(minimised, bg.SampledNewton(), "auto", PASSES), twice_differentiable, False, twice_differentiable
    ),
    "ProxSvrg": from_solver(bg.ProxSvrg()),
    "Saga": from_solver(bg.Saga()),
    "S2gd": from_solver(bg.S2gd()),
    "LSvrg": from_solver(bg.LSvrg()),
    "Sgd": from_solver(bg.Sgd()),
    "ProxSgd": from_solver(bg.ProxSgd()),
    "Sqn": from_solver(bg.Sqn(), everywhere=False),
    "ProxSvrg Mabs": from_solver(bg.ProxSvrg(), bg.Mabs(), everywhere=False),
    "ProxSvrg Uniform": from_solver(bg.ProxSvrg(), bg.Uniform(), everywhere=False),
    "Saga Mabs": from_solver(bg.Saga(), bg.Mabs(), everywhere=False),
    "Saga Uniform": from_solver(bg.Saga(), bg.Uniform(), everywhere=False),
    "Sgd Mabs": from_solver(bg.Sgd(), bg.Mabs(), everywhere=False),
    "Sgd Uniform": from_solver(bg.Sgd(), bg.Uniform(), everywhere=False),
}


def everybody(case: Case) -> list[str]:
    return [name for name, fitter in FITTERS.items() if fitter.everywhere or case.kind.name in FEW]


def fit(case: Case, solver: str, seed: int, deadline: float) -> Fit:
    """One fit; `OutOfTime` if it is not done at the deadline, a time of the monotonic clock."""
    fitter, begin = FITTERS[solver], time.monotonic()
    if begin >= deadline:
        raise OutOfTime
    try:
        outcome = fitter.run(case, seed, lambda progress: time.monotonic() >= deadline)
    except (ArithmeticError, ValueError, IndexError, np.linalg.LinAlgError) as error:
        start = case.problem.value(np.zeros(case.problem.dimension))
        outcome = told(np.array([start]), start, f"{type(error).__name__}: {error}")
    seconds = time.monotonic() - begin
    return Fit(
        case.data.name, case.kind.name, solver, seed, fitter.promises(case), **outcome, seconds=round(seconds, 2)
    )
