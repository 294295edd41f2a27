"""TCP ports on loopback, and a forwarder of connections to a server."""

import asyncio
import ssl
import threading
from contextlib import suppress

from five.local.cluster import free_ports


def free_port() -> int:
    """Return a port that nothing listens on now."""
    return free_ports(1)[0]


class TcpForwarder:
    """A TCP port, with TLS if ``tls``, that forwards each new connection to ``target``.

    ``target`` is a port on loopback or the path of a unix socket. Open connections stay with their server when it
    changes.
    """

    def __init__(self, target: int | str, tls: ssl.SSLContext | None = None) -> None:
        self.target = target
        self.port = 0
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        started = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(started),), daemon=True)
        self._thread.start()
        assert started.wait(10)

    async def _serve(self, started: threading.Event) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self._tls)
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        await self._over.wait()
        server.close()
        connected = asyncio.all_tasks() - {asyncio.current_task()}
        for task in connected:
            task.cancel()
        await asyncio.gather(*connected, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._forward(reader, writer, b"")

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, first: bytes) -> None:
        """Send ``first`` to the target, then pass everything in both directions."""
        far_reader, far_writer = await (asyncio.open_connection("127.0.0.1", self.target)
                                        if isinstance(self.target, int) else asyncio.open_unix_connection(self.target))
        far_writer.write(first)

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
            sink.close()

        with suppress(asyncio.CancelledError):
            await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer), return_exceptions=True)

    def close(self) -> None:
        """Close the port and every connection."""
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(timeout=5)
