"""ASGI middleware for a controller behind a reverse proxy: the client's address, and a path prefix."""

from collections.abc import Sequence
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from five.services.controller.http.client_address import PEER, without_mapping


class ReverseProxy:
    """The outermost middleware.

    Requests from the addresses or networks ``trusted`` name their client in ``X-Forwarded-For`` and
    ``X-Forwarded-Proto``. ``prefix``, such as "/five", is removed from paths that begin with it and added to the
    ``Location`` of responses. Paths without it work too: probes send none, and some proxies remove it.
    """

    def __init__(self, app: ASGIApp, prefix: str, trusted: Sequence[str]) -> None:
        self._prefix = prefix
        self._app = app
        inner: Any = self._without_prefix if prefix else app
        self._with_client: Any = ProxyHeadersMiddleware(inner, list(trusted))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("client"):
            host, port = scope["client"]
            scope["client"] = (without_mapping(host), port)
            scope[PEER] = scope["client"][0]
        await self._with_client(scope, receive, send)

    async def _without_prefix(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        path: str = scope["path"]
        if path == self._prefix or path.startswith(f"{self._prefix}/"):
            raw = scope.get("raw_path") or b""
            scope = {**scope, "path": path[len(self._prefix):] or "/"}
            if raw.startswith(self._prefix.encode()):
                scope["raw_path"] = raw[len(self._prefix):] or b"/"

        def located(name: bytes, value: bytes) -> bytes:
            return self._prefix.encode() + value if name.lower() == b"location" and value[:1] == b"/" else value

        async def send_with_prefix(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.get("headers", ())
                message = {**message, "headers": [(name, located(name, value)) for name, value in headers]}
            await send(message)

        await self._app(scope, receive, send_with_prefix)

