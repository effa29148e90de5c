"""The gradient noise scale: measured as the sums over all samples give it, and what the guard and the advice make of
it."""

import math

import numpy as np
import pytest
from runs import N, batches, loader_of, unlike_norms

pytest.importorskip("torch.nn", reason='PyTorch is not installed: pip install "banditgrad[torch]"')
import torch

import banditgrad as bg
from banditgrad.torch import Advice, BanditBatchSampler, NoiseMeter

BATCH = 8


class Linear:
    """Least squares at a fixed w, whose sample gradients are known: an optimiser with a step size of 0 stays there."""

    def __init__(self, shift, spread=1.0):
        rng = np.random.default_rng(0)
        x = rng.standard_normal((N, 4)) * np.exp(spread * rng.standard_normal((N, 1)))
        self.x, self.y = torch.tensor(x), torch.tensor(x @ np.ones(4) + rng.standard_normal(N))
        self.w = torch.full((4,), 1.0 + shift, dtype=torch.float64, requires_grad=True)
        self.optimiser = torch.optim.SGD([self.w], 0.0)
        self.gradients = ((self.x @ self.w - self.y)[:, None] * self.x).detach()

    def noise_scale(self, p=None):
        """tr Σ / |G|² of 1/(n p) times a sample's gradient, by the sums over all samples."""
        p = np.full(N, 1.0 / N) if p is None else p
        signal = float(self.gradients.mean(0).square().sum())
        second = float((self.gradients.square().sum(1).numpy() / (N**2 * p)).sum())
        return second / signal - 1.0

    def norms(self, idx):
        return self.gradients[idx].norm(dim=1)

    def step(self, idx, weights):
        self.optimiser.zero_grad()
        (0.5 * (self.x[idx] @ self.w - self.y[idx]) ** 2 * weights).mean().backward()
        self.optimiser.step()


def train(sampler, task, epochs):
    for _ in range(epochs):
        for batch in sampler:
            idx = torch.tensor(batch)
            task.step(idx, sampler.weights(idx))
            sampler.update(idx, task.norms(idx))


@pytest.mark.parametrize("shift", [0.5, 2.0])
def test_the_meter_measures_the_noise_scale(shift):
    task, rng = Linear(shift, spread=0.0), np.random.default_rng(1)
    meter = NoiseMeter(BATCH, every=2, memory=10_000)
    meter.watch(task.optimiser)
    for _ in range(6000):
        task.step(torch.from_numpy(rng.integers(0, N, BATCH)), 1.0)
    assert meter.noise_scale == pytest.approx(task.noise_scale(), rel=0.1)
    assert meter.advice().critical_batch_size == meter.noise_scale


def test_it_measures_two_steps_of_every_twenty_and_may_be_taken_off():
    task = Linear(1.0)
    meter = NoiseMeter(BATCH)
    handle = meter.watch(task.optimiser)
    for _ in range(82):
        task.step(torch.arange(BATCH), 1.0)
    assert meter.averages.count == 5
    assert meter.noise_scale == 0.0  # always the same batch
    again = NoiseMeter(BATCH)
    again.load_state_dict(meter.state_dict())
    assert (again.noise_scale, again.pairs.steps) == (0.0, 82)
    handle.remove()
    task.step(torch.arange(BATCH), 1.0)
    assert meter.pairs.steps == 82


def test_sparse_missing_and_infinite_gradients():
    table, unused = torch.nn.Embedding(5, 2, sparse=True), torch.nn.Parameter(torch.ones(1))
    meter = NoiseMeter(1, every=2)
    for scale in (1.0, 1.0, math.inf, 1.0):
        table.zero_grad()
        (scale * table(torch.tensor([1, 3])).sum()).backward()
        meter.step([table.weight, unused])
    assert meter.averages.count == 1
    assert (meter.averages.signal, meter.averages.noise) == (4.0, 0.0)


@pytest.mark.parametrize(("guard", "replacement"), [(True, False), (False, False), (False, True)])
def test_the_sampler_knows_both_noise_scales_whichever_way_batches_come(guard, replacement):
    task = Linear(1.5)
    guard = bg.torch.Guard(threshold=1e9) if guard else False
    rule = bg.RecentNorm(memory=0.0)
    sampler = BanditBatchSampler(N, BATCH, rule, seed=0, guard=guard, replacement=replacement)
    train(sampler, task, 20)
    sampler._stream.noise.memory = 10_000
    sampler.watch(task.optimiser, every=2)
    train(sampler, task, 200)
    advice = sampler.advice()
    assert sampler.statistics()["adaptive"] == (guard is False)
    assert advice.noise_scale == pytest.approx(task.noise_scale(), rel=0.25)
    assert advice.noise_scale_adaptive == pytest.approx(task.noise_scale(sampler.probabilities()), rel=0.25)
    assert advice.saving == pytest.approx(
        (BATCH + task.noise_scale()) / (BATCH + task.noise_scale(sampler.probabilities())), rel=0.2
    )


def test_the_guard_draws_from_p_only_where_noise_limits():
    """Batches that differ in their samples' norms by the same τ: near the minimum they are noise, far from it not."""
    ways, taus = [], []
    for shift, batch_size in ((0.0, 2), (30.0, 100)):
        task = Linear(shift)
        options = {"steps_per_epoch": 400, "guard": bg.torch.Guard(1.6)}
        sampler = BanditBatchSampler(N, batch_size, bg.RecentNorm(memory=0.0), seed=0, **options)
        sampler.watch(task.optimiser, every=2)
        train(sampler, task, 1)
        ways.append(sampler.statistics()["adaptive"])
        taus.append(sampler.statistics()["tau"])
    assert min(taus) > 1.5
    assert ways == [True, False]


def test_a_watched_run_resumes_with_the_same_measurements():
    def watched(seed):
        task = Linear(0.5)
        sampler = BanditBatchSampler(N, BATCH, bg.RecentNorm(), seed=seed)
        sampler.watch(task.optimiser, every=5)
        return sampler, task

    sampler, task = watched(0)
    train(sampler, task, 4)
    state = sampler.state_dict()
    train(sampler, task, 1)
    later = sampler.state_dict()  # the same copy, and an event log with measurements
    for saved, epochs in ((state, 3), (later, 2)):
        other, same_task = watched(1)
        other.load_state_dict(saved)
        train(other, same_task, epochs)
        again, last_task = watched(2)
        again.load_state_dict(later)
        train(again, last_task, 2)
        assert other.advice() == again.advice()
        assert other.advice().measured
        np.testing.assert_array_equal(other.probabilities(), again.probabilities())


@pytest.mark.parametrize(
    ("advice", "saving", "words"),
    [
        (Advice(256, 40.0, 19.5, 2.0), 1.07, r"noise scale 40 at batch 256: nothing to gain.*batch of 64 takes 1.4x"),
        (Advice(64, 640.0, 320.0, 2.0), 1.83, r"noise-limited, up to 1.8x fewer steps"),
        (Advice(64, 640.0, 620.0, 1.03), 1.03, r"no better than uniform"),
        (Advice(64, 60.0, 58.0, 1.03), 1.02, r"at batch 64: nothing to gain by sampling\.$"),
        (Advice(64, math.inf, math.inf, 3.0), 3.0, r"noise-limited, up to 3x"),
        (Advice(64, math.nan, math.nan, 3.0), 3.0, r"not measured"),
    ],
)
def test_advice_in_a_sentence(advice, saving, words):
    assert advice.saving == pytest.approx(saving, abs=0.01)
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(str(advice))
    assert advice.steps(advice.batch_size) == pytest.approx(1.0) or not advice.measured


def test_without_an_optimiser_tau_is_the_saving():
    sampler = BanditBatchSampler(N, 20, bg.RecentNorm(), seed=0)
    for _ in range(10):
        batches(sampler, loader_of(sampler), unlike_norms())
    assert not sampler.advice().measured
    assert sampler.advice().saving == sampler.statistics()["tau"] > 1.5
    assert sampler.statistics()["adaptive"]


def test_bad_input_is_refused_in_words():
    with pytest.raises(ValueError, match="batch_size"):
        NoiseMeter(0)
    with pytest.raises(ValueError, match="every"):
        NoiseMeter(8, every=1)
    with pytest.raises(TypeError, match="Optimizer, got list"):
        NoiseMeter(8).watch([])
    with pytest.raises(ValueError, match="accumulate"):
        BanditBatchSampler(N, 8).watch(Linear(1.0).optimiser, accumulate=0)
