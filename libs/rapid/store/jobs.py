"""Job queue between parts of a run. One holder at a time claims each job.

The controller submits a job; the optimizer's rank 0 claims, executes and completes it. A holder is known by its fence,
the number of its publisher's lease (`rapid.store.fencing`). There is one lease at a time, so a job claimed under
another fence belongs to a dead holder, and the present holder claims it as the next attempt. Jobs must therefore be
repeatable.
"""

import time
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from rapid.store.state import Json, RunState

TABLE = "orders"


class JobState(StrEnum):
    """State of a job."""

    WAITING = "waiting"  # not claimed yet
    CLAIMED = "claimed"
    DONE = "done"
    FAILED = "failed"  # another attempt may succeed
    REFUSED = "refused"  # another attempt would fail again
    CANCELLED = "withdrawn"  # cancelled by the submitter


OPEN = frozenset({JobState.WAITING, JobState.CLAIMED})


@dataclass(frozen=True)
class Job:
    """A job. ``payload`` and ``answer`` are JSON values of its kind; times are in seconds since 1970.

    ``attempt`` counts claims; ``holder`` and ``fence`` are those of the last claim.
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
        """Whether the job is not completed yet."""
        return self.state in OPEN


def _job(row: dict[str, Any]) -> Job:
    return Job(**{**row, "state": JobState(row["state"])})


def _row(job: Job) -> dict[str, Json]:
    return asdict(job)


class JobQueue:
    """The jobs of one run. Every method is one atomic step and raises redis.RedisError."""

    def __init__(self, state: RunState) -> None:
        self._table = state.table(TABLE)

    # Submitting.

    def submit(self, identity: str, kind: str, payload: dict[str, Json]) -> Job:
        """Submit a job unless one with that identity exists. Return the job as it is now."""
        fresh = Job(identity, kind, payload, time.time())

        def change(rows: dict[str, Json]) -> dict[str, Json] | None:
            return None if identity in rows else {identity: _row(fresh)}

        self._table.update(change)
        return self.get(identity) or fresh

    def get(self, identity: str) -> Job | None:
        """Return a job; None when it was never submitted or was removed."""
        row = self._table.get(identity)
        return None if row is None else _job(row)

    def cancel(self, prefix: str) -> None:
        """Cancel every open job whose identity begins with ``prefix``. Their holders can no longer complete them."""
        def change(rows: dict[str, Json]) -> dict[str, Json] | None:
            taken = {i: _row(replace(_job(row), state=JobState.CANCELLED)) for i, row in rows.items()
                     if i.startswith(prefix) and _job(row).open}
            return taken or None

        self._table.update(change)

    def remove(self, prefix: str) -> None:
        """Remove every job whose identity begins with ``prefix``."""
        self._table.update(lambda rows: {i: None for i in rows if i.startswith(prefix)} or None)

    # Executing.

    def claim(self, holder: str, fence: int) -> Job | None:
        """Claim the oldest job that waits or that was claimed under another fence. Return None when there is none.

        A job claimed under ``fence`` already is not returned again.
        """
        claimed: list[Job] = []

        def change(rows: dict[str, Json]) -> dict[str, Json] | None:
            claimed.clear()
            for job in sorted(map(_job, rows.values()), key=lambda o: (o.placed_at, o.id)):
                left = job.state is JobState.CLAIMED and job.fence != fence
                if job.state is JobState.WAITING or left:
                    mine = replace(job, state=JobState.CLAIMED, attempt=job.attempt + 1, holder=holder,
                                   fence=fence)
                    claimed.append(mine)
                    return {job.id: _row(mine)}
            return None

        self._table.update(change)
        return claimed[0] if claimed else None

    def unfinished(self, fence: int) -> Job | None:
        """Return the oldest job that is claimed under ``fence`` and not completed; None when there is none.

        Its claim or its completion met an outage of Redis.
        """
        mine = [job for job in map(_job, self._table.all().values())
                if job.state is JobState.CLAIMED and job.fence == fence]
        return min(mine, key=lambda job: (job.placed_at, job.id), default=None)

    def is_held(self, job: Job) -> bool:
        """Return whether the job is still open and claimed under this fence."""
        now = self.get(job.id)
        return now is not None and now.state is JobState.CLAIMED and now.fence == job.fence

    def complete(self, job: Job, state: JobState, answer: dict[str, Json] | None = None, error: str = "") -> bool:
        """Complete a claimed job as done, failed or refused.

        Returns False, without a change, when it was cancelled or claimed by another holder.
        """
        if state in OPEN:
            raise ValueError(f"a job cannot be completed as {state}")
        ended = replace(job, state=state, answer=answer or {}, error=error, answered_at=time.time())

        def change(rows: dict[str, Json]) -> dict[str, Json] | None:
            row = rows.get(job.id)
            now = None if row is None else _job(row)
            if now is None or now.state is not JobState.CLAIMED or now.fence != job.fence:
                return None
            return {job.id: _row(ended)}

        return self._table.update(change)
