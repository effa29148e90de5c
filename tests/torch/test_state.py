"""A run that is stopped in the middle of an epoch and resumed goes on with the same batches."""

import pytest
from runs import N, batches, loader_of, unlike_norms

pytest.importorskip("torch.nn", reason='PyTorch is not installed: pip install "banditgrad[torch]"')
import torch
from torch.utils.data import DataLoader

import banditgrad as bg
from banditgrad.torch import BanditBatchSampler

# torchdata 0.11 calls a function that torch 2.13 wants nobody to call.
pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning")


def stateful_loader():
    reason = "torchdata is not installed: pip install torchdata"
    return pytest.importorskip("torchdata.stateful_dataloader", reason=reason).StatefulDataLoader


def from_disk(state, tmp_path):
    torch.save(state, tmp_path / "state.pt")
    return torch.load(tmp_path / "state.pt", weights_only=True)


RULES = {
    "guarded": {"sampler": bg.RecentNorm(memory=0.0)},
    "unguarded": {"sampler": bg.Mabs(), "replacement": True, "guard": False},
    "deck": {"sampler": bg.RecentNorm(memory=0.0), "budget": 0.6, "guard": False},
    "steps": {"sampler": bg.RecentNorm(memory=0.0), "steps_per_epoch": 13, "guard": False},
}


@pytest.mark.parametrize(
    ("rule", "saved"), [("guarded", "on disk"), ("unguarded", "in memory"), ("deck", "on disk"), ("steps", "in memory")]
)
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", ["DataLoader", "StatefulDataLoader"])
def test_a_stopped_run_goes_on_with_the_same_batches(kind, workers, rule, saved, tmp_path):
    stateful = kind == "StatefulDataLoader"
    norms = unlike_norms()

    def new(seed):
        sampler = BanditBatchSampler(N, 16, seed=seed, **RULES[rule])
        return sampler, loader_of(sampler, workers, stateful_loader() if stateful else DataLoader)

    sampler, loader = new(seed=0)
    for _ in range(3):
        batches(sampler, loader_of(sampler), norms)
    whole_epoch, state = [], None
    for _, _, idx in loader:
        whole_epoch.append((idx.tolist(), sampler.weights(idx).tolist()))
        sampler.update(idx, norms[idx])
        if len(whole_epoch) == 5:
            state = loader.state_dict() if stateful else sampler.state_dict()
            state = from_disk(state, tmp_path) if saved == "on disk" else state
    next_epoch = batches(sampler, loader, norms)

    sampler, loader = new(seed=99)
    (loader if stateful else sampler).load_state_dict(state)
    assert batches(sampler, loader, norms) == whole_epoch[5:]
    assert batches(sampler, loader, norms) == next_epoch
    assert sampler.statistics()["outstanding"] == 0


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", ["DataLoader", "StatefulDataLoader"])
def test_a_state_saved_between_epochs(kind, workers):
    stateful = kind == "StatefulDataLoader"
    runs = []
    for _ in range(2):
        sampler = BanditBatchSampler(N, 16, seed=0, guard=False)
        runs.append((sampler, loader_of(sampler, workers, stateful_loader() if stateful else DataLoader)))
    (sampler, loader), (other, other_loader) = runs
    batches(sampler, loader, unlike_norms())
    (other_loader if stateful else other).load_state_dict((loader if stateful else sampler).state_dict())
    for _ in range(2):
        expected = batches(sampler, loader, unlike_norms())
        assert batches(other, other_loader, unlike_norms()) == expected
        assert len(expected) == len(sampler)


def test_many_states_of_one_run_are_all_good():
    """States share a copy of the sampler and an event log; each must still be that of its own moment."""
    norms = unlike_norms()
    sampler = BanditBatchSampler(N, 16, steps_per_epoch=200, seed=0, guard=False)
    states, drawn = {}, []
    for step, (_, _, idx) in enumerate(loader_of(sampler)):
        drawn.append(idx.tolist())
        sampler.update(idx, norms[idx])
        if step % 9 == 0:
            states[step] = sampler.state_dict()
    for step, state in states.items():
        again = BanditBatchSampler(N, 16, steps_per_epoch=200, seed=1, guard=False)
        again.load_state_dict(state)
        rest = [idx for idx, _ in batches(again, loader_of(again), norms, stop=20)]
        assert rest == drawn[step + 1 : step + 21]


def test_late_feedback_finds_its_draw_after_a_resume():
    sampler = BanditBatchSampler(N, 8, seed=0, guard=False)
    epoch = iter(sampler)
    first, second = torch.tensor(next(epoch)), torch.tensor(next(epoch))
    weights = sampler.weights(second)
    other = BanditBatchSampler(N, 8, seed=1, guard=False)
    other.load_state_dict(sampler.state_dict())
    torch.testing.assert_close(other.weights(second), weights)
    for one in (sampler, other):
        one.update(first, unlike_norms()[first])
    assert next(iter(other)) == next(epoch)


def test_a_batch_that_was_skipped_is_not_delivered_again():
    sampler = BanditBatchSampler(N, 8, seed=0)
    epoch = iter(sampler)
    drawn = [next(epoch) for _ in range(4)]
    sampler.update(drawn[2], torch.ones(8))  # 0 and 1 were used without feedback
    other = BanditBatchSampler(N, 8, seed=1)
    other.load_state_dict(sampler.state_dict())
    rest = list(other)
    assert rest[0] == drawn[3]
    assert len(rest) == len(sampler) - 3


def test_states_of_other_samplers_are_refused():
    state = BanditBatchSampler(N, 8, seed=0).state_dict()
    for other, message in (
        (BanditBatchSampler(N + 1, 8), "its n is 200, here it is 201"),
        (BanditBatchSampler(N, 9), "its global_batch_size is 8, here it is 9"),
        (BanditBatchSampler(N, 8, replacement=True), "its replacement is False, here it is True"),
        (BanditBatchSampler(N, 8, bg.Uniform()), "not a state of Uniform"),
    ):
        with pytest.raises(ValueError, match=message):
            other.load_state_dict(state)
