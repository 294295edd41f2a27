"""ASGI middleware for every request: limits, authentication, body and idempotency key.

Rate, announced size and token are checked before any byte of the body is read, and never more than the limit is read.
"""

import asyncio
import logging
from collections.abc import Callable

import redis
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from five.services.controller.console.sessions import (
    Sessions,
    cookie_value,
    require_console_header,
    require_same_origin,
)
from five.services.controller.http.auth import Authenticator, Caller
from five.services.controller.http.idempotency import (
    HEADER,
    METHODS,
    IdempotencyStore,
    KeyClaim,
    StoredResponse,
    fingerprint,
)
from five.services.controller.http.problems import Problem, store_unavailable
from five.services.controller.http.request_limits import RequestLimits

log = logging.getLogger(__name__)

PROTECTED = "/v1"
LOGIN = ("POST", "/v1/session")  # the only request without a caller
PROBES = frozenset({"/healthz", "/readyz"})  # never rate-limited
CONNECTION_HEADERS = frozenset({b"date", b"server", b"connection", b"content-length"})


def header(scope: Scope, name: bytes) -> str | None:
    """Return a header's value, or None."""
    for key, value in scope["headers"]:
        if key == name:
            return str(value.decode("latin-1"))
    return None


def _has_body(scope: Scope) -> bool:
    return header(scope, b"transfer-encoding") is not None or (header(scope, b"content-length") or "0") != "0"


class _ResponseRecorder:
    """Forwards response messages and records the response where an idempotency key asks for it."""

    def __init__(self, send: Send, record: bool) -> None:
        self._send = send
        self._record = record
        self.started = asyncio.Event()
        self.status = 0
        self.headers: tuple[tuple[bytes, bytes], ...] = ()
        self.body: list[bytes] = []
        self.complete = False

    async def __call__(self, message: Message) -> None:
        self.started.set()
        if self._record:
            if message["type"] == "http.response.start":
                self.status = message["status"]
                self.headers = tuple((bytes(n), bytes(v)) for n, v in message.get("headers", ())
                                     if n.lower() not in CONNECTION_HEADERS)
            elif message["type"] == "http.response.body":
                self.body.append(message.get("body", b""))
                self.complete = not message.get("more_body", False)
        await self._send(message)

    def response(self) -> StoredResponse | None:
        """Return the recorded response once it is complete."""
        return StoredResponse(self.status, self.headers, b"".join(self.body)) if self.complete else None


class RequestMiddleware:
    """The middleware of all requests.

    For paths below /v1 it sets in ``scope["state"]``: ``caller``; ``revalidate``, a blocking function that raises
    Problem 401 once the caller is no longer valid; and, with a cookie, ``session``, its secret. ``on_change`` is called
    before the response to a request that may have changed something. Web sockets are authenticated like requests; with
    a cookie they must send the console's Origin.
    """

    def __init__(self, app: ASGIApp, authenticator: Authenticator, sessions: Sessions,
                 limits: RequestLimits, idempotency: IdempotencyStore,
                 on_change: Callable[[], None] = lambda: None) -> None:
        self._app = app
        self._authenticator = authenticator
        self._sessions = sessions
        self._limits = limits
        self._idempotency = idempotency
        self._on_change = on_change

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._handle_websocket(scope, receive, send)
            return
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self._app(scope, receive, send)
            return
        if scope["method"] in METHODS:
            send = self._notify_on_response(send)
        recorder = _ResponseRecorder(send, HEADER in {key for key, _ in scope["headers"]}
                                     and scope["method"] in METHODS)
        body_unread = True  # until the body is read
        try:
            client = (scope.get("client") or ("unknown",))[0]
            self._limits.admit(client)
            self._limits.check_length(scope["headers"])
            caller = await self._authenticate(scope, client) if scope["path"].startswith(PROTECTED) else None
            self._limits.enter()
            body_unread = False
            try:
                await self._handle_admitted(scope, receive, recorder, caller)
            finally:
                self._limits.leave()
        except Problem as problem:
            if recorder.started.is_set():
                raise
            if body_unread and _has_body(scope):
                # Otherwise the server would read and discard the whole body.
                problem.headers["Connection"] = "close"
            await problem.response(scope["path"])(scope, receive, send)

    def _notify_on_response(self, send: Send) -> Send:
        async def send_and_notify(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._on_change()
            await send(message)

        return send_and_notify

    async def _handle_websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = (scope.get("client") or ("unknown",))[0]
        try:
            self._limits.admit(client)
            await self._authenticate(scope, client)
        except Problem as problem:
            log.debug("web socket refused: %s", problem)
            await receive()
            await send({"type": "websocket.close", "code": 1008})  # before it is accepted: HTTP 403
            return
        await self._app(scope, receive, send)

    async def _authenticate(self, scope: Scope, client: str) -> Caller | None:
        """Return the caller by token or by cookie, or None for a login request. Raise Problem."""
        headers = dict(scope["headers"])
        authorization = (headers.get(b"authorization") or b"").decode("latin-1")
        secret = "" if authorization or self._authenticator.is_open else cookie_value(scope["headers"],
                                                                                      self._sessions.cookie)
        method = scope.get("method", "GET")
        is_login = (method, scope["path"]) == LOGIN
        changes = method in METHODS
        if secret or is_login:
            require_same_origin(headers, changes or scope["type"] == "websocket")
            if changes:
                require_console_header(headers)
        elif self._authenticator.is_open and b"origin" in headers:  # from a browser: only the origin tells pages apart
            require_same_origin(headers, changes)
        if is_login:
            return None

        def authenticate() -> Caller:
            return self._sessions.caller(secret) if secret else self._authenticator.authenticate(authorization)

        try:
            found = await asyncio.to_thread(authenticate) if secret else authenticate()
        except Problem as problem:
            if problem.status == 401:
                self._limits.login_failed(client)
            raise
        except redis.RedisError as error:
            raise store_unavailable(error) from None
        scope.setdefault("state", {}).update(caller=found, revalidate=authenticate, session=secret)
        return found

    async def _handle_admitted(self, scope: Scope, receive: Receive, recorder: _ResponseRecorder, caller: Caller
                               | None) -> None:
        body = await self._limits.read_body(receive)
        if body is None:
            return
        # The response to a login is a secret and must not be stored.
        storable = caller is not None and scope["method"] in METHODS and not scope["path"].startswith(LOGIN[1])
        key = header(scope, HEADER) if storable else None
        if caller is None or key is None:
            await self._respond_in_time(scope, _replay_body(body, receive), recorder)
            return
        request_fingerprint = fingerprint(scope["method"], scope["path"], scope["query_string"], body)
        try:
            taken = await asyncio.to_thread(self._idempotency.claim, caller.name, key, request_fingerprint)
        except redis.RedisError as error:
            raise store_unavailable(error) from None
        if isinstance(taken, StoredResponse):
            await recorder({"type": "http.response.start", "status": taken.status, "headers": [
                *taken.headers, (b"idempotency-replayed", b"true"), (b"content-length", b"%d" % len(taken.body))]})
            await recorder({"type": "http.response.body", "body": taken.body})
            return
        try:
            await self._respond_in_time(scope, _replay_body(body, receive), recorder)
        except Problem:
            raise  # the application may still be working: the key stays claimed until it expires
        except BaseException:
            await self._complete_claim(taken, None)
            raise
        await self._complete_claim(taken, recorder.response())

    async def _complete_claim(self, taken: KeyClaim, answer: StoredResponse | None) -> None:
        try:
            await asyncio.to_thread(self._idempotency.store_or_release, taken, answer)
        except redis.RedisError as error:
            # The change was made. The key stays claimed for a minute; then the client may repeat the request.
            log.warning("response could not be stored under its idempotency key: %s", error)

    async def _respond_in_time(self, scope: Scope, receive: Receive, recorder: _ResponseRecorder) -> None:
        """Call the application. Raise Problem 503 if the response does not begin in time."""
        working = asyncio.ensure_future(self._app(scope, receive, recorder))
        beginning = asyncio.ensure_future(recorder.started.wait())
        try:
            await asyncio.wait({working, beginning}, timeout=self._limits.config.request_seconds,
                               return_when=asyncio.FIRST_COMPLETED)
            if not working.done() and not recorder.started.is_set():
                raise Problem(503, f"no response within {self._limits.config.request_seconds:g} s", "timeout",
                              {"Retry-After": "1"})
            await working
        finally:
            beginning.cancel()
            if not working.done():
                working.cancel()


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """Return a receive function that yields the body already read, then the client's further messages."""
    given = False

    async def receive_replayed() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_replayed
