"""Fixtures of the platform's tests: real Redis servers and real gRPC servers on this machine."""

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import redis

from rapid.config import RpcConfig, StoreConfig
from rapid.embedded_redis import EmbeddedRedis, RunningRedis
from rapid.rpc.server import RpcServer, serve

TOKEN = "a-token-of-the-tests"  # noqa: S105


@pytest.fixture(autouse=True)
def root_logger() -> Iterator[None]:
    """Whatever a test does to the process's logging ends with it."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRedis]:
    """A Redis server for all tests; each takes a database flushed for it."""
    with EmbeddedRedis(tmp_path_factory.mktemp("redis"), append_only=False).start() as server:
        yield server


@pytest.fixture
def database(redis_server: RunningRedis) -> Iterator[redis.Redis]:
    client = redis.Redis.from_url(redis_server.url)
    client.flushall()
    yield client
    client.close()


@pytest.fixture
def store_config() -> StoreConfig:
    return StoreConfig(chunk_mebibytes=0.0625, keep_versions=2, grace_seconds=30, archive_every=1)


@pytest.fixture
def rpc_config() -> RpcConfig:
    return RpcConfig(max_message_mebibytes=1, deadline_seconds=5, retries=2, backoff_seconds=0.02,
                     max_backoff_seconds=0.1, reconnect_seconds=5)


@pytest.fixture
async def start_server(rpc_config: RpcConfig) -> AsyncIterator[Callable[..., Any]]:
    """Starts gRPC servers with the tests' token; all are stopped at the end."""
    started: list[RpcServer] = []

    async def start(add: Any, servicer: Any, port: int = 0, config: RpcConfig | None = None) -> RpcServer:
        server = await serve(f"127.0.0.1:{port}", [(add, servicer)], config or rpc_config, TOKEN)
        started.append(server)
        return server

    yield start
    for server in started:
        await server.stop(0)
