"""Lightning: a callback, so that a module's ``training_step`` need only return one loss per sample."""

import functools
from typing import Any

try:
    import lightning.pytorch as _lightning
except ModuleNotFoundError as error:
    if error.name != "lightning":
        raise
    raise ModuleNotFoundError(
        "banditgrad.torch.lightning needs Lightning, which is not installed. Run: pip install lightning",
        name="lightning",
    ) from error

from banditgrad.torch.base import AdaptiveBatchSampler
from banditgrad.torch.dataset import without_index
from banditgrad.torch.figures import figures


class BanditCallback(_lightning.Callback):
    """Weights the losses of a `BanditBatchSampler`'s batches, feeds them back, logs the meter, keeps checkpoints.

    The module's ``training_step`` gets batches without their index, as from a plain loader, and returns one loss per
    sample, alone or as "loss" in a dictionary that may also have "norms", what to feed back; the losses unless given.

    Parameters
    ----------
    sampler : BanditBatchSampler or GroupBatchSampler
        That of the loader that `Trainer.fit` is given.
    log : bool
        Log "bandit/saving", "bandit/tau", "bandit/noise_scale" and "bandit/adaptive" as often as the Trainer logs.

    Example
    -------
    >>> loader = bandit_loader(dataset, 64, seed=0)
    >>> callback = BanditCallback(loader.batch_sampler)
    >>> Trainer(callbacks=[callback], use_distributed_sampler=False).fit(module, loader)
    """

    def __init__(self, sampler: AdaptiveBatchSampler, *, log: bool = True) -> None:
        if not isinstance(sampler, AdaptiveBatchSampler):
            raise TypeError(f"BanditCallback expects a BanditBatchSampler, got {type(sampler).__name__}.")
        self.sampler, self.log = sampler, log
        self._measuring: Any = None

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        if stage == "fit":
            pl_module.training_step = self._weighted(pl_module.training_step)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        if stage == "fit":
            del pl_module.training_step  # the class's again

    def _weighted(self, training_step: Any) -> Any:
        @functools.wraps(training_step)  # Lightning looks at its arguments
        def step(batch: Any, *args: Any, **kwargs: Any) -> Any:
            plain, idx = without_index(batch)
            output = training_step(plain, *args, **kwargs)
            if output is None:  # the module skips this batch
                return None
            if not isinstance(output, dict):
                return self.sampler.loss(output, idx)
            rest = dict(output)
            rest["loss"] = self.sampler.loss(output["loss"], idx, rest.pop("norms", None))
            return rest

        return step

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        found = getattr(trainer.train_dataloader, "batch_sampler", self.sampler)
        if found is not self.sampler:
            raise RuntimeError(
                f"BanditCallback: the training loader's batches come from a {type(found).__name__}, not from the "
                "sampler of this callback. Pass Trainer.fit the loader that has it, and Trainer "
                "use_distributed_sampler=False."
            )
        self._measuring = self.sampler.watch(trainer.optimizers[0], accumulate=trainer.accumulate_grad_batches)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._measuring.remove()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if self.log and (batch_idx + 1) % trainer.log_every_n_steps == 0:
            pl_module.log_dict(figures(self.sampler), batch_size=self.sampler.batch_size)

    def state_dict(self) -> dict[str, Any]:
        return self.sampler.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.sampler.load_state_dict(state_dict)
