"""Child processes of a benchmark. Client and server are separate processes and so never share an interpreter lock."""

import asyncio
import multiprocessing
import os
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from dota import packing
from rapid import codec
from rapid.allocator import tune_allocator
from rapid.config import RpcConfig
from rapid.rpc.server import Register, serve

RPC = RpcConfig(require_token=False)
START_SECONDS = 300.0  # includes loading a GPU's libraries and capturing graphs


class ChildProcess:
    """Process that runs ``target(pipe, *arguments)`` and ends with the block. ``first`` is its first message.

    The target communicates through the pipe and returns when the other end is closed.
    """

    def __init__(self, target: Callable[..., None], *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, far = context.Pipe()
        self._process = context.Process(target=_run, args=(target, far, *arguments), daemon=True)
        self._process.start()
        self.pid = self._process.pid
        far.close()
        self.first: Any = None

    def processor_seconds(self) -> float:
        """Return the processor time of the process so far, in steps of 10 ms; 0 without /proc."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def receive(self, seconds: float = START_SECONDS) -> Any:
        """Return the process's next message. Raises RuntimeError if it has ended, TimeoutError without a message."""
        if not self.pipe.poll(seconds):
            raise TimeoutError(f"no message from the benchmark's server for {seconds:g} s")
        try:
            return self.pipe.recv()
        except EOFError:
            raise RuntimeError("the benchmark's server ended; its error is above") from None

    def __enter__(self) -> "ChildProcess":
        self.first = self.receive()
        return self

    def __exit__(self, *_: object) -> None:
        self.pipe.close()
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def prepare() -> None:
    """Apply the process settings of a service."""
    tune_allocator()
    torch.set_flush_denormal(True)
    codec.register(packing.pack_f16, packing.unpacked_f16, packing.pack_changes)


def _run(target: Callable[..., None], pipe: Connection, *arguments: Any) -> None:
    prepare()
    try:
        target(pipe, *arguments)
    except (EOFError, KeyboardInterrupt):
        pass  # the benchmark has ended


def serve_until_closed(pipe: Connection, services: Sequence[Register]) -> None:
    """Serve each service on its own port, send the addresses, and end when the pipe is closed."""

    async def run() -> None:
        servers = [await serve("127.0.0.1:0", [service], RPC) for service in services]
        pipe.send([f"127.0.0.1:{server.port}" for server in servers])
        try:
            await asyncio.to_thread(pipe.recv)
        except EOFError:
            pass
        for server in servers:
            await server.stop(0)

    asyncio.run(run())
