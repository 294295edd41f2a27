"""Waiting for the server of a channel."""

import asyncio

import pytest

from rapid.config import RpcConfig
from rapid.rpc.access import Audience
from rapid.rpc.channel import aio_channel
from rapid.rpc.server import serve
from tests.rapid.conftest import known_callers


async def test_a_wait_ends_when_the_server_refuses(rpc_config: RpcConfig) -> None:
    """A caller with another server goes there at once; one without waits for this server's start."""
    refused = aio_channel("127.0.0.1:1", rpc_config)
    with pytest.raises(TimeoutError, match="no server accepts connections at 127.0.0.1:1"):
        async with asyncio.timeout(30):
            await refused.ready(60, until_refused=True)
    with pytest.raises(TimeoutError, match=r"no server responds at 127.0.0.1:1 within 0.2 s"):
        await refused.ready(0.2)
    await refused.close()


async def test_a_wait_ends_when_the_server_responds(rpc_config: RpcConfig) -> None:
    server = await serve("127.0.0.1:0", [], rpc_config, known_callers(Audience.INFERENCE))
    accepted = aio_channel(f"127.0.0.1:{server.port}", rpc_config)
    await accepted.ready(60, until_refused=True)
    await accepted.close()
    await server.stop(0)
