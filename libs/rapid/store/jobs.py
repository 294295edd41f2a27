"""Work that one part of a run asks of another: a table of orders, each claimed by one holder at a time.

The controller places an order; the optimizer's first rank claims it, executes it and answers. A holder is known by
its fence, the number that its publisher's lease was given (rapid.store.fencing): there is one holder at a time, so
an order that is claimed under another fence belongs to one that is gone, and whoever holds the lease now claims it
again as the next attempt. What is executed must therefore be repeatable.
"""

import time
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from rapid.store.state import Json, RunState

TABLE = "orders"


class JobState(StrEnum):
    """Where an order is."""

    WAITING = "waiting"  # for somebody to claim it
    CLAIMED = "claimed"
    DONE = "done"
    FAILED = "failed"  # worth another attempt
    REFUSED = "refused"  # another attempt would end the same way
    CANCELLED = "withdrawn"  # no longer wanted


OPEN = frozenset({JobState.WAITING, JobState.CLAIMED})


@dataclass(frozen=True)
class Job:
    """One order. ``payload`` and ``answer`` are JSON values of its kind; times are in seconds since the epoch.

    ``attempt`` counts claims; ``holder`` and ``fence`` say who claimed it last.
    """

    id: str
    kind: str
    payload: dict[str, Json]
    placed_at: float
    state: JobState = JobState.WAITING
    attempt: int = 0
    holder: str = ""
    fence: int = 0
    answer: dict[str, Json] = field(default_factory=dict)
    error: str = ""
    answered_at: float | None = None

    @property
    def open(self) -> bool:
        """Whether it still waits for its answer."""
        return self.state in OPEN


def _order(row: dict[str, Any]) -> Job:
    return Job(**{**row, "state": JobState(row["state"])})


def _row(order: Job) -> dict[str, Json]:
    return asdict(order)


class JobQueue:
    """The orders of one run. Every method is one atomic step; raises redis.RedisError."""

    def __init__(self, state: RunState) -> None:
        self._table = state.table(TABLE)

    # Who asks.

    def submit(self, identity: str, kind: str, payload: dict[str, Json]) -> Job:
        """The order of that identity as it is now; placed if there is none. Repeating it changes nothing."""
        fresh = Job(identity, kind, payload, time.time())

        def change(rows: dict[str, Json]) -> dict[str, Json] | None:
            return None if identity in rows else {identity: _row(fresh)}

        self._table.update(change)
        return self.get(identity) or fresh

    def get(self, identity: str) -> Job | None:
        """An order; None when it was never placed or has been removed."""
        row = self._table.get(identity)
        return None if row is None else _order(row)

    def cancel(self, prefix: str) -> None:
        """Takes back every order whose identity begins with ``prefix`` and that is not answered: its holder's answer
        is refused from now on."""
        def change(rows: dict[str, Json]) -> dict[str, Json] | None:
            taken = {i: _row(replace(_order(row), state=JobState.CANCELLED)) for i, row in rows.items()
                     if i.startswith(prefix) and _order(row).open}
            return taken or None

        self._table.update(change)

    def remove(self, prefix: str) -> None:
        """Forgets every order whose identity begins with ``prefix``."""
        self._table.update(lambda rows: {i: None for i in rows if i.startswith(prefix)} or None)

    # Who executes.

    def claim(self, holder: str, fence: int) -> Job | None:
        """The oldest order that waits, or that a holder with another fence left behind, now claimed; None when there
        is none. An order that is claimed under ``fence`` already is not handed out again."""
        claimed: list[Job] = []

        def change(rows: dict[str, Json]) -> dict[str, Json] | None:
            claimed.clear()
            for order in sorted(map(_order, rows.values()), key=lambda o: (o.placed_at, o.id)):
                left = order.state is JobState.CLAIMED and order.fence != fence
                if order.state is JobState.WAITING or left:
                    mine = replace(order, state=JobState.CLAIMED, attempt=order.attempt + 1, holder=holder,
                                   fence=fence)
                    claimed.append(mine)
                    return {order.id: _row(mine)}
            return None

        self._table.update(change)
        return claimed[0] if claimed else None

    def is_held(self, order: Job) -> bool:
        """Whether the order is still wanted, and from this holder."""
        now = self.get(order.id)
        return now is not None and now.state is JobState.CLAIMED and now.fence == order.fence

    def complete(self, order: Job, state: JobState, answer: dict[str, Json] | None = None, error: str = "") -> bool:
        """Ends a claimed order as done, failed or refused. Returns False, having changed nothing, when it was
        withdrawn or claimed by another meanwhile."""
        if state in OPEN:
            raise ValueError(f"an order is not answered with {state}")
        ended = replace(order, state=state, answer=answer or {}, error=error, answered_at=time.time())

        def change(rows: dict[str, Json]) -> dict[str, Json] | None:
            row = rows.get(order.id)
            now = None if row is None else _order(row)
            if now is None or now.state is not JobState.CLAIMED or now.fence != order.fence:
                return None
            return {order.id: _row(ended)}

        return self._table.update(change)
