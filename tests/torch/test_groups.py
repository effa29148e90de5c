"""Groups as arms: how often they come, that the expected gradient is that of the mixture, and what p becomes."""

import itertools

import numpy as np
import pytest
from runs import loader_of

pytest.importorskip("torch.nn", reason='PyTorch is not installed: pip install "banditgrad[torch]"')
import torch

import banditgrad as bg
from banditgrad.torch import GroupBatchSampler, Guard

SIZES = np.array([120, 50, 20, 8, 2])
LABELS = np.random.default_rng(0).permutation(np.repeat(["a", "b", "c", "d", "e"], SIZES))
GROUP = np.searchsorted(["a", "b", "c", "d", "e"], LABELS)
N, GROUPS = SIZES.sum(), SIZES.size
SPREAD = np.array([0.1, 0.1, 3.0, 1.0, 5.0])  # of the norms of each group
NORMS = torch.from_numpy(SPREAD[GROUP] * np.exp(0.3 * np.random.default_rng(1).standard_normal(N)))
MIXTURE = {"a": 1.0, "b": 4.0, "c": 2.0, "d": 2.0, "e": 1.0}
NEVER = Guard(threshold=1e9)


def sampler_of(**options):
    return GroupBatchSampler(LABELS, 20, **{"seed": 0, **options})


def epoch(sampler, norms=NORMS):
    """Indices and weights of an epoch's batches, each with feedback at once."""
    seen = []
    for batch in sampler:
        idx = torch.tensor(batch)
        seen.append((idx.numpy(), sampler.weights(idx).double().numpy()))
        sampler.update(idx, norms[idx])
    return seen


def second_moment(p, q, norms=NORMS):
    """V_p = Σ q_g² (mean squared norm of g) / p_g, of draws that are independent."""
    a = np.array([(norms.numpy()[g == GROUP] ** 2).mean() for g in range(GROUPS)])
    return float((q**2 * a / p).sum()), q * np.sqrt(a) / (q * np.sqrt(a)).sum()


def test_a_batch_is_allocated_as_p_says_up_to_rounding():
    sampler = sampler_of(guard=False)
    for _ in range(3):
        for batch in sampler:
            counts = np.bincount(GROUP[batch], minlength=GROUPS)
            expected = 20 * sampler.probabilities()
            assert (counts >= np.floor(expected - 1e-9)).all()
            assert (counts <= np.ceil(expected + 1e-9)).all()
            sampler.update(batch, NORMS[batch])


def test_each_group_is_dealt_in_passes_without_replacement():
    sampler = sampler_of(guard=False)
    dealt = np.concatenate([i for _ in range(8) for i, _ in epoch(sampler)])
    for g, size in enumerate(SIZES):
        members, own = set(np.flatnonzero(g == GROUP)), dealt[GROUP[dealt] == g]
        for start in range(0, own.size - size + 1, size):
            assert set(own[start : start + size]) == members
    orders = dealt[GROUP[dealt] == 3]
    assert not (orders[:8] == orders[8:16]).all()


def test_from_the_mixture_an_epoch_is_a_stratified_shuffle():
    """Group sizes as the mixture: weights are 1, and an epoch has each group's size, up to the batches' rounding."""
    sampler = sampler_of(guard=NEVER)
    for _ in range(5):
        seen = epoch(sampler)
        assert all((w == 1.0).all() for _, w in seen)
        counts = np.bincount(GROUP[np.concatenate([i for i, _ in seen])], minlength=GROUPS)
        assert (counts >= sum(np.floor(i.size * SIZES / N) for i, _ in seen)).all()
        assert (counts <= sum(np.ceil(i.size * SIZES / N) for i, _ in seen)).all()


@pytest.mark.parametrize("size", [1, 3, 7])
def test_the_allocation_is_unbiased(size):
    """Every place of the batch has group g with probability p_g, and every member of it is as likely."""
    sampler = sampler_of(guard=NEVER, mixture=MIXTURE, steps_per_epoch=1)
    source, draws = sampler._stream.source, 30_000
    drawn = np.stack([source.draw(size, adaptive=False).i for _ in range(draws)])
    q = sampler.mixture
    for place in drawn.T[[0, -1]]:
        seen = np.bincount(GROUP[place], minlength=GROUPS) / draws
        assert np.abs((seen - q) / np.sqrt(q / draws)).max() < 4.5
    counts = np.bincount(drawn.ravel(), minlength=N)
    for g in range(GROUPS):
        assert np.ptp(counts[g == GROUP]) <= 1


@pytest.mark.parametrize("one_group", [False, True])
@pytest.mark.parametrize("rule", [bg.Mabs(), bg.Vrb(), bg.RecentNorm(), None], ids=["Mabs", "Vrb", "RecentNorm", "own"])
def test_the_expected_gradient_is_that_of_the_mixture(rule, one_group):
    """With p learned while values are averaged, for a mixture that is not that of the samples."""
    values = np.random.default_rng(5).standard_normal(N) + 2.0 * GROUP
    sampler = sampler_of(sampler=rule, guard=False, mixture=MIXTURE, one_group=one_group, steps_per_epoch=3000)
    means = np.array([np.mean(w * values[i]) for i, w in epoch(sampler)])
    expected = sum(q * values[g == GROUP].mean() for g, q in enumerate(sampler.mixture))
    assert abs(means.mean() - expected) < 4.0 * means.std() / len(means) ** 0.5
    plain = np.array([values[i].mean() for i, _ in epoch(sampler)])
    assert abs(plain.mean() - expected) > 10.0 * plain.std() / len(plain) ** 0.5


def test_the_expectation_of_one_batch_by_enumeration():
    """All outcomes of an allocation, for a p that is fixed: counts are T p rounded by one offset and one order."""
    p, values = np.array([0.45, 0.35, 0.2]), np.array([1.0, 10.0, 100.0])
    mixture = np.array([0.2, 0.3, 0.5])
    orders = list(itertools.permutations(range(3)))
    offsets = (np.arange(20_000) + 0.5) / 20_000
    total = 0.0
    for order in orders:
        ends = offsets[:, None] + np.cumsum(4 * p[list(order)])
        counts = np.diff(np.floor(ends + 1e-12), prepend=0.0, axis=1)
        total += (counts * (mixture / p * values)[list(order)]).sum(1).mean() / 4
    assert total / len(orders) == pytest.approx((mixture * values).sum(), rel=1e-3)
    labels = np.repeat([0, 1, 2], 50)
    sampler = GroupBatchSampler(labels, 4, bg.Importance(by=p), 4000, mixture=mixture, guard=False, seed=0)
    means = [np.mean(sampler.weights(batch).numpy() * values[labels[batch]]) for batch in sampler]
    assert np.mean(means) == pytest.approx((mixture * values).sum(), rel=0.02)
    independent = np.sqrt(((mixture * values) ** 2 / p).sum() - (mixture * values).sum() ** 2) / 2
    assert np.std(means) < 0.7 * independent  # the batch is stratified as well


@pytest.mark.parametrize("guard", [NEVER, False], ids=["mixture", "drawing"])
@pytest.mark.parametrize("rule", [bg.Mabs(), bg.Vrb(), None], ids=["Mabs", "Vrb", "own"])
def test_p_comes_near_the_optimal_allocation_within_few_epochs(rule, guard):
    sampler = sampler_of(sampler=rule, guard=guard)
    for _ in range(20):
        epoch(sampler)
    q = SIZES / N
    ours, best = second_moment(sampler.probabilities(), q)[0], second_moment(q, q)[1]
    least, of_mixture = second_moment(best, q)[0], second_moment(q, q)[0]
    assert ours < 1.6 * least
    assert of_mixture > 2.5 * ours
    assert sampler.statistics()["tau"] == pytest.approx(of_mixture / ours, rel=0.25)
    assert sampler.advice().tau == sampler.statistics()["tau"]


def test_the_guard_leaves_a_mixture_alone_that_is_good_enough():
    sampler = sampler_of()
    for _ in range(10):
        seen = epoch(sampler, torch.ones(N))
    assert all((w == 1.0).all() for _, w in seen)
    for _ in range(20):
        seen = epoch(sampler)
    assert sampler.statistics()["adaptive"]
    assert max(w.max() for _, w in seen) > 1.5


def test_an_adaptive_objective_follows_the_reward_and_says_so():
    reward = torch.tensor([1.0, 1.0, 1.0, 10.0, 1.0], dtype=torch.float64)[GROUP]
    sampler = sampler_of(objective="adaptive", mixture=np.ones(GROUPS))
    first = np.concatenate([i for i, _ in epoch(sampler, reward)])
    np.testing.assert_allclose(np.bincount(GROUP[first]) / first.size, 0.2, atol=0.01)  # ten batches of the mixture
    for _ in range(10):
        seen = epoch(sampler, reward)
    assert all((w == 1.0).all() for _, w in seen)
    p = sampler.probabilities()
    np.testing.assert_allclose(p, 0.8 * np.array([1, 1, 1, 10, 1]) / 14 + 0.04, rtol=1e-3)
    assert sampler.statistics().keys() == {"adaptive", "batches", "outstanding"}
    with pytest.raises(RuntimeError, match="probabilities"):
        sampler.advice()


def test_a_loss_of_the_whole_batch_will_do_where_it_has_one_group():
    sampler = sampler_of(one_group=True, guard=False, mixture=MIXTURE)
    for _ in range(5):
        for batch in sampler:
            assert len(set(LABELS[batch])) == 1
            weight = sampler.weights(batch)
            assert (weight == weight[0]).all()
            loss = NORMS[batch].mean().requires_grad_()
            sampler.loss(loss, batch).backward()
            assert float(loss.grad) == pytest.approx(float(weight[0]), rel=1e-6)
    assert sampler.probabilities()[2] > 2.0 * sampler.mixture[2]
    mixed = sampler_of(guard=NEVER)
    with pytest.raises(ValueError, match=r"one loss per sample.*one_group=True"):
        mixed.loss(torch.tensor(1.0), next(iter(mixed)))


def test_labels_of_any_kind():
    expected = list(sampler_of())
    for labels in (LABELS.tolist(), GROUP, torch.from_numpy(GROUP), GROUP.astype(np.int8), LABELS.astype(object)):
        assert list(GroupBatchSampler(labels, 20, seed=0)) == expected
    assert sampler_of().names == ["a", "b", "c", "d", "e"]
    np.testing.assert_allclose(sampler_of().mixture, SIZES / N)
    np.testing.assert_allclose(sampler_of(mixture=MIXTURE).mixture, np.array([1, 4, 2, 2, 1]) / 10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": np.zeros(5)}, "got float64 of shape"),
        ({"groups": np.zeros((5, 2), int)}, "group of each sample"),
        ({"groups": []}, "group of each sample"),
        ({"objective": "best"}, 'objective="fixed" or "adaptive"'),
        ({"objective": "adaptive", "guard": Guard()}, "nothing to guard"),
        ({"mixture": {"a": 1.0}}, "a share for each group in mixture; compare b, c, d, e"),
        ({"mixture": [1, 2, 3]}, "positive share for each of 5 groups"),
        ({"mixture": [1, 2, 3, 4, 0]}, "Leave samples out"),
        ({"sampler": bg.Mabs().start(3)}, "has 3 items, there are groups: 5"),
        ({"batch_size": 0}, "GroupBatchSampler expects batch_size"),
        ({"guard": 2}, "GroupBatchSampler expects a Guard"),
    ],
)
def test_bad_input_is_refused_in_words(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        GroupBatchSampler(**{"groups": LABELS, "batch_size": 8, **options})


def test_a_stopped_run_goes_on_with_the_same_batches(tmp_path):
    for options in ({"guard": False}, {}, {"objective": "adaptive"}, {"one_group": True, "sampler": bg.Mabs()}):
        sampler = sampler_of(**options)
        for _ in range(3):
            epoch(sampler)
        whole, state = [], None
        for batch in sampler:
            whole.append(batch)
            sampler.update(batch, NORMS[batch])
            if len(whole) == 4:
                torch.save(sampler.state_dict(), tmp_path / "state.pt")
        state = torch.load(tmp_path / "state.pt", weights_only=True)
        other = sampler_of(**{**options, "seed": 9})
        other.load_state_dict(state)
        assert [i.tolist() for i, _ in epoch(other)] == whole[4:]
        assert [i.tolist() for i, _ in epoch(other)] == [i.tolist() for i, _ in epoch(sampler)]
    for wrong, message in (
        (sampler_of(mixture=MIXTURE), "another mixture"),
        (sampler_of(), "objective|one_group"),
        (GroupBatchSampler(LABELS[:100], 20), "its samples is 200"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong.load_state_dict(state if "mixture" not in message else sampler_of().state_dict())


def test_a_loader_with_workers_leaves_weights_those_of_the_draw():
    sampler = sampler_of(guard=False, steps_per_epoch=150)
    values = np.random.default_rng(5).standard_normal(N) + 2.0 * GROUP
    means = []
    for _, _, idx in loader_of(sampler, workers=2, n=N):
        means.append(np.mean(sampler.weights(idx).numpy() * values[idx]))
        sampler.update(idx, NORMS[idx])
    assert abs(np.mean(means) - values.mean()) < 4.0 * np.std(means) / len(means) ** 0.5
