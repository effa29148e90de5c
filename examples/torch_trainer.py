"""Bandit sampling with the Hugging Face Trainer: a loader, a weighted loss, and a callback that saves the sampler."""

import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset
from transformers import Trainer, TrainerCallback, TrainingArguments, set_seed

import banditgrad as bg
from banditgrad.torch import BanditBatchSampler, IndexedDataset, cross_entropy_bound
from torch_loop import rare_odd_digits


class Samples(Dataset):
    """Samples as dictionaries, which the Trainer expects."""

    def __init__(self, pairs):
        self.pairs = pairs

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        x, y = self.pairs[i]
        return {"x": x, "labels": y}


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x, labels):
        logits = self.layers(x)
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


class BanditTrainer(Trainer):
    def __init__(self, *args, sampler, **kwargs):
        super().__init__(*args, **kwargs)
        self.sampler = sampler
        self.model_accepts_loss_kwargs = False  # the loss below is a mean: gradients to accumulate are to be divided
        self.add_callback(SaveSampler(sampler))

    def get_train_dataloader(self):
        return DataLoader(IndexedDataset(self.train_dataset), batch_sampler=self.sampler)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        if "index" not in inputs:  # evaluation
            return super().compute_loss(model, inputs, return_outputs)
        idx, y = inputs.pop("index"), inputs["labels"]
        outputs = model(**inputs)
        loss = F.cross_entropy(outputs["logits"], y, reduction="none") * self.sampler.weights(idx)
        self.sampler.update(idx, cross_entropy_bound(outputs["logits"], y))
        return (loss.mean(), outputs) if return_outputs else loss.mean()


class SaveSampler(TrainerCallback):
    """Keeps the sampler's state in every checkpoint. To resume: load it, and set ignore_data_skip=True."""

    def __init__(self, sampler):
        self.sampler = sampler

    def on_save(self, args, state, control, **kwargs):
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        torch.save(self.sampler.state_dict(), folder / "bandit_sampler.pt")


def main(epochs=25):
    set_seed(0)
    train, test = map(Samples, rare_odd_digits())
    sampler = BanditBatchSampler(train, 32, bg.RecentNorm(), seed=0)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            num_train_epochs=epochs,
            learning_rate=0.05,
            optim="sgd",
            optim_args="momentum=0.9",
            lr_scheduler_type="constant",
            use_cpu=True,
            report_to="none",
            save_strategy="epoch",
            save_total_limit=1,
            disable_tqdm=True,
            remove_unused_columns=False,
        )
        trainer = BanditTrainer(Classifier(), arguments, train_dataset=train, eval_dataset=test, sampler=sampler)
        trainer.train()
        assert list(Path(folder).glob("checkpoint-*/bandit_sampler.pt"))
        test_loss = trainer.evaluate()["eval_loss"]
    print(f"test loss {test_loss:.4f}, τ = {sampler.statistics()['tau']:.2f}")
    return test_loss


if __name__ == "__main__":
    main()
