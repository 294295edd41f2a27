"""Publisher of live games: it knows which games are watched, and publishes them without blocking the games."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import redis

from rapid.store.errors import Corrupt
from rapid.store.live_channel import (
    MAX_MESSAGE_BYTES,
    NOTHING_WATCHED,
    READ_SECONDS,
    LiveChannel,
    LiveMessage,
    WatchedGames,
)
from rapid.telemetry.metrics import counter

log = logging.getLogger(__name__)
MAX_QUEUED = 64  # messages; the oldest beyond it are dropped, because each chunk is decodable alone
LIST_SECONDS = 2.0
SENT = counter("live", "sent_bytes", "Bytes of live games published for viewers, including headers.")
DROPPED = counter("live", "dropped", "Messages of live games that were dropped: the store was too slow, or they "
                  "exceeded the size limit.")


class LiveSource:
    """Publisher of one service instance, ``name`` (such as "rollout/0").

    ``games`` returns the games in progress for the list of games. It is called only while somebody looks at that list.
    `wants` is cheap, because the game loop calls it for every game and step.
    """

    def __init__(self, watching: LiveChannel, name: str, games: Callable[[], list[dict[str, Any]]]) -> None:
        self._watching = watching
        self._games = games
        self.name = name
        self.watched: WatchedGames = NOTHING_WATCHED
        self._headers: dict[str, bytes] = {}  # of watched games
        self._queue: deque[LiveMessage] = deque(maxlen=MAX_QUEUED)
        self._queued = asyncio.Event()

    def wants(self, game: str) -> bool:
        """Return whether somebody watches the game."""
        return game in self.watched.games

    def put(self, kind: str, game: str, body: bytes = b"", facts: Mapping[str, Any] | None = None) -> None:
        """Queue a message to be published. Never blocks. Call it on the event loop's thread."""
        if kind == "header":
            self._headers[game] = body
        elif kind == "end":
            self._headers.pop(game, None)
        if len(self._queue) == MAX_QUEUED or len(body) > MAX_MESSAGE_BYTES // 2:
            DROPPED.inc()
        if len(body) <= MAX_MESSAGE_BYTES // 2:
            self._queue.append(LiveMessage(kind, self.name, game, body, facts or {}))
            self._queued.set()

    async def run(self) -> None:
        """Follow the watched games and publish queued messages until cancelled."""
        await asyncio.gather(self._follow(), self._send())

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        listed = -LIST_SECONDS
        while True:
            try:
                self.watched = await asyncio.to_thread(self._watching.watched)
            except (redis.RedisError, Corrupt):
                self.watched = NOTHING_WATCHED  # without the store nobody can watch
            self._headers = {game: header for game, header in self._headers.items() if self.wants(game)}
            for game in self.watched.headers & self._headers.keys():
                # Published before a subscriber existed, or lost with it.
                self.put("header", game, self._headers[game])
            if self.name in self.watched.sources and loop.time() - listed >= LIST_SECONDS:
                listed = loop.time()
                self.put("games", "", facts={"games": self._games()})
            await asyncio.sleep(READ_SECONDS)

    async def _send(self) -> None:
        while True:
            await self._queued.wait()
            self._queued.clear()
            while self._queue:
                message = self._queue.popleft()
                try:
                    await asyncio.to_thread(self._watching.publish, message)
                    SENT.inc(len(message.body))
                except redis.RedisError:
                    DROPPED.inc()
