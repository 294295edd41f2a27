"""Transfer of large values: round trips, missing keys, and errors that leave the client usable."""

import re
import socket
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from rapid.embedded_redis import RunningRedis
from rapid.store.bulk_transfer import WINDOW, get_values, set_values

Serve = Callable[..., redis.Redis]


@pytest.fixture(params=[2, 3], ids=["RESP2", "RESP3"])
def client(database: redis.Redis, redis_server: RunningRedis, request: pytest.FixtureRequest) -> Iterator[redis.Redis]:
    """Client with one connection, so that an unread response would reach the next command."""
    pool = redis.BlockingConnectionPool.from_url(redis_server.url, max_connections=1, protocol=request.param)
    found = redis.Redis.from_pool(pool)
    found.ping()
    yield found
    found.close()


def is_usable(client: redis.Redis) -> bool:
    return client.echo("text") == b"text"


# Real values.


@pytest.mark.parametrize("count", [0, 1, WINDOW - 1, WINDOW, WINDOW + 1, 2 * WINDOW + 1])
def test_values_round_trip(client: redis.Redis, count: int) -> None:
    values = [bytes([i]) * (i * 1000) for i in range(count)]
    set_values(client, [(f"k{i}", [memoryview(v)]) for i, v in enumerate(values)], 60_000)
    assert is_usable(client) and [client.get(f"k{i}") for i in range(count)] == values
    found = [bytearray(len(v)) for v in values]
    assert get_values(client, [(f"k{i}", memoryview(v)) for i, v in enumerate(found)]) is None
    assert found == values and is_usable(client)


def test_large_value_arrives_in_parts(client: redis.Redis) -> None:
    value = np.random.default_rng(0).integers(0, 255, 3_000_000, np.uint8)
    set_values(client, [("large", [value[:7].data, value[7:7].data, value[7:].data])], 60_000)
    found = np.empty_like(value)
    assert get_values(client, [("large", found.data)]) is None and (found == value).all()
    assert client.strlen("large") == value.size


def test_values_expire(client: redis.Redis) -> None:
    seconds, microseconds = client.time()
    set_values(client, [("a", [memoryview(b"1")]), ("b", [memoryview(b"2")])], 12_345)
    now = 1000 * seconds + microseconds // 1000
    assert all(now + 12_345 <= client.pexpiretime(name) < now + 12_345 + 60_000 for name in ("a", "b"))


def test_value_is_replaced(client: redis.Redis) -> None:
    for value in (b"first", b"2"):
        set_values(client, [("k", [memoryview(value)])], 60_000)
        assert client.get("k") == value


@pytest.mark.parametrize("missing", [[0], [3], [8], [7, 8], [5, 2], list(range(9))])
def test_first_missing_key_is_named(client: redis.Redis, missing: list[int]) -> None:
    client.mset({f"k{i}": "abc" for i in range(9) if i not in missing} or {"another": "1"})
    found = [bytearray(3) for _ in range(9)]
    assert get_values(client, [(f"k{i}", memoryview(v)) for i, v in enumerate(found)]) == f"k{min(missing)}"
    assert is_usable(client)
    assert all(v == b"abc" for v in found[:min(missing)])


def test_value_of_another_size_is_refused(client: redis.Redis) -> None:
    client.set("k", "abcd")
    for size in (0, 3, 5):
        with pytest.raises(redis.InvalidResponse, match=f"k has 4 bytes, expected {size}"):
            get_values(client, [("k", memoryview(bytearray(size)))])
        assert is_usable(client)


def test_refused_read_names_the_reason(client: redis.Redis) -> None:
    client.lpush("list", 1)
    client.set("k", "abc")
    with pytest.raises(redis.ResponseError, match="^WRONGTYPE Operation against a key"):
        get_values(client, [("k", memoryview(bytearray(3))), ("list", memoryview(bytearray(5)))])
    assert is_usable(client)


def test_refused_write_names_the_reason(client: redis.Redis) -> None:
    """The first of several responses in flight."""
    with pytest.raises(redis.ResponseError, match="^ERR invalid expire time in 'set' command$"):
        set_values(client, [(f"k{i}", [memoryview(b"1")]) for i in range(WINDOW + 2)], 0)
    assert is_usable(client) and client.exists("k0", "k5") == 0


# Failures of the server.


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Return a client of a server that sends ``answer`` after the first request, then closes unless ``silent``."""
    opened: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def start(answer: bytes, silent: bool = False) -> redis.Redis:
        listener = socket.create_server(("127.0.0.1", 0))
        opened.append(listener)

        def accept() -> None:
            connection, _ = listener.accept()
            opened.append(connection)
            connection.recv(1 << 16)
            connection.sendall(answer)
            if not silent:
                connection.shutdown(socket.SHUT_WR)

        threads.append(threading.Thread(target=accept, daemon=True))
        threads[-1].start()
        return redis.Redis(port=listener.getsockname()[1], driver_info=None, socket_timeout=0.1 if silent else 5.0,
                           retry=Retry(NoBackoff(), 0), protocol=2)

    yield start
    for thread in threads:
        thread.join(5.0)
    for one in opened:
        one.close()


@pytest.mark.parametrize("answer", [b"", b"+O", b"$3\r\nab", b"$3\r\nabc\r", b"$", b"$3"])
def test_closed_connection_is_a_connection_error(serve: Serve, answer: bytes) -> None:
    with pytest.raises(redis.ConnectionError, match="the transfer was interrupted: Redis closed the connection"):
        get_values(serve(answer), [("k", memoryview(bytearray(3)))])


def test_closed_connection_fails_a_write(serve: Serve) -> None:
    with pytest.raises(redis.ConnectionError, match="the transfer was interrupted"):
        set_values(serve(b"+OK\r\n"), [("k", [memoryview(b"1")]), ("l", [memoryview(b"1")])], 60_000)


def test_silent_server_is_a_timeout(serve: Serve) -> None:
    with pytest.raises(redis.TimeoutError, match="the transfer was interrupted: timed out"):
        get_values(serve(b"$3\r\nab", silent=True), [("k", memoryview(bytearray(3)))])


@pytest.mark.parametrize("answer", ["+OK", ":1", "*1", "%1", "#t"])
def test_unexpected_response_to_a_read_is_named(serve: Serve, answer: str) -> None:
    with pytest.raises(redis.InvalidResponse, match=re.escape(f"unexpected reply '{answer}'")):
        get_values(serve(f"{answer}\r\n".encode()), [("k", memoryview(bytearray(3)))])


@pytest.mark.parametrize("answer", ["+OKAY", "+QUEUED", ":12", ",123.5", "$-1"])
def test_unexpected_response_to_a_write_is_named(serve: Serve, answer: str) -> None:
    with pytest.raises(redis.InvalidResponse, match=re.escape(f"unexpected reply '{answer}'")):
        set_values(serve(f"{answer}\r\n".encode()), [("k", [memoryview(b"1")])], 60_000)
