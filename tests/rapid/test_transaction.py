"""Transactions: results, concurrent changes, lost connections, and expiry of the keys of applied ones."""

from collections.abc import Callable
from typing import Any

import pytest
import redis

from rapid.embedded_redis import RunningRedis
from rapid.store.keys import Keys
from rapid.store.transaction import transaction
from tests.rapid.failing_redis import Breaking, socket_path

KEYS = Keys("r")


def test_transaction_returns_its_result(database: redis.Redis) -> None:
    def write(pipeline: Any) -> str:
        pipeline.multi()
        pipeline.set("a", 1)
        return "written"

    assert transaction(database, KEYS, write, "a") == "written" and database.get("a") == b"1"
    assert transaction(database, KEYS, lambda pipeline: pipeline.get("a"), "a") == b"1"


def test_function_as_result_gets_the_replies(database: redis.Redis) -> None:
    def write(pipeline: Any) -> Callable[[list[Any]], Any]:
        pipeline.multi()
        pipeline.rpush("list", "a", "b")
        pipeline.incr("count")
        return lambda replies: replies

    assert transaction(database, KEYS, write, "list") == [2, 1]
    assert transaction(database, KEYS, lambda pipeline: list, "list") == [], "nothing was written"


@pytest.mark.parametrize("watched", ["a", "b"])
def test_transaction_is_repeated_after_a_concurrent_change(database: redis.Redis, watched: str) -> None:
    tries = 0

    def write(pipeline: Any) -> int:
        nonlocal tries
        tries += 1
        seen = int(pipeline.get(watched) or 0)
        if tries < 3:
            database.incr(watched)
        pipeline.multi()
        pipeline.set("sum", seen)
        return seen

    assert transaction(database, KEYS, write, "a", "b") == 2
    assert tries == 3 and database.get("sum") == b"2"


def test_transaction_ignores_keys_that_it_does_not_watch(database: redis.Redis) -> None:
    def write(pipeline: Any) -> None:
        database.incr("other")
        pipeline.multi()
        pipeline.set("a", 1)

    transaction(database, KEYS, write, "a")
    assert database.get("other") == b"1" and database.get("a") == b"1"


def test_error_in_a_transaction_writes_nothing(database: redis.Redis) -> None:
    def fail(pipeline: Any) -> None:
        pipeline.multi()
        pipeline.set("a", 1)
        raise LookupError("not today")

    with pytest.raises(LookupError, match="not today"):
        transaction(database, KEYS, fail, "a")
    assert not database.exists("a")


def test_lost_replies_give_the_result_of_the_applied_attempt(database: redis.Redis, redis_server: RunningRedis) -> None:
    client = Breaking(3, answer=True).client(socket_path(redis_server), retries=1)  # after WATCH and GET
    results: list[str] = []

    def write(pipeline: Any) -> Callable[[list[Any] | None], Any]:
        pipeline.get("a")
        pipeline.multi()
        pipeline.rpush("list", "x")
        results.append(f"attempt {len(results)}")
        return lambda replies: (results[-1], replies)

    assert transaction(client, KEYS, write, "a") == ("attempt 0", None)
    assert transaction(client, KEYS, write, "a") == ("attempt 1", [2]) and database.llen("list") == 2


def test_attempt_that_arrives_late_is_not_repeated(database: redis.Redis, redis_server: RunningRedis) -> None:
    """The server executes an attempt of the lost connection while the next attempt reads."""
    client = Breaking(3, answer=False).client(socket_path(redis_server), retries=1)  # after WATCH and GET
    sent: list[str] = []

    def write(pipeline: Any) -> str:
        pipeline.get("a")
        if len(sent) == 1:
            (key,) = watched
            database.set(key, 0)
            database.rpush("list", "late")
        sent.append(f"attempt {len(sent)}")
        pipeline.multi()
        pipeline.rpush("list", "x")
        return sent[-1]

    watched: list[str] = []

    class Named(Keys):
        def applied(self, token: str) -> str:
            watched.append(super().applied(token))
            return watched[-1]

    assert transaction(client, Named("r"), write, "a") == "attempt 0"
    assert len(sent) == 2 and database.lrange("list", 0, -1) == [b"late"]


def test_keys_of_applied_transactions_expire(database: redis.Redis) -> None:
    def write(pipeline: Any) -> None:
        pipeline.multi()
        pipeline.set("a", 1)

    transaction(database, KEYS, lambda pipeline: pipeline.get("a"), "a")
    assert not list(database.scan_iter(KEYS.applied("*"))), "nothing was written"
    transaction(database, KEYS, write, "a")
    (key,) = database.scan_iter(KEYS.applied("*"))
    left: Any = database.pttl(key)
    assert 500_000 < left <= 600_000


def test_full_redis_applies_a_removal(database: redis.Redis) -> None:
    """It refuses the key of the transaction, as every write that needs memory."""
    def remove(pipeline: Any) -> Callable[[list[Any] | None], Any]:
        pipeline.multi()
        pipeline.delete("a")
        return lambda replies: replies

    def write(pipeline: Any) -> None:
        pipeline.multi()
        pipeline.set("a", 2)

    database.set("a", 1)
    limit: Any = database.config_get("maxmemory")
    database.config_set("maxmemory", 1)
    try:
        with pytest.raises(redis.OutOfMemoryError):
            transaction(database, KEYS, write, "a")
        assert transaction(database, KEYS, remove, "a") == [1]
    finally:
        database.config_set("maxmemory", limit["maxmemory"])
    assert not database.exists("a") and not list(database.scan_iter(KEYS.applied("*")))
