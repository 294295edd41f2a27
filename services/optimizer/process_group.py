"""Several optimizers as one: torch.distributed, started by torchrun's elastic agent."""

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
LEAVING_SECONDS = 10.0  # a rank that begins again takes longer than this to import torch and open its store
TIMEOUT = timedelta(seconds=120)  # a lost rank ends the others' wait; the agent then restarts the group


@dataclass(frozen=True)
class OptimizerGroup:
    """This process's place among the optimizers; alone by default. Every rank calls the same methods in the same order.

    ``reduce`` averages tensors over the ranks in place; None: there is no other. ``begin`` begins to average one, and
    returns what ends that. ``restarts``: how often the group was formed again.
    """

    rank: int = 0
    size: int = 1
    restarts: int = 0
    reduce: Callable[[list[Tensor]], None] | None = None
    begin: Callable[[Tensor], Callable[[], None]] | None = None
    _words: dist.ProcessGroup | None = None

    def everywhere(self, *here: bool) -> list[bool]:
        """By condition, whether it holds on every rank."""
        if self._words is None:
            return list(here)
        word = torch.tensor(here, dtype=torch.int32)
        dist.all_reduce(word, dist.ReduceOp.MIN, group=self._words)
        return [bool(x) for x in word.tolist()]

    def total(self, values: Sequence[float]) -> list[float]:
        """Each value summed over the ranks."""
        if self._words is None:
            return [float(x) for x in values]
        word = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(word, group=self._words)
        return [float(x) for x in word.tolist()]

    def from_first(self, values: Sequence[float]) -> list[float]:
        """Rank 0's values; every rank gives as many."""
        word = torch.tensor(values, dtype=torch.float64)
        if self._words is not None:
            dist.broadcast(word, 0, group=self._words)
        return [float(x) for x in word.tolist()]


SINGLE_OPTIMIZER = OptimizerGroup()


def device_of(configured: str) -> torch.device:
    """Where this process computes: of several ranks on a machine each has a GPU of its own."""
    if configured == "cuda" and "LOCAL_RANK" in os.environ:
        return torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    return torch.device(configured)


def join(device: torch.device) -> OptimizerGroup:
    """The group that torchrun's environment describes; alone without one. NCCL on GPUs, gloo on CPUs.

    Decisions go through a gloo group of their own, so that they need no GPU synchronisation. Raises RuntimeError when
    the agent lends its own store: it keeps that store when it starts the group again, and the new ranks would look for
    each other at the addresses of the dead ones.
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        return SINGLE_OPTIMIZER
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        settings = " ".join(f"{name}={value}" for name, value in AGENT_ENVIRONMENT.items())
        raise RuntimeError(f"torchrun must be started with {settings} in its environment")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=TIMEOUT)
    return OptimizerGroup(dist.get_rank(), size, int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")), average, begin_average,
                 dist.new_group(backend="gloo", timeout=TIMEOUT))


def begin_average(tensor: Tensor) -> Callable[[], None]:
    """Begins to average a tensor over the ranks of the default group, in place; what is returned ends that. With NCCL
    the average is the collective's own and the end is the present stream's to wait for, not the host's."""
    averages = dist.get_backend() == "nccl"
    work = dist.all_reduce(tensor, dist.ReduceOp.AVG if averages else dist.ReduceOp.SUM, async_op=True)

    def end() -> None:
        work.wait()
        if not averages:  # gloo knows no average
            tensor.div_(dist.get_world_size())

    return end


def average(tensors: list[Tensor]) -> None:
    """Averages each tensor over the ranks of the default group, in place."""
    for end in [begin_average(tensor) for tensor in tensors]:
        end()


def leave() -> Callable[[], None]:
    """Leaves the group; for a process that ends as it should. Returns what to call before this process joins again in
    another life: ranks other than the first wait until its store is gone, or they would meet in the dying one."""
    if not dist.is_initialized():
        return lambda: None
    first = dist.get_rank() == 0
    dist.barrier()  # nobody leaves while another still needs it
    dist.destroy_process_group()
    return (lambda: None) if first else _wait_for_the_store_to_go


def _wait_for_the_store_to_go() -> None:
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    end = time.monotonic() + LEAVING_SECONDS
    while time.monotonic() < end:
        try:
            socket.create_connection(address, 1.0).close()
        except OSError:
            return
        time.sleep(0.05)
    log.warning("the first rank's store at %s:%d is still there; it may have begun again already", *address)
