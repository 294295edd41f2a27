"""Brings what is to what was asked for: the transitions that nobody orders."""

from collections.abc import Callable

from rapid.store.leases import Instance
from rapid.store.state import RunState, Status

WHO = "controller"
# A run plays when it has a version to play and somebody to play and learn it.
NEEDED = ("inference", "optimizer", "rollout")


def next_status(status: Status, head: int | None, live: list[Instance]) -> tuple[Status, str] | None:
    """The transition that is due, and why; None when there is none.

    starting -> running once a version is out and every needed kind of service lives; pausing -> paused once all
    playing and learning services say that they rest (``stats["resting"]``).
    """
    if status is Status.STARTING and head is not None:
        kinds = {i.kind for i in live}
        if all(kind in kinds for kind in NEEDED):
            return Status.RUNNING, f"version {head} is out and {', '.join(NEEDED)} are up"
    if status is Status.PAUSING:
        busy = [i for i in live if i.kind in ("rollout", "optimizer") and not i.stats.get("resting")]
        if not busy:
            return Status.PAUSED, "games and learning rest"
    return None


def reconcile(state: RunState, head: Callable[[], int | None], live: Callable[[], list[Instance]]) -> bool:
    """One look at the run. Returns whether something was changed."""
    now = state.status()
    if now is None or now.status not in (Status.STARTING, Status.PAUSING):
        return False
    due = next_status(now.status, head(), live())
    if due is None:
        return False
    state.transition(due[0], WHO, due[1])
    return True
