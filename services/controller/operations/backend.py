"""The interface through which the engine reads and changes a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from five.services.controller.operations.document import Operation
from rapid.store.jobs import Job
from rapid.store.state import RunStatus, Status


@dataclass(frozen=True)
class StepLimits:
    """Deadlines of steps in seconds, and the number of attempts.

    A deadline covers all attempts of a step before the cut-over; after it, each attempt has one. A step without an
    entry has none.
    """

    seconds: Mapping[str, float] = field(default_factory=dict)
    attempts: int = 3


class OperationBackend(Protocol):
    """A run. Every effect is idempotent. Any method may raise redis.RedisError, or the blob store's OSError; the
    engine then advances the same step again.
    """

    @property
    def limits(self) -> StepLimits:
        """Return the limits of steps."""
        ...

    def now(self) -> float:
        """Return the time in seconds since the epoch."""
        ...

    def status(self) -> RunStatus | None:
        """Return the run's status, or None without a run."""
        ...

    def transition(self, to: Status, reason: str) -> None:
        """Set the run's status. Raise IllegalTransition."""
        ...

    def head(self) -> int:
        """Return the newest version, or -1 before the first."""
        ...

    def not_idle(self) -> list[str]:
        """Return the services that have not acknowledged the current pause."""
        ...

    def stale_reason(self, operation: Operation) -> str:
        """Return why the plan no longer fits the run (another schema or epoch), or ''."""
        ...

    def published(self, operation: Operation) -> bool:
        """Return whether the run was cut over to the operation's plan."""
        ...

    def job(self, identity: str, kind: str, payload: dict[str, Any]) -> Job:
        """Return the job with that id; create it if it does not exist."""
        ...

    def withdraw_jobs(self, operation: Operation) -> None:
        """Withdraw the operation's open jobs: their answers are refused from now on."""
        ...

    def remove_jobs(self, operation: Operation) -> None:
        """Remove the operation's jobs."""
        ...

    def remove_staged(self, operation: Operation) -> None:
        """Remove staged blobs that are committed by now; pins remain."""
        ...

    def discard_staged(self, operation: Operation) -> None:
        """Remove the operation's staged blobs and the pins that it set."""
        ...

    def save_check(self, operation: Operation, answer: Mapping[str, Any]) -> None:
        """Save the result of a check under the plan's digest."""
        ...

    def restore(self, operation: Operation) -> dict[str, Any]:
        """Restore the other state that a revert takes back, after the cut-over. Return what was restored."""
        ...

    def begin_anneal(self, operation: Operation) -> str:
        """Begin the requested anneal; repeating it has no further effect. Return '' or the reason why it cannot
        begin."""
        ...

    def not_renewed(self, operation: Operation) -> list[str]:
        """Return the services that have not restarted under the run's current record. The optimizer counts until it has
        committed the staged checkpoint.
        """
        ...
