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
