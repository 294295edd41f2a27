"""Fencing epoch of a run in every message that carries work. Messages of an older epoch are refused.

A run starts in epoch 1. Surgery and reverts publish and begin the next epoch in one step. A process works in one epoch
and restarts when the run has left it. Until all processes have restarted, messages may meet another epoch; these are
the rules for that.
"""

import re

from rapid.rpc.errors import CallFailed, Conflict, StatusCode, Unavailable
from rapid.telemetry.metrics import counter

STALE, AHEAD, MISSING = "epoch", "epoch_ahead", "no_epoch"
REFUSED = counter("rpc", "refused", "Messages with work refused because of their fencing epoch, by reason: epoch "
                  "(older than this process's), epoch_ahead (newer: this process restarts soon), no_epoch (missing).",
                  ("reason",))
for _reason in (STALE, AHEAD, MISSING):
    REFUSED.labels(_reason)

_BOTH = re.compile(r"this server is at epoch (\d+), the request at (\d+)")


class StaleEpoch(Conflict):
    """The request belongs to an earlier epoch of the run."""


class EpochAhead(Unavailable):
    """The request belongs to an epoch that this process has not reached yet."""


def require_epoch(own: int, given: int) -> None:
    """Require that a message's epoch ``given`` is the server's epoch ``own``. Count each refusal by reason.

    Raises StaleEpoch (FAILED_PRECONDITION) for an older epoch and EpochAhead (UNAVAILABLE) for a newer one, both naming
    the two epochs, and ValueError for a missing one.
    """
    if given == own:
        return
    both = f"this server is at epoch {own}, the request at {given}"
    if given == 0:
        REFUSED.labels(MISSING).inc()
        raise ValueError("epoch is missing: a message that carries work must name the run's epoch, from 1")
    if given < own:
        REFUSED.labels(STALE).inc()
        raise StaleEpoch(f"{both}: the run has changed since; the sender restarts and retries")
    REFUSED.labels(AHEAD).inc()
    raise EpochAhead(f"{both}: this server restarts soon; retry")


def is_stale_epoch(failure: CallFailed) -> bool:
    """Return whether a server refused a call because the caller's epoch is over. The caller then restarts soon."""
    return failure.code is StatusCode.FAILED_PRECONDITION and _BOTH.search(failure.details) is not None


def require_same_epoch(own: int, answered: int, target: str, method: str) -> None:
    """Raise CallFailed when a response comes from another epoch than the request."""
    if answered != own:
        raise CallFailed(StatusCode.FAILED_PRECONDITION, target, method,
                         f"the answer is of epoch {answered}, the request of {own}: the server ignores "
                         "epochs; it is of another release than this process")
