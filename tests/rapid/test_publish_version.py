"""Functions that record versions: the head's order, an immutable record, and refusal without a change."""

import json
from typing import Any

import pytest
import redis

from rapid.store import functions
from rapid.store.archive import parse_record
from rapid.store.fencing import FencingToken, PublisherLease
from rapid.store.keys import Keys
from rapid.store.state import RunState

KEYS = Keys("r")
NO_TOKEN = ("", "", "")


@pytest.fixture
def client(database: redis.Redis) -> Any:
    RunState(database, "r").create({}, "test")
    return database


def row(digest: str, **more: Any) -> str:
    return json.dumps({"digest": digest, "bytes": 8, "created_at": 5.5, **more})


def publish(client: Any, version: int, digest: str, text: str = "", token: tuple[str, str, str] = NO_TOKEN) -> str:
    answer: bytes = functions.call(client, "publish_version", [KEYS.versions, KEYS.head, KEYS.record, KEYS.publisher],
                                   str(version), digest, text or row(digest), KEYS.heads_channel, *token)
    return answer.decode()


def test_head_is_the_largest_number(client: Any) -> None:
    """Not the last one, and not the last of the texts: "10" sorts before "9"."""
    assert [publish(client, version, "d") for version in (9, 10, 2, 100, 99)] == [
        "head", "head", "below", "head", "below"]
    assert client.get(KEYS.head) == b"100:d"
    assert {int(version) for version in client.hkeys(KEYS.versions)} == {2, 9, 10, 99, 100}


def test_each_new_head_is_announced_once(client: Any) -> None:
    listener = client.pubsub()
    listener.subscribe(KEYS.heads_channel)
    for version in (7, 7, 3, 8):
        publish(client, version, "d")
    found = []
    while (message := listener.get_message(timeout=0.2)) is not None:
        found += [message["data"]] if message["type"] == "message" else []
    listener.close()
    assert found == [b"7:d", b"8:d"]


def test_known_version_keeps_its_record(client: Any) -> None:
    publish(client, 3, "d", row("d", blob="a" * 64))
    before = client.hgetall(KEYS.versions)
    assert publish(client, 3, "d", row("d", created_at=9.0)) == "below"
    assert publish(client, 3, "other") == "conflict"
    assert client.hgetall(KEYS.versions) == before and client.get(KEYS.head) == b"3:d"


def test_recorded_version_becomes_the_head_after_a_lost_head(client: Any) -> None:
    publish(client, 3, "d")
    client.delete(KEYS.head)
    assert publish(client, 3, "other") == "conflict" and client.get(KEYS.head) is None
    assert publish(client, 3, "d") == "head" and client.get(KEYS.head) == b"3:d"


def test_invalid_token_records_nothing(client: Any) -> None:
    token = PublisherLease(client, "r", "optimizer-0", 30.0).acquire()
    for other, reason in ((FencingToken("x", 2, None), "epoch"), (FencingToken("x", 0, None), "epoch"),
                          (FencingToken("x", 1, 1), "lease"), (FencingToken(token.holder, 1, 2), "lease")):
        assert publish(client, 1, "d", token=other.arguments()) == reason
    assert not client.exists(KEYS.versions, KEYS.head)
    assert publish(client, 1, "d", token=token.arguments()) == "head"


def test_address_changes_nothing_else_of_a_record(client: Any) -> None:
    publish(client, 3, "d", row("d", warming=True))
    publish(client, 4, "e")
    address = "a" * 64
    other = client.hget(KEYS.versions, "4")
    assert functions.call(client, "record_blob", [KEYS.versions], "3", address, "123456789012") == 1
    record = parse_record(3, client.hget(KEYS.versions, "3"))
    assert record.blob is not None and (record.blob.digest, record.blob.size) == (address, 123_456_789_012)
    assert (record.digest, record.bytes, record.created_at, record.warming) == ("d", 8, 5.5, True)
    functions.call(client, "record_blob", [KEYS.versions], "3", "", "0")
    assert parse_record(3, client.hget(KEYS.versions, "3")).blob is None
    assert client.hget(KEYS.versions, "4") == other


def test_unknown_version_gets_no_address(client: Any) -> None:
    assert functions.call(client, "record_blob", [KEYS.versions], "3", "a" * 64, "5") == 0
    assert not client.exists(KEYS.versions)
