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

        host = next((value for name, value in scope["headers"] if name == b"host"), b"")
        own = f"{scope.get('scheme')}://".encode() + host

        def located(name: bytes, value: bytes) -> bytes:
            if name.lower() != b"location":
                return value
            # The router's redirects, which remove a final slash, are absolute.
            origin = own if host and value.startswith(own + b"/") else b""
            path = value[len(origin):]
            return origin + self._prefix.encode() + path if path[:1] == b"/" else value

        async def send_with_prefix(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.get("headers", ())
                message = {**message, "headers": [(name, located(name, value)) for name, value in headers]}
            await send(message)

        await self._app(scope, receive, send_with_prefix)

