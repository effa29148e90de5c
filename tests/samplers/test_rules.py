"""Adaptive rules beside plain NumPy: the same p at every draw. A new rule is one row in RULES."""

import numpy as np
import pytest

import banditgrad as bg

N = 60
SMOOTHNESS = np.linspace(0.5, 4.0, N)
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


def projected(w, floor):
    """The point of {p >= floor, Σ p = 1} that is closest to w in relative entropy; by sorting."""
    least = np.sort(w)
    for below in range(w.size):
        c = (1.0 - below * floor) / least[below:].sum()
        if c * least[below] > floor:
            break
    return np.maximum(floor, c * w), c


def descend(w, i, n_q, n_p, a, moment, t, alpha, rate):
    """A step of mirror descent on a_i / p_i, at w, of a draw with n p_i; projected once Σ w is far from 1."""
    x = rate * alpha**2 * np.sqrt(N * np.log(N / alpha) / max(t, N)) * a / np.sqrt(moment) / (n_q**2 * n_p)
    w[i] *= np.exp(min(x, 1.0))
    return projected(w, alpha / N)[0] if w.sum() > 1.25 else w


@rule(bg.Osmd(alpha=0.3, rate=4.0))
def osmd(draws, p_drawn, a):
    w, moment = np.full(N, 1.0 / N), 0.0
    for t, i in enumerate(draws):
        yield w / w.sum()
        n_p = N * p_drawn[t]
        moment += (a[t] ** 2 / n_p - moment) / min(t + 1, N)
        w = descend(w, i, n_p, n_p, a[t], moment, t + 1, 0.3, 4.0)


@rule(bg.AdaOsmd(alpha=0.2))
def ada_osmd(draws, p_drawn, a):
    experts, moment, losses, spread, theta = np.full((5, N), 1.0 / N), 0.0, np.zeros(5), 0.0, np.full(5, 0.2)
    for t, i in enumerate(draws):
        p = experts / experts.sum(axis=1, keepdims=True)
        yield theta @ p
        n_p = N * p_drawn[t]
        moment += (a[t] ** 2 / n_p - moment) / min(t + 1, N)
        loss = a[t] / np.sqrt(moment) / (N * p[:, i] * n_p)
        losses += loss
        spread += theta @ loss**2
        theta = np.exp(-np.sqrt(np.log(5) / spread) * (losses - losses.min()))
        theta /= theta.sum()
        for e in range(5):
            experts[e] = descend(experts[e], i, N * p[e, i], n_p, a[t], moment, t + 1, 0.2, 4.0**e)


@rule(bg.Avare(alpha=0.6))
def avare(draws, p_drawn, a):
    w, norms, floor, c, unit, updates, renew_at = np.full(N, 1.0 / N), np.ones(N), 0.6 / N, 1.0 / N, 0.0, 0, N
    for t, i in enumerate(draws):
        yield w / w.sum()
        if t < int(np.sqrt(N)) + 16:
            unit += (a[t] / (N * p_drawn[t]) - unit) / (t + 1)
            continue
        norms[i] = np.sqrt(a[t] / unit)
        w[i] = max(floor, c * norms[i])
        updates += 1
        if updates >= renew_at or not 0.8 <= w.sum() <= 1.25:
            floor, renew_at = 0.6 / N * (1.0 + updates / N) ** (-1 / 3), updates + N
            w, c = projected(norms, floor)


def most_even(lower, upper):
    """The point of the box with the largest Σ c / √Σ c²; by bisection."""
    low, high = 0.0, np.where(np.isfinite(upper), upper, lower).max()
    for _ in range(200):
        m = 0.5 * (low + high)
        c = np.clip(m, lower, upper)
        low, high = (m, high) if np.sum(c * (c - m)) > 0.0 else (low, m)
    return np.clip(m, lower, upper)


@rule(bg.SafeBounds(step_size=0.002, theta=0.2))
def safe_bounds(draws, p_drawn, a):
    w, norms, seen, path = np.ones(N), np.full(N, np.nan), np.zeros(N), 0.0
    for t, i in enumerate(draws):
        yield mixed(w, 0.2)
        norms[i], seen[i] = np.sqrt(a[t]), path
        path += np.sqrt(a[t]) / p_drawn[t]
        if (t + 1) % (N // 8) == 0:
            change = SMOOTHNESS / N * 0.002 * (path - seen)
            lower = np.where(np.isnan(norms), 0.0, np.maximum(norms - change, 0.0))
            w = most_even(lower, np.where(np.isnan(norms), np.inf, norms + change))


@rule(bg.Tracking())
def tracking(draws, p_drawn, a):
    w, level, theta, before, here = np.ones(N), 0.0, 0.5, 0.0, 0.0
    for t, i in enumerate(draws):
        yield mixed(w, theta)
        n_p, norm = N * p_drawn[t], np.sqrt(a[t])
        if t > 0:
            g, s = norm / level, N * w[i] / w.sum()
            h = g**2 * (s - 1.0) / (n_p * ((1.0 - theta) * s + theta) ** 2)
            if t % 512 == 0:
                before, here = here, 0.0
            here += h**2
            if here > 0.0:
                theta = np.clip(theta - 0.8 * h / np.sqrt(2.0 * (before + here)), 0.2, 1.0)
            w[i] = np.sqrt(0.5 * w[i] ** 2 + 0.5 * g**2)
        level += (norm / n_p - level) / min(t + 1, 512)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("size", [1, 7])
def test_p_is_what_numpy_makes_of_the_same_draws(name, size):
    sampler, p_of = RULES[name]
    rng = np.random.default_rng(3)
    norms2 = np.exp(2.0 * rng.standard_normal(N))
    sampling = sampler.start(N, horizon=700, seed=4, smoothness=SMOOTHNESS)
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
