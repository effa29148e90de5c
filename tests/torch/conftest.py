import importlib.util

import pytest


@pytest.fixture(autouse=True)
def _one_thread():
    """Test workers share the machine's cores."""
    if importlib.util.find_spec("torch._C"):
        import torch

        torch.set_num_threads(1)
