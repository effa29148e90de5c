"""MABS beside the paper: Algorithm 1 index for index, Lemma 1, theorem 1 and its corollaries by simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import banditgrad as bg
import reference


def run(sampling, a_of, steps):
    """`steps` single draws with feedback a_of(t); the indices, the feedback and all p^t."""
    draws, feedback, ps = [], [], []
    for t in range(steps):
        ps.append(sampling.probabilities())
        i, p = sampling.draw()
        assert p == ps[-1][i]
        draws.append(i)
        feedback.append(a_of(t)[i])
        sampling.update(i, feedback[-1], p)
    return draws, feedback, np.array(ps)


@pytest.mark.parametrize("mix", ["uniform", "array"])
def test_equal_to_algorithm_1_index_for_index(rng, mix):
    n, delta = 30, 2e-8
    a = np.exp(2.0 * rng.standard_normal(n))
    q = rng.dirichlet(np.ones(n)) + 0.01
    sampling = bg.Mabs(eta=0.4, delta=delta, mix="uniform" if mix == "uniform" else q).start(n, seed=1)
    # a few giants, so that the clip acts
    draws, feedback, ps = run(sampling, lambda t: a * (1e6 if t % 100 == 0 else 1e3), 2000)
    expected = reference.mabs(n, draws, feedback, 0.4, delta, None if mix == "uniform" else q / q.sum())
    np.testing.assert_allclose(ps, list(expected), rtol=1e-10)
    assert sampling.statistics()["clipped"] > 0
    assert ps[-1].max() > 2.0 / n


def paper_delta(n, T, eta, mean_a2, c=1.0):
    return np.sqrt(eta**4 * np.log(n) / (T * n**5 * mean_a2)) / c


def test_delta_from_bounds_is_the_papers(rng):
    n, T = 40, 10_000
    bounds = rng.random(n)
    for c in (1.0, 3.0):
        by_bounds = bg.Mabs(delta="bound", relax=c).start(n, horizon=T, bounds=bounds, seed=0)
        by_number = bg.Mabs(delta=paper_delta(n, T, 0.4, np.mean(bounds**2), c)).start(n, seed=0)
        for sampling in (by_bounds, by_number):
            run(sampling, lambda t: bounds * n**2, 300)
        np.testing.assert_allclose(by_bounds.probabilities(), by_number.probabilities(), rtol=1e-12)


def test_delta_of_mabs2_is_the_corrected_one(rng):
    """δ = √(η⁴ ln n / (T (Σ a^(2/5))⁵)): the printed formula has T in the numerator."""
    n, T = 40, 10_000
    bounds = rng.random(n) + 0.1
    roots = bounds**0.4
    delta = np.sqrt(0.4**4 * np.log(n) / (T * roots.sum() ** 5))
    mabs2 = bg.Mabs(delta="bound", mix="bounds").start(n, horizon=T, bounds=bounds, seed=0)
    by_number = bg.Mabs(delta=delta, mix=roots).start(n, seed=0)
    np.testing.assert_allclose(mabs2.probabilities(), 0.6 / n + 0.4 * roots / roots.sum(), rtol=1e-12)
    for sampling in (mabs2, by_number):
        run(sampling, lambda t: bounds, 300)
    np.testing.assert_allclose(mabs2.probabilities(), by_number.probabilities(), rtol=1e-12)


def test_learned_scale_cancels_a_common_factor(rng):
    a = np.exp(rng.standard_normal(50))
    p = [
        run(bg.Mabs().start(50, horizon=2000, seed=3), lambda t, factor=factor: factor * a, 1000)[2][-1]
        for factor in (1.0, 2.0**40, 2.0**-40)
    ]
    np.testing.assert_allclose(p[1], p[0], rtol=1e-12)
    np.testing.assert_allclose(p[2], p[0], rtol=1e-12)


def test_learned_scale_comes_near_the_known_one(rng):
    """With constant a_i the estimate of mean(a²) is right to a few percent, so the δ is."""
    n, T = 100, 20_000
    a = np.exp(rng.standard_normal(n))
    learned = bg.Mabs().start(n, horizon=T, seed=0)
    known = bg.Mabs(delta="bound").start(n, horizon=T, bounds=a, seed=0)
    for sampling in (learned, known):
        for _ in range(T // 100):
            i, p = sampling.draw(100)
            sampling.update(i, a[i], p)
    np.testing.assert_allclose(learned.probabilities(), known.probabilities(), rtol=0.2)


def test_an_unknown_horizon_is_doubled():
    sampling = bg.Mabs().start(16, seed=0)
    rates = []
    for _ in range(10):
        i, p = sampling.draw(16)
        sampling.update(i, np.ones(16), p)
        rates.append(sampling.state.level[0])
    ratios = np.array(rates[1:]) / np.array(rates[:-1])
    assert set(np.round(ratios, 12)) == {1.0, round(np.sqrt(0.5), 12)}
    assert np.sum(ratios < 1.0) == 3  # at 32, 64 and 128 draws


def test_reset_every_sets_the_weights_back(rng):
    a = np.exp(2.0 * rng.standard_normal(20))
    sampling = bg.Mabs(reset_every=50).start(20, horizon=50, seed=0)
    _, _, ps = run(sampling, lambda t: a, 120)
    for t in range(120):
        even = np.allclose(ps[t], 1 / 20, rtol=1e-12)
        assert even == (t % 50 == 0)


# --- Lemma 1 ---------------------------------------------------------------------------------------------------------


@given(data=st.data(), n=st.integers(1, 8), zeta=st.floats(-2.0, 1.0))
def test_lemma_1(data, n, zeta):
    """(1-2ζ) V(p¹) - (1-ζ) V(p²) <= <p¹-p², ∇V(p¹)> + ζ <p², ∇V(p¹)>."""
    positive = st.floats(0.01, 1.0)
    a, p1, p2 = (np.array([data.draw(positive) for _ in range(n)]) for _ in range(3))
    p1, p2 = p1 / p1.sum(), p2 / p2.sum()
    gradient = -a / p1**2
    left = (1 - 2 * zeta) * np.sum(a / p1) - (1 - zeta) * np.sum(a / p2)
    right = (p1 - p2) @ gradient + zeta * p2 @ gradient
    assert left <= right + 1e-9 * max(1.0, abs(left), abs(right))


# --- Theorem 1 and its corollaries -----------------------------------------------------------------------------------


def required_horizon(bounds, c=1.0):
    n = len(bounds)
    return int(np.ceil(25 * n * np.log(n) * bounds.max() ** 2 / (4 * c**2 * np.mean(bounds**2))))


def simulate(sampler, bounds, T, seed):
    """MABS against a_i^t that drift below their bounds; Σ V_e(p^t), Σ V_e(p*), the sampling."""
    n = len(bounds)
    sampling = sampler.start(n, horizon=T, bounds=bounds, seed=seed)
    phase = np.random.default_rng(seed).uniform(0.0, 2 * np.pi, n)
    a = bounds * (0.6 + 0.4 * np.sin(phase + np.arange(T)[:, None] / T * 6.0))
    _, _, ps = run(sampling, lambda t: a[t], T)
    best = np.sqrt(a.sum(axis=0))
    best /= best.sum()
    return np.sum(a / ps), np.sum(a / best), sampling


@pytest.mark.parametrize("spread", [0.3, 1.0])
def test_theorem_1(spread):
    n = 12
    bounds = np.exp(spread * np.random.default_rng(2).standard_normal(n))
    T = required_horizon(bounds)
    runs = [simulate(bg.Mabs(delta="bound"), bounds, T, seed) for seed in range(5)]
    realised, optimal = np.mean([r[0] for r in runs]), np.mean([r[1] for r in runs])
    assert realised <= 3.0 * optimal + 50.0 * np.sqrt(n**5 * T * np.mean(bounds**2) * np.log(n))
    assert realised <= 1.5 * optimal  # far better than the theorem says
    assert all(r[2].statistics()["clipped"] == 0 for r in runs)  # what its condition on T is for


def test_corollary_a_smaller_delta_needs_a_shorter_run():
    """With δ/c the condition on T falls by c²; the bound is (75c/4 + 125/(4c)) √(n⁵ T mean(a²) ln n)."""
    n, c = 12, 2.0
    bounds = np.exp(np.random.default_rng(2).standard_normal(n))
    T = required_horizon(bounds, c)
    runs = [simulate(bg.Mabs(delta="bound", relax=c), bounds, T, seed) for seed in range(5)]
    realised, optimal = np.mean([r[0] for r in runs]), np.mean([r[1] for r in runs])
    factor = 75 * c / 4 + 125 / (4 * c)
    assert realised <= 3.0 * optimal + factor * np.sqrt(n**5 * T * np.mean(bounds**2) * np.log(n))
    assert realised <= 1.5 * optimal  # the bound is far away
    assert all(r[2].statistics()["clipped"] == 0 for r in runs)


def test_below_the_required_horizon_the_clip_acts():
    bounds = np.exp(np.random.default_rng(2).standard_normal(12))
    sampling = bg.Mabs(delta="bound").start(12, horizon=required_horizon(bounds) // 1000, bounds=bounds, seed=0)
    run(sampling, lambda t: bounds, 300)
    assert 0 < sampling.statistics()["clipped"] <= 300


def test_corollary_mabs2():
    n = 12
    bounds = np.exp(1.5 * np.random.default_rng(2).standard_normal(n))
    roots = bounds**0.4
    T = int(np.ceil(25 * n * np.log(n) * roots.mean() / (4 * roots.min())))
    runs = [simulate(bg.Mabs(delta="bound", mix="bounds"), bounds, T, seed) for seed in range(5)]
    realised, optimal = np.mean([r[0] for r in runs]), np.mean([r[1] for r in runs])
    assert realised <= 3.0 * optimal + 50.0 * np.sqrt(n**5 * T * roots.mean() ** 5 * np.log(n))
    assert realised <= 1.5 * optimal
