"""How a game that is being played gets to whoever watches it, through the state's Redis.

Nobody dials who plays; both ends reach the state's Redis. The controller keeps in one key, `Keys.watched`, which games
somebody watches, and renews it while somebody does; who plays reads it every second, and while it names one of his
games he publishes that game's chunks on one channel, `Keys.live_channel`. Published messages are kept nowhere: not in
memory, not in the append-only file. One that nobody takes is gone, and as every chunk begins with a keyframe, the next
one is enough to go on. A 5v5 makes some 2.4 kB for each second of game time; a subscriber who does not keep up is cut
off by Redis' own bound on what it buffers for one (``client-output-buffer-limit pubsub``) and subscribes again.

What is published is checked here as far as the platform can: kinds, names and sizes. Whether a chunk is one, the
decoder of whoever shows it says.
"""

import json
import logging
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import redis

from rapid.store.keys import Keys

log = logging.getLogger(__name__)
LEASE_SECONDS = 10.0  # after it nobody watches, unless it was renewed
READ_SECONDS = 1.0  # how often who plays looks
MAX_GAMES = 64  # watched at a time
MAX_SOURCES = 16  # sources that list their games
MAX_MESSAGE_BYTES = 4 << 20
MAX_HEADER_BYTES = 64 << 10
KINDS = ("header", "chunk", "end", "games")
_GAME = re.compile(r"[0-9a-f]{8,64}")
_HEAD = struct.Struct("<I")


@dataclass(frozen=True)
class WatchedGames:
    """What somebody watches: the ids of games, the sources that are to say what they play, as "rollout/0", and those
    of the games whose header has not come, or is gone with the controller that had it."""

    games: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()
    headers: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.games or self.sources)


NOTHING_WATCHED = WatchedGames()


@dataclass(frozen=True)
class LiveMessage:
    """One of the channel's. ``kind``: "header" and "chunk" carry a game's bytes, "end" says that there will be no more,
    "games" is what a source plays, in ``facts``. ``game``: whose, '' for "games"."""

    kind: str
    source: str
    game: str = ""
    body: bytes = b""
    facts: Mapping[str, Any] = field(default_factory=dict)

    def packed(self) -> bytes:
        """As it is published."""
        head = json.dumps({"kind": self.kind, "source": self.source, "game": self.game, "facts": dict(self.facts)},
                          separators=(",", ":")).encode()
        return _HEAD.pack(len(head)) + head + self.body


def decode_message(data: bytes) -> LiveMessage:
    """A message as it was published. Raises ValueError for a malformed one."""
    if len(data) < _HEAD.size or len(data) > MAX_MESSAGE_BYTES:
        raise ValueError(f"{len(data)} bytes are no message of a game")
    (size,) = _HEAD.unpack_from(data)
    if size > MAX_HEADER_BYTES or len(data) < _HEAD.size + size:
        raise ValueError("a game's message is cut short")
    try:
        head = json.loads(data[_HEAD.size:_HEAD.size + size])
        kind, source, game, facts = head["kind"], head["source"], head["game"], head["facts"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"a game's message cannot be read: {error}") from error
    if kind not in KINDS or not isinstance(source, str) or len(source) > 200 or not isinstance(facts, dict):
        raise ValueError("a game's message is of no known kind")
    if kind != "games" and not is_game(game):
        raise ValueError("a game's message names no game")
    return LiveMessage(kind, source, str(game), data[_HEAD.size + size:], facts)


def is_game(text: object) -> bool:
    """Whether it may be a game's id: hexadecimal digits."""
    return isinstance(text, str) and _GAME.fullmatch(text) is not None


class LiveChannel:
    """Both ends' view of the keys. Blocking."""

    def __init__(self, state: redis.Redis, run: str) -> None:
        self._redis = state
        self._keys = Keys(run)

    def watch(self, games: Iterable[str], sources: Iterable[str] = (), headers: Iterable[str] = ()) -> None:
        """Somebody watches these, for `LEASE_SECONDS` from now; in place of what was watched before."""
        text = json.dumps({"games": sorted(games)[:MAX_GAMES], "sources": sorted(sources)[:MAX_SOURCES],
                           "headers": sorted(headers)[:MAX_GAMES]})
        self._redis.set(self._keys.watched, text, px=int(LEASE_SECONDS * 1000))

    def forget(self) -> None:
        """Nobody watches anything."""
        self._redis.delete(self._keys.watched)

    def watched(self) -> WatchedGames:
        """What somebody watches now."""
        text: Any = self._redis.get(self._keys.watched)
        if text is None:
            return NOTHING_WATCHED
        said = json.loads(text)
        return WatchedGames(frozenset(said["games"]), frozenset(said["sources"]), frozenset(said["headers"]))

    def publish(self, message: LiveMessage) -> int:
        """Sends a message to whoever listens; how many that were."""
        heard: Any = self._redis.publish(self._keys.live_channel, message.packed())
        return int(heard)

    def subscribe(self) -> Any:
        """A subscription to the channel (redis.client.PubSub); to be closed."""
        listening: Any = self._redis.pubsub(  # type: ignore[no-untyped-call]
            ignore_subscribe_messages=True)
        listening.subscribe(self._keys.live_channel)
        return listening
