"""What can be wrong with a run's store."""

import time

# Clients of stores raise errors of their own; they are known by where they come from, and need not be there.
CLIENTS = frozenset({"redis", "botocore", "aiobotocore", "aiohttp", "s3fs", "gcsfs", "google", "azure", "adlfs"})


class VersionMissing(LookupError):
    """A version is neither in Redis nor in the blob store."""


class VersionConflict(ValueError):
    """A version exists already with other contents; versions never change."""


class Corrupt(RuntimeError):
    """Stored bytes are not those that were written."""


class IllegalTransition(ValueError):
    """The run cannot go from its present status to the one asked for."""


def is_away(error: BaseException) -> bool:
    """Whether a store has failed in a way that passes by itself or by an operator's hand: it is away, restarts, is
    full, refuses for now. Not what no retry mends: another's right, other contents, an invalid value."""
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] in CLIENTS


class StoreUnreachable(ConnectionError):
    """No Redis answers at the configured address."""


class StoreRefused(StoreUnreachable):
    """A Redis answers, and does not take the password: waiting does not help."""


class FencedOut(RuntimeError):
    """A write was refused inside Redis: its writer is no longer the one who may. ``reason`` is "epoch" (the run has
    moved on to a later one), "lease" (another holds the publisher's lease) or "moved" (what it was decided on has
    changed)."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class LeaseHeld(RuntimeError):
    """Another has the publisher's lease. ``holder`` names it, ``since`` is in seconds since the epoch."""

    def __init__(self, run: str, holder: str, since: float, left_seconds: float) -> None:
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(since))
        super().__init__(f"run {run!r} has a publisher: {holder}, since {at}. Two groups of optimizers cannot publish "
                         f"to one run: end that one first (if it is dead already, its lease ends by itself within "
                         f"{max(left_seconds, 0):.0f} s)")
        self.holder = holder
        self.since = since
