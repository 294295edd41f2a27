"""Fixtures of every test."""

import gc
import os
from collections.abc import Iterator

import pytest

from rapid.embedded_redis import EmbeddedRedis
from rapid.telemetry.metrics import REGISTRY

# Tests talk to servers on the loopback with plain clients, which a proxy variable would send elsewhere.
for _name in ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy"):
    os.environ.pop(_name, None)
    os.environ.pop(_name.upper(), None)


def pytest_collection() -> None:
    """Make no garbage collections while tests are found: each would visit all that were found before it."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Exclude the found tests from later garbage collections."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def nobody_in_particular() -> Iterator[None]:
    """A service that a test starts in this process names it on every metric: not beyond that test."""
    yield
    REGISTRY.common = {}


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a Redis whose keys a test removes before its own."""
    with EmbeddedRedis(tmp_path_factory.mktemp("redis"), append_only=False).start() as server:
        yield server.url
