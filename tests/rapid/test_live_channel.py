"""Transport of live games: which messages are accepted, which games are watched, and for how long."""

import json
import struct
import time
from dataclasses import replace
from typing import Any

import pytest
import redis

from rapid.store.errors import Corrupt
from rapid.store.keys import Keys
from rapid.store.live_channel import (
    LEASE_SECONDS,
    MAX_GAMES,
    MAX_HEADER_BYTES,
    MAX_MESSAGE_BYTES,
    MAX_SOURCES,
    NOTHING_WATCHED,
    LiveChannel,
    LiveMessage,
    WatchedGames,
    decode_message,
    is_game,
)

KEYS = Keys("r")
GAME = "0123456789abcdef"
CHUNK = LiveMessage("chunk", "rollout/0", GAME, b"\x00\xffbody")


def packed(head: Any, body: bytes = b"", size: int | None = None) -> bytes:
    """Return a message with any header, or with another header size than the true one."""
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return struct.pack("<I", len(text) if size is None else size) + text + body


def head(**change: Any) -> dict[str, Any]:
    return {"kind": "chunk", "source": "rollout/0", "game": GAME, "facts": {}, **change}


@pytest.fixture
def channel(database: redis.Redis) -> LiveChannel:
    return LiveChannel(database, "r")


# Messages.


@pytest.mark.parametrize("message", [
    CHUNK, LiveMessage("header", "evaluator/7", GAME, b"h"), LiveMessage("end", "rollout/0", GAME),
    LiveMessage("games", "rollout/0", facts={"games": [{"game": GAME}]}),
    LiveMessage("chunk", "s" * 200, "a" * 8), LiveMessage("chunk", "", "f" * 64, b"{}", {"step": 3})])
def test_message_round_trip(message: LiveMessage) -> None:
    assert decode_message(message.packed()) == message


@pytest.mark.parametrize("change", [
    {"kind": "goal"}, {"kind": ["chunk"]}, {"kind": None}, {"source": "s" * 201}, {"source": 5}, {"facts": []},
    {"facts": None}, {"game": ""}, {"game": "A" * 8}, {"game": 12345678}, {"game": None}])
def test_message_with_an_invalid_value_is_refused(change: dict[str, Any]) -> None:
    assert decode_message(packed(head(), b"body")).body == b"body"
    with pytest.raises(ValueError, match="a game's message"):
        decode_message(packed(head(**change), b"body"))


@pytest.mark.parametrize("kind", ["header", "chunk", "end"])
def test_only_a_list_of_games_names_no_game(kind: str) -> None:
    assert decode_message(packed(head(kind="games", game=""))).game == ""
    with pytest.raises(ValueError, match="names no game"):
        decode_message(packed(head(kind=kind, game="")))


@pytest.mark.parametrize("data", [
    b"", b"\x00\x00\x00", packed(head())[:-1], packed(head(), size=len(json.dumps(head())) + 1), packed(b"{}", size=3),
    packed(b"not JSON"), packed(b"[" * 5000),
    packed([]), packed(5), packed({"kind": "chunk"}), packed(b"\xff\xfe"), packed(b"")])
def test_malformed_message_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="a game's message"):
        decode_message(data)


def test_message_over_4_mebibytes_is_refused() -> None:
    largest = replace(CHUNK, body=bytes(MAX_MESSAGE_BYTES - len(replace(CHUNK, body=b"").packed())))
    assert len(largest.packed()) == MAX_MESSAGE_BYTES == 4 << 20 and decode_message(largest.packed()) == largest
    with pytest.raises(ValueError, match=f"invalid size: {MAX_MESSAGE_BYTES + 1} bytes"):
        decode_message(largest.packed() + b"x")


def test_header_over_64_kibibytes_is_refused() -> None:
    assert MAX_HEADER_BYTES == 64 << 10
    text = json.dumps(head()).encode()
    assert decode_message(packed(text.ljust(MAX_HEADER_BYTES), b"body")).body == b"body"
    with pytest.raises(ValueError, match="a game's message"):
        decode_message(packed(text.ljust(MAX_HEADER_BYTES + 1), b"body"))


@pytest.mark.parametrize(("text", "valid"), [
    ("01234567", True), ("abcdef89", True), ("0" * 64, True), ("0123456", False), ("0" * 65, False),
    ("012345g7", False), ("0123456F", False), ("01234567\n", False), (b"01234567", False), (1234567890, False),
    (None, False)])
def test_game_id_is_8_to_64_hexadecimal_digits(text: object, valid: bool) -> None:
    assert is_game(text) is valid


# The channel.


def test_subscriber_receives_each_message(channel: LiveChannel, database: redis.Redis) -> None:
    assert channel.publish(CHUNK) == 0, "nobody listens"
    listeners = [channel.subscribe(), channel.subscribe()]
    for listener in listeners:
        assert listener.get_message(timeout=1.0) is None, "the confirmation of the subscription is not delivered"
    assert LiveChannel(database, "another").publish(CHUNK) == 0
    assert channel.publish(CHUNK) == 2
    for listener in listeners:
        found = listener.get_message(timeout=1.0)
        assert found is not None and decode_message(found["data"]) == CHUNK
        listener.close()


def test_watched_games_are_read_back(channel: LiveChannel) -> None:
    assert channel.watched() == NOTHING_WATCHED == WatchedGames()
    channel.watch(["b", "a"], ["rollout/0"], ["h"])
    assert channel.watched() == WatchedGames(frozenset("ab"), frozenset(["rollout/0"]), frozenset("h"))
    channel.watch(["c"])
    assert channel.watched() == WatchedGames(frozenset("c")), "the previous games are replaced"
    channel.forget()
    assert channel.watched() is NOTHING_WATCHED


def test_watch_ends_unless_it_is_renewed(channel: LiveChannel, database: redis.Redis) -> None:
    before = time.time()
    channel.watch(["a"])
    expiry: Any = database.pexpiretime(KEYS.watched)
    assert before + 10.0 <= expiry / 1000 + 0.001 and expiry / 1000 <= time.time() + LEASE_SECONDS


def test_most_games_and_sources_are_limited(channel: LiveChannel) -> None:
    games, sources = [f"{i:08x}" for i in range(70)], [f"rollout/{i:02}" for i in range(20)]
    channel.watch(reversed(games), reversed(sources), reversed(games))
    found = channel.watched()
    assert found.games == found.headers == set(games[:64]) and MAX_GAMES == 64
    assert found.sources == set(sources[:16]) and MAX_SOURCES == 16


@pytest.mark.parametrize(("watched", "any_of"), [
    (WatchedGames(), False), (WatchedGames(frozenset("a")), True), (WatchedGames(sources=frozenset("a")), True),
    (WatchedGames(headers=frozenset("a")), False)])
def test_a_game_or_a_source_is_watched(watched: WatchedGames, any_of: bool) -> None:
    assert bool(watched) is any_of


@pytest.mark.parametrize("text", [b"{", b"{}", b"[]", b'{"games": 5, "sources": [], "headers": []}'])
def test_damaged_list_of_watched_games_is_named(channel: LiveChannel, database: redis.Redis, text: bytes) -> None:
    database.set(KEYS.watched, text)
    with pytest.raises(Corrupt, match="five:r:watched is damaged"):
        channel.watched()
