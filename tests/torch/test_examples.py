"""The examples run, and the three ways of training come to the same model."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch.nn", reason='PyTorch is not installed: pip install "banditgrad[torch]"')

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.mark.parametrize(
    ("example", "needs"),
    [
        ("torch_loop", []),
        ("torch_lightning", ["lightning"]),
        ("torch_trainer", ["transformers", "accelerate"]),
    ],
)
def test_an_example_trains(example, needs):
    for package in needs:
        if not importlib.util.find_spec(package):
            pytest.skip(f"{package} is not installed: pip install {package}")
    code = f"import {example}; print({example}.main(epochs=3))"
    done = subprocess.run([sys.executable, "-c", code], cwd=EXAMPLES, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert float(done.stdout.splitlines()[-1]) == pytest.approx(0.30, abs=0.05)


ACCUMULATION = """
import torch, torch.nn.functional as F, tempfile
import torch_trainer as t
from transformers import TrainingArguments

class Kwargs(t.Classifier):
    def forward(self, x, labels, **kwargs):  # as transformers' own models, which take num_items_in_batch
        return super().forward(x, labels)

torch.manual_seed(0)
train = t.Samples(t.rare_odd_digits()[0])
model = Kwargs()
before = [w.detach().clone() for w in model.parameters()]
sampler = t.BanditBatchSampler(train, 32, seed=0)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(folder, max_steps=1, gradient_accumulation_steps=4, learning_rate=0.1, optim="sgd",
        max_grad_norm=0.0, lr_scheduler_type="constant", use_cpu=True, report_to="none", save_strategy="no",
        disable_tqdm=True, remove_unused_columns=False)
    t.BanditTrainer(model, arguments, train_dataset=train, sampler=sampler).train()
expected = Kwargs()
expected.load_state_dict(dict(zip(expected.state_dict(), before)))
epoch = iter(t.BanditBatchSampler(train, 32, seed=0))
indices = [i for _ in range(4) for i in next(epoch)]  # shuffled at first, with weights of 1
x, y = (torch.stack([torch.as_tensor(train[i][name]) for i in indices]) for name in ("x", "labels"))
F.cross_entropy(expected(x, y)["logits"], y).backward()
print(max(float((a - (b - 0.1 * w.grad)).abs().max()) / 0.1 for a, b, w in
          zip(model.parameters(), before, expected.parameters())))
"""


def test_the_trainer_example_divides_accumulated_gradients():
    for package in ("transformers", "accelerate"):
        if not importlib.util.find_spec(package):
            pytest.skip(f"{package} is not installed: pip install {package}")
    done = subprocess.run(
        [sys.executable, "-c", ACCUMULATION], cwd=EXAMPLES, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert float(done.stdout.splitlines()[-1]) < 1e-5
