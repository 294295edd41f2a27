"""ASGI middleware for every request: limits, authentication, body and idempotency key.

Host, announced size, token and rate are checked before any byte of the body is read, and never more than the limit is
read.
"""

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable
from functools import partial

import redis
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from five.services.controller.console.sessions import (
    Sessions,
    cookie_value,
    require_console_header,
    require_same_origin,
)
from five.services.controller.http.auth import Authenticator, Caller, Role
from five.services.controller.http.client_address import ClientAddress, client_of
from five.services.controller.http.connections import PROBES
from five.services.controller.http.host_names import HostNames
from five.services.controller.http.idempotency import (
    HEADER,
    METHODS,
    IdempotencyStore,
    KeyClaim,
    StoredResponse,
    fingerprint,
)
from five.services.controller.http.problems import Problem, store_unavailable
from five.services.controller.http.redaction import RedactingSend
from five.services.controller.http.request_limits import RequestLimits, discard_small_body

log = logging.getLogger(__name__)

PROTECTED = "/v1"
LOGIN = ("POST", "/v1/session")  # the only request without a caller
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")  # half of a pair at least, in JSON
CONNECTION_HEADERS = frozenset({b"date", b"server", b"connection", b"content-length"})


def header(scope: Scope, name: bytes) -> str | None:
    """Return a header's value, or None."""
    for key, value in scope["headers"]:
        if key == name:
            return str(value.decode("latin-1"))
    return None


def _is_login(scope: Scope) -> bool:
    return (scope.get("method", "GET"), scope["path"]) == LOGIN


def _has_body(scope: Scope) -> bool:
    return header(scope, b"transfer-encoding") is not None or (header(scope, b"content-length") or "0") != "0"


class _ResponseRecorder:
    """Forwards response messages, and holds those of a request with an idempotency key until its response is stored.

    Otherwise a client that repeats its request as soon as it has the response would get 409: the first one is still
    in progress. ``only_stores`` is set once the client has another response.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._held: list[Message] = []
        self.store: Callable[[StoredResponse], Awaitable[None]] | None = None
        self.only_stores = False
        self.started = asyncio.Event()
        self.status = 0

    async def __call__(self, message: Message) -> None:
        self.started.set()
        if message["type"] == "http.response.start":
            self.status = message["status"]
        if self.store is None:
            await self._send(message)
            return
        self._held.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            await self.store(_as_stored(self._held))
            for held in () if self.only_stores else self._held:
                await self._send(held)


def _as_stored(messages: list[Message]) -> StoredResponse:
    start, *body = messages
    headers = tuple((bytes(name), bytes(value)) for name, value in start.get("headers", ())
                    if name.lower() not in CONNECTION_HEADERS)
    return StoredResponse(start["status"], headers, b"".join(message.get("body", b"") for message in body))


class RequestMiddleware:
    """The middleware of all requests.

    For paths below /v1 it sets in ``scope["state"]``: ``caller``; ``revalidate``, a blocking function that raises
    Problem 401 once the caller is no longer valid; and, with a cookie, ``session``, its secret. ``on_change`` is called
    before the response to a request that may have changed something. Web sockets are authenticated like requests; with
    a cookie they must send the console's Origin.
    """

    def __init__(self, app: ASGIApp, authenticator: Authenticator, sessions: Sessions,
                 limits: RequestLimits, idempotency: IdempotencyStore, hosts: HostNames,
                 on_change: Callable[[], None] = lambda: None) -> None:
        self._app = app
        self._authenticator = authenticator
        self._sessions = sessions
        self._limits = limits
        self._idempotency = idempotency
        self._hosts = hosts
        self._on_change = on_change
        self._late: set[asyncio.Future[None]] = set()  # requests that only store their responses; keeps the tasks alive

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._handle_websocket(scope, receive, send)
            return
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self._app(scope, receive, send)
            return
        if scope["path"].startswith(PROTECTED):
            send = RedactingSend(send)
        if scope["method"] in METHODS:
            send = self._notify_on_response(send)
        recorder = _ResponseRecorder(send)
        body_unread = True  # until the body is read
        try:
            client = client_of(scope)
            self._require_host(scope)
            self._limits.check_length(scope["headers"])
            caller = await self._admit(scope, client)
            with self._limits.enter(caller, client):
                body_unread = False
                await self._handle_admitted(scope, receive, recorder, caller)
            if _is_login(scope) and recorder.status != 401:
                self._limits.login_succeeded(client)
        except Problem as problem:
            if recorder.started.is_set():
                raise
            if body_unread and _has_body(scope) and not await discard_small_body(scope["headers"], receive):
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
        try:
            self._require_host(scope)
            await self._admit(scope, client_of(scope))
        except Problem as problem:
            log.debug("web socket refused: %s", problem)
            await receive()
            await send({"type": "websocket.close", "code": 1008})  # before it is accepted: HTTP 403
            return
        await self._app(scope, receive, send)

    def _require_host(self, scope: Scope) -> None:
        """Raise Problem 421 for a foreign name in Host. With authentication, cookies and tokens protect as well, so the
        check is on only if names are configured.
        """
        if self._authenticator.is_open or self._hosts.configured:
            self._hosts.require(scope["headers"])

    async def _admit(self, scope: Scope, client: ClientAddress) -> Caller | None:
        """Return the caller, or None for a login and outside the API. Raise Problem for an invalid caller or too many
        requests."""
        if not scope["path"].startswith(PROTECTED):
            self._limits.admit_anonymous(client)
            return None
        headers = dict(scope["headers"])
        authorization = (headers.get(b"authorization") or b"").decode("latin-1")
        is_open = self._authenticator.is_open
        secret = "" if authorization or is_open else cookie_value(scope["headers"], self._sessions.cookie)
        is_login = _is_login(scope)
        changes = scope.get("method", "GET") in METHODS
        if is_login:
            self._limits.admit_anonymous(client)
        if secret or is_login:
            require_same_origin(headers, changes or scope["type"] == "websocket")
            if changes:
                require_console_header(headers)
        elif is_open and b"origin" in headers:  # from a browser: only the origin tells pages apart
            require_same_origin(headers, changes)
        if is_login:
            self._limits.begin_login(client)
            return None

        def authenticate() -> Caller:
            return self._sessions.caller(secret) if secret else self._authenticator.authenticate(authorization)

        caller = await self._authenticate_cookie(secret, client) if secret else self._authenticate_token(
            authorization, client)
        self._limits.admit_caller(caller, client)
        scope.setdefault("state", {}).update(caller=caller, revalidate=authenticate, session=secret)
        return caller

    def _authenticate_token(self, authorization: str, client: ClientAddress) -> Caller:
        """Return a token's caller. The failures of others behind the same address do not delay a valid token."""
        try:
            return self._authenticator.authenticate(authorization)
        except Problem:
            self._limits.admit_anonymous(client)
            self._limits.begin_login(client)
            raise

    async def _authenticate_cookie(self, secret: str, client: ClientAddress) -> Caller:
        """Return a session's caller. A cookie that this controller has not seen costs an attempt to log in, because
        it costs a read of the store."""
        is_known = self._sessions.is_known(secret)
        if not is_known:
            self._limits.admit_anonymous(client)
            self._limits.begin_login(client)
        try:
            caller = await asyncio.to_thread(self._sessions.caller, secret)
        except Problem:
            if is_known:
                self._limits.begin_login(client)
            raise
        except redis.RedisError as error:
            if not is_known:
                self._limits.login_succeeded(client)
            raise store_unavailable(error) from None
        if not is_known:
            self._limits.login_succeeded(client)
        return caller

    async def _handle_admitted(self, scope: Scope, receive: Receive, recorder: _ResponseRecorder,
                               caller: Caller | None) -> None:
        body = await self._limits.read_body(receive)
        if body is None:
            return
        require_unicode(body)
        # The response to a login is a secret and must not be stored. A viewer changes nothing, and must not fill the
        # store.
        storable = (caller is not None and caller.role >= Role.OPERATOR and scope["method"] in METHODS
                    and not scope["path"].startswith(LOGIN[1]))
        key = header(scope, HEADER) if storable else None
        receive = _replay_body(body, receive)
        if caller is None or key is None:
            await self._respond_in_time(self._app(scope, receive, recorder), recorder)
            return
        request_fingerprint = fingerprint(scope["method"], scope["path"], scope["query_string"], body)
        try:
            claim = await asyncio.to_thread(self._idempotency.claim, caller.name, key, request_fingerprint)
        except redis.RedisError as error:
            raise store_unavailable(error) from None
        if isinstance(claim, StoredResponse):
            await recorder({"type": "http.response.start", "status": claim.status, "headers": [
                *claim.headers, (b"idempotency-replayed", b"true"), (b"content-length", b"%d" % len(claim.body))]})
            await recorder({"type": "http.response.body", "body": claim.body})
            return
        recorder.store = partial(self._complete_claim, claim)
        await self._respond_in_time(self._respond_to_claim(scope, receive, recorder, claim), recorder)

    async def _respond_to_claim(self, scope: Scope, receive: Receive, recorder: _ResponseRecorder,
                                claim: KeyClaim) -> None:
        try:
            await self._app(scope, receive, recorder)
        except BaseException:
            await self._complete_claim(claim, None)  # does nothing once the response is stored
            raise

    async def _complete_claim(self, claim: KeyClaim, response: StoredResponse | None) -> None:
        try:
            await asyncio.to_thread(self._idempotency.store_or_release, claim, response)
        except redis.RedisError as error:
            # The change was made. The key stays claimed until it expires; then the client may repeat the request.
            log.warning("response could not be stored under its idempotency key: %s", error)

    async def _respond_in_time(self, response: Awaitable[None], recorder: _ResponseRecorder) -> None:
        """Await a response. Raise Problem 503 if it does not begin in time.

        A request with an idempotency key then continues, because it may have made its change: a repeated one gets its
        response.
        """
        working = asyncio.ensure_future(response)
        beginning = asyncio.ensure_future(recorder.started.wait())
        try:
            await asyncio.wait({working, beginning}, timeout=self._limits.config.request_seconds,
                               return_when=asyncio.FIRST_COMPLETED)
            if not working.done() and not recorder.started.is_set():
                if recorder.store is not None:
                    recorder.only_stores = True
                    self._late.add(working)
                    working.add_done_callback(self._late.discard)
                raise Problem(503, f"no response within {self._limits.config.request_seconds:g} s", "timeout",
                              {"Retry-After": "1"})
            await working
        finally:
            beginning.cancel()
            if working not in self._late:
                working.cancel()  # does nothing once it has ended


def require_unicode(body: bytes) -> None:
    """Raise Problem 422 for a lone surrogate in JSON: once it is stored, no response that contains it can be sent."""
    if _SURROGATE.search(body) is None:
        return
    try:
        json.dumps(json.loads(body), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        what = "a text contains a lone surrogate, such as half of an emoji: valid Unicode is required"
        raise Problem(422, f"body: {what}", errors=[{"where": "body", "what": what}]) from None
    except (ValueError, RecursionError):
        pass  # the application refuses it


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
