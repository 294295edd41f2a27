"""ASGI middleware that traces requests to the REST API."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from five.services.controller.http.middleware import PROTECTED, header
from rapid.telemetry import tracing


class TraceMiddleware:
    """Traces authenticated requests below /v1: those that the caller's traceparent samples and a share of the rest."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(PROTECTED):
            await self._app(scope, receive, send)
            return
        method, status = scope["method"], 0

        async def send_and_note(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        parent = header(scope, tracing.HEADER.encode()) or ""
        with tracing.request_span(method, parent, {"http.request.method": method}) as span:
            try:
                await self._app(scope, receive, send_and_note)
            finally:
                if span is not None:
                    route = getattr(scope.get("route"), "path", "")  # set by the router; FastAPI omits its prefix
                    if route:
                        route = PROTECTED + route.removeprefix(PROTECTED)
                        span.describe({"http.route": route}, f"{method} {route}")
                    if status:  # no response begins after an error or without a client
                        span.describe({"http.response.status_code": status})
