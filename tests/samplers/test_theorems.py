"""What is proven of the samplers, or defines them, held to by simulation and enumeration."""

import itertools

import numpy as np
import pytest

import banditgrad as bg
from banditgrad.samplers import safe_bounds
from iterates import last_iterate

N = 40


def simulate(sampler, a, seed, size=4):
    """Σ_t V_e(p^t) over the rows of a: the feedback that each draw would have had; and the p^t."""
    sampling = sampler.start(a.shape[1], seed=seed)
    variances, ps = [], []
    for rows in np.array_split(a, len(a) // size):
        p = sampling.probabilities()
        i, p_i = sampling.draw(len(rows))
        sampling.update(i, rows[np.arange(len(rows)), i], p_i)
        variances.append((rows / p).sum(axis=1))
        ps.append(p)
    return np.concatenate(variances), np.array(ps)


def fixed(rng, T):
    return np.tile(np.exp(1.5 * rng.standard_normal(N)), (T, 1))


def drifting(rng, T):
    """Every norm turns slowly, each at its own speed."""
    phase, speed = rng.uniform(0.0, 2.0 * np.pi, N), rng.uniform(0.2, 2.0, N)
    return np.exp(2.0 * np.sin(phase + speed * np.arange(T)[:, None] * 2.0 * np.pi / T))


def switching(rng, T):
    """One item in eight counts, and every now and then it is others."""
    heavy = np.repeat([rng.permutation(N) < N // 8 for _ in range(5)], T // 5, axis=0)
    return np.where(heavy, 1.0, 1e-4)


def random(rng, T):
    return rng.exponential(size=(T, N)) ** 2


def rising_where_least_expected(rng, T):
    """A new item becomes the heaviest in every stretch; it was the lightest before."""
    a = np.full((T, N), 1e-3)
    for k, rows in enumerate(np.array_split(np.arange(T), 20)):
        a[rows, (7 * k) % N] = 10.0
    return a


SEQUENCES = (fixed, drifting, switching, random, rising_where_least_expected)


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize(
    ("sampler", "factor"), [(bg.Osmd(), 1.25 / 0.4), (bg.AdaOsmd(), 1.25 / 0.4), (bg.Tracking(), 5.0)]
)
def test_never_worse_than_uniform_by_more_than_the_stated_factor(sampler, factor, sequence, rng):
    a = sequence(rng, 4000)
    variances, ps = simulate(sampler, a, seed=0)
    assert (variances <= factor * N * a.sum(axis=1) * (1.0 + 1e-9)).all()
    assert ps.min() >= 1.0 / (factor * N) * (1.0 - 1e-9)


@pytest.mark.parametrize("sequence", [fixed, switching, random])
def test_mirror_descent_has_the_regret_of_its_theorem(sequence, rng):
    """E Σ V_e(p^t) - Σ V_e(p) <= 2 √(T n⁵ mean(a²) ln(n/α)) / α² for every fixed p with p >= α/n."""
    T, alpha = 20_000, 0.4
    a = sequence(rng, T)
    total = np.mean([simulate(bg.Osmd(alpha), a, seed)[0].sum() for seed in range(3)])
    norms = np.sqrt(a.sum(axis=0))
    best = alpha / N + (1.0 - alpha) * norms / norms.sum()
    allowed = 2.0 * np.sqrt(T * float(N) ** 5 * np.mean(a**2) * np.log(N / alpha)) / alpha**2
    assert total - (a / best).sum() <= allowed
    assert total < 0.9 * N * a.sum() or sequence is random


def test_the_vote_is_not_far_behind_the_best_rate(rng):
    a = switching(rng, 20_000)
    rates = [simulate(bg.Osmd(rate=4.0**e), a, seed=0)[0].sum() for e in range(5)]
    assert simulate(bg.AdaOsmd(), a, seed=0)[0].sum() <= 1.15 * min(rates)
    assert max(rates) > 1.3 * min(rates)  # there was something to choose


def test_avare_draws_from_the_best_p_above_its_floor(rng):
    """After a renewal, p minimises Σ ĝ²/p among p >= ε: the multiplier ĝ²/p² is the same for all above the floor, and
    less at the floor."""
    a, sampling = np.exp(3.0 * rng.standard_normal(N)), bg.Avare(alpha=0.5).start(N, seed=0)
    norms = sampling.state.norms
    for _ in range(2000):
        i, p = sampling.draw(1)
        sampling.update(i, a[i], p)
        level = sampling.state.level[0]
        if level["updates"] > N and level["renew_at"] == level["updates"] + N:  # just renewed
            p = sampling.probabilities()
            assert p.min() >= level["floor"] * (1.0 - 1e-12)
            above = p > level["floor"] * (1.0 + 1e-9)
            multipliers = (norms / p) ** 2
            np.testing.assert_allclose(multipliers[above], multipliers[above][0], rtol=1e-9)
            assert (multipliers[~above] <= multipliers[above][0] * (1.0 + 1e-9)).all()
    assert 0 < above.sum() < N
    assert level["floor"] < 0.4 / N


def worst_case(p, lower, upper):
    """The largest Σ (c²/p) / Σ c² over the box, which is at a corner."""
    corners = np.array(list(itertools.product(*zip(lower, upper, strict=True)))) ** 2
    return np.max(corners @ (1.0 / p) / corners.sum(axis=1))


@bg.kernel
def safest(lower, upper):
    safe_bounds.safest(lower, upper)


def test_safe_bounds_are_best_in_the_worst_case(rng):
    for _ in range(20):
        lower = rng.exponential(size=6)
        upper = lower + rng.exponential(size=6) * rng.uniform(0.0, 3.0)
        c = lower.copy()
        safest(c, upper)
        p = c / c.sum()
        mine = worst_case(p, lower, upper)
        assert mine == pytest.approx(c.sum() ** 2 / (c @ c))
        assert mine <= 6.0 * (1.0 + 1e-9)  # what uniform sampling has
        for other in rng.dirichlet(np.ones(6), 200):
            assert mine <= worst_case(0.9 * p + 0.1 * other, lower, upper) * (1.0 + 1e-9)


def test_safe_bounds_hold_along_a_run_of_sgd(small_data):
    """With the step that the solver has, every gradient norm is between its bounds whenever these are drawn up."""
    X, y = small_data
    problem, step = bg.Problem(X, y), 0.02
    n = len(y)
    sampling = bg.SafeBounds(step_size=step).start(
        n, seed=0, smoothness=problem.smoothness, bounds=(problem.gradient_bounds / n) ** 2
    )
    w, path, looks, tight = np.zeros(X.shape[1]), 0.0, 0, []
    for t in range(1, 40 * n):
        (i,), (p,) = sampling.draw(1)
        norms = problem.gradient_norms(w) / n
        sampling.update([i], [norms[i] ** 2], [p])
        path += norms[i] / p
        assert sampling.state.path[0]["length"] == pytest.approx(path)
        w = last_iterate(problem, bg.Sgd(step), bg.Replay([i], sampling.probabilities() * 0 + p), passes=1 / n, w0=w)
        if t % (n // 8) == 0 and t > 5 * n:
            state, seen = sampling.state, sampling.state.seen
            change = state.lipschitz * step * (path - seen["at"])
            norms = problem.gradient_norms(w) / n
            assert (norms >= seen["norm"] - change - 1e-12)[seen["norm"] >= 0.0].all()
            assert (norms <= seen["norm"] + change + 1e-12)[seen["norm"] >= 0.0].all()
            tight.append(np.median(change / state.bounds.max()))
            looks += 1
    assert looks > 100
    assert min(tight) < 0.2  # they say something


@pytest.mark.parametrize("K", [3.0, 120.0])
def test_independent_batches(K, rng):
    """Inclusions have the stated probabilities and are uncorrelated, the estimate is unbiased, its variance the stated
    one, and less than that of as many draws with replacement where these would meet items again."""
    g = np.exp(rng.standard_normal(N))
    sampling, noise = bg.Importance(np.sqrt(g) + 0.1).start(N, seed=0), np.random.default_rng(1)
    pi = -np.expm1(-K * sampling.probabilities())
    rounds, included, estimates = 30_000, np.zeros((30_000, N), bool), []
    for k in range(rounds):
        i, told = bg.draw_independent(sampling, K, noise)
        np.testing.assert_allclose(told, pi[i])
        included[k, i] = True
        estimates.append((g[i] / told).sum())
    error = np.sqrt(pi * (1.0 - pi) / rounds)
    assert (abs(included.mean(axis=0) - pi) <= 5.0 * error).all()
    correlations = np.corrcoef(included.T.astype(float))
    assert abs(correlations - np.eye(N)).max() <= 5.0 / np.sqrt(rounds)
    variance = np.sum((1.0 - pi) * g**2 / pi)
    assert np.mean(estimates) == pytest.approx(g.sum(), abs=5.0 * np.sqrt(variance / rounds))
    assert np.var(estimates) == pytest.approx(variance, rel=0.1)
    if K == 120.0:  # most items are in most batches
        p = sampling.probabilities()
        with_replacement = (np.sum(g**2 / p) - g.sum() ** 2) / pi.sum()
        assert variance < with_replacement


def test_k_vib_learns_as_from_draws_with_replacement(rng):
    """`Vrb` fed with independent batches and π / K has the weights that it is meant to have in the mean."""
    a, rounds = np.exp(rng.standard_normal(N)), 400
    sampling, noise = bg.Vrb().start(N, seed=0), np.random.default_rng(1)
    for _ in range(rounds):
        i, pi = bg.draw_independent(sampling, 10.0, noise)
        sampling.update(i, a[i], pi / 10.0)
    best = np.sqrt(a) / np.sqrt(a).sum()
    p = (sampling.probabilities() - 0.4 / N) / 0.6
    assert np.abs(p - best).sum() < 0.15


def estimates(sampling):
    """ĝ of all items, θ and the unit of a `Tracking`."""
    entries, slopes = sampling.state.weighted.entries, sampling.state.slopes[0]
    g = np.empty(len(entries))
    g[entries["id"]] = np.ldexp(entries["m"], entries["e"])
    return g, float(slopes["share"]), float(slopes["level"])


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_tracking_has_the_variance_of_its_lemma(sequence, rng):
    """V_e(p) <= λ² ((Σ ĝ)² / (1 - θ) + n Σ Δ² / θ) at every draw; at the best θ >= 0.2 it is
    <= λ² (Σ ĝ + √(n Σ Δ²))² / 0.8."""
    sampling = bg.Tracking().start(N, seed=0)
    for t, row in enumerate(sequence(rng, 3000)):
        if t >= 100 and t % 3 == 0:
            g, theta, level = estimates(sampling)
            norms = np.sqrt(row) / level
            wrong = N * np.sum((norms - g) ** 2)
            variance = np.sum(row / sampling.probabilities()) / level**2
            if theta < 1.0:
                assert variance <= (g.sum() ** 2 / (1.0 - theta) + wrong / theta) * (1.0 + 1e-9)
            best = max(np.sqrt(wrong) / (g.sum() + np.sqrt(wrong)), 0.2)
            p = (1.0 - best) * g / g.sum() + best / N
            assert np.sum(norms**2 / p) <= (g.sum() + np.sqrt(wrong)) ** 2 / 0.8 * (1.0 + 1e-9)
        i, p = sampling.draw(1)
        sampling.update(i, row[i], p)


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_tracking_mixes_about_as_well_as_any_fixed_share(sequence, rng):
    """In every bin Σ h_t (θ_t - θ) <= 0.8 √(2 Σ h² of it and the one before) for all θ; and in the mean over runs
    Σ V_e(θ_t) / (n λ)² is at most so much above that of every fixed θ, of uniform sampling as well."""
    bins, length, runs = 4, 512, 4
    shares, a = np.linspace(0.2, 1.0, 9), sequence(rng, bins * length)
    excess, allowed = np.zeros((bins, shares.size)), np.zeros(bins)
    for seed in range(runs):
        sampling, before = bg.Tracking().start(N, seed=seed), 0.0
        for b in range(bins):
            regrets, squares = np.zeros(shares.size), 0.0
            for row in a[b * length : (b + 1) * length]:
                g, theta, level = estimates(sampling)
                i, p = sampling.draw(1)
                if level > 0.0:
                    s, norms2 = N * g / g.sum(), row / level**2
                    mixed = shares[:, None] + (1.0 - shares[:, None]) * s
                    variances = (norms2 / mixed).mean(axis=1)
                    mine = theta + (1.0 - theta) * s
                    h = norms2[i[0]] * (s[i[0]] - 1.0) / (N * p[0] * mine[i[0]] ** 2)
                    regrets += h * (theta - shares)
                    squares += h**2
                    excess[b] += ((norms2 / mine).mean() - variances) / runs
                sampling.update(i, row[i], p)
            bound = 0.8 * np.sqrt(2.0 * (before + squares))
            assert (regrets <= bound * (1.0 + 1e-9)).all()
            allowed[b] += bound / runs
            before = squares
    assert (excess <= allowed[:, None]).all()


def test_tracking_follows_norms_that_change_slowly(rng):
    """E √V_e <= √1.25 (Σ g + 2 √8 (n/0.2) √n ‖v‖) for norms that change by at most v_i a draw: closer to the best p of
    every moment than uniform sampling, or than any fixed p, can be."""
    T = 200_000
    a = drifting(rng, T)
    norms = np.sqrt(a)
    v = np.abs(np.diff(norms, axis=0)).max(axis=0)
    allowed = np.sqrt(1.25) * (norms.sum(axis=1) + 2.0 * np.sqrt(8.0) * N / 0.2 * np.sqrt(N) * np.linalg.norm(v))
    variances, _ = simulate(bg.Tracking(), a, seed=0, size=50)
    after = slice(T // 20, None)
    assert np.sqrt(variances)[after].mean() <= allowed[after].mean()
    assert (allowed[after] ** 2).mean() < N * a[after].sum(axis=1).mean()
    fixed_p = np.sqrt(a.sum(axis=0))
    assert variances[after].mean() < (a[after] / (fixed_p / fixed_p.sum())).sum(axis=1).mean()


@pytest.mark.parametrize("sequence", [fixed, drifting, switching])
def test_tracking_adapts_faster_than_bandits_that_remember_all(sequence, rng):
    a = sequence(rng, 20_000)
    least = (np.sqrt(a).sum(axis=1) ** 2).mean()
    excess = {
        type(sampler).__name__: np.mean([simulate(sampler, a, seed)[0].mean() for seed in range(3)]) / least
        for sampler in (bg.Tracking(), bg.RecentNorm(), bg.Mabs(), bg.Vrb(), bg.Osmd())
    }
    mine = excess.pop("Tracking")
    assert mine <= 1.02 * min(excess.values()), (mine, excess)
    if sequence is not fixed:
        assert mine - 1.0 < 0.5 * (excess["Mabs"] - 1.0)
