"""Brings what is to what was asked for: the transitions that nobody orders."""

import time
from collections.abc import Callable

from rapid.store.errors import FencedOut, IllegalTransition
from rapid.store.events import event_fields
from rapid.store.idle import QuietReport, note_overdue
from rapid.store.leases import Instance
from rapid.store.state import RunState, Status

WHO = "controller"
# A run plays when it has a version to play and somebody to play and learn it.
NEEDED = ("inference", "optimizer", "rollout")


def next_status(status: Status, head: int | None, live: list[Instance],
                quiet: QuietReport) -> tuple[Status, str] | None:
    """The transition that is due, and why; None when there is none.

    starting -> running once a version is out and every needed kind of service lives; pausing -> paused once everybody
    has said that it is quiet.
    """
    if status is Status.STARTING and head is not None:
        kinds = {i.kind for i in live}
        if all(kind in kinds for kind in NEEDED):
            return Status.RUNNING, f"version {head} is out and {', '.join(NEEDED)} are up"
    if status is Status.PAUSING and not quiet.waiting_for:
        return Status.PAUSED, f"games and learning rest: {len(quiet.said)} services have said so"
    return None


class PauseClock:
    """For how long this process has waited for a pause: by a clock that does not jump."""

    def __init__(self) -> None:
        self._pause = 0
        self._since = 0.0

    def seconds(self, pause: int) -> float:
        """Since it was first asked about that pause."""
        if pause != self._pause:
            self._pause, self._since = pause, time.monotonic()
        return time.monotonic() - self._since


def reconcile(state: RunState, head: Callable[[], int | None], live: Callable[[], list[Instance]],
              clock: PauseClock, quiet_seconds: float = 60.0) -> bool:
    """One look at the run. Returns whether something was changed.

    A pause that takes longer than ``quiet_seconds`` is noted once, with who has not come to rest; it goes on waiting.
    """
    now, record = state.standing()
    if now is None or record is None or now.status not in (Status.STARTING, Status.PAUSING):
        return False
    quiet = state.quiet()
    due = next_status(now.status, head(), live(), quiet)
    if due is not None:
        try:
            state.transition(due[0], WHO, due[1], record.epoch)
        except (FencedOut, IllegalTransition):
            return False  # somebody was faster: the next look decides again
        return True
    if now.status is Status.PAUSING and clock.seconds(quiet.pause) > quiet_seconds:
        details = {"pause": quiet.pause, "waiting_for": quiet.waiting_for, "seconds": quiet_seconds}
        return note_overdue(state.redis, state.run, quiet.pause, event_fields(WHO, "run.pause_overdue", details))
    return False
