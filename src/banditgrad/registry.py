"""Parts by name. Strings are for the door, that is, estimators and the command line; inside there are objects.

A solver or sampler is called like its class, in lower case: "saga", "proxsvrg", "mabs", "recentnorm".
"""

from collections.abc import Mapping
from typing import Any

from banditgrad._names import look_up, shown
from banditgrad.losses.names import make_loss
from banditgrad.penalties import Box, ElasticNet, GroupLasso, SparseGroupLasso, Weighted
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
    SafeBounds,
    Sampler,
    Tracking,
    Uniform,
    Vrb,
)
from banditgrad.solvers import LSvrg, ProxSgd, ProxSvrg, S2gd, Saga, SampledNewton, Sgd, Solver, Sqn

__all__ = [
    "CLASSIFICATION_LOSSES",
    "LOG_LINK_LOSSES",
    "PENALTIES",
    "REGRESSION_LOSSES",
    "SAMPLERS",
    "SOLVERS",
    "make_loss",
    "make_penalty",
    "make_sampler",
    "make_solver",
    "name_of",
]


def name_of(part: Any) -> str:
    """By which name a solver or sampler, or its class, is known here."""
    return (part if isinstance(part, type) else type(part)).__name__.lower()


def _by_name(*kinds: type) -> dict[str, Any]:
    return {name_of(kind): kind for kind in kinds}


# "auto" is chosen for each problem.
SOLVERS: Mapping[str, Any] = {"auto": None, **_by_name(SampledNewton, ProxSvrg, Saga, LSvrg, S2gd, Sgd, ProxSgd, Sqn)}
SAMPLERS: Mapping[str, Any] = _by_name(
    Auto,
    Uniform,
    Importance,
    Mabs,
    Vrb,
    RecentNorm,
    Tracking,
    EmaNorm,
    ForgettingMabs,
    Osmd,
    AdaOsmd,
    Avare,
    SafeBounds,
)
CLASSIFICATION_LOSSES = ("log_loss", "squared_hinge", "hinge", "modified_huber")
MULTI_CLASS = ("auto", "multinomial", "ovr")
LOG_LINK_LOSSES = ("poisson", "gamma", "tweedie")  # of a mean exp(z)
REGRESSION_LOSSES = ("squared_error", "huber", "quantile", *LOG_LINK_LOSSES)
GROUPED = ("group_lasso", "sparse_group_lasso")
WITH_RATIO = ("elasticnet", "sparse_group_lasso")
PENALTIES = ("l1", "l2", "elasticnet", *GROUPED, None)


def make_solver(solver: str | Solver, step_size: str | float = "auto") -> str | Solver:
    """The solver of that name, with that step; or the given one, which has its own. "auto" is left to `minimise`,
    unless a step is given, which `ProxSvrg` then takes."""
    if isinstance(solver, Solver):
        if step_size != "auto":
            raise ValueError(
                f"step_size={shown(step_size)} is for solvers given by name. Pass it to {solver!r} itself."
            )
        return solver
    kind = look_up("solver", solver, SOLVERS, "a Solver")
    if kind is None:
        return "auto" if step_size == "auto" else ProxSvrg(step_size)
    if kind is SampledNewton:
        if step_size != "auto":
            raise ValueError(f'solver="{solver}" has no step_size, got {shown(step_size)}. Leave it at "auto".')
        return SampledNewton()
    return kind(step_size=step_size)


def make_sampler(sampler: str | Sampler) -> Sampler:
    """The sampler of that name, or the given one."""
    return sampler if isinstance(sampler, Sampler) else look_up("sampler", sampler, SAMPLERS, "a Sampler")()


def make_penalty(
    penalty: str | None, alpha: float, l1_ratio: float, factors: Any = None, bounds: Any = None, groups: Any = None
) -> Any:
    """Penalties of one coordinate as elastic nets: compiled loops then serve them all, and their closed forms go by the
    numbers. Perhaps with a factor for each feature and within bounds, a pair of arrays; or those of groups."""
    if penalty not in PENALTIES:
        raise ValueError(f"penalty must be one of {', '.join(map(repr, PENALTIES))}; got {shown(penalty)}.")
    if (penalty in GROUPED) != (groups is not None):
        what = "needs groups, lists of features" if penalty in GROUPED else "has no groups; pass one of group_lasso"
        raise ValueError(f"penalty={shown(penalty)} {what}.")
    if penalty in GROUPED:
        if bounds is not None:
            raise ValueError(f"penalty={shown(penalty)} comes without bounds and positive: pass l1, l2 or elasticnet.")
        share = l1_ratio if penalty == "sparse_group_lasso" else 0.0
        return SparseGroupLasso(groups, alpha, share, factors) if share else GroupLasso(groups, alpha, factors)
    part: Any = ElasticNet(alpha, {"l1": 1.0, "l2": 0.0}.get(penalty, l1_ratio)) if penalty else ElasticNet(0.0, 0.0)
    part = part if factors is None else Weighted(part, factors)
    return part if bounds is None else Box(bounds[0], bounds[1], part)
