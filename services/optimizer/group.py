"""Several optimizers as one: torch.distributed, started by torchrun's elastic agent."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

TIMEOUT = timedelta(seconds=120)  # a lost rank ends the others' wait; the agent then restarts the group


@dataclass(frozen=True)
class Group:
    """This process's place. ``reduce`` averages tensors in place; ``agree`` is true where all are."""

    rank: int
    size: int
    reduce: Callable[[list[Tensor]], None] | None
    agree: Callable[[bool], bool]


def join(device: torch.device) -> Group:
    """The group that torchrun's environment describes; alone without one. NCCL on GPUs, gloo on CPUs.

    Decisions go through a gloo group of their own, so that they need no GPU synchronisation.
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        return Group(0, 1, None, lambda mine: mine)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=TIMEOUT)
    words = dist.new_group(backend="gloo", timeout=TIMEOUT)

    def reduce(tensors: list[Tensor]) -> None:
        for tensor in tensors:
            dist.all_reduce(tensor)
            tensor /= size

    def agree(mine: bool) -> bool:
        word = torch.tensor([int(mine)])
        dist.all_reduce(word, dist.ReduceOp.MIN, group=words)
        return bool(word.item())

    return Group(dist.get_rank(), size, reduce, agree)
