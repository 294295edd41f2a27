"""Console logins: one-time links and browser sessions.

A browser holds a cookie that scripts cannot read and other sites cannot send. Its session is a row in the run's state
Redis, so it survives a restart of the controller. Only hashes of secrets are stored. A session depends on the named
token that opened it: it ends at once when the token is revoked, expires or loses its role. A token has a limited
number of sessions and links, so that nobody fills the store.
"""

import json
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import redis

from five.run.config.controller import LimitsConfig
from five.services.controller.http.auth import Authenticator, Caller
from five.services.controller.http.problems import Problem
from five.services.controller.http.request_limits import ClientRates, too_many_requests
from five.services.controller.http.tokens import Role, token_hash
from rapid.store.keys import Keys
from rapid.store.rows import decode_row
from rapid.store.transaction import transaction

LINK_SECONDS = 600
SESSION_SECONDS = 30 * 24 * 3600  # without a request; open pages send requests all the time
UNUSED_SECONDS = 3600  # before its first request
RENEW_SECONDS = 3600  # between renewals of the stored expiry
CACHE_SECONDS = 1.0  # maximum age of a cached session
MAX_CACHED = 1024
# Sent with every change by the console: forms and links of other pages cannot send it.
CONSOLE_HEADER = b"x-five-console"
_NEW_LINK_HINT = "`five console` prints a new link"


class OpenedSession(NamedTuple):
    """A new session: the browser's secret and its caller."""

    secret: str
    caller: Caller


class _CachedSession(NamedTuple):
    token: str
    role: Role
    until: float


class Sessions:
    """Login links and sessions of one run. Blocking and thread-safe. Methods raise redis.RedisError."""

    def __init__(self, state: redis.Redis, run: str, authenticator: Authenticator,
                 limits: LimitsConfig | None = None) -> None:
        self._redis: Any = state
        self._keys = Keys(run)
        self._authenticator = authenticator
        self._limits = limits or LimitsConfig()
        self._lock = threading.Lock()
        self._rates = ClientRates(self._limits.logins_per_second, self._limits.logins_burst)
        self._cache: OrderedDict[str, _CachedSession] = OrderedDict()
        self._renewed_at: dict[str, float] = {}
        self.cookie = f"five-{run}"  # cookies ignore ports: two runs on one host need two names

    def create_link(self, caller: Caller, role: Role) -> str:
        """Return a code that opens one session, once, within ten minutes. Raise Problem 403 for a role above the
        caller's."""
        if role > caller.role:
            raise Problem(403, f"{caller.name!r} is a {caller.role.name.lower()}: it cannot create a link for an "
                          f"{role.name.lower()}")
        code = secrets.token_urlsafe(24)
        self._require_rate(caller.token)
        self._store(self._keys.login, token_hash(code), caller.token, role, LINK_SECONDS)
        return code

    def open_by_code(self, code: str) -> OpenedSession:
        """Exchange a code for a session. Raise Problem 401 if it is unknown, expired or used, and 429, which leaves the
        code valid, if its token creates sessions too fast."""
        name = self._keys.login(token_hash(code))

        def take(pipeline: Any) -> Any:
            row = pipeline.get(name)
            if row is not None:
                self._require_rate(_read(row)[0])
                pipeline.multi()
                pipeline.delete(name)
            return row

        row = transaction(self._redis, self._keys, take, name)  # only one of two concurrent requests deletes it
        if row is None:
            raise Problem(401, f"this link was used already or is older than ten minutes: {_NEW_LINK_HINT}")
        token, role = _read(row)
        return self._create_session(token, role)

    def open_by_token(self, token: str) -> OpenedSession:
        """Open a session with a named token. Raise Problem 401 if it is not listed or has expired."""
        caller = self._authenticator.authenticate(f"Bearer {token}")
        self._require_rate(caller.token)
        return self._create_session(caller.token, caller.role)

    def _create_session(self, token: str, role: Role) -> OpenedSession:
        caller = self._authenticator.caller_by_hash(token, role)
        secret = secrets.token_urlsafe(32)
        ended = self._store(self._keys.session, token_hash(secret), token, role, UNUSED_SECONDS)
        with self._lock:
            for digest in ended:
                self._forget(digest)
        return OpenedSession(secret, caller)

    def _require_rate(self, token: str) -> None:
        """Raise Problem 429 if a token creates sessions or links too fast."""
        with self._lock:
            wait = self._rates.wait_seconds(token)
            if not wait:
                self._rates.take(token)
        if wait:
            raise too_many_requests(wait, "this token creates too many sessions and login links")

    def _store(self, key: Callable[[str], str], digest: str, token: str, role: Role, seconds: int) -> list[str]:
        """Store a session or link of a token. Remove the token's oldest beyond the limit and return their digests."""
        index = key(_index(token))

        def change(pipeline: Any) -> list[str]:
            known = json.loads(pipeline.get(index) or "[]")
            rows = pipeline.mget([key(d) for d in known]) if known else []
            present = [d for d, row in zip(known, rows, strict=True) if row is not None]
            excess = present[:max(len(present) + 1 - self._limits.sessions_per_token, 0)]
            pipeline.multi()
            pipeline.set(key(digest), _row(token, role), ex=seconds)
            pipeline.set(index, json.dumps([*present[len(excess):], digest]), ex=SESSION_SECONDS)
            if excess:
                pipeline.delete(*map(key, excess))
            return excess

        return list(transaction(self._redis, self._keys, change, index))

    def is_known(self, secret: str) -> bool:
        """Return whether this controller has seen the session. It may have ended since."""
        with self._lock:
            return token_hash(secret) in self._cache

    def caller(self, secret: str) -> Caller:
        """Return the caller of a session. Raise Problem 401 without a session, or if its token is no longer valid."""
        digest, now = token_hash(secret), time.monotonic()
        with self._lock:
            known = self._cache.get(digest)
        if known is None or known.until < now:
            row = self._redis.get(self._keys.session(digest))
            if row is None:
                with self._lock:
                    self._forget(digest)
                raise Problem(401, f"this session has ended: {_NEW_LINK_HINT}")
            known = _CachedSession(*_read(row), now + CACHE_SECONDS)
            self._renew(digest, known.token, now)
            with self._lock:
                self._cache[digest] = known
                self._cache.move_to_end(digest)
                while len(self._cache) > MAX_CACHED:
                    self._forget(next(iter(self._cache)))
        return self._authenticator.caller_by_hash(known.token, known.role)

    def _renew(self, digest: str, token: str, now: float) -> None:
        if now - self._renewed_at.get(digest, -RENEW_SECONDS) >= RENEW_SECONDS:
            for name in (digest, _index(token)):
                self._redis.pexpire(self._keys.session(name), SESSION_SECONDS * 1000)
            self._renewed_at[digest] = now

    def _forget(self, digest: str) -> None:
        self._cache.pop(digest, None)
        self._renewed_at.pop(digest, None)

    def close(self, secret: str) -> None:
        """End a session, if it exists."""
        digest = token_hash(secret)
        self._redis.delete(self._keys.session(digest))
        with self._lock:
            self._forget(digest)


def _index(token: str) -> str:
    """Return what replaces a digest in the key that lists the sessions, or the links, of a token."""
    return f"of-{token}"


def _row(token: str, role: Role) -> str:
    return json.dumps({"token": token, "role": role.name})


def _read(row: bytes) -> tuple[str, Role]:
    return decode_row(row, "a session", lambda found: (str(found["token"]), Role[found["role"]]))


def cookie_value(headers: Iterable[tuple[bytes, bytes]], name: str) -> str:
    """Return a cookie's value, or '' without it."""
    for key, value in headers:
        if key == b"cookie":
            for pair in value.decode("latin-1").split(";"):
                found, _, text = pair.strip().partition("=")
                if found == name:
                    return text
    return ""


def require_same_origin(headers: Mapping[bytes, bytes], changes: bool) -> None:
    """Raise Problem 403 unless a request with a cookie comes from the console itself. A change or a web socket must
    send its Origin.
    """
    site, origin = headers.get(b"sec-fetch-site", b"none"), headers.get(b"origin")
    own = site in (b"same-origin", b"none")
    if origin is None:
        own = own and not changes
    else:
        # Not parsed, because an origin is only a scheme and a host, and urlsplit raises for malformed ones.
        host = headers.get(b"host", b"").lower()
        own = own and bool(host) and origin.lower() in (b"http://" + host, b"https://" + host)
    if not own:
        raise Problem(403, "request from another origin: sessions are valid for the console's own pages only",
                      "cross-origin")


def require_console_header(headers: Mapping[bytes, bytes]) -> None:
    """Raise Problem 403 for a change by cookie without the header that the console's own script sends."""
    if CONSOLE_HEADER not in headers:
        raise Problem(403,
                      f"the header {CONSOLE_HEADER.decode()} is missing: a change by cookie needs it; scripts use "
                      "a token", "cross-origin")
