"""Losses φ(z, y) of a margin z = <x_i, w> and a target y."""

from banditgrad.losses.base import Expandable, Loss, LossTraits, Smoothable, TwiceDifferentiable
from banditgrad.losses.classification import Logistic, SquaredHinge
from banditgrad.losses.regression import Huber, Squared

__all__ = [
    "Expandable",
    "Huber",
    "Logistic",
    "Loss",
    "LossTraits",
    "Smoothable",
    "Squared",
    "SquaredHinge",
    "TwiceDifferentiable",
]
