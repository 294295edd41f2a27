"""The hub's feeds on a clock of the test: what is requested from sources, buffered, dropped and read."""

import asyncio
import threading
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from five.services.controller.games import live_hub
from five.services.controller.games.live_hub import END, GameFeed, LiveHub
from rapid.store.keys import Keys
from rapid.store.leases import Lease
from rapid.store.live_channel import MAX_GAMES, NOTHING_WATCHED, LiveChannel, LiveMessage
from tests.services.controller.games.conftest import running_hubs
from tests.services.live_controller import RUN
from tests.waiting import eventually_async

GAME, OTHER = "0123456789abcdef", "fedcba9876543210"


def watch(hub: LiveHub, game: str = GAME) -> GameFeed:
    feed = hub.watch(game)
    assert feed is not None, "too many games are watched"
    return feed


def send(hub: LiveHub, kind: str, body: bytes = b"", game: str = GAME) -> None:
    hub.receive(LiveMessage(kind, "rollout/0", game, body))


def listed(hub: LiveHub, source: str, *games: Any) -> None:
    hub.receive(LiveMessage("games", source, facts={"games": list(games)}))


def sample(metric: Any) -> float:
    """Return the value of a metric without labels."""
    return float(next(iter(metric.collect())).samples[0].value)


# Lists of games.


async def test_lists_are_sorted_by_source_with_viewers(hub: LiveHub) -> None:
    listed(hub, "rollout/1", {"game": OTHER, "time": 3.5})
    listed(hub, "evaluator/0", {"game": GAME})
    watch(hub), watch(hub)
    assert await hub.games() == [{"game": GAME, "source": "evaluator/0", "watched": 2},
                                 {"game": OTHER, "time": 3.5, "source": "rollout/1", "watched": 0}]
    listed(hub, "evaluator/0")
    assert [game["game"] for game in await hub.games()] == [OTHER], "a source replaces its list"


async def test_a_list_is_hidden_after_eight_seconds(hub: LiveHub, clock: SimpleNamespace) -> None:
    listed(hub, "rollout/1", {"game": OTHER})
    clock.now += 8.0
    assert len(await hub.games()) == 1
    clock.now += 0.01
    assert await hub.games() == []


async def test_malformed_lists_are_left_out(hub: LiveHub) -> None:
    text = "x" * 3000
    listed(hub, "rollout/1", {"game": GAME, "text": text}, {"game": OTHER, "text": text * 2}, {"game": 5}, {}, "x")
    hub.receive(LiveMessage("games", "rollout/2", facts={"games": {"game": GAME}}))
    hub.receive(LiveMessage("games", "rollout/3"))
    assert [(game["game"], game["source"]) for game in await hub.games()] == [(GAME, "rollout/1")]
    limit = 4096 - len(str({"game": OTHER, "text": ""}))
    listed(hub, "rollout/1", {"game": OTHER, "text": "x" * limit}, {"game": GAME, "text": "x" * (limit - 1)})
    assert [game["game"] for game in await hub.games()] == [GAME]


# Requests to the sources.


async def test_sources_are_asked_to_list_for_ten_seconds(
        hub: LiveHub, channel: LiveChannel, redis_client: redis.Redis, clock: SimpleNamespace) -> None:
    for kind in ("rollout", "evaluator", "optimizer"):
        Lease(redis_client, RUN, kind, "0", 30).renew()
    watch(hub)
    await eventually_async(lambda: channel.watched().games == {GAME})
    assert channel.watched().sources == set(), "nobody has asked for the list"
    await hub.games()
    assert channel.watched().sources == {"rollout/0", "evaluator/0"}, "those that play games"
    clock.now += 10.0
    channel.forget()
    await eventually_async(lambda: channel.watched())
    assert channel.watched().sources == {"rollout/0", "evaluator/0"}
    clock.now += 0.01
    await eventually_async(lambda: not channel.watched().sources)
    assert channel.watched().games == {GAME}


async def test_at_most_sixteen_sources_are_asked(hub: LiveHub, channel: LiveChannel, redis_client: redis.Redis) -> None:
    for n in range(18):
        Lease(redis_client, RUN, "rollout", str(n), 30).renew()
    await hub.games()
    assert len(channel.watched().sources) == 16


async def test_missing_headers_are_requested_until_they_arrive(hub: LiveHub, channel: LiveChannel) -> None:
    watch(hub), watch(hub, OTHER)
    await eventually_async(lambda: channel.watched().games == channel.watched().headers == {GAME, OTHER})
    send(hub, "header", b"H")
    await eventually_async(lambda: channel.watched().headers == {OTHER})
    assert channel.watched().games == {GAME, OTHER}
    send(hub, "end")
    await eventually_async(lambda: channel.watched().games == {OTHER}, what="the end of requests for a game that ended")


async def test_hub_outlives_an_unavailable_store(hub: LiveHub, channel: LiveChannel, monkeypatch: pytest.MonkeyPatch
                                                 ) -> None:
    renew, subscribe, failures = channel.watch, channel.subscribe, [1, 2, 3, 4]

    def fail_first(call: Any) -> Any:
        def attempt(*arguments: Any) -> Any:
            if failures:
                failures.pop()
                raise redis.ConnectionError("the store is restarting")
            return call(*arguments)
        return attempt

    monkeypatch.setattr(channel, "watch", fail_first(renew))
    monkeypatch.setattr(channel, "subscribe", fail_first(subscribe))
    feed = watch(hub)
    await eventually_async(lambda: not failures and channel.watched().games == {GAME})
    header = LiveMessage("header", "rollout/0", GAME, b"H")
    await eventually_async(lambda: channel.publish(header) and feed.header == b"H", what="a new subscription")


async def test_malformed_messages_are_counted_and_skipped(hub: LiveHub, channel: LiveChannel, redis_client: redis.Redis
                                                          ) -> None:
    feed, header = watch(hub), LiveMessage("header", "rollout/0", GAME, b"H")
    await eventually_async(lambda: channel.publish(header) and feed.header == b"H", what="a subscription")
    before = sample(live_hub.REFUSED)
    redis_client.publish(Keys(RUN).live_channel, b"\xff\xff\xff\xff{}")
    channel.publish(LiveMessage("chunk", "rollout/0", GAME, b"0"))
    await eventually_async(lambda: list(feed.chunks) == [b"0"])
    assert sample(live_hub.REFUSED) > before


@pytest.mark.parametrize("available", [True, False])
async def test_hub_stops_without_viewers_and_starts_again(
        hub: LiveHub, channel: LiveChannel, redis_client: redis.Redis, clock: SimpleNamespace, available: bool,
        monkeypatch: pytest.MonkeyPatch) -> None:
    Lease(redis_client, RUN, "rollout", "0", 30).renew()
    feed = watch(hub)
    send(hub, "header", b"H")
    (task,) = running_hubs()
    hub.leave(feed)
    clock.now += 20.0
    channel.forget()
    await eventually_async(lambda: channel.watched().games == {GAME}, what="a game that a page may come back to")
    if not available:
        def fail() -> None:
            raise redis.ConnectionError("the store is restarting")
        monkeypatch.setattr(channel, "forget", fail)
    clock.now += 0.01
    await asyncio.wait_for(asyncio.shield(task), 10)
    assert (channel.watched() == NOTHING_WATCHED) is available
    again = watch(hub)
    assert again is not feed and (again.header, again.viewers) == (b"", 1)
    await eventually_async(lambda: channel.watched().headers == {GAME}, what="a hub that started again")


# Viewers and buffers.


async def test_viewer_who_comes_while_the_hub_stops_is_served(hub: LiveHub, channel: LiveChannel,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    stopping, viewed, forget = threading.Event(), threading.Event(), channel.forget

    def slow_forget() -> None:
        stopping.set()
        viewed.wait(10.0)
        forget()

    monkeypatch.setattr(channel, "forget", slow_forget)
    feed = watch(hub)
    await eventually_async(lambda: channel.watched().games)
    hub.leave(feed)
    await eventually_async(stopping.is_set)
    later = watch(hub, OTHER)
    viewed.set()
    await eventually_async(lambda: channel.watched().games == {OTHER})
    hub.leave(later)
    await eventually_async(lambda: not running_hubs() and channel.watched() == NOTHING_WATCHED)


async def test_viewers_and_games_are_counted(hub: LiveHub) -> None:
    feed, same, other = watch(hub), watch(hub), watch(hub, OTHER)
    assert feed is same and (feed.viewers, other.viewers) == (2, 1)
    assert (sample(live_hub.VIEWERS), sample(live_hub.GAMES)) == (3, 2)
    hub.leave(feed)
    assert feed.viewers == 1 and watch(hub) is feed, "a game with a viewer was dropped"
    hub.leave(other)
    assert (sample(live_hub.VIEWERS), sample(live_hub.GAMES)) == (2, 1), "a game without header and viewers remains"


async def test_game_that_was_left_first_is_dropped_first(hub: LiveHub, clock: SimpleNamespace) -> None:
    feeds = [watch(hub, f"{n:08x}") for n in range(MAX_GAMES)]
    for n in (5, 3, 4):
        send(hub, "header", b"H", f"{n:08x}")
        clock.now += 1.0
        hub.leave(feeds[n])
    watch(hub)
    assert watch(hub, f"{3:08x}") is feeds[3] and watch(hub, f"{4:08x}") is feeds[4]
    assert hub.watch(f"{5:08x}") is None, "all places are taken by games with viewers"


async def test_dropped_games_leave_room_in_the_buffer(hub: LiveHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_hub, "MAX_BUFFERED_BYTES", 1000)
    left = watch(hub)
    send(hub, "header", b"H")
    send(hub, "chunk", b"x" * 600)
    hub.leave(left)
    for n in range(MAX_GAMES):
        watch(hub, f"{n:08x}")
    send(hub, "chunk", b"x" * 400, f"{0:08x}")
    send(hub, "chunk", b"x" * 600, f"{0:08x}")
    feed = watch(hub, f"{0:08x}")
    assert (len(feed.chunks), feed.first, feed.end) == (2, 0, 2), "1000 bytes are allowed"
    send(hub, "chunk", b"x", f"{0:08x}")
    assert (len(feed.chunks), feed.first, feed.end) == (2, 1, 3)


async def test_buffers_have_64_mebibytes_together(hub: LiveHub) -> None:
    feeds, chunk = [watch(hub), watch(hub, OTHER)], bytes(4 << 20)
    for _ in range(8):
        send(hub, "chunk", chunk)
        send(hub, "chunk", chunk, OTHER)
    assert [len(feed.chunks) for feed in feeds] == [8, 8]
    send(hub, "chunk", b"x")
    assert [(len(feed.chunks), feed.first) for feed in feeds] == [(8, 1), (8, 0)], "the largest game loses a chunk"


async def test_messages_of_other_and_ended_games_are_ignored(hub: LiveHub) -> None:
    before = sample(live_hub.RECEIVED)
    feed = watch(hub)
    send(hub, "chunk", b"abc", OTHER)
    send(hub, "end")
    for kind in ("header", "chunk"):
        send(hub, kind, b"late")
    assert (feed.header, list(feed.chunks), feed.is_over) == (b"", [], True)
    assert sample(live_hub.RECEIVED) - before == 3 + 2 * 4


# Reading.


async def test_header_is_awaited_past_other_messages(hub: LiveHub) -> None:
    feed = watch(hub)
    waiting = asyncio.ensure_future(hub.wait_for_header(feed))
    await asyncio.sleep(0)
    send(hub, "chunk", b"0")
    await asyncio.sleep(0.001)
    assert not waiting.done(), "a chunk does not answer a wait for the header"
    send(hub, "header", b"H")
    assert await waiting and await hub.wait_for_header(feed)


async def test_game_without_a_header_is_not_awaited_longer(hub: LiveHub, clock: SimpleNamespace,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_hub, "FIRST_BYTES_SECONDS", 600.0)
    feed = watch(hub)
    waiting = asyncio.ensure_future(hub.wait_for_header(feed))
    await asyncio.sleep(0)
    send(hub, "end")
    assert not await asyncio.wait_for(waiting, 30)
    assert not await asyncio.wait_for(hub.wait_for_header(feed), 30)
    other = watch(hub, OTHER)
    monkeypatch.setattr(live_hub, "FIRST_BYTES_SECONDS", 0.01)
    assert not await asyncio.wait_for(hub.wait_for_header(other), 30)


async def read(stream: AsyncIterator[bytes], count: int) -> list[bytes]:
    return [await asyncio.wait_for(anext(stream), 30) for _ in range(count)]


@pytest.mark.parametrize(("after", "chunks"), [(0, b"234"), (1, b"234"), (2, b"234"), (3, b"34"), (4, b"4"), (5, b""),
                                               (9, b"")])
async def test_reading_begins_at_a_buffered_chunk(hub: LiveHub, monkeypatch: pytest.MonkeyPatch, after: int,
                                                  chunks: bytes) -> None:
    monkeypatch.setattr(live_hub, "MAX_BUFFERED_BYTES", 3)
    feed = watch(hub)
    send(hub, "header", b"H")
    for number in range(5):
        send(hub, "chunk", b"%d" % number)
    send(hub, "end")
    assert [piece async for piece in hub.chunks(feed, after, heartbeat=5)] == [b"H", *(bytes([c]) for c in chunks), END]


async def test_a_late_viewer_reads_all_buffered_chunks(hub: LiveHub) -> None:
    """However far behind it begins."""
    feed = watch(hub)
    send(hub, "header", b"H")
    for number in range(50):
        send(hub, "chunk", bytes([number]))
    assert await read(hub.chunks(feed, heartbeat=5), 51) == [b"H", *(bytes([number]) for number in range(50))]


async def test_idle_game_sends_heartbeats(hub: LiveHub) -> None:
    feed = watch(hub)
    send(hub, "header", b"H")
    stream = hub.chunks(feed, heartbeat=0.001)
    assert await read(stream, 3) == [b"H", b"", b""]
    send(hub, "chunk", b"0")
    assert await read(stream, 2) == [b"0", b""]
    send(hub, "end")
    assert await read(stream, 1) == [END]
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


@pytest.mark.parametrize(("lag", "received", "skipped"), [(8, b"1", 0), (9, b"9", 8), (12, b"<", 11)])
async def test_only_a_viewer_far_behind_skips(hub: LiveHub, lag: int, received: bytes, skipped: int) -> None:
    """Chunk n is the character of code 48 + n."""
    before, delivered = sample(live_hub.SKIPPED), sample(live_hub.DELIVERED)
    feed = watch(hub)
    send(hub, "header", b"H")
    send(hub, "chunk", b"0")
    stream = hub.chunks(feed, heartbeat=0.001)
    assert await read(stream, 3) == [b"H", b"0", b""]  # has caught up
    for number in range(1, lag + 1):
        send(hub, "chunk", bytes([48 + number]))
    assert await read(stream, 1) == [received]
    assert sample(live_hub.SKIPPED) - before == skipped and sample(live_hub.DELIVERED) - delivered == 2


async def test_a_viewer_overtaken_by_the_buffer_skips(hub: LiveHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_hub, "MAX_BUFFERED_BYTES", 3)
    before = sample(live_hub.SKIPPED)
    feed = watch(hub)
    send(hub, "header", b"H")
    for number in range(3):
        send(hub, "chunk", b"%d" % number)
    stream = hub.chunks(feed, heartbeat=5)
    assert await read(stream, 2) == [b"H", b"0"]
    for number in range(3, 6):
        send(hub, "chunk", b"%d" % number)
    assert await read(stream, 1) == [b"5"]
    assert sample(live_hub.SKIPPED) - before == 4
