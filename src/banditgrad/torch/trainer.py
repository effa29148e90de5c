"""Hugging Face's Trainer with batches of a bandit sampler."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

try:
    from transformers import Trainer, TrainerCallback
    from transformers.trainer_utils import get_last_checkpoint
except ModuleNotFoundError as error:
    if error.name not in ("transformers", "accelerate"):
        raise
    raise ModuleNotFoundError(
        "banditgrad.torch.trainer needs Hugging Face's Trainer, which is not installed. "
        "Run: pip install transformers accelerate",
        name=error.name,
    ) from error

from banditgrad.torch.base import AdaptiveBatchSampler
from banditgrad.torch.dataset import IndexedDataset, without_index
from banditgrad.torch.feedback import cross_entropy_bound
from banditgrad.torch.figures import figures

STATE = "bandit_sampler.pt"  # in a checkpoint's folder

Measure = Callable[[Any, torch.Tensor], torch.Tensor]  # of the model's outputs and the labels: one value per sample


class BanditTrainer(Trainer):
    """A `Trainer` whose training batches a sampler draws; everything else is the Trainer's.

    Checkpoints have the sampler's state: ``train(resume_from_checkpoint=...)`` goes on with the batch that was next.

    Parameters
    ----------
    args, kwargs
        As of Trainer. The size of training batches is the sampler's.
    sampler : BanditBatchSampler or GroupBatchSampler
        Over ``train_dataset``, whose samples are dictionaries.
    losses : function, optional
        ``losses(outputs, labels)``, one loss per sample; cross-entropy of ``outputs["logits"]`` unless given.
    norms : function, optional
        ``norms(outputs, labels)``, what to feed back: unless given, `cross_entropy_bound` where `losses` is not given
        either, and the losses where it is.

    Example
    -------
    >>> sampler = BanditBatchSampler(train, 32, seed=0)
    >>> BanditTrainer(model, arguments, train_dataset=train, sampler=sampler).train()
    """

    loss_is_scaled_for_ga = False  # the loss below is a mean: gradients that are accumulated are to be divided

    def __init__(
        self,
        *args: Any,
        sampler: AdaptiveBatchSampler,
        losses: Measure | None = None,
        norms: Measure | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        if losses is None and norms is None:
            norms = class_norms
        self.sampler, self._losses, self._norms = sampler, losses or class_losses, norms
        self.model_accepts_loss_kwargs = False  # the same, for versions that go by this
        self.args.ignore_data_skip = True  # the sampler knows which batch is next
        self.add_callback(BanditCallback(sampler))

    def get_train_dataloader(self) -> DataLoader:
        return DataLoader(
            IndexedDataset(self.train_dataset),
            batch_sampler=self.sampler,
            collate_fn=self._collate,
            num_workers=self.args.dataloader_num_workers,
            pin_memory=self.args.dataloader_pin_memory and torch.cuda.is_available(),
        )

    def _collate(self, samples: list[dict[str, Any]]) -> dict[str, Any]:
        """By the Trainer's collator, which need not know of the index."""
        indices = torch.tensor([sample["index"] for sample in samples])
        plain = [{name: value for name, value in sample.items() if name != "index"} for sample in samples]
        return {**self.data_collator(plain), "index": indices}

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        if "index" not in inputs:  # evaluation
            return super().compute_loss(model, inputs, return_outputs)
        plain, idx = without_index(inputs)
        outputs, labels = model(**plain), plain.get("labels")
        measure = self._norms
        norms = None if measure is None else (lambda: measure(outputs, labels))
        loss = self.sampler.loss(self._losses(outputs, labels), idx, norms)
        return (loss, outputs) if return_outputs else loss

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        training = "loss" in logs  # and not an evaluation
        super().log({**logs, **figures(self.sampler)} if training else logs, *args, **kwargs)

    def train(self, resume_from_checkpoint: str | bool | None = None, *args: Any, **kwargs: Any) -> Any:
        folder = resume_from_checkpoint
        if folder is True:
            folder = get_last_checkpoint(self.args.output_dir)
        if folder and (Path(folder) / STATE).exists():
            self.sampler.load_state_dict(torch.load(Path(folder) / STATE, weights_only=True))
        return super().train(resume_from_checkpoint, *args, **kwargs)


class BanditCallback(TrainerCallback):
    """For a `Trainer` of one's own whose ``compute_loss`` calls ``sampler.loss``: measures the noise scale at the
    optimiser's steps, and keeps the sampler's state in every checkpoint. `BanditTrainer` has it already."""

    def __init__(self, sampler: AdaptiveBatchSampler) -> None:
        self.sampler = sampler
        self._measuring: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, optimizer: Any = None, **kwargs: Any) -> None:
        plain = getattr(optimizer, "optimizer", optimizer)  # accelerate wraps it
        self._measuring = self.sampler.watch(plain, accumulate=args.gradient_accumulation_steps)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._measuring.remove()

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.is_world_process_zero:
            folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            torch.save(self.sampler.state_dict(), folder / STATE)


def class_losses(outputs: Any, labels: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of logits of shape (batch, classes)."""
    logits = outputs["logits"]
    if labels is None or logits.ndim != 2 or labels.ndim != 1:
        raise ValueError(
            "BanditTrainer expects losses=, a function of the model's outputs and the labels that gives one loss per "
            f"sample, for anything but one class per sample; got logits of shape {tuple(logits.shape)}."
        )
    return F.cross_entropy(logits, labels, reduction="none")


def class_norms(outputs: Any, labels: torch.Tensor) -> torch.Tensor:
    return cross_entropy_bound(outputs["logits"], labels)
