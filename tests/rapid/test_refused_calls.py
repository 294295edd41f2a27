"""Memory of a server while it ends calls with large messages: a server process of its own, and real connections."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc.aio
import pytest

from rapid.rpc.access import Audience
from rapid.rpc.caller_secret import derive_token
from rapid.rpc.health import CHECK
from rapid.rpc.security import token_metadata
from tests.containers.engine import ROOT
from tests.rapid.conftest import CLI_SECRET

SERVER = """
import asyncio
from five.protos.v1 import inference_pb2_grpc, opponents_pb2_grpc
from rapid.config import RpcConfig
from rapid.rpc.server import serve
from tests.rapid.conftest import audience_of, known_callers

async def main():
    servers = []
    for add, servicer in (
            (inference_pb2_grpc.add_InferenceServiceServicer_to_server, inference_pb2_grpc.InferenceServiceServicer),
            (opponents_pb2_grpc.add_OpponentServiceServicer_to_server, opponents_pb2_grpc.OpponentServiceServicer)):
        servers.append(await serve("127.0.0.1:0", [(add, servicer())], RpcConfig(), known_callers(audience_of(add))))
        print(servers[-1].port, flush=True)
    await servers[0].wait()

asyncio.run(main())
"""
MEBIBYTE = 1 << 20
MESSAGE = 48 * MEBIBYTE
CALLS = 3


class ServerProcess:
    """A process with a server of inference and one of opponents."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True, cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'libs'}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"})
        assert self.process.stdout is not None
        self.ports = [int(self.process.stdout.readline()) for _ in range(2)]

    def mebibytes(self, key: str) -> float:
        """Return a memory row of the process, VmRSS (now) or VmHWM (its maximum)."""
        rows = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(row.split()[1]) for row in rows if row.startswith(f"{key}:")) / 1024


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    server = ServerProcess()
    yield server
    server.process.kill()
    server.process.wait()


async def refusals(port: int, method: str, token: str | None) -> list[tuple[str, str]]:
    """Return status and details of CALLS parallel calls with a large message each."""
    # One field, which no message has: a valid message that is skipped.
    message = b"\x9a\x06\x80\x80\x80\x18" + bytes(MESSAGE)

    async def call(channel: grpc.aio.Channel) -> tuple[str, str]:
        running = channel.unary_unary(method)(message, metadata=token_metadata(token), timeout=30)
        return (await running.code()).name, await running.details()

    options = [("grpc.max_send_message_length", -1)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        return await asyncio.gather(*(call(channel) for _ in range(CALLS)))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
async def test_refused_calls_are_not_read(server: ServerProcess) -> None:
    before = server.mebibytes("VmRSS")
    inference, opponents = server.ports
    for code, details in await refusals(inference, "/five.v1.InferenceService/GetModel", None):
        assert code == "UNAUTHENTICATED" and "no valid token" in details
    # A caller that is known, and not allowed to call the method.
    token = derive_token(CLI_SECRET, Audience.INFERENCE)
    for code, details in await refusals(inference, "/five.v1.InferenceService/GetModel", token):
        assert code == "PERMISSION_DENIED" and "caller cli" in details
    # Health checks need no token.
    assert [code for code, _ in await refusals(inference, CHECK, None)] == ["OK"] * CALLS
    # An allowed caller whose request is far larger than any of this service.
    token = derive_token(CLI_SECRET, Audience.OPPONENTS)
    for code, details in await refusals(opponents, "/five.v1.OpponentService/GetPool", token):
        assert code == "RESOURCE_EXHAUSTED" and "65536" in details
    # gRPC buffers a few MiB of each call, by its flow control window. Read, one set of calls takes 380 MiB.
    assert server.mebibytes("VmHWM") - before < 72, "less than half of the messages of one set of calls"
