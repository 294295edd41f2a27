"""Redis Sentinel: URLs that name Sentinels instead of a Redis, and discovery of the primary.

``redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/PRIMARY/DATABASE``; with ``rediss+sentinel`` both the Sentinels and
the Redis servers speak TLS. User and password are those of Redis. The Sentinels' own are in the environment.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import redis
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError
from redis.maint_notifications import MaintNotificationsConfig
from redis.retry import Retry

from rapid.address import join_address, split_address
from rapid.store.password_file import FileLogin

PORT = 26379
SECONDS = 2.0  # timeout of one Sentinel; the next one is asked after it
SCHEMES = {"redis+sentinel": "redis", "rediss+sentinel": "rediss"}
USER_VARIABLE = "FIVE_SENTINEL_USER"
PASSWORD_VARIABLE = "FIVE_SENTINEL_PASSWORD"  # noqa: S105
FILE_VARIABLE = "FIVE_SENTINEL_PASSWORD_FILE"  # the password's file, where the variable above is not set
FORM = "redis+sentinel://HOST:PORT,HOST:PORT/PRIMARY/DATABASE"


@dataclass(frozen=True)
class SentinelUrl:
    """A parsed URL: the Sentinels' hosts and ports, the name of the primary, and the URL of the Redis with a
    placeholder as its host."""

    sentinels: tuple[tuple[str, int], ...]
    primary: str
    redis_url: str


def is_sentinel_url(url: str) -> bool:
    """Return whether the URL names Sentinels."""
    return url.partition("://")[0] in SCHEMES


def parse_sentinel_url(url: str) -> SentinelUrl:
    """Parse such a URL. Raise ValueError."""
    scheme, _, rest = url.partition("://")
    rest, question, query = rest.partition("?")
    login, at, place = rest.rpartition("@")
    hosts, _, path = place.partition("/")
    primary, _, database = path.partition("/")
    if not primary:
        raise ValueError(f"the name of the primary is missing; the form is {FORM}")
    if database and not database.isdigit():
        raise ValueError(f"the database {database!r} is not a number; the form is {FORM}")
    sentinels = []
    for address in hosts.split(","):
        host, port = split_address(address)
        if not host or not (port or str(PORT)).isdigit():
            raise ValueError(f"the Sentinel address {address!r} is not HOST:PORT; the form is {FORM}")
        sentinels.append((host, int(port or PORT)))
    redis_url = f"{SCHEMES[scheme]}://{login}{at}primary/{database or 0}{question}{query}"
    return SentinelUrl(tuple(sentinels), unquote(primary), redis_url)


class SentinelsRefused(redis.AuthenticationError):
    """Every Sentinel refuses the password."""


class Sentinels:
    """Client of the Sentinels that watch one primary. Safe to share between threads."""

    def __init__(self, addresses: Sequence[tuple[str, int]], primary: str, timeout: float, authority: str = "",
                 tls: bool = False) -> None:
        options: dict[str, Any] = {"ssl": True} if tls else {}
        if tls and authority:
            options["ssl_ca_certs"] = authority
        user = os.environ.get(USER_VARIABLE, "").strip() or None
        password = os.environ.get(PASSWORD_VARIABLE, "").strip() or None
        path = os.environ.get(FILE_VARIABLE, "").strip()
        if path and password is None:
            options["credential_provider"] = FileLogin(user, Path(path))
        else:
            options |= {"username": user, "password": password}
        self._primary = primary
        self._names = [join_address(*address) for address in addresses]
        self._clients: list[Any] = [redis.Redis(
            host, port, socket_timeout=min(timeout, SECONDS), socket_connect_timeout=min(timeout, SECONDS),
            retry=Retry(NoBackoff(), 1), driver_info=None, maint_notifications_config=MaintNotificationsConfig(False),
            **options) for host, port in addresses]
        self._first = 0  # the Sentinel that responded last

    def locate(self) -> tuple[str, int]:
        """Return host and port of the primary, from the first Sentinel that knows it.

        Raises SentinelsRefused, or redis.ConnectionError with each Sentinel's answer.
        """
        answers: list[str] = []
        refused = 0
        for i in range(len(self._clients)):
            at = (self._first + i) % len(self._clients)
            try:
                found = self._clients[at].execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._primary)
            except (redis.ConnectionError, redis.TimeoutError, ResponseError) as error:
                refused += isinstance(error, redis.AuthenticationError)
                answers.append(f"{self._names[at]}: {error}")
                continue
            if found:
                self._first = at
                return found[0].decode(), int(found[1])
            answers.append(f"{self._names[at]}: no primary of that name")
        message = f"no Sentinel knows the primary {self._primary!r}: {'; '.join(answers)}"
        if refused == len(self._clients):
            raise SentinelsRefused(f"{message} (set {PASSWORD_VARIABLE} to the Sentinels' password)")
        raise redis.ConnectionError(message)
