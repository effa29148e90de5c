"""Penalties at the door of a problem."""

from functools import lru_cache
from typing import Any

from banditgrad._jit import check_part
from banditgrad.penalties.groups import VectorPenalty
from banditgrad.penalties.separable import Penalty

STEPS = ("prox", "cost", "prox_all", "prox_each", "total_cost")


def as_penalty(penalty: Any, features: int, margins: int) -> Any:
    """The penalty if it has what compiled code will ask for, spread over the numbers of W."""
    of_vectors = hasattr(penalty, "prox_all") and not hasattr(penalty, "prox")
    checked = check_part(penalty, VectorPenalty if of_vectors else Penalty, "penalty")
    return checked.over(features, margins) if hasattr(checked, "over") else checked


@lru_cache(maxsize=1024)
def has_closed_form(kind: Any) -> bool:
    """Whether the class of a penalty has one; a subclass that changes what it describes does not inherit it."""
    owners = {name: next((c for c in kind.__mro__ if name in vars(c)), None) for name in ("shrinkage", *STEPS)}
    described = owners.pop("shrinkage")
    return described is not None and all(owner in (described, None) for owner in owners.values())


def strength_of(penalty: Any) -> Any:
    """Its strength, or that of the penalty within; None where there is none."""
    return strength_of(penalty.penalty) if hasattr(penalty, "penalty") else getattr(penalty, "strength", None)


def with_strength(penalty: Any, strength: float) -> Any:
    """The penalty with another strength."""
    if hasattr(penalty, "penalty"):
        return penalty._replace(penalty=with_strength(penalty.penalty, strength))
    return penalty._replace(strength=float(strength))
