"""Bandit sampling with Lightning's own Trainer: the callback weights the losses that training_step returns, feeds them
back, logs what sampling can save, and keeps the sampler's state in checkpoints."""

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.utilities import rank_zero_info
from torch import nn
from torch.utils.data import DataLoader

import banditgrad as bg
from banditgrad.torch import bandit_loader, cross_entropy_bound
from banditgrad.torch.lightning import BanditCallback
from torch_loop import rare_odd_digits


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def training_step(self, batch, _):
        x, y = batch
        z = self.model(x)
        losses = F.cross_entropy(z, y, reduction="none")  # one per sample
        return {"loss": losses, "norms": cross_entropy_bound(z, y)}

    def validation_step(self, batch, _):
        x, y = batch
        self.log("test_loss", F.cross_entropy(self.model(x), y), prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.05, momentum=0.9)


def main(epochs=25):
    L.seed_everything(0)
    train, test = rare_odd_digits()
    loader = bandit_loader(train, 32, bg.RecentNorm(), seed=0)
    trainer = L.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        callbacks=[BanditCallback(loader.batch_sampler)],
        use_distributed_sampler=False,  # the sampler shares batches among ranks by itself
        log_every_n_steps=5,
        logger=False,
        enable_checkpointing=False,
        enable_model_summary=False,
    )
    trainer.fit(Classifier(), loader, DataLoader(test, 256))
    rank_zero_info(str(loader.batch_sampler.advice()))
    print({name: round(float(value), 4) for name, value in trainer.callback_metrics.items()})
    return float(trainer.callback_metrics["test_loss"])


if __name__ == "__main__":
    main()
