"""Lightning's and Hugging Face's Trainers with batches of a bandit sampler: the steps of a plain loop, and resumed."""

import importlib.util
import itertools

import pytest

pytest.importorskip("torch.nn", reason='PyTorch is not installed: pip install "banditgrad[torch]"')
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import Dataset, TensorDataset

import banditgrad as bg
from banditgrad.torch import BanditBatchSampler, bandit_loader, cross_entropy_bound

# Both frameworks warn of few workers, of what they deprecate in torch, and of much else.
pytestmark = pytest.mark.filterwarnings("ignore")

N, BATCH = 96, 8
EAGER = bg.RecentNorm(theta=0.2, memory=0.0)
OPTIONS = {"seed": 5, "guard": False}


def data():
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(N, 4, generator=rng)
    return TensorDataset(x, (x[:, 0] > 1.0).long())


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def plain_loop(epochs, accumulate=1, ahead=1):
    """Weights after training by hand, and the sampler; `ahead` batches are drawn before the first of them is used."""
    net = network()
    optimiser = torch.optim.SGD(net.parameters(), 0.1)
    loader = bandit_loader(data(), BATCH, EAGER, **OPTIONS)
    sampler = loader.batch_sampler
    sampler.watch(optimiser, accumulate=accumulate)
    for _ in range(epochs):
        batches = iter(loader)
        groups = iter(lambda: list(itertools.islice(batches, ahead)), [])  # noqa: B023
        for k, (x, y, idx) in enumerate(itertools.chain.from_iterable(groups)):
            z = net(x)
            losses = F.cross_entropy(z, y, reduction="none")
            (sampler.loss(losses, idx, cross_entropy_bound(z, y)) / accumulate).backward()
            if (k + 1) % accumulate == 0:
                optimiser.step()
                optimiser.zero_grad()
    return [w.detach() for w in net.parameters()], sampler


def assert_same(net, expected):
    for w, other in zip(net.parameters(), expected, strict=True):
        torch.testing.assert_close(w.detach(), other)


# --- Lightning --------------------------------------------------------------------------------------------------------


def lightning():
    reason = "lightning is not installed: pip install lightning"
    return pytest.importorskip("lightning", reason=reason)


def module(returned="dictionary", after=None):
    """A module whose training step knows nothing of the sampler."""

    class Module(lightning().LightningModule):
        def __init__(self):
            super().__init__()
            self.net, self.seen = network(), 0

        def training_step(self, batch, batch_idx):
            x, y = batch
            z = self.net(x)
            losses = F.cross_entropy(z, y, reduction="none")
            self.seen += 1
            if returned == "mean":
                return losses.mean()
            return losses if returned == "losses" else {"loss": losses, "norms": cross_entropy_bound(z, y)}

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    return Module()


def lightning_trainer(sampler, more=(), **options):
    from banditgrad.torch.lightning import BanditCallback

    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    return lightning().Trainer(
        accelerator="cpu", callbacks=[BanditCallback(sampler), *more], use_distributed_sampler=False,
        log_every_n_steps=4,
        **{**quiet, "enable_model_summary": False, **options},
    )  # fmt: skip


@pytest.mark.parametrize("accumulate", [1, 3])
def test_lightning_takes_the_steps_of_a_plain_loop(accumulate):
    expected, by_hand = plain_loop(2, accumulate)
    loader, made = bandit_loader(data(), BATCH, EAGER, **OPTIONS), module()
    trainer = lightning_trainer(loader.batch_sampler, max_epochs=2, accumulate_grad_batches=accumulate)
    trainer.fit(made, loader)
    assert_same(made.net, expected)
    assert loader.batch_sampler.statistics() == pytest.approx(by_hand.statistics(), nan_ok=True)
    assert trainer.callback_metrics["bandit/tau"] > 1.0
    assert "training_step" not in vars(made)  # the class's again


def test_lightning_feeds_back_losses_where_there_are_no_norms():
    loader = bandit_loader(data(), BATCH, EAGER, **OPTIONS)
    lightning_trainer(loader.batch_sampler, max_epochs=3).fit(module("losses"), loader)
    assert loader.batch_sampler.statistics()["outstanding"] == 0
    assert loader.batch_sampler.probabilities().max() > 2.0 / N


def test_lightning_goes_on_in_the_middle_of_an_epoch(tmp_path):
    expected, _ = plain_loop(3)
    loader, made = bandit_loader(data(), BATCH, EAGER, **OPTIONS), module()
    from lightning.pytorch.callbacks import ModelCheckpoint

    keeps = ModelCheckpoint(tmp_path, "middle", every_n_train_steps=17, save_top_k=1, monitor=None)
    trainer = lightning_trainer(loader.batch_sampler, max_steps=20, more=[keeps], enable_checkpointing=True)
    trainer.fit(made, loader)  # 12 batches an epoch
    loader, resumed = bandit_loader(data(), BATCH, EAGER, seed=6, guard=False), module()
    trainer = lightning_trainer(loader.batch_sampler, max_epochs=3)
    trainer.fit(resumed, loader, ckpt_path=tmp_path / "middle.ckpt")
    assert resumed.seen == 36 - 17
    assert_same(resumed.net, expected)


def test_lightning_is_told_what_is_missing():
    from banditgrad.torch.lightning import BanditCallback

    loader = bandit_loader(data(), BATCH, **OPTIONS)
    with pytest.raises(ValueError, match='reduction="none"'):
        lightning_trainer(loader.batch_sampler, max_epochs=1).fit(module("mean"), loader)
    plain = torch.utils.data.DataLoader(data(), BATCH)
    with pytest.raises(RuntimeError, match="not from the sampler of this callback"):
        lightning_trainer(loader.batch_sampler, max_epochs=1).fit(module(), plain)
    with pytest.raises(TypeError, match="BanditBatchSampler"):
        BanditCallback(plain.batch_sampler)


# --- Hugging Face -----------------------------------------------------------------------------------------------------


class Dictionaries(Dataset):
    def __init__(self):
        self.pairs = data()

    def __len__(self):
        return N

    def __getitem__(self, i):
        x, y = self.pairs[i]
        return {"x": x, "labels": y}


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.seen = network(), 0

    def forward(self, x, labels=None, **kwargs):  # as transformers' own models, which take num_items_in_batch
        self.seen += self.training
        return {"logits": self.net(x)}


def hugging_face(folder, seed=5, model=None, **options):
    for package in ("transformers", "accelerate"):
        if not importlib.util.find_spec(package):
            pytest.skip(f"{package} is not installed: pip install {package}")
    from transformers import TrainingArguments

    from banditgrad.torch.trainer import BanditTrainer

    own = {name: options.pop(name) for name in ("losses", "norms") if name in options}
    arguments = TrainingArguments(
        folder, learning_rate=0.1, optim="sgd", max_grad_norm=0.0, lr_scheduler_type="constant", use_cpu=True,
        report_to="none", disable_tqdm=True, remove_unused_columns=False, **{"save_strategy": "no", **options},
    )  # fmt: skip
    sampler = BanditBatchSampler(N, BATCH, EAGER, seed=seed, guard=False)
    return BanditTrainer(model or Classifier(), arguments, train_dataset=Dictionaries(), sampler=sampler, **own)


@pytest.mark.parametrize("accumulate", [1, 3])
def test_hugging_face_takes_the_steps_of_a_plain_loop(accumulate, tmp_path):
    expected, by_hand = plain_loop(2, accumulate, ahead=accumulate)
    trainer = hugging_face(tmp_path, num_train_epochs=2, gradient_accumulation_steps=accumulate, logging_steps=2)
    trainer.train()
    assert_same(trainer.model.net, expected)
    assert trainer.sampler.statistics() == pytest.approx(by_hand.statistics(), nan_ok=True)
    assert any("bandit/tau" in entry for entry in trainer.state.log_history)


def test_hugging_face_goes_on_in_the_middle_of_an_epoch(tmp_path):
    expected, _ = plain_loop(3)
    options = {"num_train_epochs": 3, "save_strategy": "steps", "save_steps": 17}
    hugging_face(tmp_path, **options).train()
    resumed = hugging_face(tmp_path, seed=6, **options)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-17"))
    assert resumed.model.seen == 36 - 17
    assert_same(resumed.model.net, expected)


def test_hugging_face_with_losses_of_one_s_own(tmp_path):
    def losses(outputs, labels):
        return F.cross_entropy(outputs["logits"], labels, reduction="none") ** 2

    trainer = hugging_face(tmp_path, max_steps=30, losses=losses)
    trainer.train()
    assert trainer.sampler.statistics()["outstanding"] == 0
    assert trainer.sampler.probabilities().max() > 2.0 / N

    class Sequences(Classifier):
        def forward(self, x, labels=None):
            return {"logits": self.net(x)[:, None, :]}

    with pytest.raises(ValueError, match="losses="):
        hugging_face(tmp_path, max_steps=1, model=Sequences()).train()
