"""Transport of live games to their viewers through the state Redis.

Players of games are not dialled; both ends reach the state Redis. The controller lists the watched games in the key
`Keys.watched` and renews it while somebody watches. A player of games reads the key every second. While it names one of
its games, the player publishes that game's chunks on the channel `Keys.live_channel`.

Redis stores published messages neither in memory nor in the append-only file. A message without a subscriber is lost;
every chunk begins with a keyframe, so the next one is enough. A 5v5 game makes about 2.4 kB per second of game time.
Redis disconnects a slow subscriber at its buffer limit (``client-output-buffer-limit pubsub``), which then subscribes
again.

This module validates kinds, names and sizes. The viewer's decoder validates the chunks.
"""

import json
import logging
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import redis

from rapid.malformed import MALFORMED
from rapid.store.keys import Keys
from rapid.store.rows import decode_row

log = logging.getLogger(__name__)
LEASE_SECONDS = 10.0  # after it nobody watches, unless it was renewed
READ_SECONDS = 1.0  # interval at which players read the watched games
MAX_GAMES = 64  # watched at a time
MAX_SOURCES = 16  # sources that list their games
MAX_MESSAGE_BYTES = 4 << 20
MAX_HEADER_BYTES = 64 << 10
KINDS = ("header", "chunk", "end", "games")
_GAME = re.compile(r"[0-9a-f]{8,64}")
_HEAD = struct.Struct("<I")


@dataclass(frozen=True)
class WatchedGames:
    """Games that are watched: their ids, the sources (such as "rollout/0") that must list their games, and the games
    whose header is missing at the controller."""

    games: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()
    headers: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.games or self.sources)


NOTHING_WATCHED = WatchedGames()


@dataclass(frozen=True)
class LiveMessage:
    """A message on the channel.

    ``kind`` is "header" or "chunk" with a game's bytes, "end" for a game without further chunks, or "games" with a
    source's list of games in ``facts``. ``game`` is the game's id, '' for "games".
    """

    kind: str
    source: str
    game: str = ""
    body: bytes = b""
    facts: Mapping[str, Any] = field(default_factory=dict)

    def packed(self) -> bytes:
        """Return the message's wire format."""
        head = json.dumps({"kind": self.kind, "source": self.source, "game": self.game, "facts": dict(self.facts)},
                          separators=(",", ":")).encode()
        return _HEAD.pack(len(head)) + head + self.body


def decode_message(data: bytes) -> LiveMessage:
    """Parse a published message. Raise ValueError for a malformed one."""
    if len(data) < _HEAD.size or len(data) > MAX_MESSAGE_BYTES:
        raise ValueError(f"a game's message has an invalid size: {len(data)} bytes")
    (size,) = _HEAD.unpack_from(data)
    if size > MAX_HEADER_BYTES or len(data) < _HEAD.size + size:
        raise ValueError("a game's message is truncated")
    try:
        head = json.loads(data[_HEAD.size:_HEAD.size + size])
        kind, source, game, facts = head["kind"], head["source"], head["game"], head["facts"]
    except MALFORMED as error:
        raise ValueError(f"a game's message cannot be read: {error}") from error
    if (not isinstance(kind, str) or kind not in KINDS or not isinstance(source, str) or len(source) > 200
            or not isinstance(facts, dict)):
        raise ValueError("a game's message has an unknown kind")
    if kind != "games" and not is_game(game):
        raise ValueError("a game's message names no game")
    return LiveMessage(kind, source, str(game), data[_HEAD.size + size:], facts)


def is_game(text: object) -> bool:
    """Return whether the text may be a game's id: hexadecimal digits."""
    return isinstance(text, str) and _GAME.fullmatch(text) is not None


class LiveChannel:
    """Both ends of the transport. Blocking."""

    def __init__(self, state: redis.Redis, run: str) -> None:
        self._redis = state
        self._keys = Keys(run)

    def watch(self, games: Iterable[str], sources: Iterable[str] = (), headers: Iterable[str] = ()) -> None:
        """Replace the watched games, sources and missing headers, for `LEASE_SECONDS` from now."""
        text = json.dumps({"games": sorted(games)[:MAX_GAMES], "sources": sorted(sources)[:MAX_SOURCES],
                           "headers": sorted(headers)[:MAX_GAMES]})
        self._redis.set(self._keys.watched, text, px=int(LEASE_SECONDS * 1000))

    def forget(self) -> None:
        """Clear the watched games."""
        self._redis.delete(self._keys.watched)

    def watched(self) -> WatchedGames:
        """Return the watched games."""
        text: Any = self._redis.get(self._keys.watched)
        if text is None:
            return NOTHING_WATCHED
        return decode_row(text, self._keys.watched, lambda said: WatchedGames(
            frozenset(said["games"]), frozenset(said["sources"]), frozenset(said["headers"])))

    def publish(self, message: LiveMessage) -> int:
        """Publish a message. Return the number of subscribers that received it."""
        heard: Any = self._redis.publish(self._keys.live_channel, message.packed())
        return int(heard)

    def subscribe(self) -> Any:
        """Return a subscription to the channel (redis.client.PubSub). Close it after use."""
        listening: Any = self._redis.pubsub(  # type: ignore[no-untyped-call]
            ignore_subscribe_messages=True)
        listening.subscribe(self._keys.live_channel)
        return listening
