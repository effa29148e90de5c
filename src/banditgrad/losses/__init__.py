"""Losses φ(z, y) of a margin z = <x_i, w> and a target y."""

from banditgrad.losses.base import (
    Expandable,
    Loss,
    LossTraits,
    Smoothable,
    TwiceDifferentiable,
    can_be_smoothed,
    has_kinks,
)
from banditgrad.losses.classification import (
    ComplementaryLogLog,
    Hinge,
    Logistic,
    ModifiedHuber,
    SmoothedHinge,
    SquaredHinge,
)
from banditgrad.losses.deviances import Gamma, Poisson, Tweedie
from banditgrad.losses.regression import Huber, Quantile, SmoothedQuantile, Squared

__all__ = [
    "ComplementaryLogLog",
    "Expandable",
    "Gamma",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "LossTraits",
    "ModifiedHuber",
    "Poisson",
    "Quantile",
    "Smoothable",
    "SmoothedHinge",
    "SmoothedQuantile",
    "Squared",
    "SquaredHinge",
    "Tweedie",
    "TwiceDifferentiable",
    "can_be_smoothed",
    "has_kinks",
]
