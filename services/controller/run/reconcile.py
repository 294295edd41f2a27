"""Reconciliation of the run's actual status with the requested one."""

import time
from collections.abc import Callable

from rapid.store.errors import FencedOut, IllegalTransition
from rapid.store.events import event_fields
from rapid.store.idle import IdleReport, note_overdue
from rapid.store.leases import Instance, uptime_seconds
from rapid.store.state import RunState, Status

WHO = "controller"
# Kinds of services without which a run cannot play and learn.
NEEDED = ("inference", "optimizer", "rollout")
WAITING = (Status.STARTING, Status.PAUSING, Status.STOPPING)  # statuses that end by themselves


def next_status(status: Status, head: int | None, live: list[Instance],
                report: IdleReport) -> tuple[Status, str] | None:
    """Return the transition that is due and its reason, or None.

    starting -> running once a version is published and each required kind of service is live; pausing -> paused once
    all services are idle; stopping -> stopped once no service but the controller is live.
    """
    if status is Status.STARTING and head is not None:
        kinds = {i.kind for i in live}
        if all(kind in kinds for kind in NEEDED):
            return Status.RUNNING, f"version {head} is published and {', '.join(NEEDED)} are live"
    if status is Status.PAUSING and not report.waiting_for:
        return Status.PAUSED, f"games and learning are idle: acknowledged by {len(report.acknowledged)} services"
    if status is Status.STOPPING and all(i.kind == WHO for i in live):
        return Status.STOPPED, "all services have drained"
    return None


class PauseClock:
    """Measures how long this process has waited for a pause, by a monotonic clock."""

    def __init__(self) -> None:
        self._began: dict[int, float] = {}

    def seconds(self, pause: int) -> float:
        """Return the seconds since the first call for that pause."""
        now = time.monotonic()
        if pause not in self._began:
            self._began = {pause: now}
        return now - self._began[pause]


def reconcile(state: RunState, head: Callable[[], int | None], live: Callable[[], list[Instance]],
              clock: PauseClock, pause_timeout_seconds: float = 60.0, lease_seconds: float = 0.0) -> bool:
    """Reconcile the run once. Return whether anything changed.

    A pause that takes longer than ``pause_timeout_seconds`` is recorded once, with the services that are not idle. A
    run does not become stopped while its Redis is up for less than ``lease_seconds``.
    """
    now, record = state.snapshot()
    if now is None or record is None or now.status not in WAITING:
        return False
    report = state.idle_report()
    due = next_status(now.status, head(), live(), report)
    if due is not None:
        if due[0] is Status.STOPPED and (uptime := uptime_seconds(state.redis)) is not None and uptime < lease_seconds:
            return False  # services that still drain may not have renewed their leases in this Redis yet
        try:
            state.transition(due[0], WHO, due[1], record.epoch)
        except (FencedOut, IllegalTransition):
            return False  # changed concurrently; the next pass decides again
        return True
    if now.status is Status.PAUSING and clock.seconds(report.pause) > pause_timeout_seconds:
        details = {"pause": report.pause, "waiting_for": report.waiting_for, "seconds": pause_timeout_seconds}
        return note_overdue(state.redis, state.run, report.pause, event_fields(WHO, "run.pause_overdue", details))
    return False
