"""The guard: it measures τ rightly, shuffles while adaptive sampling does not pay, and rescues such a problem."""

import numpy as np
import pytest
from runs import N, batches, equal_norms, loader_of, unlike_norms

pytest.importorskip("torch.nn", reason='PyTorch is not installed: pip install "banditgrad[torch]"')
import torch

import banditgrad as bg
from banditgrad.torch import BanditBatchSampler, Guard
from banditgrad.torch.guard import VarianceRatio

NEVER, ALWAYS = Guard(threshold=1e9), False


def exact_tau(sampler, norms):
    a, p = norms.numpy() ** 2, sampler.sampling.probabilities()
    return a.mean() / (a / p).sum() * sampler.n**2


@pytest.mark.parametrize("guard", [NEVER, ALWAYS], ids=["shuffling", "drawing"])
@pytest.mark.parametrize("rule", [bg.Mabs(), bg.Vrb(), bg.RecentNorm()], ids=["Mabs", "Vrb", "RecentNorm"])
def test_tau_is_that_of_p_whichever_way_batches_come(rule, guard):
    """p learns from both kinds of batches, and the measured τ agrees with the sums over all samples."""
    sampler = BanditBatchSampler(N, 20, rule, seed=0, guard=guard)
    norms = unlike_norms()
    for _ in range(60):
        batches(sampler, loader_of(sampler), norms)
    assert sampler.statistics()["tau"] == pytest.approx(exact_tau(sampler, norms), rel=0.2)
    assert exact_tau(sampler, norms) > 2.0
    assert sampler.statistics()["adaptive"] == (guard is ALWAYS)


def test_learning_while_shuffling_ends_where_learning_while_drawing_does():
    taus = []
    for guard in (NEVER, ALWAYS):
        sampler = BanditBatchSampler(N, 20, bg.Mabs(), seed=0, guard=guard)
        for _ in range(200):
            batches(sampler, loader_of(sampler), unlike_norms())
        taus.append(exact_tau(sampler, unlike_norms()))
    best = float((unlike_norms() ** 2).mean() / unlike_norms().mean() ** 2)
    assert taus[0] == pytest.approx(taus[1], rel=0.1)
    assert 1.0 < taus[0] <= best


def test_the_variance_ratio_forgets():
    ratio = VarianceRatio(memory=10)
    assert ratio.tau == 1.0
    for tau in (2.0, 0.5):
        for _ in range(100):
            ratio.observe(tau, 1.0)
        assert ratio.tau == pytest.approx(tau, rel=1e-3)


def test_while_norms_are_equal_every_pass_visits_every_sample_once():
    sampler = BanditBatchSampler(N, 32, seed=0)
    passes = [batches(sampler, loader_of(sampler), equal_norms()) for _ in range(4)]
    for one in passes:
        assert sorted(i for idx, _ in one for i in idx) == list(range(N))
        assert all(w == 1.0 for _, weights in one for w in weights)
    assert passes[0] != passes[1]
    assert 0.8 < sampler.statistics()["tau"] < 1.1


def test_it_turns_adaptive_when_norms_come_to_differ_and_back():
    sampler = BanditBatchSampler(N, 20, bg.RecentNorm(), seed=0, guard=Guard(memory=20))
    ways = []
    for norms in (equal_norms(), unlike_norms(), equal_norms()):
        for _ in range(15):
            batches(sampler, loader_of(sampler), norms)
        ways.append(sampler.statistics()["adaptive"])
    assert ways == [False, True, False]


@pytest.mark.parametrize("size", [7, 200, 450])
def test_shuffled_batches_may_be_of_any_size(size):
    sampler = BanditBatchSampler(N, size, steps_per_epoch=8, seed=0)
    drawn = [i for batch in sampler for i in batch]
    for start in range(0, len(drawn) - N + 1, N):
        assert sorted(drawn[start : start + N]) == list(range(N))


def test_the_guard_rescues_a_homogeneous_problem():
    """Least squares on rows of one length, noisy targets: nothing to gain by importance, much by visiting each row
    once per pass. Guarded MABS ends where shuffling does; unguarded and with replacement, it stays several times
    further away, and without replacement a little."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((N, 5))
    x = torch.tensor(x / np.linalg.norm(x, axis=1, keepdims=True) * 5**0.5)
    y = torch.tensor(x.numpy() @ rng.standard_normal(5) + rng.choice([-1.0, 1.0], N))
    best = torch.linalg.lstsq(x, y[:, None]).solution[:, 0]

    def distance(**options):
        sampler = BanditBatchSampler(N, 10, bg.Mabs(), seed=1, **options)
        w, ends = torch.zeros(5, dtype=torch.float64), []
        for _ in range(60):
            for batch in sampler:
                idx = torch.tensor(batch)
                residual = x[idx] @ w - y[idx]
                w = w - 0.05 * (sampler.weights(idx) * residual) @ x[idx] / len(idx)
                sampler.update(idx, residual.abs() * x[idx].norm(dim=1))
            ends.append(float((w - best).norm()))
        return np.mean(ends[30:])

    guarded, shuffled = distance(), distance(guard=NEVER)
    assert guarded == pytest.approx(shuffled, rel=1e-12)
    assert guarded < 0.5 * distance(guard=False, replacement=True)
    assert distance(guard=False) < 1.3 * shuffled


def test_bad_guards_are_refused():
    with pytest.raises(ValueError, match="threshold"):
        Guard(threshold=0.0)
    with pytest.raises(ValueError, match="memory"):
        Guard(memory=0)
