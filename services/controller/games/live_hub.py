"""Live games on their way from who plays them to browsers: each is sent here once, however many watch.

While somebody watches a game its source publishes it on one channel of the state's Redis (rapid.store.watching). This
end renews what is watched, listens, and keeps the chunks of each watched game, so that who comes later, or goes back,
gets them from here. Nobody who watches is waited for: each reads what is kept at his own pace, and whoever has fallen
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
from rapid.store.watching import MAX_GAMES, MAX_WALL, Message, Watching, unpacked
from rapid.telemetry.metrics import counter, gauge

log = logging.getLogger(__name__)
RENEW_SECONDS = 2.0
LINGER_SECONDS = 20.0  # a game that nobody watches any more is kept for so long: pages are loaded again
LIST_SECONDS = 10.0  # and the list of games asked for
OLD_LIST_SECONDS = 8.0  # what a source said is shown for so long
KEPT_BYTES = 64 << 20  # of all games together; the oldest chunks go first
BEHIND = 8  # chunks behind the newest, at which who had caught up skips to it
FIRST_SECONDS = 8.0  # until a game's first bytes
END = b"FVEN"

VIEWERS = gauge("controller", "live_viewers", "instances", "Who watches live games now.")
GAMES = gauge("controller", "live", "games", "Live games that are kept for viewers.")
RECEIVED = counter("controller", "live_received_bytes", "Bytes of live games that came from their sources.")
DELIVERED = counter("controller", "live_delivered_bytes", "Bytes of live games that were given to viewers.")
SKIPPED = counter("controller", "live_skipped", "Chunks that a viewer who had fallen behind was not given.")
REFUSED = counter("controller", "live_refused", "Messages of live games that could not be read.")


@dataclass
class View:
    """A game that somebody watches. ``chunks`` are numbered from ``first`` on."""

    header: bytes = b""
    chunks: deque[bytes] = field(default_factory=deque)
    first: int = 0
    viewers: int = 0
    left_at: float = 0.0
    over: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def end(self) -> int:
        """The number that the next chunk will have."""
        return self.first + len(self.chunks)

    def tell(self) -> None:
        """Wakes who waits."""
        news, self.news = self.news, asyncio.Event()
        news.set()


class Relay:
    """All of a controller's. It begins with the first request and rests when nobody watches; of one event loop."""

    def __init__(self, watching: Watching, leases: Leases, most: int) -> None:
        self._watching = watching
        self._leases = leases
        self._most = most
        self._views: dict[str, View] = {}
        self._lists: dict[str, tuple[float, list[dict[str, Any]]]] = {}
        self._listed_at = -LIST_SECONDS
        self._kept = 0
        self._viewers = 0
        self._task: asyncio.Task[None] | None = None

    @property
    def full(self) -> bool:
        """Whether as many watch as may."""
        return self._viewers >= self._most

    async def games(self) -> list[dict[str, Any]]:
        """What is being played, as its sources last said; asks them to go on saying it. Empty right after a rest.
        Raises redis.RedisError when nobody can be asked."""
        self._listed_at = time.monotonic()
        await asyncio.to_thread(self._renew)
        self._start()
        fresh = time.monotonic() - OLD_LIST_SECONDS
        return [{**game, "source": source, "watched": view.viewers if (view := self._views.get(game["game"])) else 0}
                for source, (at, games) in sorted(self._lists.items()) if at >= fresh for game in games]

    def watch(self, game: str) -> View | None:
        """Begins to watch a game; to be left again. None when as many are watched as may be."""
        view = self._views.get(game)
        if view is None:
            if len(self._views) >= MAX_GAMES:
                return None
            view = self._views[game] = View()
            GAMES.set(len(self._views))
        view.viewers += 1
        self._viewers += 1
        VIEWERS.set(self._viewers)
        self._start()
        return view

    def leave(self, view: View) -> None:
        """Ends what ``watch`` began."""
        view.viewers -= 1
        view.left_at = time.monotonic()
        self._viewers -= 1
        VIEWERS.set(self._viewers)

    async def begun(self, view: View) -> bool:
        """Whether there is something of the game to show, in `FIRST_SECONDS` at the latest."""
        until = time.monotonic() + FIRST_SECONDS
        while not view.header and not view.over and (left := until - time.monotonic()) > 0:
            try:
                await asyncio.wait_for(view.news.wait(), left)
            except TimeoutError:
                break
        return bool(view.header)

    async def chunks(self, view: View, after: int = 0, heartbeat: float = 15.0) -> AsyncIterator[bytes]:
        """The game's header, all that is kept of it from chunk ``after`` on, and what comes, to its end. b"" where
        nothing came for ``heartbeat`` seconds."""
        yield view.header
        at = max(view.first, min(after, view.end))
        caught_up = False
        while True:
            newest = view.end
            behind = newest - at
            if at < view.first or (caught_up and behind > BEHIND):
                SKIPPED.inc(newest - 1 - at)
                at = max(newest - 1, view.first)
            if at < newest:
                chunk = view.chunks[at - view.first]
                at += 1
                DELIVERED.inc(len(chunk))
                yield chunk
                continue
            caught_up = True
            if view.over:
                yield END
                return
            news = view.news
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
        listener = threading.Thread(target=self._listen, args=(loop, ended), name="live", daemon=True)
        listener.start()
        try:
            while self._tidy():
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

    def _tidy(self) -> bool:
        """Forgets what nobody watches; whether anything is left to be done."""
        now = time.monotonic()
        for game, view in list(self._views.items()):
            if view.viewers == 0 and now - view.left_at > LINGER_SECONDS:
                self._kept -= sum(map(len, view.chunks))
                del self._views[game]
        GAMES.set(len(self._views))
        if now - self._listed_at > LIST_SECONDS:
            self._lists.clear()
        return bool(self._views) or now - self._listed_at <= LIST_SECONDS

    def _renew(self) -> None:
        sources: list[str] = []
        if time.monotonic() - self._listed_at <= LIST_SECONDS:
            live = [f"{i.kind}/{i.id}" for kind in ("evaluator", "rollout") for i in self._leases.live(kind)]
            sources = live[:MAX_WALL]
        going = {game: view for game, view in list(self._views.items()) if not view.over}
        self._watching.watch(going, sources, [game for game, view in going.items() if not view.header])

    def _listen(self, loop: asyncio.AbstractEventLoop, ended: threading.Event) -> None:
        subscription: Any = None
        while not ended.is_set():
            try:
                subscription = subscription or self._watching.subscribe()
                said = subscription.get_message(timeout=0.5)
            except Exception as error:  # whatever it is, the thread goes on: nobody would begin it again
                log.warning("live games cannot be listened to, trying again: %s", error)
                _close(subscription)
                subscription = None
                ended.wait(1.0)
                continue
            if said is None:
                continue
            try:
                message = unpacked(said["data"])
            except (ValueError, KeyError, TypeError):
                REFUSED.inc()
                continue
            try:
                loop.call_soon_threadsafe(self.take, message)
            except RuntimeError:
                break  # the loop has ended
        _close(subscription)

    def take(self, message: Message) -> None:
        """A message has come."""
        RECEIVED.inc(len(message.body))
        if message.kind == "games":
            games = message.facts.get("games")
            if isinstance(games, list):
                self._lists[message.source] = time.monotonic(), [g for g in games if _is_listed(g)]
            return
        view = self._views.get(message.game)
        if view is None or view.over:
            return
        if message.kind == "header":
            view.header = message.body
        elif message.kind == "chunk":
            view.chunks.append(message.body)
            self._kept += len(message.body)
            self._make_room()
        else:
            view.over = True
        view.tell()

    def _make_room(self) -> None:
        while self._kept > KEPT_BYTES:
            largest = max(self._views.values(), key=lambda v: sum(map(len, v.chunks)))
            self._kept -= len(largest.chunks.popleft())
            largest.first += 1


def _is_listed(game: object) -> bool:
    return isinstance(game, dict) and isinstance(game.get("game"), str) and len(str(game)) < 4096


def _close(subscription: Any) -> None:
    if subscription is not None:
        try:
            subscription.close()
        except redis.RedisError:
            pass
