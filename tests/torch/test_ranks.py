"""DistributedDataParallel with real processes: two ranks are one sampler with batches twice as large."""

import numpy as np
import pytest
from runs import N, batches, loader_of, unlike_norms

pytest.importorskip("torch.nn", reason='PyTorch is not installed: pip install "banditgrad[torch]"')
import torch
import torch.distributed as dist
from torch import multiprocessing, nn
from torch.nn.parallel import DistributedDataParallel

import banditgrad as bg
from banditgrad.torch import BanditBatchSampler, GroupBatchSampler

pytestmark = pytest.mark.skipif(
    not (dist.is_available() and dist.is_gloo_available()), reason="this PyTorch has no gloo backend"
)

RANKS = 2
STEPS = 250
RULES = {
    "guarded": {"sampler": bg.RecentNorm()},
    "unguarded": {"sampler": bg.Mabs(), "guard": False, "replacement": True},
    "deck": {"sampler": bg.RecentNorm(), "guard": False},
    "groups": {"guard": False, "mixture": [0.5, 0.3, 0.2]},
}


def new_sampler(name, batch_size, seed):
    if name == "groups":
        return GroupBatchSampler(torch.arange(N) % 7 // 3, batch_size, seed=seed, **RULES[name])
    return BanditBatchSampler(N, batch_size, seed=seed, **RULES[name])


def regression():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((N, 3)) * np.exp(rng.standard_normal((N, 1)))
    return torch.tensor(x, dtype=torch.float32), torch.tensor(rng.standard_normal((N, 1)), dtype=torch.float32)


def model():
    linear = nn.Linear(3, 1, bias=False)
    nn.init.ones_(linear.weight)
    return linear


def gradients(sampler, net):
    """The gradient that the optimiser of this rank would see at every step, at fixed parameters."""
    x, y = regression()
    seen = []
    for batch in sampler:
        idx = torch.tensor(batch)
        residual = net(x[idx]) - y[idx]
        net.zero_grad()
        (residual[:, 0] ** 2 * sampler.weights(idx)).mean().backward()
        sampler.update(idx, residual[:, 0].abs() * x[idx].norm(dim=1))
        seen.append(net.module.weight.grad[0].clone())
    return torch.stack(seen)


def epoch(sampler):
    return batches(sampler, loader_of(sampler, n=N), unlike_norms(), late=3)


def drift():
    """What the error says if ranks have seeds of their own, given before the process group was there."""
    sampler = BanditBatchSampler(N, 8, bg.Mabs().start(N, seed=dist.get_rank()), guard=False, replacement=True)
    idx = next(iter(sampler))
    try:
        sampler.update(idx, torch.ones(8))
    except RuntimeError as error:
        return str(error)


def work(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/meeting", rank=rank, world_size=RANKS)
    report = {}
    for name in RULES:
        sampler = new_sampler(name, 16, seed=4)
        whole = [batch for _ in range(11) for batch in epoch(sampler)]
        loader = iter(loader_of(sampler, n=N))
        whole += batches(sampler, loader, unlike_norms(), stop=3)
        state = sampler.state_dict()
        whole += batches(sampler, loader, unlike_norms())
        resumed = new_sampler(name, 16, seed=5)
        resumed.load_state_dict(state)
        report[name] = {"batches": whole, "p": sampler.sampling.probabilities(), "statistics": sampler.statistics()}
        report[name]["resumed"] = batches(resumed, loader_of(resumed, n=N), unlike_norms())
    torch.manual_seed(rank)  # without a seed, all ranks take that of rank 0
    sampler = BanditBatchSampler(N, 8, bg.Mabs(), STEPS, guard=False)
    report["gradients"] = gradients(sampler, DistributedDataParallel(model()))
    report["drift"] = drift()
    torch.save(report, f"{folder}/{rank}")
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    multiprocessing.spawn(work, (str(folder),), nprocs=RANKS)
    return [torch.load(folder / str(rank), weights_only=False) for rank in range(RANKS)]


def test_ranks_keep_the_same_state(reports):
    for name in RULES:
        one, other = (report[name] for report in reports)
        np.testing.assert_array_equal(one["p"], other["p"])
        np.testing.assert_equal(one["statistics"], other["statistics"])  # a scale that nothing tells yet is nan
        assert one["statistics"]["adaptive"]
        assert one["batches"] != other["batches"]


@pytest.mark.parametrize("name", RULES)
def test_ranks_draw_slices_of_the_batches_of_one_process(name, reports):
    sampler = new_sampler(name, 16 * RANKS, seed=4)
    alone = [batch for _ in range(11) for batch in epoch(sampler)]
    for step, (idx, weights) in enumerate(alone):
        slices = [report[name]["batches"][step] for report in reports]
        assert [i for part, _ in slices for i in part] == idx
        assert [w for _, part in slices for w in part] == weights
    assert len(sampler) == 7
    assert len(reports[0][name]["batches"]) == 12 * 7


@pytest.mark.parametrize("name", RULES)
def test_ranks_resume_in_the_middle_of_an_epoch(name, reports):
    for report in reports:
        assert report[name]["resumed"] == report[name]["batches"][80:84]


def test_the_gradient_is_unbiased(reports):
    x, y = regression()
    weight = torch.ones(1, 3, requires_grad=True)
    (full,) = torch.autograd.grad(((x @ weight.T - y) ** 2).mean(), weight)
    torch.testing.assert_close(reports[0]["gradients"], reports[1]["gradients"], rtol=0, atol=0)
    seen = reports[0]["gradients"]
    assert len(seen) == STEPS
    error = (seen.mean(0) - full[0]).abs() / (seen.std(0) / STEPS**0.5)
    assert error.max() < 4.0, error
    assert (seen.std(0) > 0).all()


def test_ranks_that_drift_apart_are_told(reports):
    for report in reports:
        assert "the ranks have drifted apart" in report["drift"]
        assert "same seed" in report["drift"]
