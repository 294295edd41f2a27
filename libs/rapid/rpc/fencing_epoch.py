"""The run's epoch in every message that carries work: what belongs to an older one is refused.

A run is in epoch 1 when it is made; surgery and reverts begin the next one in the same step in which they publish. A
process lives in one epoch: it renews itself when the run has moved on. Until all have done so, messages meet
processes of another epoch, and these are the rules for it.
"""

import re

from rapid.rpc.errors import CallFailed, Conflict, StatusCode, Unavailable
from rapid.telemetry.metrics import counter

STALE, AHEAD, MISSING = "epoch", "epoch_ahead", "no_epoch"
REFUSED = counter("rpc", "refused", "Messages with work that were refused for their epoch, by reason: epoch (older "
                  "than this process's), epoch_ahead (newer: this process is about to renew itself), no_epoch (none "
                  "given).",
                  ("reason",))
for _reason in (STALE, AHEAD, MISSING):
    REFUSED.labels(_reason)

_BOTH = re.compile(r"this server is at epoch (\d+), the request at (\d+)")


class StaleEpoch(Conflict):
    """The request belongs to an epoch of the run that is over."""


class EpochAhead(Unavailable):
    """The request belongs to an epoch that this process has not come to yet."""


def require_epoch(own: int, given: int) -> None:
    """Lets a message of epoch ``given`` pass at a server of epoch ``own``; what is refused is counted by reason.

    Raises StaleEpoch (FAILED_PRECONDITION) for an older one, EpochAhead (UNAVAILABLE) for a newer one, both naming
    the two epochs, and ValueError where none is given.
    """
    if given == own:
        return
    both = f"this server is at epoch {own}, the request at {given}"
    if given == 0:
        REFUSED.labels(MISSING).inc()
        raise ValueError("epoch is missing: a message that carries work names the run's epoch, from 1")
    if given < own:
        REFUSED.labels(STALE).inc()
        raise StaleEpoch(f"{both}: the run was changed since; whoever sent it renews itself and asks again")
    REFUSED.labels(AHEAD).inc()
    raise EpochAhead(f"{both}: it is about to renew itself")


def is_stale_epoch(failure: CallFailed) -> bool:
    """Whether a server refused a call because the caller's epoch is over: nothing is wrong with the request, and the
    caller is about to be renewed."""
    return failure.code is StatusCode.FAILED_PRECONDITION and _BOTH.search(failure.details) is not None


def require_same_epoch(own: int, answered: int, target: str, method: str) -> None:
    """Raises CallFailed when an answer comes from another epoch than the one that was asked in."""
    if answered != own:
        raise CallFailed(StatusCode.FAILED_PRECONDITION, target, method,
                         f"the answer is of epoch {answered}, it was asked for in {own}: the server does not keep to "
                         "epochs; it is of another release than this process")
