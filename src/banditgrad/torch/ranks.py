"""What ranks of a distributed run tell each other: nothing but the norms of their own slices."""

from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray


def rank_and_size() -> tuple[int, int]:
    """This process and how many there are; (0, 1) unless torch.distributed has been initialised."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def agreed_seed(seed: int) -> int:
    """Rank 0's seed, on all ranks."""
    if rank_and_size()[1] == 1:
        return seed
    box = [seed]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def mean_over_ranks(values: tuple[float, ...]) -> tuple[float, ...]:
    """The same numbers on all ranks, to the bit, also where each holds a shard of the parameters."""
    if rank_and_size()[1] == 1:
        return values
    everyone: list[Any] = [None] * rank_and_size()[1]
    dist.all_gather_object(everyone, values)
    return tuple(np.mean(everyone, axis=0).tolist())


def gather(norms: torch.Tensor, ordinal: int, fingerprint: int) -> NDArray[np.float64]:
    """The norms of a whole batch from the slices of all ranks, which must be slices of the same batch."""
    _, size = rank_and_size()
    head = torch.tensor([ordinal, fingerprint], dtype=torch.float64, device=norms.device)
    mine = torch.cat([head, norms.double()])
    everyone = [torch.empty_like(mine) for _ in range(size)]
    dist.all_gather(everyone, mine)
    table = torch.stack(everyone).cpu().numpy()
    if (table[:, :2] != table[0, :2]).any():
        raise RuntimeError(
            "BanditBatchSampler: the ranks have drifted apart, their feedback is for different batches (number and "
            f"checksum: {[(int(k), int(check)) for k, check in table[:, :2]]}). Give every rank the same seed, "
            "batch_size and number of updates, and do not use a DataLoader with in_order=False."
        )
    return table[:, 2:].ravel()
