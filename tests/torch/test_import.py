"""PyTorch is asked for by banditgrad.torch alone."""

import subprocess
import sys

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # import torch now fails as if it were not installed
"""


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_importing_banditgrad_does_not_import_torch():
    done = run("import banditgrad, sys; assert 'torch' not in sys.modules; print('fine')")
    assert done.stdout == "fine\n", done.stderr


def test_without_torch_the_error_says_what_to_install():
    done = run(WITHOUT_TORCH + "import banditgrad\nimport banditgrad.torch")
    assert 'pip install "banditgrad[torch]"' in done.stderr
