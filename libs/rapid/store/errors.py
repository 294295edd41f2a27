"""Errors of a run's stores."""

import time

import redis


class VersionMissing(LookupError):
    """A version is neither in Redis nor in the blob store."""


class VersionConflict(ValueError):
    """A version already exists with other contents. Versions never change."""


class Corrupt(RuntimeError):
    """Stored bytes differ from the written ones."""


class IllegalTransition(ValueError):
    """The run cannot go from its present status to the requested one."""


def is_away(error: BaseException) -> bool:
    """Return whether a store failed in a way that time or an operator can fix: unreachable, restarting, full or
    refusing.

    False for errors that no retry fixes: other contents, an invalid value. A blob store's failures are OSErrors.
    """
    return isinstance(error, (OSError, redis.RedisError))


class StoreUnreachable(ConnectionError):
    """No Redis responds at the configured address."""


class FunctionsMissing(redis.ConnectionError):
    """A Redis has no functions of this release yet, and this user may not load them. Waiting helps."""


class StoreRefused(StoreUnreachable):
    """A Redis responds and refuses the password. Waiting does not help."""


class FencedOut(RuntimeError):
    """A write was refused inside Redis because its writer has lost the right to write.

    ``reason`` is "epoch" (the run is in a later epoch), "lease" (another process holds the publisher's lease) or
    "moved" (the state that the write was based on has changed).
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class LeaseHeld(RuntimeError):
    """Another process holds the publisher's lease. ``holder`` names it; ``since`` is in seconds since 1970."""

    def __init__(self, run: str, holder: str, since: float, left_seconds: float) -> None:
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(since))
        super().__init__(f"run {run!r} is published by {holder} since {at}. Only one group of optimizers can publish "
                         f"to a run: stop that one first (if it is dead, its lease expires within "
                         f"{max(left_seconds, 0):.0f} s)")
        self.holder = holder
        self.since = since
