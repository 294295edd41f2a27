"""Fixtures of the platform's tests: real Redis servers and real gRPC servers on this machine."""

import json
import logging
import os
import secrets
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis

from rapid.blobs import BlobStore
from rapid.config import RpcConfig, StoreConfig
from rapid.embedded_redis import EmbeddedRedis, RunningRedis
from rapid.rpc.access import ACCESS, Audience, Caller
from rapid.rpc.callers import KnownCallers
from rapid.rpc.server import RpcServer, serve
from rapid.store.archive import VersionArchive
from rapid.store.keys import Keys
from rapid.store.parameters import ParameterStore
from rapid.store.state import RunState, Status
from tests.rapid.acl_servers import Servers
from tests.rapid.s3_server import S3Server

SECRET, CLI_SECRET = "a-secret-of-the-tests", "another-secret-of-the-tests"
# Callers of the servers of each kind, other than the `five` command.
CALLERS = {audience: Caller.CONTROLLER if audience in (Audience.EVALUATOR, Audience.PLAY) else Caller.ROLLOUT
           for audience in Audience}


def known_callers(audience: Audience) -> KnownCallers:
    """Return the callers of a test's server: the audience's own with SECRET, the `five` command with CLI_SECRET."""
    return KnownCallers.from_secrets(audience, {CALLERS[audience]: SECRET, Caller.CLI: CLI_SECRET})


def audience_of(add: Any) -> Audience:
    """Return the audience of the service that a generated function adds, from its name."""
    return ACCESS[f"five.v1.{add.__name__.removeprefix('add_').removesuffix('Servicer_to_server')}"].audience


def at(server: Any) -> str:
    return f"127.0.0.1:{server.port}"


def tensors(seed: int, size: int = 50_000) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {"w": rng.standard_normal((size // 10, 10)).astype(np.float32), "bias": rng.standard_normal(7).astype(
        np.float32), "steps": np.array(seed, np.int64), "ids": rng.integers(0, 9, 3).astype(np.uint16)}


def same(left: dict[str, np.ndarray], right: dict[str, np.ndarray]) -> None:
    assert left.keys() == right.keys()
    for name in left:
        assert left[name].dtype == right[name].dtype
        np.testing.assert_array_equal(left[name], right[name])


@pytest.fixture(autouse=True)
def root_logger() -> Iterator[None]:
    """Restore the root logger after a test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRedis]:
    """Redis server of all tests; each test flushes it."""
    with EmbeddedRedis(tmp_path_factory.mktemp("redis"), append_only=False).start() as server:
        yield server


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with an authority (ca.pem) and a server's certificate (server.pem, server.key) for five.test and
    127.0.0.1."""
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*arguments: str) -> None:
        try:
            subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=folder)
        except FileNotFoundError:
            pytest.skip("openssl is not installed")

    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "ca.key",
            "-out", "ca.pem", "-days", "2", "-subj", "/CN=test authority")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "server.key",
            "-out", "server.csr", "-subj", "/CN=five", "-addext", "subjectAltName=DNS:five.test,IP:127.0.0.1")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out",
            "server.pem", "-days", "2", "-copy_extensions", "copy")
    return folder


@pytest.fixture
def database(redis_server: RunningRedis) -> Iterator[redis.Redis]:
    client = redis.Redis.from_url(redis_server.url)
    client.flushall()
    yield client
    client.close()


@pytest.fixture
def store_config() -> StoreConfig:
    return StoreConfig(chunk_mebibytes=0.0625, keep_versions=2, grace_seconds=30, archive_every=1)


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """S3 server of all tests."""
    with S3Server() as server:
        yield server


@pytest.fixture
def bucket(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """URL of a prefix in a new bucket; this process's environment has its server and credentials."""
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    name = f"bucket-{secrets.token_hex(4)}"
    s3_server.create_bucket(name)
    return f"s3://{name}/runs"


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(str(tmp_path / "blobs"))


@pytest.fixture
def store(database: redis.Redis, store_config: StoreConfig, blobs: BlobStore) -> ParameterStore:
    return ParameterStore(database, database, "r", store_config, blobs)


@pytest.fixture
def rpc_config() -> RpcConfig:
    return RpcConfig(max_message_mebibytes=1, deadline_seconds=5, retries=2, backoff_seconds=0.02,
                     max_backoff_seconds=0.1, reconnect_seconds=5)


@pytest.fixture
async def start_server(rpc_config: RpcConfig) -> AsyncIterator[Callable[..., Any]]:
    """Start gRPC servers with the tests' callers, and stop them at the end."""
    started: list[RpcServer] = []

    async def start(add: Any, servicer: Any, port: int = 0, config: RpcConfig | None = None) -> RpcServer:
        server = await serve(f"127.0.0.1:{port}", [(add, servicer)], config or rpc_config,
                             known_callers(audience_of(add)))
        started.append(server)
        return server

    yield start
    for server in started:
        await server.stop(0)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    found = Servers(tmp_path_factory.mktemp("redis"), os.environ.get("FIVE_REDIS_SERVER", ""))
    yield found
    found.stop()


@pytest.fixture
def state(database: redis.Redis) -> RunState:
    """State of a running run."""
    run = RunState(database, "r")
    run.create({}, "test")
    run.transition(Status.RUNNING, "test")
    return run


@pytest.fixture
def archive(database: redis.Redis, store_config: StoreConfig, blobs: BlobStore) -> VersionArchive:
    """Archive with versions 0 to 11 recorded, whose multiples of 4 and newest two stay."""
    config = store_config.model_copy(update={"archive_every": 4, "keep_archived": 2})
    database.hset(Keys("r").versions, mapping={str(version): json.dumps(
        {"digest": f"d{version}", "bytes": 8, "created_at": 1.0}) for version in range(12)})
    return VersionArchive(database, "r", config, blobs)
