"""Fuzzer of the web sockets and streams of a live controller, with a real play service and real games.

Clients send valid, mutated and random messages, floods, and bytes that do not follow the protocol, and leave in every
way. Afterwards the server answers, no connection is left, and no service has logged an error.
"""

import asyncio
import base64
import contextlib
import hashlib
import json
import logging
import re
import struct
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

from websockets.exceptions import InvalidHandshake, WebSocketException

from rapid.embedded_redis import EmbeddedRedis
from tests.fuzz.message_targets import BROWSER, GAME
from tests.fuzz.mutators import mutate_bytes, mutate_json
from tests.fuzz.rest import LIMITS
from tests.services.live_controller import OPERATOR, VIEWER
from tests.services.play_server import Played, playing

ANSWER_SECONDS = 30.0
MIXED = (b'{"type":"order","n":1,"kind":"move","at":[3,4]}', b'{"type":"leave"}', b"\xff\xfe", b"", b"{" * 2000)
HEADERS = ("Origin: http://[", "Origin: null", "Cookie: five-trial=x", "Sec-WebSocket-Version: 12", "Host: evil.test",
           "Sec-WebSocket-Protocol: five", "Sec-WebSocket-Extensions: permessage-deflate; x=\"", "Upgrade: h2c",
           "Content-Length: 5", "Transfer-Encoding: chunked", "X-Forwarded-For: ,,,", "Last-Event-ID: -",
           "Last-Event-ID: 99999999999999999999-1", "Authorization: Bearer \xff", "Connection: close")


class ErrorLog(logging.Handler):
    """Collects records of errors, of all services in this process."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Store a record with the type of its exception."""
        if "ExecuteBatchError" in record.getMessage() or (
                record.exc_info and type(record.exc_info[1]).__name__ == "ExecuteBatchError"):
            return  # grpc logs a client that left while a message was sent to it
        error = record.exc_info[1] if record.exc_info else None
        self.found.append(f"{record.name}: {record.getMessage()[:200]}" + (f": {error!r}" if error else ""))


def frame(dice: Random, payload: bytes) -> bytes:
    """Return a client's frame, often an invalid one: opcode, flags, masking and length are random."""
    valid = dice.random() < 0.6
    opcode = dice.choice((1, 1, 2, 8, 9, 10)) if valid else dice.randrange(16)
    reserved = 0 if valid else dice.choice((0, 0, 0x40, 0x20, 0x10))
    first = (0x80 if valid or dice.random() < 0.5 else 0) | reserved | opcode
    masked = 0x80 if valid or dice.random() < 0.5 else 0
    size = len(payload)
    if not valid and dice.random() < 0.5:
        size = dice.choice((0, 126, 65535, 65536, 2**31, 2**63, 2**64 - 1))
    if size < 126:
        head = struct.pack(">BB", first, masked | size)
    elif size < 65536:
        head = struct.pack(">BBH", first, masked | 126, size)
    else:
        head = struct.pack(">BBQ", first, masked | 127, size)
    mask = dice.randbytes(4) if masked else b""
    return head + mask + (bytes(b ^ mask[i % 4] for i, b in enumerate(payload)) if mask else payload)


def message(dice: Random) -> bytes:
    """Return a message of a browser: valid, mutated or random."""
    valid = json.dumps(dice.choice(BROWSER)).encode()
    match dice.randrange(6):
        case 0 | 1:
            return valid
        case 2 | 3:
            return mutate_json(valid, dice)[:20_000]
        case 4:
            return mutate_bytes(valid, dice)
        case _:
            return dice.choice((*MIXED, dice.randbytes(dice.choice((1, 125, 4096, 70_000)))))


class SocketFuzzer:
    """Connections to one play system."""

    def __init__(self, played: Played) -> None:
        self._played = played
        self._port = played.rest.port
        self._game = ""
        self.counts: Counter[str] = Counter()

    async def case(self, dice: Random) -> str:
        """Run one connection, and check the server afterwards. Return the kind."""
        if self._game not in self._played.service.matches:
            self._game = await self._played.open(heroes=[0], against="random")
        kinds: list[Callable[[Random], Awaitable[object]]] = [self.talk, self.talk, self.flood, self.raw, self.raw,
                                                              self.handshake, self.stream]
        kind = dice.choice(kinds)
        name = str(kind.__name__)  # type: ignore[attr-defined]
        with contextlib.suppress(OSError, EOFError, TimeoutError, WebSocketException):
            await asyncio.wait_for(kind(dice), ANSWER_SECONDS)
        self.counts[name] += 1
        return name

    async def check(self) -> None:
        """Raise AssertionError unless the server answers and every connection has been closed."""
        answer = await asyncio.wait_for(self._played.ask("GET", "/v1/play/games"), ANSWER_SECONDS)
        assert answer.status_code == 200, f"GET /v1/play/games: {answer.status_code} {answer.text}"
        until = time.monotonic() + ANSWER_SECONDS
        while _open_sockets(self._played):
            assert time.monotonic() < until, f"{_open_sockets(self._played)} sockets of closed connections stay open"
            await asyncio.sleep(0.02)

    async def talk(self, dice: Random) -> None:
        """Send messages on a web socket, and leave it in a random way."""
        spectates = dice.random() < 0.3
        socket = await self._played.socket(self._game, VIEWER if spectates else OPERATOR,
                                           "?spectate=true" if spectates else "?hero=0")
        for _ in range(dice.randint(0, 12)):
            data = message(dice)
            text: Any = data if dice.random() < 0.1 else data.decode("utf-8", "replace")
            await socket.send(text)
            if dice.random() < 0.4:
                await asyncio.wait_for(socket.recv(), 1)
        match dice.randrange(4):
            case 0:
                socket.transport.abort()
            case 1:
                socket.transport.write_eof()
                await asyncio.sleep(0.05)
                socket.transport.abort()
            case 2:
                await asyncio.sleep(0.2)
                await socket.close(dice.choice((1000, 1001, 3000, 4999)))
            case _:
                await socket.close()

    async def flood(self, dice: Random) -> None:
        """Send hundreds of messages without reading."""
        async with self._played.socket(self._game) as socket:
            for n in range(dice.choice((100, 300, 600))):
                await socket.send(json.dumps({"type": "order", "n": n, "kind": "move", "at": [n % 65536, 4]}))
            if dice.random() < 0.5:
                socket.transport.abort()

    async def _open(self, path: str, token: str, *lines: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        head = [f"GET {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {token}", *lines]
        writer.write(("\r\n".join(head) + "\r\n\r\n").encode("latin-1"))
        return reader, writer

    async def raw(self, dice: Random) -> None:
        """Upgrade to a web socket, and send random frames and bytes."""
        key = base64.b64encode(dice.randbytes(16)).decode()
        reader, writer = await self._open(
            f"/v1/play/games/{self._game}/socket?spectate=true", OPERATOR, "Upgrade: websocket", "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13")
        await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
        for _ in range(dice.randint(1, 12)):
            payload = message(dice)
            writer.write(frame(dice, payload[:dice.choice((0, 1, 125, 126, 5000))]) if dice.random() < 0.9
                         else dice.randbytes(40))
        await self._leave(dice, reader, writer)

    async def handshake(self, dice: Random) -> None:
        """Ask for a web socket with random headers, of a random path."""
        path = dice.choice((f"/v1/play/games/{self._game}/socket", f"/v1/play/games/{'f' * 32}/socket", "/v1/nothing",
                            f"/v1/play/games/{self._game}/socket?hero={'9' * 40}", "/v1/play/games/%00/socket",
                            f"/v1/play/games/{self._game}/socket?hero=0&hero=1&spectate=maybe"))
        lines = [*dice.sample(HEADERS, dice.randint(0, 3)), "Upgrade: websocket", "Connection: Upgrade"]
        if dice.random() < 0.8:
            lines += [f"Sec-WebSocket-Key: {dice.choice(('AAAAAAAAAAAAAAAAAAAAAA==', 'x', ''))}"]
        if dice.random() < 0.8:
            lines += ["Sec-WebSocket-Version: 13"]
        reader, writer = await self._open(path, dice.choice((OPERATOR, VIEWER, "x")), *lines)
        await self._leave(dice, reader, writer)

    async def stream(self, dice: Random) -> None:
        """Read some of an endless response, and leave."""
        path = dice.choice(("/v1/stream", "/v1/stream?interval=1", f"/v1/games/{'ab' * 8}/live",
                            f"/v1/games/{'ab' * 8}/live?after={dice.choice((0, -1, 2**70))}", "/v1/console/stream"))
        reader, writer = await self._open(path, dice.choice((OPERATOR, VIEWER)), *dice.sample(HEADERS, 1))
        await self._leave(dice, reader, writer)

    async def _leave(self, dice: Random, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read what there is, half close the connection or not, and abort it."""
        try:
            if dice.random() < 0.3:
                writer.write_eof()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(reader.read(1 << 16), dice.choice((0.01, 0.1, 0.3)))
        finally:
            writer.transport.abort()


def _open_sockets(played: Played) -> int:
    context = played.rest.context
    return context.player_slots.taken + context.spectator_slots.taken


async def _fuzz(minutes: float, seed: int, out: Path, report: Callable[[str], object], cases: int | None
                ) -> dict[str, Any]:
    began, log, findings, number = time.monotonic(), ErrorLog(), [], seed
    logging.getLogger().addHandler(log)
    counts: Counter[str] = Counter()
    try:
        with tempfile.TemporaryDirectory() as folder, EmbeddedRedis(Path(folder), append_only=False).start() as store:
            async with playing(store.url, GAME, LIMITS) as played:
                fuzzer = SocketFuzzer(played)
                while time.monotonic() - began < 60 * minutes and (cases is None or number < seed + cases):
                    log.found.clear()
                    kind, what = "", ""
                    try:
                        kind = await fuzzer.case(Random(number))
                        await fuzzer.check()
                    except (AssertionError, InvalidHandshake, OSError, TimeoutError) as error:
                        what = f"{type(error).__name__}: {error}"
                    if what or log.found:
                        path = _store(out, number, f"sockets: {kind}: {what or log.found[0]}", log.found)
                        if str(path) not in findings:
                            findings.append(str(path))
                            report(f"five: {path}: seed {number}: {what or log.found[0]}")
                    number += 1
                counts = fuzzer.counts
    finally:
        logging.getLogger().removeHandler(log)
    return {"group": "sockets", "cases": number - seed, "seconds": round(time.monotonic() - began, 1),
            "findings": findings, "kinds": dict(counts), "next": number}


def _store(out: Path, number: int, what: str, errors: list[str]) -> Path:
    kind = re.sub(r"0x[0-9a-f]+|[0-9]+", "", what)
    path = out / "findings" / "sockets" / hashlib.sha256(kind.encode()).hexdigest()[:12]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"seed": number, "what": what, "errors": errors}, indent=1))
    return path


def fuzz_sockets(minutes: float, seed: int, out: Path, report: Callable[[str], object] = print,
                 cases: int | None = None) -> dict[str, Any]:
    """Fuzz connections until the time or the number of cases is over; return counts and findings."""
    return asyncio.run(_fuzz(minutes, seed, out, report, cases))
