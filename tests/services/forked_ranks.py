"""Two ranks of an optimizer group: one in the test's process, the other in a fork of it, which starts at once."""

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import pytest
import torch
import torch.distributed as dist

from five.local.cluster import free_ports

SECONDS = 60


def run_two_ranks(work: Callable[[int], Any], here: int) -> list[Any]:
    """Return the results of ``work(rank)`` on ranks 0 and 1; this process is rank ``here``."""
    (port,) = free_ports(1)
    with pytest.MonkeyPatch.context() as environment:
        for name, value in {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}.items():
            environment.setenv(name, value)
        environment.delenv("TORCHELASTIC_USE_AGENT_STORE", raising=False)
        receiving, sending = multiprocessing.Pipe(duplex=False)
        other = multiprocessing.get_context("fork").Process(target=_run_rank, args=(work, 1 - here, sending))
        environment.setenv("RANK", str(1 - here))
        other.start()
        sending.close()
        environment.setenv("RANK", str(here))
        try:
            own = work(here)
            assert receiving.poll(SECONDS), f"rank {1 - here} has not ended after {SECONDS} s"
            result, error = receiving.recv()
            assert not error, f"rank {1 - here} failed: {error}"
        finally:
            other.kill()
            other.join()
            if dist.is_initialized():
                dist.destroy_process_group()
    return [own, result] if here == 0 else [result, own]


def _run_rank(work: Callable[[int], Any], rank: int, sending: Connection) -> None:
    torch.set_num_threads(1)  # a fork has none of the other threads
    try:
        sending.send((work(rank), ""))
    except BaseException as error:
        sending.send((None, repr(error)))
    os._exit(0)  # without the exit handlers of the test's process
