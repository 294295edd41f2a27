"""Connections to Redis."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import redis
from redis.backoff import ExponentialWithJitterBackoff, NoBackoff
from redis.credentials import CredentialProvider
from redis.exceptions import NoPermissionError
from redis.maint_notifications import MaintNotificationsConfig
from redis.retry import Retry

from rapid.config import StoreConfig
from rapid.redaction import redact_url
from rapid.store.errors import StoreRefused, StoreUnreachable
from rapid.store.password_file import FileLogin, read_password
from rapid.store.primary import CONNECTION_CLASSES, Primary
from rapid.store.sentinel import Sentinels, SentinelsRefused, is_sentinel_url, parse_sentinel_url
from rapid.telemetry.metrics import counter

RETRIES = 10
_BACKOFF = (1.0, 0.05)  # longest and first pause, seconds: spans a restart of the server

# Maximum connections of a process to each Redis, shared by its threads. These kinds have thousands of processes, and a
# Redis accepts 10,000 connections by default. One of inference's always listens to announcements. Other kinds have few
# processes, with one connection per thread.
MAX_CONNECTIONS: dict[str, int] = {"rollout": 1, "inference": 3}

NO_EVICTION = "noeviction"

Role = Literal["state", "params"]
FAILED = counter("redis", "failed_tries", "Failed attempts of an exchange with Redis, by role: state, params.",
                 ("role",))
USER_VARIABLES: dict[Role, str] = {"state": "FIVE_STATE_USER", "params": "FIVE_PARAMS_USER"}
PASSWORD_VARIABLES: dict[Role, str] = {"state": "FIVE_STATE_PASSWORD", "params": "FIVE_PARAMS_PASSWORD"}
FILE_VARIABLES: dict[Role, str] = {"state": "FIVE_STATE_PASSWORD_FILE", "params": "FIVE_PARAMS_PASSWORD_FILE"}


@dataclass
class Login(CredentialProvider):
    """A user of a Redis and its password. The next connection uses a changed password."""

    user: str
    password: str = field(repr=False)

    def get_credentials(self) -> tuple[str, str]:
        """Implement CredentialProvider."""
        return self.user, self.password


class CountedRetry(Retry):
    """Retry that counts each failed attempt in a metric. No attempt starts after ``seconds``, because against a silent
    server every attempt takes its whole timeout."""

    def __init__(self, role: Role, retries: int = RETRIES, seconds: float = float("inf")) -> None:
        super().__init__(ExponentialWithJitterBackoff(*_BACKOFF), retries)
        self._seconds = seconds
        self._role = role  # not the counter: every connection copies its Retry, and locks cannot be copied

    def call_with_retry(self, do: Callable[[], Any], fail: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Implement Retry."""
        end = time.monotonic() + self._seconds

        def failed(error: Exception, *details: Any) -> Any:
            FAILED.labels(self._role).inc()
            answer = fail(error, *details)
            if time.monotonic() >= end:
                raise error
            return answer

        return super().call_with_retry(do, failed, *arguments, **options)


def password_file(role: Role) -> Path | None:
    """Return the file of the password of the Redis in that role; None when the password itself is in the environment,
    which takes precedence, or when there is neither."""
    path = os.environ.get(FILE_VARIABLES[role], "").strip()
    return Path(path) if path and not os.environ.get(PASSWORD_VARIABLES[role], "").strip() else None


def password_of(role: Role) -> str | None:
    """Return the password of the Redis in that role, from the environment or its file; None without one.

    Raises ValueError for an unreadable or empty file.
    """
    if (path := password_file(role)) is not None:
        return read_password(path)
    return os.environ.get(PASSWORD_VARIABLES[role], "").strip() or None


def user_of(role: Role) -> str | None:
    """Return the user of the Redis in that role, from the environment; None for the default user."""
    return os.environ.get(USER_VARIABLES[role], "").strip() or None


def connect(url: str, config: StoreConfig, role: Role = "state", login: Login | FileLogin | None = None,
            retries: int = RETRIES, most: int | None = None) -> redis.Redis:
    """Create a client for ``url`` without sending anything: redis://, rediss://, unix://, or Sentinels
    (`rapid.store.sentinel`). Safe to share between threads.

    Its connections follow the primary through a failover (`rapid.store.primary`).
    User and password come from the URL, from ``login``, or by ``role`` from the environment and the password's file. A
    server behind a unix socket gets a password only together with a user. A failed exchange is retried ``retries``
    times, and no retry starts later than ``store.timeout_seconds`` after the first attempt. So a restarting server is
    waited for, and a silent one costs at most twice the timeout. The client holds at most ``most`` connections, for
    which threads wait; by default one per thread.

    Raises ValueError for an invalid URL, an unreadable certificate or password file, or a user without a password.
    """
    FAILED.labels(role)  # exported as 0 before the first failure
    if not url:
        raise ValueError("the Redis URL is empty: set store.state_url and store.params_url, or start an embedded Redis")
    # Disable optional commands: the ACL refuses them, and the refusals would fill the server's ACL log.
    options: dict[str, Any] = {"driver_info": None, "maint_notifications_config": MaintNotificationsConfig(False)}
    if not url.startswith("unix"):
        options["socket_keepalive"] = True
    if login is not None:
        options["credential_provider"] = login
    elif user_of(role) is not None or not url.startswith("unix"):
        if user_of(role) is not None and password_of(role) is None:
            raise ValueError(f"{USER_VARIABLES[role]} is {user_of(role)!r}, but neither {PASSWORD_VARIABLES[role]} nor "
                             f"{FILE_VARIABLES[role]} is set")
        path = password_file(role)
        if path is None:
            options |= {"username": user_of(role), "password": password_of(role)}  # the URL's take precedence
        elif "@" not in url.partition("://")[2].partition("?")[0]:
            options["credential_provider"] = FileLogin(user_of(role), path)
    if url.startswith("rediss") and config.tls_authority:
        if not os.access(config.tls_authority, os.R_OK):
            raise ValueError(f"store.tls_authority {config.tls_authority} cannot be read")
        options["ssl_ca_certs"] = config.tls_authority
    try:
        locate, redis_url = None, url
        if is_sentinel_url(url):
            found = parse_sentinel_url(url)
            redis_url = found.redis_url
            locate = Sentinels(found.sentinels, found.primary, config.timeout_seconds, config.tls_authority,
                               url.startswith("rediss")).locate
        pool: Any = redis.ConnectionPool if most is None else redis.BlockingConnectionPool
        if most is not None:
            options |= {"max_connections": most, "timeout": 2 * config.timeout_seconds}
        made = pool.from_url(
            redis_url, socket_timeout=config.timeout_seconds, socket_connect_timeout=config.timeout_seconds,
            health_check_interval=30, **options,
            retry=CountedRetry(role, retries, config.timeout_seconds),
            retry_on_error=[redis.BusyLoadingError])
        made.connection_class = CONNECTION_CLASSES[made.connection_class]
        made.connection_kwargs["primary"] = Primary(locate)
        made.connection_class(**made.connection_kwargs)  # refuses unknown options of the URL; it does not connect
    except (ValueError, TypeError) as error:
        raise ValueError(f"{redact_url(url)} is not a Redis URL: {error}") from None
    client: redis.Redis = redis.Redis.from_pool(made)
    return client


def require_reachable(client: redis.Redis, url: str, role: Role) -> None:
    """Raise StoreUnreachable with address and reason when no Redis responds now, StoreRefused when it refuses the
    password."""
    try:
        pool: Any = client.connection_pool
        connection = pool.connection_class(**pool.connection_kwargs)  # outside the pool, which counts its connections
        connection.retry = Retry(NoBackoff(), 0)
        try:
            connection.connect()
            connection.send_command("PING")
            connection.read_response()
        finally:
            connection.disconnect()
    except SentinelsRefused as error:
        raise StoreRefused(f"the {role} Redis at {redact_url(url)} cannot be found: {error}") from None
    except redis.AuthenticationError as error:
        raise StoreRefused(f"the {role} Redis at {redact_url(url)} refuses "
                           f"{_describe_user(pool.connection_kwargs, role)}: {error}") from None
    except NoPermissionError as error:
        raise StoreRefused(f"the {role} Redis at {redact_url(url)} accepts "
                           f"{_describe_user(pool.connection_kwargs, role)} without any rights: {error}") from None
    except (redis.RedisError, OSError) as error:
        raise StoreUnreachable(f"no {role} Redis responds at {redact_url(url)}: {error}") from None


def require_no_eviction(client: redis.Redis, url: str, role: Role) -> None:
    """Raise StoreRefused when that Redis evicts keys at its memory limit, which would lose parts of the run.

    A user without the right to run INFO checks nothing. Raises StoreUnreachable.
    """
    try:
        memory: Any = client.info("memory")
    except NoPermissionError:
        return
    except (redis.RedisError, OSError) as error:
        raise StoreUnreachable(f"no {role} Redis responds at {redact_url(url)}: {error}") from None
    policy = memory.get("maxmemory_policy", NO_EVICTION)
    if policy != NO_EVICTION:
        raise StoreRefused(f"the {role} Redis at {redact_url(url)} has maxmemory-policy {policy}, which deletes keys "
                           f"of the run when memory is short: set maxmemory-policy {NO_EVICTION}")


def _describe_user(options: dict[str, Any], role: Role) -> str:
    """Describe the client's user without its password."""
    login = options.get("credential_provider")
    if isinstance(login, FileLogin):
        named = "" if login.user is None else f"user {login.user!r} ({USER_VARIABLES[role]}) with "
        return f"{named}the password of {FILE_VARIABLES[role]} ({login.path})"
    if login is not None:
        return f"user {login.user!r} with the password of the run's folder"
    user = options.get("username")
    if user is None:
        return f"the password of {PASSWORD_VARIABLES[role]}"
    source = USER_VARIABLES[role] if user == user_of(role) else "the URL"
    return f"user {user!r} ({source}) with the password of {PASSWORD_VARIABLES[role]}"
