"""Step sizes, and the length of a run, that go by what the sampler's batches are worth."""

import numpy as np
import pytest
from test_noise import Linear

pytest.importorskip("torch.nn", reason='PyTorch is not installed: pip install "banditgrad[torch]"')
import torch

import banditgrad as bg
from banditgrad.torch import BanditBatchSampler, GainSchedule, Guard

N, BATCH, STEPS = 200, 4, 400


def run(sampler, task, schedule, most=10**6):
    """Step sizes and gains, step by step, until the schedule is over."""
    rates, gains = [], []
    while not schedule.over and len(rates) < most:
        for batch in sampler:
            idx = torch.tensor(batch)
            rates.append(schedule.optimiser.param_groups[0]["lr"])
            task.step(idx, sampler.weights(idx))
            sampler.update(idx, task.norms(idx))
            schedule.step()
            gains.append(sampler.gain)
            if schedule.over or len(rates) == most:
                break
    return np.array(rates), np.array(gains)


def watched(optimiser, rate=1e-6, seed=0, **options):
    """So small a step size that gradients stay those of the start."""
    task = Linear(0.5)
    task.optimiser = optimiser([task.w], rate)
    sampler = BanditBatchSampler(N, BATCH, bg.RecentNorm(memory=0.0), seed=seed, **options)
    return sampler, task, GainSchedule(task.optimiser, sampler, STEPS)


@pytest.mark.parametrize(("optimiser", "power"), [(torch.optim.SGD, 1.0), (torch.optim.AdamW, 0.5)])
def test_a_run_is_worth_the_steps_that_it_was_asked_for(optimiser, power):
    sampler, task, schedule = watched(optimiser)
    rates, gains = run(sampler, task, schedule)
    assert gains[0] == 1.0
    assert gains[-1] > 1.5
    assert len(gains) < 0.8 * STEPS
    assert gains[:-1].sum() < STEPS <= gains.sum() + 1e-6
    left = 1.0 - np.cumsum(gains) / STEPS
    np.testing.assert_allclose(rates[1:], 1e-6 * gains[:-1] ** power * left[:-1], rtol=1e-6)
    assert schedule.optimiser.param_groups[0]["lr"] == 0.0


def test_while_batches_are_shuffled_it_is_a_plain_schedule():
    sampler, task, schedule = watched(torch.optim.SGD, guard=Guard(threshold=1e9))
    rates, gains = run(sampler, task, schedule)
    assert np.all(gains == 1.0)
    np.testing.assert_allclose(rates, 1e-6 * (1.0 - np.arange(STEPS) / STEPS), rtol=1e-9)


def test_a_stopped_run_goes_on_with_the_same_step_sizes():
    sampler, task, schedule = watched(torch.optim.SGD)
    run(sampler, task, schedule, most=110)
    states, w = (sampler.state_dict(), schedule.state_dict()), task.w.detach().clone()
    rates, gains = run(sampler, task, schedule)
    again, other_task, resumed = watched(torch.optim.SGD, seed=1)
    resumed.load_state_dict(states[1])
    again.load_state_dict(states[0])
    other_task.w.data.copy_(w)
    same_rates, same_gains = run(again, other_task, resumed)
    np.testing.assert_array_equal(same_gains, gains)
    np.testing.assert_array_equal(same_rates, rates)
    assert gains[0] > 1.2


def test_an_optimiser_that_is_watched_already_is_left_alone():
    task = Linear(0.5)
    sampler = BanditBatchSampler(N, BATCH, seed=0)
    sampler.watch(task.optimiser, every=5)
    GainSchedule(task.optimiser, sampler, STEPS, shape=lambda share: 0.25)
    assert sampler._pairs.every == 5
    assert len(task.optimiser._optimizer_step_pre_hooks) == 1


def test_bad_input_is_refused_in_words():
    task = Linear(0.5)
    with pytest.raises(ValueError, match="steps to be a whole number of at least 1, got 0"):
        GainSchedule(task.optimiser, BanditBatchSampler(N, BATCH, seed=0), 0)
