"""Bandit sampling with Lightning's own Trainer: the sampler lives in the module, and is saved in its checkpoints."""

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.utilities import rank_zero_info
from torch import nn
from torch.utils.data import DataLoader

import banditgrad as bg
from banditgrad.torch import BanditBatchSampler, IndexedDataset, cross_entropy_bound
from torch_loop import rare_odd_digits


class Classifier(L.LightningModule):
    def __init__(self, train, test):
        super().__init__()
        self.train_set, self.test_set = train, test
        self.model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
        self.sampler = BanditBatchSampler(train, 32, bg.RecentNorm(), seed=0)

    def train_dataloader(self):
        return DataLoader(IndexedDataset(self.train_set), batch_sampler=self.sampler)

    def val_dataloader(self):
        return DataLoader(self.test_set, 256)

    def training_step(self, batch, _):
        x, y, idx = batch
        z = self.model(x)
        loss = (F.cross_entropy(z, y, reduction="none") * self.sampler.weights(idx)).mean()
        self.sampler.update(idx, cross_entropy_bound(z, y))
        self.log("saving", self.sampler.advice().saving)  # how many times fewer steps p needs
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.log("test_loss", F.cross_entropy(self.model(x), y), prog_bar=True)

    def configure_optimizers(self):
        optimiser = torch.optim.SGD(self.parameters(), 0.05, momentum=0.9)
        self.sampler.watch(optimiser)  # is there noise to reduce? the guard decides by it
        return optimiser

    def on_train_epoch_end(self):
        rank_zero_info(str(self.sampler.advice()))

    def on_save_checkpoint(self, checkpoint):
        checkpoint["bandit_sampler"] = self.sampler.state_dict()

    def on_load_checkpoint(self, checkpoint):
        self.sampler.load_state_dict(checkpoint["bandit_sampler"])


def main(epochs=25):
    L.seed_everything(0)
    module = Classifier(*rare_odd_digits())
    trainer = L.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        use_distributed_sampler=False,  # the sampler shares batches among ranks by itself
        logger=False,
        enable_checkpointing=False,
        enable_model_summary=False,
    )
    trainer.fit(module)
    print({name: round(float(value), 4) for name, value in trainer.callback_metrics.items()})
    return float(trainer.callback_metrics["test_loss"])


if __name__ == "__main__":
    main()
