"""Which iterate a problem has."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditgrad.solvers.parts.iterates import affine
from banditgrad.solvers.parts.iterates.base import lazy_strengths, segment_length
from banditgrad.solvers.parts.iterates.proximal import CLOCK, LazyProximal, new_eager, new_products
from banditgrad.solvers.parts.iterates.subgradient import SUMS, LazySubgradient
from banditgrad.solvers.parts.iterates.weighted import (
    weighted_proximal,
    weighted_reduced,
    weighted_strengths,
    weighted_subgradient,
)

Vector = NDArray[np.float64]


def new_iterate(problem: Any, w: Vector, gamma: float, *, mean: bool = False) -> Any:
    """Lazy for sparse rows and penalties with a closed form, else eager; `mean`: with the sum of the iterates."""
    g, total, clock = np.zeros_like(w), np.zeros(w.size if mean else 0), np.array([(0.0, gamma)], affine.CLOCK)
    strengths, weighted = lazy_strengths(problem), weighted_strengths(problem)
    if weighted is not None:
        lazy: Any = weighted_reduced(problem, w, weighted, total, clock)
    elif strengths is not None:
        powers = np.zeros(segment_length(problem) + 1 if strengths[1] > 0.0 else 1, affine.POWERS)
        coordinates = np.zeros(w.size, affine.COORDINATE)
        lazy = affine.LazyReduced(*strengths, problem.penalised, w, g, total, clock, coordinates, powers)
    else:
        return affine.EagerReduced(problem.penalty, problem.penalised, w, g, total, clock)
    affine.set_out(lazy, gamma)
    return lazy


def new_proximal(problem: Any, w: Vector) -> Any:
    """Likewise."""
    strengths, weighted = lazy_strengths(problem), weighted_strengths(problem)
    if weighted is not None:
        return weighted_proximal(problem, w, weighted)
    if strengths is None:
        return new_eager(problem, w, proximal=True)
    seen = np.zeros(problem.penalised, np.uint32)
    return LazyProximal(*strengths, w, np.zeros(1, CLOCK), new_products(problem), seen)


def new_subgradient(problem: Any, w: Vector, rule: Any, *, average: bool) -> Any:
    """Likewise; steps are those of the rule."""
    strengths, weighted = lazy_strengths(problem), weighted_strengths(problem)
    if weighted is not None:
        return weighted_subgradient(problem, w, weighted, rule, average=average)
    if strengths is None:
        return new_eager(problem, w, proximal=False, average=average)
    products, seen = new_products(problem), np.zeros(problem.penalised, np.uint32)
    weighted_sum, sums = np.zeros(w.size if average else 0), np.zeros(products.size if average else 0, SUMS)
    about = (*strengths, rule.constant, rule.falling)
    return LazySubgradient(*about, w, weighted_sum, np.zeros(1, CLOCK), products, sums, seen)
