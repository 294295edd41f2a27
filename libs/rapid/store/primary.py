"""Connections that follow the primary of a Redis through a failover.

A demoted primary keeps its connections open and refuses every write with READONLY; a node of a cluster refuses with
MOVED, and a replica that lost its primary with MASTERDOWN. A command that blocks during the demotion ends with
UNBLOCKED. All mean that the address now belongs to another server, or soon will: the connections are closed, and the
next attempt resolves the address again.
"""

from collections.abc import Callable
from typing import Any

import redis
from redis.connection import AbstractConnection
from redis.exceptions import MasterDownError, MovedError, ReadOnlyError, ResponseError

REFUSALS = (ReadOnlyError, MasterDownError, MovedError)
REFUSAL_CODES = ("READONLY", "MASTERDOWN", "MOVED", "UNBLOCKED")


class Primary:
    """State that the connections of a pool share about their primary.

    ``locate`` returns its host and port before each connection, or raises redis.ConnectionError; None: the URL's
    address. ``losses`` counts refusals; connections from before the last one are not used again.
    """

    def __init__(self, locate: Callable[[], tuple[str, int]] | None = None) -> None:
        self.locate = locate
        self.losses = 0

    def lost(self, error: Exception) -> redis.ConnectionError:
        """Count a refusal. Return the error that makes the caller reconnect and try again."""
        self.losses += 1
        return redis.ConnectionError(f"the server is not the primary (any more): {error}")


class _FollowsPrimary(AbstractConnection):
    """Mixin of a connection class."""

    def __init__(self, *arguments: Any, primary: Primary, **options: Any) -> None:
        self._primary = primary
        self._losses = primary.losses  # when it connected
        super().__init__(*arguments, **options)

    def _is_stale(self) -> bool:
        return self._sock is not None and self._losses != self._primary.losses

    def _drop(self) -> None:
        this: Any = self
        this.disconnect()

    def connect(self) -> None:
        """Connect unless connected, again after a refusal on another connection of the pool."""
        if self._is_stale():
            self._drop()
        whole: Any = super()
        whole.connect()

    def should_reconnect(self) -> bool:
        """Return whether the pool and subscriptions must reconnect."""
        whole: Any = super()
        return self._is_stale() or bool(whole.should_reconnect())

    def _connect(self) -> Any:
        self._losses = self._primary.losses
        if self._primary.locate is not None:
            self.host, self.port = self._primary.locate()
        whole: Any = super()
        return whole._connect()

    def read_response(self, *arguments: Any, **options: Any) -> Any:
        """Read a response. A refusal closes the connection and raises redis.ConnectionError, which is retried."""
        try:
            return super().read_response(*arguments, **options)
        except ResponseError as error:
            if not isinstance(error, REFUSALS) and not str(error).startswith(REFUSAL_CODES):
                raise
            self._drop()
            raise self._primary.lost(error) from error


class Connection(_FollowsPrimary, redis.Connection):
    """A connection without TLS."""


class SSLConnection(_FollowsPrimary, redis.SSLConnection):
    """A connection with TLS."""


class UnixDomainSocketConnection(_FollowsPrimary, redis.UnixDomainSocketConnection):
    """A connection to a server of this machine."""


CONNECTION_CLASSES: dict[type, type] = {
    redis.Connection: Connection, redis.SSLConnection: SSLConnection,
    redis.UnixDomainSocketConnection: UnixDomainSocketConnection}


def refusal(client: redis.Redis, line: str) -> redis.ConnectionError | None:
    """Return the error for an error reply that was read past the connection; None unless it is such a refusal."""
    primary = client.connection_pool.connection_kwargs.get("primary")
    if primary is None or not line.startswith(REFUSAL_CODES):
        return None
    lost: redis.ConnectionError = primary.lost(redis.ResponseError(line))
    return lost
