"""Connections to Redis."""

from typing import Any

import redis
from redis.backoff import ExponentialWithJitterBackoff, NoBackoff
from redis.retry import Retry

from rapid.config import StoreConfig
from rapid.store.errors import StoreUnreachable

RETRIES = 10
_BACKOFF = (1.0, 0.05)  # longest and first pause, seconds: rides out a restart of the server


def connect(url: str, config: StoreConfig) -> redis.Redis:
    """A client for ``url`` (redis://, rediss:// or unix://); nothing is sent yet. Safe to share between threads.

    Raises ValueError for a URL that is none of Redis.
    """
    if not url:
        raise ValueError("the Redis URL is empty: give store.state_url and store.params_url, or start an embedded one")
    try:
        client: redis.Redis = redis.Redis.from_url(
            url, socket_timeout=config.timeout_seconds, socket_connect_timeout=config.timeout_seconds,
            health_check_interval=30, **({} if url.startswith("unix") else {"socket_keepalive": True}),
            retry=Retry(ExponentialWithJitterBackoff(*_BACKOFF), RETRIES),
            retry_on_error=[redis.BusyLoadingError])
    except (ValueError, TypeError) as error:
        raise ValueError(f"{safe_url(url)} is no Redis URL: {error}") from None
    return client


def require_reachable(client: redis.Redis, url: str, role: str) -> None:
    """Raises StoreUnreachable, with the address and the reason, when no Redis answers now."""
    try:
        pool: Any = client.connection_pool
        connection = pool.make_connection()
        connection.retry = Retry(NoBackoff(), 0)
        try:
            connection.connect()
            connection.send_command("PING")
            connection.read_response()
        finally:
            connection.disconnect()
    except redis.AuthenticationError as error:
        raise StoreUnreachable(f"the {role} Redis at {safe_url(url)} refuses the password: {error}") from None
    except (redis.RedisError, OSError) as error:
        raise StoreUnreachable(f"no {role} Redis answers at {safe_url(url)}: {error}") from None


def safe_url(url: str) -> str:
    """``url`` without its password, for messages."""
    scheme, found, rest = url.partition("://")
    if not found:
        return url
    _, at, place = rest.rpartition("@")
    return f"{scheme}://{'***@' if at else ''}{place}"
