"""Borders of a fenced write: which tokens are valid, and which commands run."""

import json
from typing import Any

import pytest
import redis

from rapid.embedded_redis import RunningRedis
from rapid.store import functions, idempotency
from rapid.store.errors import FencedOut
from rapid.store.fencing import Command, FencingToken, PublisherLease, fenced_write
from rapid.store.keys import Keys
from rapid.store.series import Series
from rapid.store.state import RunState
from tests.rapid.failing_redis import Breaking, socket_path

KEYS = Keys("r")
ANY = FencingToken("controller", 1, None)


@pytest.fixture
def client(database: redis.Redis) -> Any:
    RunState(database, "r").create({}, "test")
    return database


def call(client: Any, commands: list[list[str]], keys: list[str]) -> Any:
    return functions.call(client, "fenced_write", keys, *ANY.arguments(), "[]", json.dumps(commands), KEYS.record,
                          KEYS.publisher, "9")


# The token.


def test_token_is_valid_for_its_own_fence_and_holder(client: Any) -> None:
    holder = PublisherLease(client, "r", "optimizer-0", 30.0)
    holder.acquire()
    holder.release()
    own = holder.acquire()
    assert own.fence == 2
    for other in (FencingToken(own.holder, 1, 1), FencingToken(own.holder, 1, 3), FencingToken("another", 1, 2)):
        with pytest.raises(FencedOut) as caught:
            fenced_write(client, KEYS, other, [("SET", "mark", "1")], "it")
        assert caught.value.reason == "lease" and not client.exists("mark")
    fenced_write(client, KEYS, own, [("SET", "mark", "1")], "it")
    assert client.get("mark") == b"1"


@pytest.mark.parametrize(("lost", "reason"), [(KEYS.publisher, "lease"), (KEYS.record, "epoch")])
def test_token_is_invalid_without_a_lease_or_a_run(client: Any, lost: str, reason: str) -> None:
    token = PublisherLease(client, "r", "optimizer-0", 30.0).acquire()
    client.delete(lost)
    with pytest.raises(FencedOut) as caught:
        fenced_write(client, KEYS, token, [("SET", "mark", "1")], "it")
    assert caught.value.reason == reason and not client.exists("mark")


# The commands.


@pytest.mark.parametrize("command", [
    ["HDEL", "hash", "a"], ["HDEL", "hash", *("x" for _ in range(62))], ["HSET", "hash", "a", "2"],
    ["HSET", "hash", *("x" for _ in range(62))], ["PUBLISH", "channel", "x"], ["SET", "text", "2"],
    ["XADD", "stream", "*", "a", "2"], ["XADD", "stream", "MAXLEN", "9", "*", *("x" for _ in range(58))],
    ["XADD", "stream", "NOMKSTREAM", "*", *("x" for _ in range(60))]])
def test_fewest_and_most_words_of_a_command_run(client: Any, command: list[str]) -> None:
    assert call(client, [command], ["hash", "text", "stream"]) == b"written"


@pytest.mark.parametrize("command", [
    ["HDEL", "hash"], ["HDEL", "hash", *("x" for _ in range(63))], ["HSET", "hash", "a"],
    ["HSET", "hash", *("x" for _ in range(63))], ["PUBLISH", "channel"], ["PUBLISH", "channel", "x", "y"],
    ["SET", "text"], ["SET", "text", "2", "GET"], ["XADD", "stream", "*", "a"],
    ["XADD", "stream", "NOMKSTREAM", "*", *("x" for _ in range(61))]])
def test_fewer_or_more_words_are_refused_before_any_write(client: Any, command: list[str]) -> None:
    with pytest.raises(redis.ResponseError, match="only HDEL, HSET, PUBLISH, SET and XADD of at most 64 words"):
        call(client, [["SET", "text", "1"], command], ["hash", "text", "stream"])
    assert not client.exists("text")


def test_undeclared_keys_are_refused_before_any_write(client: Any) -> None:
    for command, match in ((["ONCE", "other", "x", "SET", "text", "2"], "keys of ONCE are not declared"),
                           (["ONCE", "once", "x", "SET", "other", "2"], "key of SET is not declared"),
                           (["SET", "other", "2"], "key of SET is not declared")):
        with pytest.raises(redis.ResponseError, match=match):
            call(client, [["SET", "text", "1"], command], ["text", "once"])
    assert not client.exists("text", "other", "once")


def test_eight_expected_keys_are_compared_each(client: Any) -> None:
    expected: dict[str, str | None] = {f"e{i}": "1" for i in range(7)} | {"e7": None}
    client.mset({f"e{i}": "1" for i in range(7)})
    fenced_write(client, KEYS, ANY, [("SET", "text", "1")], "it", expected)
    for key, value in (("e6", "2"), ("e7", "")):
        before = client.get(key)
        client.set(key, value)
        with pytest.raises(FencedOut, match="it is refused: the state that it was based on has changed"):
            fenced_write(client, KEYS, ANY, [("SET", "text", "2")], "it", expected)
        client.delete(key) if before is None else client.set(key, before)
    client.delete("e0")
    with pytest.raises(FencedOut):
        fenced_write(client, KEYS, ANY, [("SET", "text", "2")], "it", expected)
    assert client.get("text") == b"1"


def test_once_skips_its_own_command_alone(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "MAX_KEYS", 2)
    series = Series(client, "r")
    first: Command = series.once_command("games", "a", {"n": 1})
    fenced_write(client, KEYS, ANY, [first, ("SET", "text", "1")], "it")
    fenced_write(client, KEYS, ANY, [series.once_command("games", "b", {"n": 2}), first, ("SET", "text", "2")], "it")
    assert [row.values["n"] for row in series.read("games")] == [1, 2] and client.get("text") == b"2"


def test_written_keys_are_declared_once_and_in_order(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Redis checks the rights of every declared key, so a channel or a repeated key is not declared."""
    sent: list[Any] = []
    monkeypatch.setattr(functions, "call", lambda _, name, keys, *arguments: sent.append(list(keys)) or b"written")
    fenced_write(client, KEYS, ANY, [("SET", "b", "1"), ("PUBLISH", "channel", "x"), ("SET", "a", "1"),
                                     ("ONCE", "keys", "n", "XADD", "s", "*", "v", "1"), ("SET", "b", "2")], "it")
    ((*written, applied),) = sent
    assert written == ["b", "a", "keys", "s"] and applied.startswith(KEYS.applied(""))


# Lost replies.


@pytest.mark.parametrize("answer", [False, True], ids=["before it is sent", "before its answer"])
def test_lost_connection_runs_commands_once(client: Any, redis_server: RunningRedis, answer: bool) -> None:
    """The commands also change the text that the write expects."""
    functions.load(client)
    client.set("text", "1")
    breaking = Breaking(1, answer)
    fenced_write(breaking.client(socket_path(redis_server), retries=1), KEYS, ANY,
                 [("XADD", "stream", "*", "a", "1"), ("SET", "text", "2")], "it", {"text": "1"})
    assert breaking.broken and client.xlen("stream") == 1 and client.get("text") == b"2"


def test_lost_reply_is_found_after_the_run_has_left_the_epoch(client: Any, redis_server: RunningRedis) -> None:
    """A change of the record that begins the next epoch is such a write."""
    functions.load(client)
    broken = Breaking(1, answer=True).client(socket_path(redis_server), retries=1)
    fenced_write(broken, KEYS, ANY, [("SET", KEYS.record, '{"epoch": 2}')], "it")
    with pytest.raises(FencedOut):
        fenced_write(client, KEYS, ANY, [("SET", "text", "1")], "it")


def test_keys_of_applied_writes_expire(client: Any) -> None:
    fenced_write(client, KEYS, ANY, [("SET", "text", "1")], "it")
    keys = list(client.scan_iter(KEYS.applied("*")))
    assert len(keys) == 2, "of the run's creation and of the write"
    assert all(500_000 < client.pttl(key) <= 600_000 for key in keys)
