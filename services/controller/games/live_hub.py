"""Live games on their way from who plays them to browsers: each is sent context once, however many watch.

While somebody watches a game its source publishes it on one channel of the state's Redis (rapid.store.live_channel). This
end renews what is watched, listens, and keeps the chunks of each watched game, so that who comes later, or goes back,
gets them from context. Nobody who watches is waited for: each reads what is kept at his own pace, and whoever has fallen
behind goes on with the newest chunk, which begins with a keyframe.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import redis

from rapid.store.leases import Leases
from rapid.store.live_channel import MAX_GAMES, MAX_WALL, Message, Watching, unpacked
from rapid.telemetry.metrics import counter, gauge

log = logging.getLogger(__name__)
RENEW_SECONDS = 2.0
LINGER_SECONDS = 20.0  # a game that nobody watches any more is kept for so long: pages are loaded again
LIST_DEMAND_SECONDS = 10.0  # and the list of games asked for
MAX_LIST_AGE_SECONDS = 8.0  # what a source received is shown for so long
MAX_BUFFERED_BYTES = 64 << 20  # of all games together; the oldest chunks go first
MAX_LAG_CHUNKS = 8  # chunks behind the newest, at which who had caught up skips to it
FIRST_BYTES_SECONDS = 8.0  # until a game's first bytes
END = b"FVEN"

VIEWERS = gauge("controller", "live_viewers", "instances", "Who watches live games now.")
GAMES = gauge("controller", "live", "games", "Live games that are kept for viewers.")
RECEIVED = counter("controller", "live_received_bytes", "Bytes of live games that came from their sources.")
DELIVERED = counter("controller", "live_delivered_bytes", "Bytes of live games that were given to viewers.")
SKIPPED = counter("controller", "live_skipped", "Chunks that a viewer who had fallen behind was not given.")
REFUSED = counter("controller", "live_refused", "Messages of live games that could not be read.")


@dataclass
class GameFeed:
    """A game that somebody watches. ``chunks`` are numbered from ``first`` on."""

    header: bytes = b""
    chunks: deque[bytes] = field(default_factory=deque)
    first: int = 0
    viewers: int = 0
    left_at: float = 0.0
    is_over: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def end(self) -> int:
        """The number that the next chunk will have."""
        return self.first + len(self.chunks)

    def notify(self) -> None:
        """Wakes who waits."""
        news, self.news = self.news, asyncio.Event()
        news.set()


class LiveHub:
    """All of a controller's. It begins with the first request and rests when nobody watches; of one event loop."""

    def __init__(self, watching: Watching, leases: Leases, max_viewers: int) -> None:
        self._watching = watching
        self._leases = leases
        self._max_viewers = max_viewers
        self._feeds: dict[str, GameFeed] = {}
        self._lists: dict[str, tuple[float, list[dict[str, Any]]]] = {}
        self._listed_at = -LIST_DEMAND_SECONDS
        self._buffered_bytes = 0
        self._viewers = 0
        self._task: asyncio.Task[None] | None = None

    @property
    def full(self) -> bool:
        """Whether as many watch as may."""
        return self._viewers >= self._max_viewers

    async def games(self) -> list[dict[str, Any]]:
        """What is being played, as its sources last received; asks them to go on saying it. Empty right after a rest.
        Raises redis.RedisError when nobody can be asked."""
        self._listed_at = time.monotonic()
        await asyncio.to_thread(self._renew)
        self._start()
        fresh = time.monotonic() - MAX_LIST_AGE_SECONDS
        return [{**game, "source": source, "watched": feed.viewers if (feed := self._feeds.get(game["game"])) else 0}
                for source, (at, games) in sorted(self._lists.items()) if at >= fresh for game in games]

    def watch(self, game: str) -> GameFeed | None:
        """Begins to watch a game; to be left again. None when as many are watched as may be."""
        feed = self._feeds.get(game)
        if feed is None:
            if len(self._feeds) >= MAX_GAMES:
                return None
            feed = self._feeds[game] = GameFeed()
            GAMES.set(len(self._feeds))
        feed.viewers += 1
        self._viewers += 1
        VIEWERS.set(self._viewers)
        self._start()
        return feed

    def leave(self, feed: GameFeed) -> None:
        """Ends what ``watch`` began."""
        feed.viewers -= 1
        feed.left_at = time.monotonic()
        self._viewers -= 1
        VIEWERS.set(self._viewers)

    async def wait_for_header(self, feed: GameFeed) -> bool:
        """Whether there is something of the game to show, in `FIRST_BYTES_SECONDS` at the latest."""
        until = time.monotonic() + FIRST_BYTES_SECONDS
        while not feed.header and not feed.is_over and (left := until - time.monotonic()) > 0:
            try:
                await asyncio.wait_for(feed.news.wait(), left)
            except TimeoutError:
                break
        return bool(feed.header)

    async def chunks(self, feed: GameFeed, after: int = 0, heartbeat: float = 15.0) -> AsyncIterator[bytes]:
        """The game's header, all that is kept of it from chunk ``after`` on, and what comes, to its end. b"" where
        nothing came for ``heartbeat`` seconds."""
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

    # ------------------------------------------------------------------------------------------- the other end

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        """Renews and listens while there is anything to."""
        loop = asyncio.get_running_loop()
        ended = threading.Event()
        listener = threading.Thread(target=self._listen, args=(loop, ended), name="live-hub", daemon=True)
        listener.start()
        try:
            while self._drop_idle():
                try:
                    await asyncio.to_thread(self._renew)
                except redis.RedisError as error:
                    log.warning("live games cannot be asked for: %s", error)
                await asyncio.sleep(RENEW_SECONDS)
            try:
                await asyncio.to_thread(self._watching.forget)
            except redis.RedisError:
                pass  # it ends by itself
        finally:
            ended.set()

    def _drop_idle(self) -> bool:
        """Forgets what nobody watches; whether anything is left to be done."""
        now = time.monotonic()
        for game, feed in list(self._feeds.items()):
            if feed.viewers == 0 and now - feed.left_at > LINGER_SECONDS:
                self._buffered_bytes -= sum(map(len, feed.chunks))
                del self._feeds[game]
        GAMES.set(len(self._feeds))
        if now - self._listed_at > LIST_DEMAND_SECONDS:
            self._lists.clear()
        return bool(self._feeds) or now - self._listed_at <= LIST_DEMAND_SECONDS

    def _renew(self) -> None:
        sources: list[str] = []
        if time.monotonic() - self._listed_at <= LIST_DEMAND_SECONDS:
            live = [f"{i.kind}/{i.id}" for kind in ("evaluator", "rollout") for i in self._leases.live(kind)]
            sources = live[:MAX_WALL]
        going = {game: feed for game, feed in list(self._feeds.items()) if not feed.is_over}
        self._watching.watch(going, sources, [game for game, feed in going.items() if not feed.header])

    def _listen(self, loop: asyncio.AbstractEventLoop, ended: threading.Event) -> None:
        subscription: Any = None
        while not ended.is_set():
            try:
                subscription = subscription or self._watching.subscribe()
                received = subscription.get_message(timeout=0.5)
            except Exception as error:  # whatever it is, the thread goes on: nobody would begin it again
                log.warning("live games cannot be listened to, trying again: %s", error)
                _close(subscription)
                subscription = None
                ended.wait(1.0)
                continue
            if received is None:
                continue
            try:
                message = unpacked(received["data"])
            except (ValueError, KeyError, TypeError):
                REFUSED.inc()
                continue
            try:
                loop.call_soon_threadsafe(self.receive, message)
            except RuntimeError:
                break  # the loop has ended
        _close(subscription)

    def receive(self, message: Message) -> None:
        """A message has come."""
        RECEIVED.inc(len(message.body))
        if message.kind == "games":
            games = message.facts.get("games")
            if isinstance(games, list):
                self._lists[message.source] = time.monotonic(), [g for g in games if _is_listed(g)]
            return
        feed = self._feeds.get(message.game)
        if feed is None or feed.is_over:
            return
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
