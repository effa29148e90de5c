"""Losses of several margins: the multinomial one, of more than two classes."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._jit import part

ORDINARY = 2**31  # classes at most: their numbers are written as 32-bit ones by many


@part
class Softmax(NamedTuple):
    """φ(z, y) = log Σ_k exp(z_k) - z_y, for margins z = W'x of so many classes, and y one of 0, ..., classes - 1.

    Its slopes are p - e_y with p_k = exp(z_k) / Σ_l exp(z_l), the probabilities of the classes.
    """

    classes: float

    def value(self, z, y):
        top = 0
        for k in range(1, z.size):
            if z[k] > z[top]:
                top = k
        others = 0.0
        for k in range(z.size):
            if k != top:
                others += math.exp(z[k] - z[top])
        return z[top] - z[int(y)] + math.log1p(others)

    def derivatives(self, z, y, out):
        top, own = 0, int(y)
        for k in range(1, z.size):
            if z[k] > z[top]:
                top = k
        others = 0.0
        for k in range(z.size):
            out[k] = math.exp(z[k] - z[top])
            if k != top:
                others += out[k]
        total = 0.0
        for k in range(z.size):
            out[k] /= 1.0 + others
            if k != own:
                total += out[k]
        out[own] = -total  # p_y - 1, exact also where p_y rounds to 1
        return z[top] - z[own] + math.log1p(others)

    def curve_product(self, z, slopes, y, v, out):
        own, mean = int(y), 0.0
        for k in range(v.size):  # the classes' mean of v_k - v_y: no cancellation where one class is nearly certain
            if k != own:
                mean += slopes[k] * (v[k] - v[own])
        at = v[own]
        for k in range(v.size):
            p = slopes[k] if k != own else 1.0 + slopes[k]
            out[k] = p * (v[k] - at - mean)

    def curve_parts(self, z, slopes, y, a, b):
        own = int(y)
        for k in range(slopes.size):
            a[k] = slopes[k] if k != own else 1.0 + slopes[k]
            b[k] = a[k]

    def margins(self):
        return int(self.classes)

    def curvature(self):
        return 0.5

    def slope_bound(self):
        return math.sqrt(2.0)

    def check_targets(self, y: NDArray[np.float64]) -> Any:
        wrong = np.flatnonzero(~((y >= 0.0) & (y < self.classes) & (y == np.floor(y))))
        if wrong.size:
            raise ValueError(
                f"Softmax({self.classes:g}) expects y to hold class numbers from 0 to {self.classes - 1:g}, got "
                f"{y[wrong[0]]:g} at position {wrong[0]}. Pass numpy.unique(y, return_inverse=True)[1]."
            )

    def validate(self):
        if not (2.0 <= self.classes < ORDINARY and self.classes == math.floor(self.classes)):
            raise ValueError(f"Softmax expects a whole number of classes, at least 2, got {self.classes!r}.")
