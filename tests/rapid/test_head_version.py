"""The head is a version number and a digest."""

import asyncio

import pytest
import redis

from rapid.store.head_version import HeadVersion
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


def test_invalid_pointer_is_refused() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        HeadVersion.parse(b"x:y")


async def test_known_version_with_another_digest_is_a_new_head(store: ParameterStore, database: redis.Redis) -> None:
    """Simulates a restored backup or a restarted run, which reuse numbers."""
    store.publish(5, tensors(5), {})
    seen: list[int] = []

    async def watch() -> None:
        async for version in store.watch(poll_seconds=0.05):
            seen.append(version)

    async def until(count: int) -> None:
        await eventually_async(lambda: len(seen) >= count, 4.0)

    watching = asyncio.create_task(watch())
    await until(1)
    await asyncio.sleep(0.3)
    assert seen == [5]  # once
    database.delete("five:r:head", "five:r:versions")
    store.publish(5, tensors(6), {})
    await until(2)
    database.delete("five:r:head", "five:r:versions")
    store.publish(4, tensors(4), {})
    await until(3)
    assert seen == [5, 5, 4]
    watching.cancel()
