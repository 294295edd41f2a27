"""What every request passes before the application sees it: limits, the token, the body, the idempotency key.

A pure ASGI middleware: nothing of a body is read before rate, announced size and token are found to be in order, and
never more of it than may be.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import redis

from five.services.controller.console.sessions import Sessions, cookie_of, require_mark, require_own_page
from five.services.controller.http.auth import Caller, Gate
from five.services.controller.http.idempotency import HEADER, METHODS, Answer, Replays, Taken, fingerprint
from five.services.controller.http.problems import Problem, store_away
from five.services.controller.http.request_limits import Limits

log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

PROTECTED = "/v1"
LOG_IN = ("POST", "/v1/session")  # what is asked by nobody yet
PROBES = frozenset({"/healthz", "/readyz"})  # a kubelet is never told to slow down
CONNECTION_HEADERS = frozenset({b"date", b"server", b"connection", b"content-length"})


def header(scope: Scope, name: bytes) -> str | None:
    """A header's value; None without it."""
    for key, value in scope["headers"]:
        if key == name:
            return str(value.decode("latin-1"))
    return None


def _has_body(scope: Scope) -> bool:
    return header(scope, b"transfer-encoding") is not None or (header(scope, b"content-length") or "0") != "0"


class _Answered:
    """Sends messages on, and keeps what was sent where a key asks for it."""

    def __init__(self, send: Send, keep: bool) -> None:
        self._send = send
        self._keep = keep
        self.begun = asyncio.Event()
        self.status = 0
        self.headers: tuple[tuple[bytes, bytes], ...] = ()
        self.body: list[bytes] = []
        self.whole = False

    async def __call__(self, message: Message) -> None:
        self.begun.set()
        if self._keep:
            if message["type"] == "http.response.start":
                self.status = message["status"]
                self.headers = tuple((bytes(n), bytes(v)) for n, v in message.get("headers", ())
                                     if n.lower() not in CONNECTION_HEADERS)
            elif message["type"] == "http.response.body":
                self.body.append(message.get("body", b""))
                self.whole = not message.get("more_body", False)
        await self._send(message)

    def answer(self) -> Answer | None:
        """What was sent, once it is whole."""
        return Answer(self.status, self.headers, b"".join(self.body)) if self.whole else None


class Boundary:
    """The middleware. ``scope["state"]`` gets ``caller``, who asks, for paths below /v1, and ``still``, which raises
    Problem 401 once that holds no more (it blocks); with a cookie also ``session``, its secret. ``changed`` is called
    before the answer to a request that may have changed something. A web socket is let in as a request is, and has to
    name the console's origin where it comes with a cookie."""

    def __init__(self, app: Application, gate: Gate, sessions: Sessions, limits: Limits, replays: Replays,
                 changed: Callable[[], None] = lambda: None) -> None:
        self._app = app
        self._gate = gate
        self._sessions = sessions
        self._limits = limits
        self._replays = replays
        self._changed = changed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send)
            return
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self._app(scope, receive, send)
            return
        if scope["method"] in METHODS:
            send = self._telling(send)
        answered = _Answered(send, HEADER in {key for key, _ in scope["headers"]} and scope["method"] in METHODS)
        refused = True  # until its body is read
        try:
            client = (scope.get("client") or ("unknown",))[0]
            self._limits.admit(client)
            self._limits.check_length(scope["headers"])
            caller = await self._caller(scope, client) if scope["path"].startswith(PROTECTED) else None
            self._limits.enter()
            refused = False
            try:
                await self._admitted(scope, receive, answered, caller)
            finally:
                self._limits.leave()
        except Problem as problem:
            if answered.begun.is_set():
                raise
            if refused and _has_body(scope):
                # Else the server would go on reading, and throwing away, what nobody wants.
                problem.headers["Connection"] = "close"
            await problem.response(scope["path"])(scope, receive, send)

    def _telling(self, send: Send) -> Send:
        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._changed()
            await send(message)

        return told

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = (scope.get("client") or ("unknown",))[0]
        try:
            self._limits.admit(client)
            await self._caller(scope, client)
        except Problem as problem:
            log.debug("a web socket is refused: %s", problem)
            await receive()
            await send({"type": "websocket.close", "code": 1008})  # before it is accepted: HTTP 403
            return
        await self._app(scope, receive, send)

    async def _caller(self, scope: Scope, client: str) -> Caller | None:
        """Who asks, by token or else by cookie; None for who logs in. Raises Problem."""
        headers = dict(scope["headers"])
        authorization = (headers.get(b"authorization") or b"").decode("latin-1")
        secret = "" if authorization or self._gate.open else cookie_of(scope["headers"], self._sessions.cookie)
        method = scope.get("method", "GET")
        logs_in = (method, scope["path"]) == LOG_IN
        changes = method in METHODS
        if secret or logs_in:
            require_own_page(headers, changes or scope["type"] == "websocket")
            if changes:
                require_mark(headers)
        elif self._gate.open and b"origin" in headers:  # a browser's, and nothing but its origin tells pages apart
            require_own_page(headers, changes)
        if logs_in:
            return None

        def caller() -> Caller:
            return self._sessions.caller(secret) if secret else self._gate.caller(authorization)

        try:
            found = await asyncio.to_thread(caller) if secret else caller()
        except Problem as problem:
            if problem.status == 401:
                self._limits.login_failed(client)
            raise
        except redis.RedisError as error:
            raise store_away(error) from None
        scope.setdefault("state", {}).update(caller=found, still=caller, session=secret)
        return found

    async def _admitted(self, scope: Scope, receive: Receive, answered: _Answered, caller: Caller | None) -> None:
        body = await self._limits.read_body(receive)
        if body is None:
            return
        # What is answered to who logs in is a secret: it is not kept.
        kept = caller is not None and scope["method"] in METHODS and not scope["path"].startswith(LOG_IN[1])
        key = header(scope, HEADER) if kept else None
        if caller is None or key is None:
            await self._in_time(scope, _replay(body, receive), answered)
            return
        print_of = fingerprint(scope["method"], scope["path"], scope["query_string"], body)
        try:
            taken = await asyncio.to_thread(self._replays.begin, caller.name, key, print_of)
        except redis.RedisError as error:
            raise store_away(error) from None
        if isinstance(taken, Answer):
            await answered({"type": "http.response.start", "status": taken.status, "headers": [
                *taken.headers, (b"idempotency-replayed", b"true"), (b"content-length", b"%d" % len(taken.body))]})
            await answered({"type": "http.response.body", "body": taken.body})
            return
        try:
            await self._in_time(scope, _replay(body, receive), answered)
        except Problem:
            raise  # it goes on beyond its time: the key stays busy until it cannot be any more
        except BaseException:
            await self._settle(taken, None)
            raise
        await self._settle(taken, answered.answer())

    async def _settle(self, taken: Taken, answer: Answer | None) -> None:
        try:
            await asyncio.to_thread(self._replays.settle, taken, answer)
        except redis.RedisError as error:
            # The change is made; its key stays busy for a minute, and then the client may ask again.
            log.warning("an answer could not be kept under its key: %s", error)

    async def _in_time(self, scope: Scope, receive: Receive, answered: _Answered) -> None:
        """Has the application answer; Problem 503 when it does not begin to in time."""
        working = asyncio.ensure_future(self._app(scope, receive, answered))
        beginning = asyncio.ensure_future(answered.begun.wait())
        try:
            await asyncio.wait({working, beginning}, timeout=self._limits.config.request_seconds,
                               return_when=asyncio.FIRST_COMPLETED)
            if not working.done() and not answered.begun.is_set():
                raise Problem(503, f"no answer within {self._limits.config.request_seconds:g} s", "timeout",
                              {"Retry-After": "1"})
            await working
        finally:
            beginning.cancel()
            if not working.done():
                working.cancel()


def _replay(body: bytes, receive: Receive) -> Receive:
    """Gives a body that was read already, then whatever follows it: the client's going."""
    given = False

    async def replayed() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed
