"""Losses φ(z, y) of a margin z = <x_i, w> and a target y."""

from banditgrad.losses.base import (
    Expandable,
    Loss,
    LossTraits,
    Smoothable,
    TwiceDifferentiable,
    VectorCurvature,
    VectorLoss,
    VectorTraits,
    can_be_smoothed,
    has_kinks,
    margins_of,
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
from banditgrad.losses.softmax import Softmax

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
    "Softmax",
    "Squared",
    "SquaredHinge",
    "Tweedie",
    "TwiceDifferentiable",
    "VectorCurvature",
    "VectorLoss",
    "VectorTraits",
    "can_be_smoothed",
    "has_kinks",
    "margins_of",
]
