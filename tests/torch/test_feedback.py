"""Every feedback function beside plain autograd, one sample at a time."""

import pytest

pytest.importorskip("torch.nn", reason='PyTorch is not installed: pip install "banditgrad[torch]"')
import torch
import torch.nn.functional as F
from torch import nn

from banditgrad.torch import (
    LastLayer,
    binary_cross_entropy_bound,
    cross_entropy_bound,
    gradient_norms,
    loss_values,
    squared_error_bound,
)

B = 12


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def one_by_one(loss, inputs, wrt):
    """‖∂ loss_i / ∂ wrt_i‖ for each sample i; `wrt(i)` lists the tensors."""
    norms = []
    for i in range(inputs):
        gradients = torch.autograd.grad(loss(i), wrt(i), retain_graph=True)
        norms.append(torch.cat([g.flatten() for g in gradients]).norm())
    return torch.stack(norms)


@pytest.fixture(params=[False, True], ids=["compiled", "by torch"])
def _either_way(request, monkeypatch):
    """Class indices on a CPU are looked at by compiled code, all else, also where torch itself compiles, by torch."""
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: request.param)


@pytest.mark.usefixtures("_either_way")
@pytest.mark.parametrize("soft", [False, True])
def test_cross_entropy_bound(soft):
    z = (3 * torch.randn(B, 5)).requires_grad_()
    y = torch.softmax(torch.randn(B, 5), 1) if soft else torch.randint(0, 5, (B,))
    exact = one_by_one(lambda i: F.cross_entropy(z, y, reduction="none")[i], B, lambda i: [z])
    bound = cross_entropy_bound(z, y)
    torch.testing.assert_close(bound, exact)
    assert not bound.requires_grad


@pytest.mark.usefixtures("_either_way")
@pytest.mark.parametrize("shape", [(), (6,), (2, 3)], ids=["one label", "a sequence", "an image"])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("soft", [False, True])
def test_cross_entropy_bound_of_positions_and_smoothed_labels(shape, smoothing, soft):
    z = (3 * torch.randn(B, 5, *shape)).requires_grad_()
    y = torch.softmax(torch.randn(z.shape), 1) if soft else torch.randint(0, 5, (B, *shape))
    if not soft and shape:
        y.view(B, -1)[::2, 1] = -100
    losses = F.cross_entropy(z, y, reduction="none", label_smoothing=smoothing)
    exact = one_by_one(lambda i: losses[i].sum(), B, lambda i: [z])
    torch.testing.assert_close(cross_entropy_bound(z, y, label_smoothing=smoothing), exact)


@pytest.mark.usefixtures("_either_way")
def test_cross_entropy_bound_of_samples_without_a_target():
    z, y = torch.randn(4, 3), torch.tensor([2, -100, 0, 1])
    kept = torch.tensor([0, 2, 3])
    bound = cross_entropy_bound(z, y)
    assert bound[1] == 0.0
    torch.testing.assert_close(bound[kept], cross_entropy_bound(z[kept], y[kept]))
    assert cross_entropy_bound(z, torch.tensor([2, 9, 0, 1]), ignore_index=9)[1] == 0.0


@pytest.mark.usefixtures("_either_way")
@pytest.mark.parametrize("wrong", [3, -1])
def test_cross_entropy_bound_of_a_target_that_is_no_class(wrong):
    with pytest.raises((IndexError, RuntimeError), match=r"from 0 to 2 .* got|out of bounds"):
        cross_entropy_bound(torch.zeros(2, 3), torch.tensor([0, wrong]))


def test_cross_entropy_bound_of_tensors_of_other_kinds():
    z, y = torch.randn(5, B).T, torch.randint(0, 5, (2 * B,))[::2]  # not contiguous
    expected = cross_entropy_bound(z.contiguous(), y.contiguous())
    for logits, target in ((z, y), (z.double(), y), (z, y.to(torch.uint8)), (z.to(torch.bfloat16), y)):
        bound = cross_entropy_bound(logits, target)
        assert bound.dtype == logits.dtype
        torch.testing.assert_close(
            bound.float(), expected, atol=0.02 if logits.dtype == torch.bfloat16 else 1e-6, rtol=0
        )
    overflowing = cross_entropy_bound(torch.tensor([[1e4, 0.0], [torch.nan, 0.0]]), torch.tensor([1, 0]))
    assert overflowing[0] == pytest.approx(2**0.5)
    assert overflowing[1].isnan()


@pytest.mark.usefixtures("_either_way")
def test_cross_entropy_bound_is_exact_for_samples_that_are_all_but_learned():
    z = torch.tensor([[12.0, 0.0]])
    assert cross_entropy_bound(z, torch.tensor([0])) == pytest.approx(
        2**0.5 / (1 + torch.e**12), rel=0.02
    )  # 1 - p would lose it all


def test_binary_cross_entropy_bound():
    z = torch.randn(B, 3, requires_grad=True)
    y = torch.rand(B, 3).round()
    exact = one_by_one(lambda i: F.binary_cross_entropy_with_logits(z, y, reduction="none")[i].sum(), B, lambda i: [z])
    torch.testing.assert_close(binary_cross_entropy_bound(z, y), exact)


def test_squared_error_bound():
    z, y = torch.randn(B, 3, requires_grad=True), torch.randn(B, 3)
    exact = one_by_one(lambda i: 0.5 * ((z - y) ** 2)[i].sum(), B, lambda i: [z])
    torch.testing.assert_close(squared_error_bound(z, y), exact)
    one = torch.randn(B)
    torch.testing.assert_close(squared_error_bound(one, torch.zeros(B)), one.abs())


def test_loss_values():
    loss = torch.tensor([[1.0, -2.0], [0.0, 3.0]], requires_grad=True)
    assert loss_values(loss).tolist() == [3.0, 3.0]
    assert loss_values(loss[:, 1]).tolist() == [2.0, 3.0]
    assert not loss_values(loss).requires_grad


@pytest.mark.parametrize("bias", [True, False])
def test_last_layer_is_exact(bias):
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3, bias=bias))
    x, y = torch.randn(B, 4), torch.randint(0, 3, (B,))
    head = LastLayer(model[2])
    with pytest.raises(ValueError, match="no forward pass"):
        head.norms(torch.ones(B))
    z = model(x)
    exact = one_by_one(lambda i: F.cross_entropy(z, y, reduction="none")[i], B, lambda i: list(model[2].parameters()))
    torch.testing.assert_close(head.norms(cross_entropy_bound(z, y)), exact)
    with pytest.raises(ValueError, match=r"got \(3,\)"):
        head.norms(torch.ones(3))
    head.close()
    model(x[:5])
    head.norms(torch.ones(B))  # the later forward pass was not looked at
    with pytest.raises(TypeError, match=r"nn\.Linear"):
        LastLayer(nn.ReLU())


@pytest.mark.parametrize("chunk_size", [None, 5])
def test_gradient_norms_are_exact(chunk_size):
    model = nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.GroupNorm(1, 3), nn.ReLU(), nn.Flatten(), nn.Linear(3 * 16, 4), nn.Linear(4, 4)
    )
    model[4].weight.requires_grad_(False)
    x, y = torch.randn(B, 1, 6, 6), torch.randint(0, 4, (B,))
    trained = [w for w in model.parameters() if w.requires_grad]
    exact = one_by_one(lambda i: F.cross_entropy(model(x), y, reduction="none")[i], B, lambda i: trained)
    for loss in (nn.CrossEntropyLoss(), nn.CrossEntropyLoss(reduction="none")):
        norms = gradient_norms(model, loss, x, y, chunk_size=chunk_size)
        torch.testing.assert_close(norms, exact)
        assert not norms.requires_grad
    assert all(w.grad is None for w in model.parameters())


def test_the_bound_bounds_the_gradient_up_to_one_constant():
    """The gradient norm over the bound varies far less than the gradient norm itself: that is what p needs."""
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3))
    x, y = torch.randn(200, 8), torch.randint(0, 3, (200,))
    optimiser = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(300):
        optimiser.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimiser.step()
    exact = gradient_norms(model, nn.CrossEntropyLoss(), x, y)
    ratio = exact / cross_entropy_bound(model(x), y)
    assert exact.std() / exact.mean() > 2 * ratio.std() / ratio.mean()


def test_batch_normalisation_and_wrong_shapes_are_refused():
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    x, y = torch.randn(B, 4), torch.randint(0, 3, (B,))
    with pytest.raises(ValueError, match="batch normalisation"):
        gradient_norms(model, nn.CrossEntropyLoss(), x, y)
    assert gradient_norms(model.eval(), nn.CrossEntropyLoss(), x, y).shape == (B,)
    with pytest.raises(ValueError, match="cross_entropy_bound expects"):
        cross_entropy_bound(torch.randn(B, 3, 2), y)
    for function in (squared_error_bound, binary_cross_entropy_bound):
        with pytest.raises(ValueError, match=function.__name__):
            function(torch.randn(B, 1), torch.randn(B))
