"""The head is a version number and a digest."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from rapid.store import head_version
from rapid.store.head_version import HeadVersion, HeadWatcher, StagedVersion
from rapid.store.keys import Keys
from rapid.store.parameters import ParameterStore
from tests.rapid.conftest import tensors
from tests.waiting import eventually_async


def test_head_has_its_records_digest(store: ParameterStore, database: redis.Redis) -> None:
    assert store.head_digest() is None
    store.publish(3, tensors(3), {})
    head, record = store.head_digest(), store.record(3)
    assert head is not None and record is not None and head == HeadVersion(3, record.digest) and len(head.digest) == 32
    assert database.get("five:r:head") == head.text().encode()


def test_announcement_has_the_digest(store: ParameterStore, database: redis.Redis) -> None:
    listener = database.pubsub(ignore_subscribe_messages=True)
    listener.subscribe("five:r:heads")
    store.publish(0, tensors(0), {})
    told = None
    for _ in range(50):
        told = told or listener.get_message(timeout=0.1)
    listener.close()
    assert told is not None and HeadVersion.parse(told["data"]) == store.head_digest()


def test_pointer_of_an_earlier_release_is_readable(store: ParameterStore,
                                                   database: redis.Redis) -> None:
    store.publish(9, tensors(9), {})
    head = store.head_digest()
    database.set("five:r:head", "9")
    assert store.head() == 9 and store.head_digest() == head
    store.publish(8, tensors(8), {})
    assert store.head() == 9
    store.publish(10, tensors(10), {})
    assert store.head() == 10


def test_pointer_without_a_record_has_no_digest(store: ParameterStore, database: redis.Redis) -> None:
    database.set("five:r:head", "9")
    assert store.head_digest() == HeadVersion(9, "") and store.head() == 9


@pytest.mark.parametrize("text", [b"x:y", "", b":d", "1.5:d"])
def test_invalid_pointer_is_refused(text: str | bytes) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        HeadVersion.parse(text)


def test_pointer_text_round_trip() -> None:
    for head in (HeadVersion(0, "d"), HeadVersion(12, ""), HeadVersion(3, "a:b")):
        assert HeadVersion.parse(head.text()) == head == HeadVersion.parse(head.text().encode())
    assert StagedVersion(4, "d", "{}").head == HeadVersion(4, "d")


async def test_known_version_with_another_digest_is_a_new_head(store: ParameterStore, database: redis.Redis) -> None:
    """Simulates a restored backup or a restarted run, which reuse numbers."""
    store.publish(5, tensors(5), {})
    seen: list[int] = []

    async def watch() -> None:
        async for version in store.watch(poll_seconds=0.05):
            seen.append(version)

    async def until(count: int) -> None:
        await eventually_async(lambda: len(seen) >= count)

    watching = asyncio.create_task(watch())
    await until(1)
    await asyncio.sleep(0.12)  # two polls
    assert seen == [5]  # once
    database.delete("five:r:head", "five:r:versions")
    store.publish(5, tensors(6), {})
    await until(2)
    database.delete("five:r:head", "five:r:versions")
    store.publish(4, tensors(4), {})
    await until(3)
    assert seen == [5, 5, 4]
    watching.cancel()


# Waiting.


class Announcements:
    """Subscription whose announcements are lost. ``timeouts`` are those of the reads; ``after`` runs in each."""

    def __init__(self, after: Any = lambda: None) -> None:
        self.timeouts: list[float] = []
        self.after = after

    def get_message(self, timeout: float) -> None:
        self.timeouts.append(timeout)
        self.after()


def test_lost_announcement_delays_a_head_by_a_second(database: redis.Redis) -> None:
    """The pointer is read again every second, however long the wait is."""
    watcher = HeadWatcher(database, Keys("r"))
    found: Announcements = Announcements(
        lambda: database.set("five:r:head", "4:d") if len(found.timeouts) == 3 else None)
    assert watcher.wait(found, lambda head: True, 3600.0) == HeadVersion(4, "d")
    assert found.timeouts == [1.0, 1.0, 1.0]


def test_wait_ends_at_its_timeout(database: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]

    def pass_time() -> None:
        now[0] += 0.25

    monkeypatch.setattr(head_version, "time", SimpleNamespace(monotonic=lambda: now[0]))
    watcher, found = HeadWatcher(database, Keys("r")), Announcements(pass_time)
    assert watcher.wait(found, lambda head: True, 0.5) is None
    assert found.timeouts == [0.5, 0.25]
    database.set("five:r:head", "4:d")
    found.timeouts.clear()
    assert watcher.wait(found, lambda head: False, 0.0) is None and found.timeouts == []
    assert watcher.wait(found, lambda head: True, 0.0) == HeadVersion(4, "d"), "the pointer is read at least once"


def listeners(database: redis.Redis) -> int:
    answer: Any = database.pubsub_numsub("five:r:heads")
    return int(answer[0][1])


async def test_watch_ends_its_subscription(store: ParameterStore, database: redis.Redis,
                                           monkeypatch: pytest.MonkeyPatch) -> None:
    subscribe, opened = HeadWatcher.listener, []  # the references outlive the watch, so that no garbage is collected

    def listener(self: HeadWatcher) -> Any:
        opened.append(subscribe(self))
        return opened[-1]

    monkeypatch.setattr(HeadWatcher, "listener", listener)
    store.publish(0, tensors(0), {})
    heads = store.watch(poll_seconds=0.05)
    assert await anext(heads) == 0 and listeners(database) == 1
    await heads.aclose()  # type: ignore[attr-defined]
    await eventually_async(lambda: listeners(database) == 0)


async def test_watch_goes_on_after_redis_fails(store: ParameterStore, database: redis.Redis,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    """First while it subscribes, then while it waits. It subscribes again and yields each head once."""
    head, subscribe, failures = HeadWatcher.head, HeadWatcher.listener, ["subscribe", "read", "read"]

    def fail(where: str) -> None:
        if failures and failures[0] == where:
            failures.pop(0)
            raise redis.ConnectionError("gone")

    def failing_head(self: HeadWatcher) -> HeadVersion | None:
        fail("read")
        return head(self)

    def failing_listener(self: HeadWatcher) -> Any:
        fail("subscribe")
        return subscribe(self)

    monkeypatch.setattr(HeadWatcher, "head", failing_head)
    monkeypatch.setattr(HeadWatcher, "listener", failing_listener)
    database.set("five:r:head", "4:d")
    heads = store.watch(poll_seconds=0.01)
    assert await anext(heads) == 4 and failures == []
    await eventually_async(lambda: listeners(database) == 1, what="the subscriptions before the failures are closed")
    database.set("five:r:head", "5:d")
    assert await anext(heads) == 5
    await heads.aclose()  # type: ignore[attr-defined]


async def test_watch_begins_after_a_version(store: ParameterStore, database: redis.Redis) -> None:
    """Version 0 is one, too. Without one the present head is the first."""
    database.set("five:r:head", "0:d")
    heads = [store.watch(than, 0.02) for than in (None, 0, 4, 5)]
    assert await anext(heads[0]) == 0
    database.set("five:r:head", "5:d")
    assert [await anext(one) for one in heads[:3]] == [5, 5, 5]
    database.set("five:r:head", "6:d")
    assert [await anext(one) for one in heads] == [6, 6, 6, 6]
    for one in heads:
        await one.aclose()  # type: ignore[attr-defined]
