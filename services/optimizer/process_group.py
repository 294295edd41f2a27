"""Group of optimizer processes: torch.distributed, started by torchrun's elastic agent."""

import logging
import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from five.services.optimizer.torchrun import AGENT_ENVIRONMENT

log = logging.getLogger(__name__)
LEAVING_SECONDS = 10.0  # a restarted rank needs longer to import torch and open its store
TIMEOUT = timedelta(seconds=120)  # after this wait for a lost rank the agent restarts the group


@dataclass(frozen=True)
class OptimizerGroup:
    """This process's rank in the group; by default a group of one. Every rank calls the same methods in the same order.

    ``reduce`` averages tensors over the ranks in place; None in a group of one. ``begin`` starts to average one tensor
    and returns a function that completes it. ``restarts`` counts how often torchrun has restarted the group.
    """

    rank: int = 0
    size: int = 1
    restarts: int = 0
    reduce: Callable[[list[Tensor]], None] | None = None
    begin: Callable[[Tensor], Callable[[], None]] | None = None
    _decisions: dist.ProcessGroup | None = None

    def all_ranks(self, *here: bool) -> list[bool]:
        """Return for each condition whether it is true on every rank."""
        if self._decisions is None:
            return list(here)
        word = torch.tensor(here, dtype=torch.int32)
        dist.all_reduce(word, dist.ReduceOp.MIN, group=self._decisions)
        return [bool(x) for x in word.tolist()]

    def sum_over_ranks(self, values: Sequence[float]) -> list[float]:
        """Return each value summed over the ranks."""
        if self._decisions is None:
            return [float(x) for x in values]
        word = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(word, group=self._decisions)
        return [float(x) for x in word.tolist()]

    def broadcast(self, values: Sequence[float]) -> list[float]:
        """Return rank 0's values. Every rank passes the same number of values."""
        word = torch.tensor(values, dtype=torch.float64)
        if self._decisions is not None:
            dist.broadcast(word, 0, group=self._decisions)
        return [float(x) for x in word.tolist()]


SINGLE_OPTIMIZER = OptimizerGroup()


def device_of(configured: str) -> torch.device:
    """Return this process's device; ranks on one machine use one GPU each."""
    if configured == "cuda" and "LOCAL_RANK" in os.environ:
        return torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    return torch.device(configured)


def join(device: torch.device) -> OptimizerGroup:
    """Join the group that torchrun's environment describes: NCCL on GPUs, gloo on CPUs. Without one, return a group of
    one.

    Decisions use a separate gloo group, which needs no GPU synchronisation. Raises RuntimeError when the agent shares
    its own store: it keeps that store across restarts, and new ranks would connect to the addresses of dead ones.
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        return SINGLE_OPTIMIZER
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        settings = " ".join(f"{name}={value}" for name, value in AGENT_ENVIRONMENT.items())
        raise RuntimeError(f"torchrun lacks environment variables: start it with {settings}")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=TIMEOUT)
    restarts = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    return OptimizerGroup(dist.get_rank(), size, restarts, average, start_average,
                          dist.new_group(backend="gloo", timeout=TIMEOUT))


def start_average(tensor: Tensor) -> Callable[[], None]:
    """Start to average a tensor over the ranks in place and return a function that completes it.

    With NCCL the collective itself averages, and completion waits on the current stream, not on the host.
    """
    averages = dist.get_backend() == "nccl"
    work = dist.all_reduce(tensor, dist.ReduceOp.AVG if averages else dist.ReduceOp.SUM, async_op=True)

    def end() -> None:
        work.wait()
        if not averages:  # gloo cannot average
            tensor.div_(dist.get_world_size())

    return end


def average(tensors: list[Tensor]) -> None:
    """Average each tensor over the ranks in place."""
    for end in [start_average(tensor) for tensor in tensors]:
        end()


def leave() -> Callable[[], None]:
    """Leave the group at a normal end; return a function to call before this process joins a group again.

    The function makes ranks other than the first wait until the old store is closed, so that they do not join it.
    """
    if not dist.is_initialized():
        return lambda: None
    first = dist.get_rank() == 0
    dist.barrier()  # no rank leaves while another still needs the group
    dist.destroy_process_group()
    return (lambda: None) if first else _wait_until_store_closes


def _wait_until_store_closes() -> None:
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    end = time.monotonic() + LEAVING_SECONDS
    while time.monotonic() < end:
        try:
            socket.create_connection(address, 1.0).close()
        except OSError:
            return
        time.sleep(0.05)
    log.warning("store of rank 0 still open address=%s:%d; rank 0 may have restarted already", *address)
