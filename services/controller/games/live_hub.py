"""Fan-out of live games to browsers: each game is sent to the controller once, for any number of viewers.

While somebody watches a game, its source publishes it on one channel of the state Redis (rapid.store.live_channel).
The hub renews the list of watched games, listens, and buffers each game's chunks, so that late viewers and rewinds are
served from memory. No source waits for a viewer: each reads at its own rate, and a viewer that falls behind skips to
the newest chunk, which begins with a keyframe. A game is over when its source says so, restarts, or loses its lease.
"""

import asyncio
import contextlib
import logging
import math
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import redis

from rapid.store.leases import Leases
from rapid.store.live_channel import MAX_GAMES, MAX_SOURCES, LiveChannel, LiveMessage, decode_message
from rapid.telemetry.metrics import counter, gauge

log = logging.getLogger(__name__)
RENEW_SECONDS = 2.0
LINGER_SECONDS = 20.0  # before a game without viewers is dropped; pages may reload
LIST_DEMAND_SECONDS = 10.0  # before the list of games is no longer requested
MAX_LIST_AGE_SECONDS = 8.0  # before a source's list is hidden
MAX_BUFFERED_BYTES = 64 << 20  # of all games together; the oldest chunks are dropped first
MAX_LAG_CHUNKS = 8  # behind the newest, at which a viewer that had caught up skips to it
FIRST_BYTES_SECONDS = 8.0  # to wait for a game's header
MAX_ABSENT_SECONDS = 10.0  # without a lease or a message of a source; a Redis that restarts has no leases at first
RETRY_SECONDS = 1.0  # before the next attempt to subscribe
END = b"FVEN"

VIEWERS = gauge("controller", "live_viewers", "instances", "Viewers of live games.")
GAMES = gauge("controller", "live", "games", "Live games that are buffered for viewers.")
RECEIVED = counter("controller", "live_received_bytes", "Bytes of live games received from their sources.")
DELIVERED = counter("controller", "live_delivered_bytes", "Bytes of live games delivered to viewers.")
SKIPPED = counter("controller", "live_skipped", "Chunks skipped by viewers that had fallen behind.")
REFUSED = counter("controller", "live_refused", "Invalid messages of live games.")


@dataclass
class GameFeed:
    """The buffered chunks of a watched game. ``chunks`` are numbered from ``first``."""

    header: bytes = b""
    chunks: deque[bytes] = field(default_factory=deque)
    first: int = 0
    viewers: int = 0
    left_at: float = 0.0
    is_over: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)
    source: str = ""  # of the last message
    source_life: str = ""  # its process, '' until its lease was read
    absent_since: float | None = None  # since when the source has no lease

    @property
    def end(self) -> int:
        """Number of the next chunk."""
        return self.first + len(self.chunks)

    def notify(self) -> None:
        """Wake all waiting readers."""
        news, self.news = self.news, asyncio.Event()
        news.set()


class LiveHub:
    """The live games of one controller, used in one event loop. It starts with the first request and stops when nobody
    watches."""

    def __init__(self, watching: LiveChannel, leases: Leases) -> None:
        self._watching = watching
        self._leases = leases
        self._feeds: dict[str, GameFeed] = {}
        self._lists: dict[str, tuple[float, list[dict[str, Any]]]] = {}
        self._listed_at = -math.inf
        self._buffered_bytes = 0
        self._viewers = 0
        self._task: asyncio.Task[None] | None = None

    async def games(self) -> list[dict[str, Any]]:
        """Return the games in progress as last listed by their sources, and ask the sources to keep listing them. The
        list is empty right after an idle period. Raise redis.RedisError.
        """
        self._listed_at = time.monotonic()
        await asyncio.to_thread(self._renew)
        self._start()
        fresh = time.monotonic() - MAX_LIST_AGE_SECONDS
        self._lists = {source: (at, games) for source, (at, games) in self._lists.items() if at >= fresh}
        return [{**game, "source": source, "watched": feed.viewers if (feed := self._feeds.get(game["game"])) else 0}
                for source, (_, games) in sorted(self._lists.items()) for game in games]

    def watch(self, game: str) -> GameFeed | None:
        """Add a viewer to a game; the caller must call ``leave``. Return None if too many games are watched."""
        feed = self._feeds.get(game)
        if feed is None:
            if len(self._feeds) >= MAX_GAMES and not self._drop_unwatched():
                return None
            feed = self._feeds[game] = GameFeed()
            GAMES.set(len(self._feeds))
        feed.viewers += 1
        self._viewers += 1
        VIEWERS.set(self._viewers)
        self._start()
        return feed

    def leave(self, feed: GameFeed) -> None:
        """Remove a viewer that ``watch`` added."""
        feed.viewers -= 1
        feed.left_at = time.monotonic()
        self._viewers -= 1
        VIEWERS.set(self._viewers)
        if feed.viewers == 0 and not feed.header:  # a game that nobody plays
            self._drop(next((game for game, found in self._feeds.items() if found is feed), None))

    def _drop_unwatched(self) -> bool:
        """Drop the game that its last viewer left first. Return whether there was one."""
        unwatched = {game: feed.left_at for game, feed in self._feeds.items() if feed.viewers == 0}
        return self._drop(min(unwatched, key=lambda game: unwatched[game], default=None))

    def _drop(self, game: str | None) -> bool:
        feed = self._feeds.pop(game, None) if game is not None else None
        if feed is not None:
            self._buffered_bytes -= sum(map(len, feed.chunks))
            GAMES.set(len(self._feeds))
        return feed is not None

    async def wait_for_header(self, feed: GameFeed) -> bool:
        """Wait up to `FIRST_BYTES_SECONDS` for the game's header. Return whether it arrived."""
        until = time.monotonic() + FIRST_BYTES_SECONDS
        while not feed.header and not feed.is_over and (left := until - time.monotonic()) > 0:
            try:
                await asyncio.wait_for(feed.news.wait(), left)
            except TimeoutError:
                break
        return bool(feed.header)

    async def chunks(self, feed: GameFeed, after: int = 0, *, heartbeat: float) -> AsyncIterator[bytes]:
        """Yield the game's header, the buffered chunks from number ``after`` on, and new chunks until the game ends.
        Yield b"" after each ``heartbeat`` seconds without a chunk.
        """
        yield feed.header
        at = max(feed.first, min(after, feed.end))
        caught_up = False
        while True:
            newest = feed.end
            behind = newest - at
            if at < feed.first or (caught_up and behind > MAX_LAG_CHUNKS):
                SKIPPED.inc(newest - 1 - at)
                at = max(newest - 1, feed.first)
            if at < newest:
                chunk = feed.chunks[at - feed.first]
                at += 1
                DELIVERED.inc(len(chunk))
                yield chunk
                continue
            caught_up = True
            if feed.is_over:
                yield END
                return
            news = feed.news
            try:
                await asyncio.wait_for(news.wait(), heartbeat)
            except TimeoutError:
                yield b""

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        """Renew the watched games and listen until nobody watches."""
        loop = asyncio.get_running_loop()
        ended = threading.Event()
        listener = threading.Thread(target=self._listen, args=(loop, ended), name="live-hub", daemon=True)
        listener.start()
        try:
            while self._drop_idle():
                try:
                    self._end_abandoned(await asyncio.to_thread(self._renew))
                except redis.RedisError as error:
                    log.warning("cannot renew the watched games: %s", error)
                    for feed in self._feeds.values():
                        feed.absent_since = None  # unknown meanwhile
                await asyncio.sleep(RENEW_SECONDS)
                if not self._drop_idle():  # checked again afterwards, because a viewer may come meanwhile
                    with contextlib.suppress(redis.RedisError):  # the keys expire
                        await asyncio.to_thread(self._watching.forget)
        finally:
            ended.set()

    def _drop_idle(self) -> bool:
        """Drop feeds without viewers. Return whether the hub is still needed."""
        now = time.monotonic()
        for game, feed in list(self._feeds.items()):
            if feed.viewers == 0 and now - feed.left_at > LINGER_SECONDS:
                self._drop(game)
        return bool(self._feeds) or now - self._listed_at <= LIST_DEMAND_SECONDS

    def _renew(self) -> dict[str, str]:
        """Renew the watched games. Return the life of each source's process by name. Raise redis.RedisError."""
        live = {f"{i.kind}/{i.id}": i.life for kind in ("evaluator", "rollout") for i in self._leases.live(kind)}
        is_list_wanted = time.monotonic() - self._listed_at <= LIST_DEMAND_SECONDS
        going = {game: feed for game, feed in list(self._feeds.items()) if not feed.is_over}
        self._watching.watch(going, list(live)[:MAX_SOURCES] if is_list_wanted else (),
                             [game for game, feed in going.items() if not feed.header])
        return live

    def _end_abandoned(self, live: Mapping[str, str]) -> None:
        """End the games whose source has died; ``live`` has the life of each source's process."""
        now = time.monotonic()
        for game, feed in self._feeds.items():
            if feed.is_over or not feed.source:
                continue
            life = live.get(feed.source)
            feed.source_life = feed.source_life or life or ""
            if life is not None:
                feed.absent_since = None
                is_abandoned = life != feed.source_life
            else:
                feed.absent_since = now if feed.absent_since is None else feed.absent_since
                is_abandoned = now - feed.absent_since > MAX_ABSENT_SECONDS
            if is_abandoned:
                log.info("live game is over, its source died game=%s source=%s", game, feed.source)
                feed.is_over = True
                feed.notify()

    def _listen(self, loop: asyncio.AbstractEventLoop, ended: threading.Event) -> None:
        subscription: Any = None
        while not ended.is_set():
            try:
                subscription = subscription or self._watching.subscribe()
                received = subscription.get_message(timeout=0.5)
            except Exception as error:  # the thread must survive any error: nothing restarts it
                log.warning("subscription to live games failed, trying again: %s", error)
                _close(subscription)
                subscription = None
                ended.wait(RETRY_SECONDS)
                continue
            if received is None:
                continue
            try:
                message = decode_message(received["data"])
            except (ValueError, KeyError, TypeError):
                REFUSED.inc()
                continue
            try:
                loop.call_soon_threadsafe(self.receive, message)
            except RuntimeError:
                break  # the event loop is closed
        _close(subscription)

    def receive(self, message: LiveMessage) -> None:
        """Process a message from a source."""
        RECEIVED.inc(len(message.body))
        if message.kind == "games":
            games = message.facts.get("games")
            if isinstance(games, list):
                self._lists[message.source] = time.monotonic(), [g for g in games if _is_listed(g)]
            return
        feed = self._feeds.get(message.game)
        if feed is None or feed.is_over:
            return
        feed.source, feed.absent_since = message.source, None
        if message.kind == "header":
            feed.header = message.body
        elif message.kind == "chunk":
            feed.chunks.append(message.body)
            self._buffered_bytes += len(message.body)
            self._evict()
        else:
            feed.is_over = True
        feed.notify()

    def _evict(self) -> None:
        while self._buffered_bytes > MAX_BUFFERED_BYTES:
            largest = max(self._feeds.values(), key=lambda v: sum(map(len, v.chunks)))
            self._buffered_bytes -= len(largest.chunks.popleft())
            largest.first += 1


def _is_listed(game: object) -> bool:
    return isinstance(game, dict) and isinstance(game.get("game"), str) and len(str(game)) < 4096


def _close(subscription: Any) -> None:
    if subscription is not None:
        try:
            subscription.close()
        except redis.RedisError:
            pass
