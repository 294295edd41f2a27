"""Transfer of large values to and from Redis without copies.

redis-py assembles each value from pieces, which costs more than the transfer. Here values go directly between the
caller's memory and the socket, with several requests in flight. redis-py opens the connection, so it handles
authentication, TLS and unix sockets.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import redis

from rapid.store.primary import refusal

WINDOW = 4  # requests in flight: keeps both sides busy with little buffering in Redis


@contextmanager
def _socket(client: redis.Redis) -> Iterator[Any]:
    """Yield the socket of a connection from the client's pool. On any error the connection is closed."""
    pool: Any = client.connection_pool
    connection: Any = pool.get_connection()
    try:
        yield connection._sock
    except BaseException as error:
        connection.disconnect()
        if isinstance(error, redis.ResponseError) and (lost := refusal(client, str(error))):
            raise lost from error
        if isinstance(error, OSError) and not isinstance(error, redis.RedisError):
            kind = redis.TimeoutError if isinstance(error, TimeoutError) else redis.ConnectionError
            raise kind(f"the transfer was interrupted: {error}") from error
        raise
    finally:
        pool.release(connection)


def _receive(sock: Any, view: memoryview) -> None:
    done = 0
    while done < len(view):
        count = sock.recv_into(view[done:])
        if count == 0:
            raise ConnectionResetError("Redis closed the connection")
        done += count


def _read_bytes(sock: Any, count: int) -> bytes:
    buffer = bytearray(count)
    _receive(sock, memoryview(buffer))
    return bytes(buffer)


def _rest_of_line(sock: Any, start: bytes) -> bytes:
    line = start
    while not line.endswith(b"\r\n"):
        line += _read_bytes(sock, 1)
    return line[:-2]


def _error_of(line: bytes) -> redis.RedisError:
    text = line.decode("utf-8", "replace")
    return redis.ResponseError(text[1:]) if line[:1] == b"-" else redis.InvalidResponse(f"unexpected reply {text!r}")


def set_values(client: redis.Redis, items: Sequence[tuple[str, Sequence[memoryview]]], expire_ms: int) -> None:
    """Set each key to the concatenation of its pieces, with an expiry of ``expire_ms``.

    Raises redis.RedisError; some of the keys may then be set.
    """
    with _socket(client) as sock:
        pending = 0
        expiry = b"%d" % expire_ms
        tail = b"\r\n$2\r\nPX\r\n$%d\r\n%s\r\n" % (len(expiry), expiry)
        for name, pieces in items:
            key = name.encode()
            size = sum(len(piece) for piece in pieces)
            sock.sendall(b"*5\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n" % (len(key), key, size))
            for piece in pieces:
                sock.sendall(piece)
            sock.sendall(tail)
            pending += 1
            if pending >= WINDOW:
                _expect_ok(sock)
                pending -= 1
        for _ in range(pending):
            _expect_ok(sock)


def _expect_ok(sock: Any) -> None:
    answer = _read_bytes(sock, 5)
    if answer != b"+OK\r\n":
        raise _error_of(_rest_of_line(sock, answer))


def get_values(client: redis.Redis, items: Sequence[tuple[str, memoryview]]) -> str | None:
    """Read each key's value into the given memory, which must have exactly its size.

    Returns None, or the first missing key (the remaining memory is then undefined). Raises redis.RedisError, also for a
    value of another size.
    """
    def request(name: str) -> bytes:
        key = name.encode()
        return b"*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n" % (len(key), key)

    missing = None
    with _socket(client) as sock:
        asked = min(WINDOW, len(items))
        sock.sendall(b"".join(request(name) for name, _ in items[:asked]))
        for i, (name, view) in enumerate(items):
            if i >= asked:
                break
            # After a missing key only responses in flight are read, so the connection stays usable.
            if missing is None and asked < len(items):
                sock.sendall(request(items[asked][0]))
                asked += 1
            if not _read_value(sock, name, view):
                missing = missing or name
    return missing


def _read_value(sock: Any, name: str, view: memoryview) -> bool:
    start = _read_bytes(sock, 3)
    if start == b"_\r\n":
        return False
    line = _rest_of_line(sock, start)
    if line == b"$-1":
        return False
    if line[:1] != b"$":
        raise _error_of(line)
    if int(line[1:]) != len(view):
        raise redis.InvalidResponse(f"{name} has {int(line[1:])} bytes, expected {len(view)}")
    _receive(sock, view)
    _read_bytes(sock, 2)
    return True
