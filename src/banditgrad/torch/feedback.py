"""What to feed back: per-sample gradient norms, from a cheap proxy to the exact ones.

Only ratios within a run matter, so constant factors are left out. From cheap to exact:

    loss_values            the loss itself: for any loss, the crudest
    *_bound                ‖∂φ/∂z‖, z the model's outputs: closed form, for free
    LastLayer(...).norms   the exact norm of the last layer's gradient: ‖∂φ/∂z‖ · ‖(input, 1)‖
    gradient_norms         the exact norm of the whole gradient: a second backward pass
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from banditgrad._jit import kernel


def loss_values(loss: Tensor) -> Tensor:
    """|φ_i|, summed over what follows the first axis."""
    return loss.detach().abs().flatten(1).sum(1) if loss.ndim > 1 else loss.detach().abs()


def cross_entropy_bound(
    logits: Tensor, target: Tensor, *, ignore_index: int = -100, label_smoothing: float = 0.0
) -> Tensor:
    """‖softmax(z) − y‖ for softmax cross-entropy; y one-hot, or smoothed.

    The norm of the gradient with respect to the logits. By Katharopoulos and Fleuret (2018) the gradient with respect
    to the parameters is at most a constant times this, the same constant for all samples.

    Parameters
    ----------
    logits : tensor of shape (batch, classes) or (batch, classes, ...), as a sequence's (batch, classes, length)
        With more than two axes the loss of a sample is the sum, or the mean, over its positions.
    target : tensor with class indices, of the shape of logits without the classes, or with probabilities, of theirs
    ignore_index : int
        A class index that stands for no target, as in ``F.cross_entropy``; its samples have the norm 0.
    label_smoothing : float
        As in ``F.cross_entropy``: y is (1 − label_smoothing) y + label_smoothing / classes.
    """
    if logits.ndim == 2 and target.shape == logits.shape[:1] and label_smoothing == 0.0 and _is_compiled(logits):
        return _class_error(logits, target, ignore_index)
    of_classes = logits.shape[:1] + logits.shape[2:]
    if logits.ndim < 2 or target.shape not in (of_classes, logits.shape):
        raise ValueError(
            "cross_entropy_bound expects logits of shape (batch, classes, ...) and targets of shape (batch, ...) or "
            f"(batch, classes, ...), got {tuple(logits.shape)} and {tuple(target.shape)}."
        )
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"cross_entropy_bound expects label_smoothing from 0 to 1, got {label_smoothing!r}.")
    with torch.no_grad():
        if target.ndim == logits.ndim:
            error = _smoothed_error(logits, target, label_smoothing)
            return torch.linalg.vector_norm(error.flatten(1), dim=1)
        flat = logits.movedim(1, -1).reshape(-1, logits.shape[1])  # a row per position
        norms = _index_bound(flat, target.reshape(-1), ignore_index, label_smoothing)
        return norms if logits.ndim == 2 else torch.linalg.vector_norm(norms.reshape(len(logits), -1), dim=1)


def _index_bound(logits: Tensor, target: Tensor, ignore_index: int, smoothing: float) -> Tensor:
    """The bound for logits of shape (rows, classes) and class indices."""
    if smoothing == 0.0 and _is_compiled(logits):
        return _class_error(logits, target, ignore_index)
    kept = target != ignore_index
    one_hot = torch.zeros_like(logits).scatter_(1, (target * kept).long()[:, None], 1.0)
    return torch.linalg.vector_norm(_smoothed_error(logits, one_hot, smoothing), dim=1) * kept


def _smoothed_error(logits: Tensor, target: Tensor, smoothing: float) -> Tensor:
    """softmax(z) − (1 − ε) y − ε / classes, ε = `smoothing`."""
    return torch.softmax(logits, dim=1) - (1.0 - smoothing) * target - smoothing / logits.shape[1]


def _is_compiled(logits: Tensor) -> bool:
    return logits.dtype in _COMPILED and logits.is_cpu and not torch.compiler.is_compiling()


_COMPILED = (torch.float32, torch.float64)


def _class_error(logits: Tensor, target: Tensor, ignore_index: int) -> Tensor:
    """The bound for class indices and CPU tensors in one go, in less than half the time: the seven operations of torch
    take longer to begin than to do."""
    z = np.ascontiguousarray(logits.detach().numpy())
    norms = np.empty(len(z), z.dtype)
    y = target if target.dtype is torch.int64 else target.long()
    if not _class_errors.dispatcher(z, np.ascontiguousarray(y.numpy()), ignore_index, norms):  # of no parts
        raise IndexError(
            f"cross_entropy_bound expects targets from 0 to {z.shape[1] - 1} for {z.shape[1]} classes, or "
            f"{ignore_index} for none, got {int(target.min())} to {int(target.max())}."
        )
    return torch.from_numpy(norms)


@kernel
def _class_errors(z, target, none, norms):
    """norms_i = ‖softmax(z_i) − y_i‖; False where a target is not a class."""
    classes = z.shape[1]
    for i in range(norms.size):
        y = target[i]
        if y == none:
            norms[i] = 0.0
            continue
        if y < 0 or y >= classes:
            return False
        top = z[i, 0]
        for k in range(1, classes):
            top = max(top, z[i, k])
        others, square = 0.0, 0.0  # Σ_{k≠y} e_k and Σ_{k≠y} e_k², for 1 − p_y without cancellation
        for k in range(classes):
            if k != y:
                e = math.exp(z[i, k] - top)
                others += e
                square += e * e
        norms[i] = math.sqrt(square + others * others) / (others + math.exp(z[i, y] - top))
    return True


def binary_cross_entropy_bound(logits: Tensor, target: Tensor) -> Tensor:
    """‖σ(z) − y‖ for logistic loss, one output or several independent ones."""
    return _residual_norms("binary_cross_entropy_bound", torch.sigmoid(logits.detach()), target)


def squared_error_bound(output: Tensor, target: Tensor) -> Tensor:
    """‖z − y‖ for squared error: the norm of the gradient with respect to the outputs."""
    return _residual_norms("squared_error_bound", output.detach(), target)


def _residual_norms(who: str, output: Tensor, target: Tensor) -> Tensor:
    if output.shape != target.shape:
        raise ValueError(
            f"{who} expects outputs and targets of one shape, got {tuple(output.shape)} and {tuple(target.shape)}."
        )
    return torch.linalg.vector_norm((output - target).reshape(len(output), -1), dim=1)


class LastLayer:
    """The exact norm of the gradient with respect to the last linear layer, W x + b:  ‖∂φ/∂z‖ · √(‖x‖² + [b]).

    A hook keeps the layer's input x of the last forward pass; `close` takes it off again.

    Example
    -------
    >>> head = LastLayer(model[-1])
    >>> z = model(x)
    >>> sampler.update(idx, head.norms(cross_entropy_bound(z, y)))
    """

    def __init__(self, layer: nn.Linear) -> None:
        if not isinstance(layer, nn.Linear):
            raise TypeError(f"LastLayer expects an nn.Linear, got {type(layer).__name__}.")
        self.bias = layer.bias is not None
        self._square: Tensor | None = None
        self._hook = layer.register_forward_pre_hook(self._keep)

    def _keep(self, layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        x = inputs[0].detach()
        self._square = x.square().sum(-1)

    def norms(self, output_norms: Tensor) -> Tensor:
        """The layer's gradient norms from ‖∂φ/∂z‖, which the ``*_bound`` functions give."""
        if self._square is None or self._square.shape != output_norms.shape:
            got = "there was no forward pass" if self._square is None else f"that had {tuple(self._square.shape)}"
            raise ValueError(
                f"LastLayer.norms expects the norms of the samples of the last forward pass, got "
                f"{tuple(output_norms.shape)}, but {got}."
            )
        return output_norms * (self._square + float(self.bias)).sqrt()

    def close(self) -> None:
        self._hook.remove()


def gradient_norms(
    model: nn.Module,
    loss: Callable[[Any, Tensor], Tensor],
    x: Tensor,
    y: Tensor,
    *,
    chunk_size: int | None = None,
) -> Tensor:
    """‖∇φ_i(w)‖ over all parameters that are trained, exactly.

    Costs about a second forward and backward pass, and the memory of one gradient per sample; `chunk_size` samples at
    a time if that is too much. Dropout draws masks of its own here.

    Parameters
    ----------
    model : nn.Module
        Must treat samples independently: no batch normalisation in training mode.
    loss : function
        ``loss(model(x), y)`` of a batch, as a scalar or one value per sample, such as ``nn.CrossEntropyLoss()``.
    """
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.training:
            raise ValueError(
                "gradient_norms needs samples that do not depend on each other, got a model with batch normalisation "
                "in training mode. Put it in eval mode, use GroupNorm, or feed back a *_bound."
            )
    trained = {name: w.detach() for name, w in model.named_parameters() if w.requires_grad}
    fixed = {name: w.detach() for name, w in model.named_parameters() if not w.requires_grad}
    fixed.update(model.named_buffers())

    def one(weights: dict[str, Tensor], x_i: Tensor, y_i: Tensor) -> Tensor:
        return loss(functional_call(model, {**weights, **fixed}, (x_i[None],)), y_i[None]).sum()

    def square_norm(x_i: Tensor, y_i: Tensor) -> Tensor:
        gradients = grad(one)(trained, x_i, y_i)
        return torch.stack([g.square().sum() for g in gradients.values()]).sum()

    return vmap(square_norm, randomness="different", chunk_size=chunk_size)(x, y).sqrt().detach()
