"""What the engine sees of the run, and what it can do to it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from five.services.controller.operations.document import Operation
from rapid.store.jobs import Order
from rapid.store.state import RunStatus, Status


@dataclass(frozen=True)
class StepLimits:
    """How long a step may take, and how often it is tried. A step without an entry may take as long as it takes."""

    seconds: Mapping[str, float] = field(default_factory=dict)
    attempts: int = 3


class OperationBackend(Protocol):
    """A run. Every effect can be repeated without a further effect; any of them may raise redis.RedisError or
    rapid.rpc.errors.Unavailable, after which the same step is simply advanced again."""

    @property
    def limits(self) -> StepLimits:
        """How long steps may take."""
        ...

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def status(self) -> RunStatus | None:
        """The run's status; None when there is no run."""
        ...

    def transition(self, to: Status, reason: str) -> None:
        """Brings the run to a status. Raises IllegalTransition."""
        ...

    def head(self) -> int:
        """The newest version; -1 before the first."""
        ...

    def not_idle(self) -> list[str]:
        """Who has not said yet that it rests, since the pause was asked for."""
        ...

    def stale_reason(self, operation: Operation) -> str:
        """Why the plan no longer fits the run (its parent schema or the epoch has moved); '' when it does."""
        ...

    def published(self, operation: Operation) -> bool:
        """Whether the run was cut over to the operation's plan."""
        ...

    def job(self, identity: str, kind: str, payload: dict[str, Any]) -> Order:
        """The order of that identity as it is now; placed if there is none."""
        ...

    def withdraw_jobs(self, operation: Operation) -> None:
        """Takes the operation's open orders back: their answers are refused from now on."""
        ...

    def remove_jobs(self, operation: Operation) -> None:
        """Removes the operation's orders."""
        ...

    def remove_staged(self, operation: Operation) -> None:
        """Removes what was staged and is committed now; pins stay."""
        ...

    def discard_staged(self, operation: Operation) -> None:
        """Removes what the operation has staged, and the pins that it set."""
        ...

    def save_check(self, operation: Operation, answer: Mapping[str, Any]) -> None:
        """Keeps the result of a check by the plan's digest."""
        ...

    def restore(self, operation: Operation) -> dict[str, Any]:
        """What else a revert takes back, once the run is cut over; in words of what was done."""
        ...

    def begin_anneal(self, operation: Operation) -> str:
        """Begins to anneal what the operation was asked for; again is once. Returns why it cannot be, '' when it is."""
        ...

    def not_renewed(self, operation: Operation) -> list[str]:
        """Services that have not come up under the run's present record yet; the optimizer also for as long as it has
        not made the checkpoint that was staged the run's."""
        ...
