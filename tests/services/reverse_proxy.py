"""A reverse proxy on loopback, in front of one server."""

import asyncio

from tests.tcp_forwarder import TcpForwarder


class Proxy(TcpForwarder):
    """Serve ``upstream`` (a port) below ``prefix``, which it removes from paths if ``strips``.

    It passes on Host and names the client ``client`` in X-Forwarded-For. One request a connection, or a web socket.
    """

    def __init__(self, upstream: int, prefix: str, strips: bool, client: str = "203.0.113.7") -> None:
        self._prefix = prefix.encode()
        self._strips = strips
        self._client = client.encode()
        super().__init__(upstream)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self._prefix.decode()}"

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
        await self._forward(reader, writer, b"\r\n".join([b" ".join([method, path, line]), *lines, b"", b""]))
