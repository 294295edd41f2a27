"""Who is logged in to the console: one-time links, and the sessions of browsers.

A browser holds a cookie that scripts cannot read and other sites cannot send; its session is a row in the run's state
Redis, so that it outlives the controller. Only hashes of what a browser holds are kept. A session stands on the named
token that opened it: when that token is revoked, expires or loses its role, so does the session, at once.
"""

import json
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import redis

from five.services.controller.http.auth import Caller, Gate
from five.services.controller.http.problems import Problem
from five.services.controller.http.tokens import Role, hash_of
from rapid.store.keys import Keys

LINK_SECONDS = 600
SESSION_SECONDS = 30 * 24 * 3600  # without a request; a page that stays open asks all the time
PROLONG_SECONDS = 3600  # how often that is written down
FRESH_SECONDS = 1.0  # a session is looked up that often at most
MAX_FRESH = 1024
MARK = b"x-five-console"  # on every write of the console's: forms and links of other pages cannot send it
_AGAIN = "`five console` prints a new link"


class Opened(NamedTuple):
    """A session that was just opened: what the browser holds, and who that is."""

    secret: str
    caller: Caller


class _Known(NamedTuple):
    token: str
    role: Role
    until: float


class Sessions:
    """Links and sessions of one run. Blocking; safe to share between threads. Methods raise redis.RedisError."""

    def __init__(self, state: redis.Redis, run: str, gate: Gate) -> None:
        self._redis: Any = state
        self._keys = Keys(run)
        self._gate = gate
        self._lock = threading.Lock()
        self._fresh: OrderedDict[str, _Known] = OrderedDict()
        self._prolonged: dict[str, float] = {}
        self.cookie = f"five-{run}"  # cookies know hosts and no ports: two runs of one machine have two

    def link(self, caller: Caller, role: Role) -> str:
        """A code that opens one session, once, within ten minutes. Raises Problem 403 for a role above the caller's."""
        if role > caller.role:
            raise Problem(403, f"{caller.name!r} is a {caller.role.name.lower()}: it cannot let an "
                          f"{role.name.lower()} in")
        code = secrets.token_urlsafe(24)
        self._redis.set(self._keys.login(hash_of(code)), _row(caller.token, role), ex=LINK_SECONDS)
        return code

    def open(self, code: str) -> Opened:
        """Exchanges a code for a session. Raises Problem 401 for one that is unknown, too old, or was used."""
        name = self._keys.login(hash_of(code))
        row = self._redis.get(name)
        if row is None or not self._redis.delete(name):  # of two at once one removes it
            raise Problem(401, f"this link was used already, or is older than ten minutes: {_AGAIN}")
        token, role = _read(row)
        return self._opened(token, role)

    def open_by_token(self, token: str) -> Opened:
        """A session of a named token. Raises Problem 401 for one that is not listed or has expired."""
        caller = self._gate.caller(f"Bearer {token}")
        return self._opened(caller.token, caller.role)

    def _opened(self, token: str, role: Role) -> Opened:
        caller = self._gate.holder(token, role)
        secret = secrets.token_urlsafe(32)
        self._redis.set(self._keys.session(hash_of(secret)), _row(token, role), ex=SESSION_SECONDS)
        return Opened(secret, caller)

    def caller(self, secret: str) -> Caller:
        """Who holds a session. Raises Problem 401 when there is none, or its token no longer holds."""
        digest, now = hash_of(secret), time.monotonic()
        with self._lock:
            known = self._fresh.get(digest)
        if known is None or known.until < now:
            row = self._redis.get(self._keys.session(digest))
            if row is None:
                raise Problem(401, f"this session has ended: {_AGAIN}")
            known = _Known(*_read(row), now + FRESH_SECONDS)
            self._prolong(digest, now)
            with self._lock:
                self._fresh[digest] = known
                while len(self._fresh) > MAX_FRESH:
                    self._prolonged.pop(self._fresh.popitem(last=False)[0], None)
        return self._gate.holder(known.token, known.role)

    def _prolong(self, digest: str, now: float) -> None:
        if now - self._prolonged.get(digest, -PROLONG_SECONDS) >= PROLONG_SECONDS:
            self._redis.pexpire(self._keys.session(digest), SESSION_SECONDS * 1000)
            self._prolonged[digest] = now

    def close(self, secret: str) -> None:
        """Ends a session; one that is not there is no error."""
        digest = hash_of(secret)
        self._redis.delete(self._keys.session(digest))
        with self._lock:
            self._fresh.pop(digest, None)


def _row(token: str, role: Role) -> str:
    return json.dumps({"token": token, "role": role.name})


def _read(row: bytes) -> tuple[str, Role]:
    found: dict[str, str] = json.loads(row)
    return found["token"], Role[found["role"]]


def cookie_of(headers: Iterable[tuple[bytes, bytes]], name: str) -> str:
    """A cookie's value, '' without it."""
    for key, value in headers:
        if key == b"cookie":
            for pair in value.decode("latin-1").split(";"):
                found, _, text = pair.strip().partition("=")
                if found == name:
                    return text
    return ""


def require_own_page(headers: Mapping[bytes, bytes], changes: bool) -> None:
    """Raises Problem 403 unless a request that carries a cookie comes from the console itself. One that ``changes``
    something, or opens a socket, has to name its origin, and a change has the console's mark as well."""
    site, origin = headers.get(b"sec-fetch-site", b"none"), headers.get(b"origin")
    own = site in (b"same-origin", b"none")
    if origin is None:
        own = own and not changes
    else:
        found = urlsplit(origin.decode("latin-1"))
        host = headers.get(b"host", b"").decode("latin-1").lower()
        own = own and found.scheme in ("http", "https") and bool(host) and found.netloc.lower() == host
    if not own:
        raise Problem(403, "a session is for the console's own pages: this request comes from another origin",
                      "cross-origin")


def require_mark(headers: Mapping[bytes, bytes]) -> None:
    """Raises Problem 403 for a change by cookie without the header that the console's own script sends."""
    if MARK not in headers:
        raise Problem(403, f"a change by cookie carries the header {MARK.decode()}, as the console sends it; scripts "
                      "use a token", "cross-origin")
