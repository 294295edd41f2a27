"""Group of optimizer processes: torch.distributed, started by `services.optimizer.agent` on each node."""

import logging
import os
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from rapid.tensorfile import split_chunks

log = logging.getLogger(__name__)
LAST_WRITES_SECONDS = 3600.0  # the agent kills its ranks after as long
LEAVING_SECONDS = 10.0  # a restarted rank needs longer to import torch and open its store
TIMEOUT = timedelta(seconds=120)  # after this wait for a lost rank the agent restarts the group
START_SECONDS = 1800.0  # default of services.optimizer.start_timeout_seconds
CHUNK_BYTES = 32 << 20  # of one broadcast of bytes
DIGEST_BYTES = 16
_STARTED, _ENDED = "first-rank-started", "first-rank-ended"


@dataclass(frozen=True)
class OptimizerGroup:
    """This process's rank in the group; by default a group of one. Every rank calls the same methods in the same order.

    ``reduce`` averages tensors over the ranks in place; None in a group of one. ``begin`` starts to average one tensor
    and returns a function that completes it. ``restarts`` counts how often the agent has restarted its ranks after a
    loss. ``start_seconds`` is how long the others wait for rank 0 at the start.
    """

    rank: int = 0
    size: int = 1
    restarts: int = 0
    reduce: Callable[[list[Tensor]], None] | None = None
    begin: Callable[[Tensor], Callable[[], None]] | None = None
    start_seconds: float = START_SECONDS
    _decisions: dist.ProcessGroup | None = None
    _store: Store | None = None
    _device: str = "cpu"  # on which the default group averages

    def all_ranks(self, *here: bool) -> list[bool]:
        """Return for each condition whether it is true on every rank."""
        return self.begin_all_ranks(*here)()

    def begin_all_ranks(self, *here: bool) -> Callable[[], list[bool]]:
        """Start `all_ranks` and return a function that waits for its result. Each rank calls that function once."""
        if self._decisions is None:
            return lambda: list(here)
        tensor = torch.tensor(here, dtype=torch.int32)
        work = dist.all_reduce(tensor, dist.ReduceOp.MIN, group=self._decisions, async_op=True)

        def end() -> list[bool]:
            work.wait()
            return [bool(x) for x in tensor.tolist()]

        return end

    def wait_for_first(self) -> None:
        """Wait until rank 0 has called this, for at most ``start_seconds``: it reads a checkpoint meanwhile.

        Collective operations time out sooner. Raises RuntimeError after that time or when rank 0 is lost.
        """
        began = time.monotonic()
        try:
            self._wait_for_first(_STARTED, self.start_seconds)
        except RuntimeError as error:
            raise RuntimeError(f"optimizer 0 has not started after {time.monotonic() - began:.0f} s "
                               f"(services.optimizer.start_timeout_seconds {self.start_seconds:g}): {error}") from None

    def wait_for_last_writes(self) -> None:
        """Wait until rank 0 has called this: it writes the last version and checkpoint meanwhile.

        Raises RuntimeError when rank 0 is lost.
        """
        try:
            self._wait_for_first(_ENDED, LAST_WRITES_SECONDS)
        except RuntimeError as error:
            raise RuntimeError(f"optimizer 0 ended before its last writes: {error}") from None

    def _wait_for_first(self, key: str, seconds: float) -> None:
        if self._store is None:
            return
        if self.rank == 0:
            self._store.set(key, "1")
        else:
            self._store.wait([key], timedelta(seconds=seconds))

    def broadcast_bytes(self, pieces: Iterable[memoryview]) -> npt.NDArray[np.uint8]:
        """Return the bytes of rank 0's pieces on every other rank, and nothing on rank 0. The others pass no pieces.

        Bytes travel in chunks over the group's backend. Raises RuntimeError if a digest of them differs.
        """
        chunks = split_chunks(pieces, CHUNK_BYTES)
        (size,) = map(int, self.broadcast([sum(len(part) for chunk in chunks for part in chunk)]))
        received = np.empty(0 if self.rank == 0 else size, np.uint8)
        digest = blake2b(digest_size=DIGEST_BYTES)
        for index, begin in enumerate(range(0, size, CHUNK_BYTES)):
            if self.rank == 0:
                host = torch.frombuffer(bytearray().join(chunks[index]), dtype=torch.uint8)
            else:
                host = torch.from_numpy(received[begin:begin + CHUNK_BYTES])
            buffer = host.to(self._device)
            dist.broadcast(buffer, 0)
            host.copy_(buffer)
            digest.update(host.numpy().data)
        own = list(digest.digest())
        if self.broadcast(own) != own:
            raise RuntimeError(f"optimizer {self.rank} received other bytes than optimizer 0 sent; the group restarts")
        return received

    def sum_over_ranks(self, values: Sequence[float]) -> list[float]:
        """Return each value summed over the ranks."""
        if self._decisions is None:
            return [float(x) for x in values]
        tensor = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(tensor, group=self._decisions)
        return [float(x) for x in tensor.tolist()]

    def broadcast(self, values: Sequence[float]) -> list[float]:
        """Return rank 0's values. Every rank passes the same number of values."""
        tensor = torch.tensor(values, dtype=torch.float64)
        if self._decisions is not None:
            dist.broadcast(tensor, 0, group=self._decisions)
        return [float(x) for x in tensor.tolist()]


SINGLE_OPTIMIZER = OptimizerGroup()


def device_of(configured: str) -> torch.device:
    """Return this process's device; ranks on one machine use one GPU each."""
    if configured == "cuda" and "LOCAL_RANK" in os.environ:
        return torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    return torch.device(configured)


def use_device(device: torch.device) -> None:
    """Make a numbered GPU the current device of the calling thread.

    A thread starts with the first GPU. PyTorch calls that name no device, such as the capture of a CUDA graph, would
    open a context there, and that of every rank takes some of its memory.
    """
    if device.type == "cuda" and device.index is not None:
        torch.cuda.set_device(device)


def join(device: torch.device, start_seconds: float = START_SECONDS) -> OptimizerGroup:
    """Join the group that the agent's environment describes: NCCL on GPUs, gloo on CPUs. Without one, return a group of
    one.

    Decisions use a separate gloo group, which needs no GPU synchronisation. Raises RuntimeError when the agent shares
    its own store: it keeps that store across restarts, and new ranks would connect to the addresses of dead ones.
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        return SINGLE_OPTIMIZER
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        raise RuntimeError("the ranks were started by torchrun: start them with "
                           "`python -m five.services.optimizer.agent`")
    use_device(device)
    store, rank, size = next(rendezvous("env://", timeout=TIMEOUT))
    store.set_timeout(TIMEOUT)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", store=PrefixStore("group", store),
                            rank=rank, world_size=size, timeout=TIMEOUT)
    restarts = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    decisions = dist.new_group(backend="gloo", timeout=TIMEOUT)
    return OptimizerGroup(rank, size, restarts, average, start_average, start_seconds, decisions,
                          PrefixStore("start", store), str(device))


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


def leave(group: OptimizerGroup) -> Callable[[], None]:
    """Leave the group at a normal end; return a function to call before this process joins a group again.

    The other ranks wait for rank 0's last writes. The function makes them wait until the old store is closed, so that
    they do not join it.
    """
    if not dist.is_initialized():
        return lambda: None
    first = dist.get_rank() == 0
    group.wait_for_last_writes()
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
