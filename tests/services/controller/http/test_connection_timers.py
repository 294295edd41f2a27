"""Time limits of one connection: headers that do not arrive, and a client that does not read."""

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.server import ServerState

from five.run.config.controller import LimitsConfig
from five.services.controller.http.connections import LimitedProtocol, limited_protocol

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


class Clients:
    """Clients of one server, each on a pair of sockets."""

    def __init__(self) -> None:
        limits = LimitsConfig(header_seconds=0.02, write_seconds=0.02)
        self._config = Config(app, http=limited_protocol(limits), lifespan="off", log_config=None)
        self._state = ServerState()
        self._sockets: list[socket.socket] = []

    async def open(self, sent: bytes = b"") -> tuple[socket.socket, LimitedProtocol]:
        """Return a client that has sent something, and the server's end."""
        client, there = socket.socketpair()
        client.setblocking(False)
        client.sendall(sent)
        self._sockets.append(client)
        protocol: Any = self._config.http
        found: Any = (await asyncio.get_running_loop().connect_accepted_socket(
            lambda: protocol(self._config, self._state, {}), there))[1]
        return client, found

    def close(self) -> None:
        for client in self._sockets:
            client.close()


@pytest.fixture
async def clients() -> AsyncIterator[Clients]:
    found = Clients()
    yield found
    found.close()


async def receive(client: socket.socket) -> bytes:
    """Return what arrives next; b'' once the connection is closed."""
    async with asyncio.timeout(20):
        try:
            return await asyncio.get_running_loop().sock_recv(client, 1 << 16)
        except ConnectionResetError:
            return b""


async def is_answered(client: socket.socket) -> bool:
    client.sendall(REQUEST)
    return (await receive(client)).endswith(b"\r\n\r\nok")


@pytest.mark.parametrize("sent", [b"", b"GET / HT", REQUEST[:-2]])
async def test_headers_must_arrive_in_time(clients: Clients, sent: bytes) -> None:
    client, _ = await clients.open(sent)
    assert await receive(client) == b""


async def test_header_time_ends_with_the_request(clients: Clients) -> None:
    client, _ = await clients.open(REQUEST)
    assert (await receive(client)).endswith(b"ok")
    later, _ = await clients.open()
    assert await receive(later) == b"", "a later connection without a request is closed"
    assert await is_answered(client), "the idle connection was closed by its first request's timer"


async def test_client_must_read_in_time(clients: Clients) -> None:
    client, protocol = await clients.open(REQUEST)
    assert (await receive(client)).endswith(b"ok")
    protocol.pause_writing()  # as the transport does while its buffer is full
    assert await receive(client) == b""


async def test_client_that_reads_again_stays(clients: Clients) -> None:
    slow, protocol = await clients.open(REQUEST)
    assert (await receive(slow)).endswith(b"ok")
    for _ in range(2):
        protocol.pause_writing()
        protocol.resume_writing()
    protocol.resume_writing()  # without a pause
    stopped, stopped_protocol = await clients.open(REQUEST)
    assert (await receive(stopped)).endswith(b"ok")
    stopped_protocol.pause_writing()
    assert await receive(stopped) == b""
    assert await is_answered(slow), "it was cut off although it reads again"
