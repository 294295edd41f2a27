"""Live games whose source dies: they end for their viewers."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from five.services.controller.games.live_hub import END, LiveHub
from rapid.store.leases import Lease
from rapid.store.live_channel import LiveChannel
from tests.services.controller.games.test_live_hub_feeds import send, watch
from tests.services.live_controller import RUN
from tests.waiting import eventually_async


async def test_game_ends_after_its_source_lost_its_lease(hub: LiveHub, redis_client: redis.Redis, clock: SimpleNamespace
                                                         ) -> None:
    lease = Lease(redis_client, RUN, "rollout", "0", 30)
    lease.renew()
    feed = watch(hub)
    send(hub, "header", b"H")
    await eventually_async(lambda: feed.source_life)
    clock.now += 60.0
    await asyncio.sleep(0.05)
    assert not feed.is_over, "a paused game sends nothing"
    lease.release()
    await eventually_async(lambda: feed.absent_since == clock.now)
    clock.now += 10.0
    await asyncio.sleep(0.05)
    assert not feed.is_over
    clock.now += 0.01
    await eventually_async(lambda: feed.is_over)
    assert [piece async for piece in hub.chunks(feed, heartbeat=5)] == [b"H", END]


async def test_source_without_a_lease_that_sends_is_alive(hub: LiveHub, clock: SimpleNamespace) -> None:
    """A Redis that restarts has no leases at first."""
    feed = watch(hub)
    for _ in range(3):
        send(hub, "header", b"H")
        await eventually_async(lambda: feed.absent_since == clock.now)
        clock.now += 9.0
    assert not feed.is_over


async def test_game_ends_when_its_source_restarts(hub: LiveHub, redis_client: redis.Redis) -> None:
    Lease(redis_client, RUN, "rollout", "0", 30).renew()
    feed = watch(hub)
    send(hub, "header", b"H")
    await eventually_async(lambda: feed.source_life)
    restarted = Lease(redis_client, RUN, "rollout", "0", 30)
    restarted._life = "another"
    restarted.renew()
    await eventually_async(lambda: feed.is_over)


async def test_unavailable_store_ends_no_game(hub: LiveHub, channel: LiveChannel, clock: SimpleNamespace,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    feed = watch(hub)
    send(hub, "header", b"H")
    await eventually_async(lambda: feed.absent_since == clock.now)

    def fail(*arguments: Any) -> None:
        raise redis.ConnectionError("the store is restarting")

    with monkeypatch.context() as patched:
        patched.setattr(channel, "watch", fail)
        await eventually_async(lambda: feed.absent_since is None)
        clock.now += 60.0
    await eventually_async(lambda: feed.absent_since == clock.now)
    assert not feed.is_over
