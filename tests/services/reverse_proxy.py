"""A reverse proxy on loopback, in front of one server."""

import asyncio
import threading
from contextlib import suppress


class Proxy:
    """Serve ``upstream`` (a port) below ``prefix``, which it removes from paths if ``strips``.

    It passes on Host and names the client ``client`` in X-Forwarded-For. One request a connection, or a web socket.
    """

    def __init__(self, upstream: int, prefix: str, strips: bool, client: str = "203.0.113.7") -> None:
        self._upstream = upstream
        self._prefix = prefix.encode()
        self._strips = strips
        self._client = client.encode()
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self.port = 0
        started = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(started),), daemon=True)
        self._thread.start()
        assert started.wait(10)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self._prefix.decode()}"

    async def _serve(self, started: threading.Event) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        await self._over.wait()
        server.close()
        connected = asyncio.all_tasks() - {asyncio.current_task()}
        for task in connected:
            task.cancel()
        await asyncio.gather(*connected, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, path, rest = head.split(b" ", 2)
        if not path.startswith(self._prefix):
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            writer.close()
            return
        if self._strips:
            path = path[len(self._prefix):] or b"/"
        line, _, headers = rest.partition(b"\r\n")
        lines = [row for row in headers.rstrip(b"\r\n").split(b"\r\n")]
        if not any(row.lower().startswith(b"upgrade:") for row in lines):
            lines = [row for row in lines if not row.lower().startswith(b"connection:")] + [b"Connection: close"]
        lines += [b"X-Forwarded-For: " + self._client, b"X-Forwarded-Proto: https"]
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._upstream)
        far_writer.write(b"\r\n".join([b" ".join([method, path, line]), *lines, b"", b""]))

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
            sink.close()

        with suppress(asyncio.CancelledError):
            await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer), return_exceptions=True)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(timeout=5)
