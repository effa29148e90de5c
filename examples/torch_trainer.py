"""Bandit sampling with the Hugging Face Trainer: `BanditTrainer` takes a sampler, and is a Trainer otherwise."""

import tempfile
from pathlib import Path

import torch.nn.functional as F
from torch import nn
from torch.utils.data import Dataset
from transformers import TrainingArguments, set_seed

import banditgrad as bg
from banditgrad.torch import BanditBatchSampler
from banditgrad.torch.trainer import BanditTrainer
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
    print(f"test loss {test_loss:.4f}; {sampler.advice()}")
    return test_loss


if __name__ == "__main__":
    main()
