"""A live game from a rollout to its viewers, through real Redis and a served controller."""

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from dota.config import GameConfig
from dota.spectator.camera import Camera
from dota.spectator.header import read_header
from dota.spectator.recording import Recording
from dota.vec_game import Controller, VecGame
from five.run.config.controller import LimitsConfig
from five.services.controller.games import live_hub
from five.services.controller.games.live_hub import END, MAX_LAG_CHUNKS, LiveHub
from five.services.controller.http.app import create_app
from rapid.blobs import BlobStore
from rapid.live_source import MAX_QUEUED, LiveSource
from rapid.store.leases import Lease, Leases
from rapid.store.live_channel import (
    MAX_GAMES,
    MAX_MESSAGE_BYTES,
    NOTHING_WATCHED,
    LiveChannel,
    LiveMessage,
    decode_message,
)
from tests.services.live_controller import OPERATOR, RUN, VIEWER, bearer, context_at, live, problem
from tests.waiting import eventually, eventually_async

pytestmark = pytest.mark.usefixtures("redis_client")
GAME = "0123456789abcdef"
RULES = GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"])


class Player:
    """Rollout that plays one bot game and broadcasts it while somebody watches."""

    def __init__(self, url: str) -> None:
        self.watching = LiveChannel(redis.Redis.from_url(url), RUN)
        self.lease = Lease(redis.Redis.from_url(url), RUN, "rollout", "0", 30)
        self.lease.renew()
        self.games = VecGame(RULES, 1, 7, observations=False)
        self.games.controllers[:] = Controller.SCRIPTED
        self.source: LiveSource | None = None
        self.made: list[bytes] = []
        self.cameras = 0
        self.over = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._play()), daemon=True)
        self._thread.start()

    async def _play(self) -> None:
        self.source = source = LiveSource(self.watching, "rollout/0", lambda: [
            {"game": GAME, "players": ["newest", "<b>x</b>"], "time": float(self.games.game_time[0])}])
        sending = asyncio.create_task(source.run())
        camera: Camera | None = None

        def chunk(data: bytes, facts: object) -> None:
            self.made.append(data)
            source.put("chunk", GAME, data)

        while not self._stop.is_set() and not self.over.is_set():
            if source.wants(GAME) and camera is None:
                self.cameras += 1
                camera = Camera(RULES, {"players": ["newest", "<b>x</b>"]}, chunk, 4)
                source.put("header", GAME, camera.packed_header())
            self.games.step()
            if camera is not None:
                camera.record(self.games, 0)
            await asyncio.sleep(0.004)
        if camera is not None:
            camera.end()
            source.put("end", GAME)
        await eventually_async(lambda: not source._queue)
        await asyncio.sleep(0.3)
        sending.cancel()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(10)


@contextmanager
def playing(url: str) -> Iterator[Player]:
    player = Player(url)
    try:
        yield player
    finally:
        player.close()


def test_live_game_is_listed_watched_and_ended(redis_url: str) -> None:
    with live(redis_url) as rest, playing(redis_url) as player:
        time.sleep(0.3)
        assert player.cameras == 0 and player.watching.watched() == NOTHING_WATCHED
        listed = eventually(lambda: rest.ask("GET", "/v1/games", VIEWER).json()["games"])
        assert (listed[0]["game"], listed[0]["source"]) == (GAME, "rollout/0")
        assert listed[0]["players"][1] == "<b>x</b>"
        assert player.cameras == 0  # listing games starts no camera
        data = b""
        with httpx.stream("GET", f"{rest.url}/v1/games/{GAME}/live", headers=bearer(VIEWER), timeout=20) as answer:
            assert answer.status_code == 200
            assert answer.headers["content-type"] == "application/octet-stream"
            assert answer.headers["x-content-type-options"] == "nosniff"
            for piece in answer.iter_bytes():
                data += piece
                if data.count(b"FVCH") >= 3:
                    player.over.set()
                if data.endswith(END):
                    break
        assert data.endswith(END)
        recording = Recording(data[:-len(END)])
        assert recording.header["about"]["players"][1] == "<b>x</b>"
        assert [recording.chunk(k) for k in range(len(recording.spans))] == player.made
        frames = [step.frame["clock"][0, 0] for step in recording.steps()]
        assert frames == list(range(frames[0], frames[0] + 4 * len(frames), 4))


def test_late_viewers_share_one_buffered_feed(redis_url: str) -> None:
    with live(redis_url) as rest, playing(redis_url) as player:
        def watch(chunks: int) -> bytes:
            data = b""
            with httpx.stream("GET", f"{rest.url}/v1/games/{GAME}/live", headers=bearer(VIEWER), timeout=20) as answer:
                for piece in answer.iter_bytes():
                    data += piece
                    if data.count(b"FVCH") >= chunks:
                        return data
            return data

        first = watch(3)
        second = watch(4)
        assert Recording(second).chunk(0) == Recording(first).chunk(0) == player.made[0]
        assert player.cameras == 1


def test_an_unreceived_header_is_sent_again(redis_url: str) -> None:
    with playing(redis_url) as player:
        player.watching.watch([GAME])  # a controller that is gone
        eventually(lambda: len(player.made) >= 2)
        with live(redis_url) as rest, httpx.stream(
                "GET", f"{rest.url}/v1/games/{GAME}/live", headers=bearer(VIEWER), timeout=20) as answer:
            data = b""
            for piece in answer.iter_bytes():
                data += piece
                if b"FVCH" in data:
                    break
        assert read_header(data)[0]["mode"] == "1v1_mid"
        assert player.cameras == 1


def test_an_unknown_game_is_not_found(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_hub, "FIRST_BYTES_SECONDS", 0.2)
    with live(redis_url) as rest:
        problem(rest.ask("GET", "/v1/games/ffffffffffffffff/live"), 404, "not-found")


def end_game(url: str) -> bool:
    """Report the end of the game, so that viewers wait no longer. Return whether a controller listens."""
    return LiveChannel(redis.Redis.from_url(url), RUN).publish(LiveMessage("end", "rollout/0", GAME, b"", {})) > 0


def test_watching_needs_a_token_and_is_limited(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_hub, "FIRST_BYTES_SECONDS", 60.0)
    with live(redis_url, LimitsConfig(viewers=1)) as rest:
        for path in ("/v1/games", f"/v1/games/{GAME}/live", "/v1/replays", "/v1/replays/a"):
            assert rest.ask("GET", path, "").status_code == 401
            assert rest.ask("GET", path, "stranger").status_code == 401
        waits = threading.Thread(target=lambda: rest.ask("GET", f"/v1/games/{GAME}/live"))
        waits.start()
        eventually(lambda: rest.context.live_slots.taken == 1)
        problem(rest.ask("GET", f"/v1/games/{GAME}/live", VIEWER), 429, "too-many-requests")
        eventually(lambda: end_game(redis_url) and not waits.is_alive())
        for game in ("xyz", "ABCDEF0123456789", "0" * 65, "..%2f..%2fstatus"):
            assert rest.ask("GET", f"/v1/games/{game}/live").status_code in (404, 422)


def test_one_viewer_cannot_take_all_live_places(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_hub, "FIRST_BYTES_SECONDS", 60.0)
    with live(redis_url, LimitsConfig(viewers=8)) as rest, ThreadPoolExecutor(9) as pool:
        path = f"/v1/games/{GAME}/live"
        asked = [pool.submit(rest.ask, "GET", path, VIEWER) for _ in range(8)]
        eventually(lambda: sum(one.done() for one in asked) >= 6)
        asked.append(pool.submit(rest.ask, "GET", path, OPERATOR))
        eventually(lambda: rest.context.live_slots.taken == 3, what="an operator still gets a place")
        eventually(lambda: end_game(redis_url) and all(one.done() for one in asked))
        assert sorted(one.result().status_code for one in asked) == [404] * 3 + [429] * 6
        assert rest.context.live_slots.taken == 0


async def test_viewer_that_leaves_before_the_first_byte_frees_its_place(redis_client: redis.Redis, redis_url: str
                                                                       ) -> None:
    app = create_app(context := context_at(redis_url, LimitsConfig()))
    feed = context.live_hub.watch(GAME)
    assert feed is not None
    feed.header = b"H"
    headers = [(key.lower().encode(), value.encode()) for key, value in bearer(VIEWER).items()]
    scope = {"type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": "GET",
             "path": f"/v1/games/{GAME}/live", "raw_path": b"", "root_path": "", "query_string": b"", "scheme": "http",
             "headers": headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2)}
    messages = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> dict[str, Any]:
        return next(messages, {"type": "http.disconnect"})

    async def send(message: Any) -> None:
        pass

    await app(scope, receive, send)
    assert feed.viewers == 1 and context.live_slots.taken == 0


def test_recordings_are_listed_newest_first_and_read(redis_url: str, tmp_path: Path) -> None:
    blobs = BlobStore(str(tmp_path))
    header = Camera(RULES, {"players": ["a", "b"]}, lambda chunk, facts: None).packed_header()
    for at, name in enumerate(("version-1", "version-2", "version-2-scripted-5")):
        blobs.put(header + name.encode(), f"{RUN}/replays/{name}.view")
        blobs.put(b'{"at": %d, "players": ["a", "<i>"]}' % at, f"{RUN}/replays/{name}.json")
    blobs.put(b"no facts", f"{RUN}/replays/version-9.view")
    blobs.put(b"{", f"{RUN}/replays/version-8.json")
    blobs.put(b"secret", "checkpoints/1")
    outside = tmp_path.parent / f"{tmp_path.name}-outside.json"
    outside.write_text('{"password": "of another component"}')
    for name, planted in (("version-6", '{"digest": "../../../etc/passwd", "size": 9}'), ("version-7", "{")):
        (tmp_path / f"refs/{RUN}/replays/{name}.view").write_text(planted)
        (tmp_path / f"refs/{RUN}/replays/{name}.json").write_text(planted)
    facts = blobs.put(b'{"at": -1}', f"{RUN}/replays/version-9.json").digest
    (tmp_path / f"objects/{facts[:2]}/{facts}").unlink()
    (tmp_path / f"objects/{facts[:2]}/{facts}").symlink_to(outside)
    with live(redis_url, blobs=blobs) as rest:
        found = rest.ask("GET", "/v1/replays", VIEWER).json()["replays"]
        assert [entry["name"] for entry in found] == ["version-2-scripted-5", "version-2", "version-1", "version-9"]
        assert found[0]["facts"]["players"] == ["a", "<i>"] and found[3]["facts"] == {}
        answer = rest.ask("GET", "/v1/replays/version-2", VIEWER)
        assert answer.content == header + b"version-2" and answer.headers["x-content-type-options"] == "nosniff"
        assert read_header(answer.content)[0]["about"] == {"players": ["a", "b"]}
        assert "another component" not in rest.ask("GET", "/v1/replays", VIEWER).text
        problem(rest.ask("GET", "/v1/replays/version-3"), 404, "not-found")
        for name in ("..", "%2e%2e%2fcheckpoints%2f1", "a%00b", "x" * 300):
            assert rest.ask("GET", f"/v1/replays/{name}").status_code in (404, 422)


def relay(url: str) -> LiveHub:
    state = redis.Redis.from_url(url)
    return LiveHub(LiveChannel(state, RUN), Leases(state, RUN))


async def test_slow_viewer_skips_to_the_newest_chunk(redis_url: str) -> None:
    hub = relay(redis_url)
    view = hub.watch(GAME)
    assert view is not None
    hub.receive(LiveMessage("header", "rollout/0", GAME, b"H"))
    stream = hub.chunks(view, heartbeat=15)
    assert await anext(stream) == b"H"
    hub.receive(LiveMessage("chunk", "rollout/0", GAME, b"0"))
    assert await anext(stream) == b"0"
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)  # has caught up, and waits
    for k in range(1, MAX_LAG_CHUNKS + 5):
        hub.receive(LiveMessage("chunk", "rollout/0", GAME, str(k).encode()))
    assert await waiting == str(MAX_LAG_CHUNKS + 4).encode()
    late = hub.chunks(view, heartbeat=15)  # and who comes now, or goes back, has all of it
    assert [await anext(late) for _ in range(4)] == [b"H", b"0", b"1", b"2"]
    hub.receive(LiveMessage("end", "rollout/0", GAME))
    assert await anext(stream) == END
    hub.leave(view)


async def test_buffered_chunks_are_limited(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_hub, "MAX_BUFFERED_BYTES", 1000)
    hub = relay(redis_url)
    small, large = hub.watch("a" * 8), hub.watch("b" * 8)
    assert small is not None and large is not None
    hub.receive(LiveMessage("header", "s", "a" * 8, b"H"))
    hub.receive(LiveMessage("chunk", "s", "a" * 8, b"x" * 100))
    for k in range(50):
        hub.receive(LiveMessage("chunk", "s", "b" * 8, bytes([k]) * 100))
    assert len(small.chunks) == 1 and len(large.chunks) == 9 and large.first == 41
    hub.leave(small)
    hub.leave(large)


async def test_games_without_viewers_make_room_for_others(redis_url: str) -> None:
    hub = relay(redis_url)
    feeds = [hub.watch(f"{n:08x}") for n in range(MAX_GAMES)]
    assert hub.watch("a" * 8) is None
    for n, feed in enumerate(feeds):
        assert feed is not None
        hub.receive(LiveMessage("header", "s", f"{n:08x}", b"H"))
        if n in (3, 5):
            hub.leave(feed)
    assert hub.watch("a" * 8) is not None and hub.watch("b" * 8) is not None
    assert hub.watch("c" * 8) is None


async def test_games_that_nobody_plays_are_forgotten_at_once(redis_url: str) -> None:
    hub = relay(redis_url)
    for n in range(2 * MAX_GAMES):
        feed = hub.watch(f"{n:08x}")
        assert feed is not None
        hub.leave(feed)


@pytest.mark.parametrize("data", [b"", b"\0\0", b"\xff\xff\xff\xff{}", b"\x02\0\0\0{}",
                                  b"\x04\0\0\0nullx", b"\x05\0\0\0[1,2]",
                                  LiveMessage("chunk", "s", "../x").packed(),
                                  LiveMessage("strange", "s", GAME).packed(),
                                  LiveMessage("chunk", "s" * 300, GAME).packed(),
                                  LiveMessage("chunk", "s", GAME, b"x" * MAX_MESSAGE_BYTES).packed()])
def test_malformed_messages_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        decode_message(data)


def test_a_message_is_read_as_it_was_sent() -> None:
    message = LiveMessage("chunk", "rollout/0", GAME, b"\0\1", {"time": 3.5})
    assert decode_message(message.packed()) == message


async def test_source_never_blocks_and_drops_the_oldest(redis_url: str) -> None:
    source = LiveSource(LiveChannel(redis.Redis.from_url(redis_url), RUN), "rollout/0", list)
    for k in range(MAX_QUEUED + 10):
        source.put("chunk", GAME, str(k).encode())
    source.put("chunk", GAME, b"x" * MAX_MESSAGE_BYTES)
    assert [m.body for m in source._queue] == [str(k).encode() for k in range(10, MAX_QUEUED + 10)]


def test_a_watched_games_stream_ends_with_the_game(redis_url: str) -> None:
    watching = LiveChannel(redis.Redis.from_url(redis_url), RUN)
    watching.watch([GAME, "ff" * 8], ["rollout/0"])
    assert watching.watched().games == {GAME, "ff" * 8} and watching.watched().sources == {"rollout/0"}
    ttl: Any = redis.Redis.from_url(redis_url).pttl(f"five:{RUN}:watched")
    assert 0 < ttl <= 10_000
    watching.forget()
    assert not watching.watched()


def test_an_operator_may_watch_as_well(redis_url: str) -> None:
    with live(redis_url) as rest:
        assert rest.ask("GET", "/v1/games", OPERATOR).json() == {"games": []}
