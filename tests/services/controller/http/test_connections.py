"""Connections of the REST API: idle, slow and too many ones, and probes meanwhile."""

import contextlib
import http.client
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import redis
from fastapi import WebSocket
from websockets.sync.client import connect

from five.run.config.controller import LimitsConfig
from five.services.controller.http.connections import OTHER_FILES, raise_file_limit
from tests.services.live_controller import OPERATOR, RUN, LiveController, bearer, live
from tests.waiting import eventually

OTHER = "127.0.0.2"  # another client's address


@contextlib.contextmanager
def idle(rest: LiveController, count: int, sent: bytes = b"") -> Iterator[list[socket.socket]]:
    """Open connections that send no request, or only the beginning of one."""
    with ExitStack() as stack:
        found = [stack.enter_context(socket.create_connection(("127.0.0.1", rest.port), 5)) for _ in range(count)]
        for one in found:
            one.sendall(sent)
        yield found


@contextlib.contextmanager
def streaming(rest: LiveController, count: int) -> Iterator[list[socket.socket]]:
    """Open event streams, which keep their connections busy."""
    head = f"GET /v1/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {OPERATOR}\r\n\r\n"
    with ExitStack() as stack:
        found = []
        for _ in range(count):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", rest.port), 5))
            one.sendall(head.encode())
            assert one.recv(1 << 16).startswith(b"HTTP/1.1 200")
            found.append(one)
        yield found


def status(rest: LiveController, path: str, source: str = "127.0.0.1") -> int:
    """Return the status of a request on a connection of its own, from an address."""
    connection = http.client.HTTPConnection("127.0.0.1", rest.port, timeout=30, source_address=(source, 0))
    try:
        connection.request("GET", path, headers=bearer(OPERATOR))
        return connection.getresponse().status
    finally:
        connection.close()


def is_open(one: socket.socket) -> bool:
    one.setblocking(False)
    try:
        while data := one.recv(1 << 16):
            pass
        return bool(data)
    except BlockingIOError:
        return True
    except OSError:
        return False


@pytest.mark.parametrize("sent", [b"", b"GET /v1/sta"])
def test_idle_connections_do_not_fill_the_server(redis_client: redis.Redis, redis_url: str, sent: bytes) -> None:
    with live(redis_url, LimitsConfig(connections=8)) as rest, idle(rest, 30, sent):
        for path in ("/healthz", "/readyz", "/v1/status"):
            assert status(rest, path) == 200


def test_longest_idle_connection_closes_first(redis_client: redis.Redis, redis_url: str) -> None:
    with live(redis_url, LimitsConfig(connections=4)) as rest, streaming(rest, 1) as (busy,), idle(rest, 2) as (
            first, second):
        eventually(lambda: len(rest._server.server_state.connections) == 3)  # the second one is idle before the request
        first.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")  # makes the second one the longest idle
        assert first.recv(1 << 16).startswith(b"HTTP/1.1 200")
        with idle(rest, 2) as new:
            eventually(lambda: not is_open(second))
            assert all(map(is_open, (busy, first, *new)))


def test_probes_answer_while_every_connection_is_busy(redis_client: redis.Redis, redis_url: str) -> None:
    with live(redis_url, LimitsConfig(connections=3)) as rest:
        with streaming(rest, 3) as busy:
            assert status(rest, "/healthz") == status(rest, "/readyz") == 200
            assert status(rest, "/v1/status") == 503
            assert all(map(is_open, busy))
        eventually(lambda: status(rest, "/v1/status") == 200)


def test_one_address_cannot_use_up_all_connections(redis_client: redis.Redis, redis_url: str) -> None:
    limits = LimitsConfig(connections=8, connections_per_address=4)
    with live(redis_url, limits, trusted_proxies=()) as rest, streaming(rest, 4) as busy:
        assert status(rest, "/healthz") == 200 and status(rest, "/v1/status") == 503
        assert status(rest, "/v1/status", OTHER) == 200
        assert all(map(is_open, busy))


def test_a_trusted_proxy_may_use_all_connections(redis_client: redis.Redis, redis_url: str) -> None:
    with live(redis_url, LimitsConfig(connections=8, connections_per_address=2)) as rest, streaming(rest, 5):
        assert status(rest, "/v1/status") == 200


def test_client_that_does_not_read_is_cut_off(redis_client: redis.Redis, redis_url: str) -> None:
    with live(redis_url, LimitsConfig(write_seconds=0.3)) as rest:
        assert rest.context.blobs is not None
        rest.context.blobs.put(bytes(8 << 20), f"{RUN}/replays/large.view")
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect(("127.0.0.1", rest.port))
            slow.sendall(f"GET /v1/replays/large HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {OPERATOR}\r\n\r\n"
                         .encode())
            eventually(lambda: bool(rest._server.server_state.connections))
            eventually(lambda: not rest._server.server_state.connections)


def test_web_sockets_count_as_connections(redis_client: redis.Redis, redis_url: str) -> None:
    with live(redis_url, LimitsConfig(connections=2)) as rest:
        @rest.app.websocket("/v1/nothing")
        async def talk(socket: WebSocket) -> None:
            await socket.accept()
            await socket.send_text(await socket.receive_text())

        url = f"ws://127.0.0.1:{rest.port}/v1/nothing"
        with connect(url, additional_headers=bearer(OPERATOR)) as first, \
                connect(url, additional_headers=bearer(OPERATOR)) as second:
            assert status(rest, "/healthz") == 200 and status(rest, "/v1/status") == 503
            for one in (first, second):
                one.send("a")
                assert one.recv() == "a"
        eventually(lambda: status(rest, "/v1/status") == 200)


def test_file_limit_is_raised_to_the_connections() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(before[0], 900), before[1]))
    try:
        raise_file_limit(600)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 600 + OTHER_FILES
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize(("soft", "hard", "raised_to", "is_enough"), [
    (resource.RLIM_INFINITY, resource.RLIM_INFINITY, None, True), (1024 + OTHER_FILES, 4096, None, True),
    (1024 + OTHER_FILES + 1, 4096, None, True), (1024 + OTHER_FILES - 1, 4096, 1024 + OTHER_FILES, True),
    (256, resource.RLIM_INFINITY, 1024 + OTHER_FILES, True), (256, 1024 + OTHER_FILES, 1024 + OTHER_FILES, True),
    (256, 1024 + OTHER_FILES - 1, 1024 + OTHER_FILES - 1, False), (256, 256, 256, False)])
def test_file_limit_is_raised_as_far_as_needed(soft: int, hard: int, raised_to: int | None, is_enough: bool,
                                               caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
                                               ) -> None:
    limits = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, found: limits.append(found))
    raise_file_limit(1024)
    assert limits == ([] if raised_to is None else [(raised_to, hard)])
    assert ("ulimit -n" in caplog.text) is not is_enough


@pytest.mark.parametrize("error", [ValueError, OSError])
def test_refused_file_limit_is_logged(error: type[Exception], caplog: pytest.LogCaptureFixture,
                                      monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(kind: int, limits: tuple[int, int]) -> None:
        raise error("not permitted")

    monkeypatch.setattr(resource, "getrlimit", lambda kind: (256, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    raise_file_limit(1024)
    assert "limited to 256" in caplog.text
