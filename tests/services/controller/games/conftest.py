"""The hub of live games on a clock of the test."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from five.services.controller.games import live_hub
from five.services.controller.games.live_hub import LiveHub
from rapid.store.leases import Leases
from rapid.store.live_channel import LiveChannel
from tests.services.live_controller import RUN


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    found = SimpleNamespace(now=5000.0)
    monkeypatch.setattr(live_hub, "time", SimpleNamespace(monotonic=lambda: found.now))
    monkeypatch.setattr(live_hub, "RENEW_SECONDS", 0.002)
    monkeypatch.setattr(live_hub, "RETRY_SECONDS", 0.002)
    return found


@pytest.fixture
def channel(redis_client: redis.Redis) -> LiveChannel:
    return LiveChannel(redis_client, RUN)


@pytest.fixture
async def hub(channel: LiveChannel, redis_client: redis.Redis, clock: SimpleNamespace) -> AsyncIterator[LiveHub]:
    yield LiveHub(channel, Leases(redis_client, RUN))
    for task in running_hubs():
        task.cancel()


def running_hubs() -> list[asyncio.Task[Any]]:
    return [task for task in asyncio.all_tasks() if getattr(task.get_coro(), "__qualname__", "") == "LiveHub._run"]
