"""NumPy arrays as tensors, so that ``torch.save`` and ``torch.load(weights_only=True)`` take a saved state."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray


def to_tensors(arrays: Mapping[str, NDArray[Any]]) -> dict[str, torch.Tensor]:
    """Tensors that share the arrays' memory; what torch has no type for as bytes."""
    return {name: torch.from_numpy(_plain(array)) for name, array in arrays.items()}


def from_tensors(tensors: Mapping[str, torch.Tensor], like: Mapping[str, NDArray[Any]]) -> dict[str, ArrayLike]:
    """The arrays again, with the types of `like`."""
    arrays: dict[str, ArrayLike] = {}
    for name, tensor in tensors.items():
        array = tensor.cpu().numpy()
        if name in like and _is_foreign(like[name]) and array.dtype == np.uint8 and array.ndim == 1:
            whole = array.size - array.size % like[name].dtype.itemsize
            array = array[:whole].view(like[name].dtype)
        arrays[name] = array
    return arrays


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    return array.view(np.uint8).ravel() if _is_foreign(array) else array


def _is_foreign(array: NDArray[Any]) -> bool:
    return array.dtype.kind == "V" or array.dtype == np.uint64  # records; and torch can do little with uint64
