"""AS-LSVRG (Zhao, Lyu and Kolar, "L-SVRG and L-Katyusha with Adaptive Sampling") is `LSvrg` with `Osmd`."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import banditgrad as bg
import reference
from banditgrad._random import new_stream
from banditgrad.minimise import _two_seeds
from banditgrad.solvers.parts.bins import GeometricBins
from iterates import last_iterate
from samplers.test_rules import descend
from solvers.test_variance_reduced import lengths_of

GAMMA, ALPHA, SEED, STEPS = 0.02, 0.3, 3, 1500
DRAWN = np.dtype([("i", "i8"), ("p", "f8")])


class WrittenDownState(NamedTuple):
    own: Any
    drawn: np.ndarray
    made: np.ndarray

    def draw(self):
        i = self.own.draw()
        self.drawn[self.made[0]].i = i
        self.drawn[self.made[0]].p = self.own.probability(i)
        self.made[0] += 1
        return i

    def probability(self, i):
        return self.own.probability(i)

    def update(self, i, p_i, a_i):
        self.own.update(i, p_i, a_i)


@dataclass(frozen=True, eq=False)
class WrittenDown(bg.Sampler):
    """Writes down what a sampler draws."""

    sampler: bg.Sampler
    drawn: np.ndarray

    def state(self, setup):
        return WrittenDownState(self.sampler.state(setup), self.drawn, np.zeros(1, np.int64))


def as_lsvrg(X, y, l1, draws, lengths):
    """w after the last step, and the p_i of each draw. Two draws are made ahead: they know of all but the last two."""
    n, d = X.shape
    w, v, moment = np.zeros(d), np.full(n, 1.0 / n), 0.0
    p = [1.0 / n, 1.0 / n]
    snapshots = set(np.cumsum(lengths).tolist()) | {0}
    for t, i in enumerate(draws):
        if t in snapshots:
            snapshot = w
            full = X.T @ reference.loss_derivative("Logistic", X @ snapshot, y) / n
        change = np.subtract(*(reference.loss_derivative("Logistic", X[i] @ at, y[i]) for at in (w, snapshot)))
        w = reference.prox(w - GAMMA * (change * X[i] / (n * p[t]) + full), GAMMA, l1, 0.0, d)
        a, n_p = change**2 * (X[i] @ X[i]) / n**2, n * p[t]
        moment += (a**2 / n_p - moment) / min(t + 1, n)
        if a > 0.0:
            v = descend(v, i, n_p, n_p, a, moment, t + 1, ALPHA, 1.0)
        if t + 2 < len(draws):
            p.append(v[draws[t + 2]] / v.sum())
    return w, p


def test_it_is_the_published_algorithm(small_data):
    X, y = small_data
    drawn = np.zeros(STEPS + 10, DRAWN)
    problem, sampler = bg.Problem(X, y, penalty=bg.L1(0.01)), WrittenDown(bg.Osmd(ALPHA), drawn)
    passes = STEPS / len(y)
    w = last_iterate(problem, bg.LSvrg(GAMMA), sampler, passes=passes, seed=SEED, record_every=passes)
    lengths = lengths_of(GeometricBins(float(len(y))), new_stream(_two_seeds(SEED)[1]), 100)
    expected, p = as_lsvrg(X, y, 0.01, drawn["i"][:STEPS], lengths)
    np.testing.assert_allclose(drawn["p"][:STEPS], p, rtol=1e-8)
    np.testing.assert_allclose(w, expected, atol=1e-10)
    assert np.ptp(p) > 0.01  # it has learnt


def minimum(X, y, l2):
    """Of the logistic loss with the squared l2 norm: Newton's method."""
    w, n = np.zeros(X.shape[1]), len(y)
    for _ in range(30):
        slope, curve = (f("Logistic", X @ w, y) for f in (reference.loss_derivative, reference.loss_second_derivative))
        w = w - np.linalg.solve(X.T @ (curve[:, None] * X) / n + l2 * np.eye(w.size), X.T @ slope / n + l2 * w)
    return reference.loss_value("Logistic", X @ w, y).mean() + 0.5 * l2 * w @ w


@pytest.mark.parametrize("sampler", [bg.Osmd(), bg.AdaOsmd()])
def test_it_finds_the_minimum_with_less_variance(sampler, small_data):
    problem = bg.Problem(*small_data, penalty=bg.SquaredL2(0.01))
    result = bg.minimise(problem, bg.LSvrg(), sampler, passes=400, seed=0, record_variance=True)
    assert result.value - minimum(*small_data, 0.01) < 1e-9
    history, early = result.history, slice(50, 200)
    assert history.effective_variance[early].sum() < 0.8 * history.uniform_variance[early].sum()
