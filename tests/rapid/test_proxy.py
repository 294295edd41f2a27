"""Connections inside a run ignore the environment's proxy variables."""

import ast
import asyncio
from collections.abc import Iterator

import pytest

from five.local.rest_client import is_loopback
from rapid.config import RpcConfig
from rapid.rpc.channel import aio_channel
from rapid.rpc.health import is_serving
from rapid.rpc.server import serve
from tests.repository import ROOT

CONFIG = RpcConfig(require_token=False)
CLOSED_PORT = "http://127.0.0.1:1"
SOURCES = ("libs", "services", "charts", "tools", "benchmarks", "deploy")
HTTPX_CALLS = {"get", "post", "put", "delete", "request", "stream", "Client", "AsyncClient"}


@pytest.fixture(autouse=True)
def closed_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy"):
        monkeypatch.setenv(name, CLOSED_PORT)
        monkeypatch.setenv(name.upper(), CLOSED_PORT)
    for name in ("no_proxy", "no_grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


async def test_channels_ignore_a_proxy() -> None:
    server = await serve("127.0.0.1:0", [], CONFIG)
    address = f"127.0.0.1:{server.port}"
    assert await asyncio.to_thread(is_serving, address, CONFIG)
    channel = aio_channel(address, CONFIG)
    await channel.ready(5.0)
    await channel.close()
    await server.stop(0.0)


@pytest.mark.parametrize(("url", "expected"), [
    ("http://127.0.0.1:8000", True), ("http://localhost:8000", True), ("http://[::1]:8000", True),
    ("https://five.example.org", False), ("http://10.0.0.5:8000", False),
])
def test_only_remote_controllers_use_a_proxy(url: str, expected: bool) -> None:
    assert is_loopback(url) is expected


def calls() -> Iterator[tuple[str, ast.Call, str]]:
    """Yield every call in the sources: file, call, and called name."""
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "_pb2" in path.name:
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call):
                    yield str(path.relative_to(ROOT)), node, ast.unparse(node.func)


def test_every_client_says_whether_it_uses_a_proxy() -> None:
    wrong = []
    for path, call, name in calls():
        owner, _, method = name.rpartition(".")
        if method in ("insecure_channel", "secure_channel") and path != "libs/rapid/rpc/channel.py":
            wrong.append(f"{path}:{call.lineno}: {name}: use rapid.rpc.channel")
        if owner == "httpx" and method in HTTPX_CALLS and "trust_env" not in {k.arg for k in call.keywords}:
            wrong.append(f"{path}:{call.lineno}: {name}: trust_env is missing")
        if method == "urlopen":
            wrong.append(f"{path}:{call.lineno}: {name}: it uses the environment's proxy")
    assert not wrong
