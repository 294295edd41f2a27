"""A real Redis for the services' tests, emptied for each."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from rapid.embedded_redis import server_binary
from tests.tcp_forwarder import free_port


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("redis")
    port = free_port()
    server = subprocess.Popen([server_binary(), "--port", str(port), "--bind", "127.0.0.1",
                               "--save", "", "--dir", str(folder)], stdout=subprocess.DEVNULL)
    url = f"redis://127.0.0.1:{port}/0"
    client: redis.Redis = redis.Redis.from_url(url)
    for _ in range(200):
        try:
            client.ping()
            break
        except redis.ConnectionError:
            time.sleep(0.02)
    yield url
    server.terminate()
    server.wait(10)


@pytest.fixture
def redis_client(redis_url: str) -> redis.Redis:
    client: redis.Redis = redis.Redis.from_url(redis_url)
    client.flushall()
    return client
