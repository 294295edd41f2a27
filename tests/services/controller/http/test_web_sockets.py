"""Web sockets whose clients break the protocol."""

import asyncio
import base64
import logging
import struct

import pytest
import redis

from tests.services.live_controller import OPERATOR
from tests.services.play_server import playing

HANDSHAKE = "Host: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
TEXT, CLOSE, NOT_UTF8 = 1, 8, 1007  # RFC 6455


def frame(opcode: int, payload: bytes = b"") -> bytes:
    """Return a client's complete frame, masked with zeros."""
    return struct.pack(">BB", 0x80 | opcode, 0x80 | len(payload)) + bytes(4) + payload


@pytest.mark.parametrize("leaves", [False, True])
async def test_a_text_that_is_not_utf8_closes_the_socket(redis_client: redis.Redis, redis_url: str,
                                                         caplog: pytest.LogCaptureFixture, leaves: bool) -> None:
    """Without an error of the server, also if the client's own close comes in the same packet."""
    async with playing(redis_url) as there:
        game = await there.open()
        reader, writer = await asyncio.open_connection("127.0.0.1", there.rest.port)
        key = base64.b64encode(bytes(16)).decode()
        writer.write((f"GET /v1/play/games/{game}/socket?spectate=true HTTP/1.1\r\n{HANDSHAKE}"
                      f"Authorization: Bearer {OPERATOR}\r\nSec-WebSocket-Key: {key}\r\n\r\n").encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")
        with caplog.at_level(logging.ERROR, "asyncio"):
            writer.write(frame(TEXT, b"\xff") + (frame(CLOSE) if leaves else b""))
            rest = await asyncio.wait_for(reader.read(), 5)
        writer.close()
    expected = struct.pack(">BB", 0x88, 0) if leaves else struct.pack(">BBH", 0x88, 2, NOT_UTF8)
    assert rest.endswith(expected), f"no close frame ends what came: {rest[-40:]!r}"
    assert [r.getMessage() for r in caplog.records if r.name == "asyncio"] == []
