"""The real inference server with counting versions, on a free port."""

import asyncio
import math
from typing import Any

import torch

from five.protos.v1 import inference_pb2_grpc
from five.services.inference.batcher import Batcher, BatcherOptions
from five.services.inference.models import Models
from five.services.inference.service import InferenceService
from five.services.inference.sessions import SessionTable
from rapid.config import RpcConfig
from rapid.rpc.server import RpcServer, serve
from tests.services.counting import HEROES, LAYOUT, STATE_SPECS, CountingBuilder, Versions

RPC = RpcConfig(require_token=False, deadline_seconds=20, backoff_seconds=0.02, max_backoff_seconds=0.1)
# For clients whose server dies: it is not dialled for long.
QUICK = RPC.model_copy(update={"deadline_seconds": 1.0})


class InferenceServer:
    """Server as an ``async with`` context; ``stop`` kills it at once."""

    def __init__(self, versions: Versions, lease_seconds: float = 60.0, epoch: int = 1, port: int = 0,
                 **options: Any) -> None:
        self.versions = versions
        self.builder = CountingBuilder()
        self.models = Models(versions, self.builder, past_bytes=2, poll_seconds=60)
        self.table = SessionTable(STATE_SPECS, torch.device("cpu"), 10_000, lease_seconds)
        self.batcher = Batcher(self.models, self.table, BatcherOptions(**options))
        self.epoch = epoch
        self._rpc: RpcServer | None = None
        self.address = f"127.0.0.1:{port}"

    async def __aenter__(self) -> "InferenceServer":
        self.models.refresh()
        self.batcher.start()
        await self._serve()
        return self

    async def _serve(self) -> None:
        servicer = InferenceService("test", "schema", LAYOUT.hash, LAYOUT.array_specs(), STATE_SPECS, HEROES,
                                    self.models, self.batcher, epoch=self.epoch, read_ahead=RPC.read_ahead_bytes)
        self._rpc = await serve(self.address, [(inference_pb2_grpc.add_InferenceServiceServicer_to_server, servicer)],
                                RPC)
        self.address = f"127.0.0.1:{self._rpc.port}"

    async def renew(self, epoch: int) -> None:
        """Restart at the same address in another fencing epoch, without the sessions' states. The system must not give
        out its port meanwhile."""
        assert self._rpc is not None
        await self._rpc.stop(0)
        self.table.expire(math.inf)
        self.epoch = epoch
        await self._serve()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Stop without notifying clients."""
        if self._rpc is not None:
            rpc, self._rpc = self._rpc, None
            await rpc.stop(0)
            await asyncio.to_thread(self.batcher.close)
            self.models.close()
