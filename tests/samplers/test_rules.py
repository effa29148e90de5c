"""Adaptive rules beside plain NumPy: the same p at every draw. A new rule is one row in RULES."""

import numpy as np
import pytest

import banditgrad as bg

N = 60
RULES = {}


def rule(sampler):
    """Register a NumPy loop: given the draws, their p and the feedback, it yields p before each of them."""

    def register(p_of):
        RULES[type(sampler).__name__] = (sampler, p_of)
        return p_of

    return register


def mixed(w, theta):
    return (1.0 - theta) * w / w.sum() + theta / w.size


def of_norms(draws, p_drawn, a, theta, weight):
    """Rules with a warm-up, after which `weight` says what a drawn weight becomes."""
    w, unit = np.ones(N), 0.0
    warm_up = int(np.sqrt(N)) + 16
    for t, i in enumerate(draws):
        yield mixed(w, theta)
        if t < warm_up:
            unit += (a[t] / (N * p_drawn[t]) - unit) / (t + 1)
        else:
            w[i] = weight(w[i], a[t] / unit, N * p_drawn[t])


@rule(bg.EmaNorm(theta=0.3, memory=0.8))
def ema_norm(draws, p_drawn, a):
    return of_norms(draws, p_drawn, a, 0.3, lambda w, a, n_p: 0.8 * w + 0.2 * np.sqrt(a))


@rule(bg.RecentNorm(theta=0.2, memory=0.6))
def recent_norm(draws, p_drawn, a):
    return of_norms(draws, p_drawn, a, 0.2, lambda w, a, n_p: np.sqrt(0.6 * w**2 + 0.4 * a))


@rule(bg.Vrb(theta=0.4, gamma=3.0))
def vrb(draws, p_drawn, a):
    return of_norms(draws, p_drawn, a, 0.4, lambda w, a, n_p: np.sqrt(w**2 + a / (3.0 * n_p)))


@rule(bg.ForgettingMabs(eta=0.3, window=200))
def forgetting_mabs(draws, p_drawn, a):
    w, moment = np.ones(N), 0.0
    for t, i in enumerate(draws):
        yield mixed(w, 0.3)
        n_p = N * p_drawn[t]
        moment += (a[t] ** 2 / n_p - moment) / min(t + 1, 200)
        x = 0.3**2 * np.sqrt(N * np.log(N) / 200) * a[t] / np.sqrt(moment) / n_p**3
        w[i] *= np.exp(min(x, 1.0))
        w += w.sum() / 200 / N


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("size", [1, 7])
def test_p_is_what_numpy_makes_of_the_same_draws(name, size):
    sampler, p_of = RULES[name]
    rng = np.random.default_rng(3)
    norms2 = np.exp(2.0 * rng.standard_normal(N))
    sampling = sampler.start(N, horizon=700, seed=4)
    draws, p_drawn, a, seen = [], [], [], []
    for _ in range(100):
        seen.append(sampling.probabilities())
        i, p = sampling.draw(size)
        np.testing.assert_array_equal(p, seen[-1][i])
        draws.extend(i)
        p_drawn.extend(p)
        a.extend(norms2[i] * rng.exponential(size=size))
        sampling.update(i, a[-size:], p)
    expected = list(p_of(draws, p_drawn, a))[::size]
    np.testing.assert_allclose(seen, expected, rtol=1e-9)


def test_what_is_forgotten_can_be_found_again():
    """After 800 passes in which one half of the items counts, the other half does. Weights that only grew, at the rate
    of a long horizon, are far apart by then; those that faded are not, at the price of a larger variance before."""
    n, first, then = 50, 40_000, 500
    last, settled = {}, {}
    for sampler in (bg.Mabs(), bg.ForgettingMabs()):
        name, sampling = type(sampler).__name__, sampler.start(n, horizon=first + then, seed=1)
        heavy = np.arange(n) < n // 2
        for variances, a, draws in (
            (last, np.where(heavy, 1.0, 1e-4), first),
            (settled, np.where(heavy, 1e-4, 1.0), then),
        ):
            seen = []
            for _ in range(draws // 10):
                i, p = sampling.draw(10)
                sampling.update(i, a[i], p)
                seen.append(np.sum(a / sampling.probabilities()) / (n * a.sum()))
            assert max(seen) <= 1.0 / 0.4 * (1.0 + 1e-9)
            variances[name] = np.mean(seen)
    assert last["Mabs"] < last["ForgettingMabs"] < 0.9
    assert settled["ForgettingMabs"] < 1.05
    assert settled["Mabs"] > 2.0
