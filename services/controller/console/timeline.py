"""What the console marks on its time line: changes of the run, of its schedules and of what runs it."""

import threading

from pydantic import BaseModel, Field

from rapid.store.events import Event, Events
from rapid.store.series import Record, Series

MAX_MARKS = 5000  # of each source; the oldest go first
# Events that are marks, and what kind of mark each is.
KINDS = {
    "run.cut_over": "surgery", "anneal.made_the_game": "anneal", "optimizer.resumed": "restart",
    "run.created": "start", "run.starting": "start", "run.pausing": "pause", "run.stopping": "stop",
    "run.failed": "failure", "run.restored": "restart", "operation.failed": "failure",
}
ANNEAL = "anneal."


class Mark(BaseModel):
    """A moment on the time line."""

    at: float = Field(description="When, seconds since the epoch.")
    kind: str = Field(description="surgery, revert, ramp, anneal, pause, start, stop, restart or failure.")
    label: str = Field(description="What it was, in a few words.")
    who: str = Field(description="Who did it.")
    version: int | None = Field(None, description="The version that it belongs to, where it has one.")


def mark_of(event: Event) -> Mark | None:
    """The mark of an event; None for one that has no mark."""
    kind = KINDS.get(event.what) or ("anneal" if event.what.startswith(ANNEAL) else "")
    if not kind:
        return None
    details = event.details
    version = details.get("version")
    label = event.what.partition(".")[2].replace("_", " ")
    if event.what == "run.cut_over":
        kind = "revert" if str(details.get("operation", "")).startswith("revert") else "surgery"
        label = str(details.get("plan") or details.get("name") or kind)
    elif kind == "anneal":
        label = f"{details.get('anneal', 'anneal')}: {label}"
    elif event.what == "operation.failed":
        label = f"{details.get('kind', 'operation')} failed: {details.get('plan', '')}"
    elif event.what == "optimizer.resumed":
        label = "optimizer went on from a checkpoint"
    elif details.get("reason"):
        label = f"{label}: {details['reason']}"
    return Mark(at=event.at, kind=kind, label=label[:200], who=event.who,
                version=version if isinstance(version, int) else None)


def ramp_of(change: Record) -> Mark:
    """The mark of a change of a schedule."""
    row = change.values
    ramps = row.get("after", {}).get("ramps") or [{}]
    name = str(row.get("name", "schedule")).replace("_", " ")
    label = f"{name} back to what it was" if row.get("reverts") else f"{name} to {ramps[-1].get('to', '?')}"
    return Mark(at=change.at, kind="ramp", label=label, who=str(row.get("who", "")), version=ramps[-1].get("start"))


class Marks:
    """The marks of a run, read on from where they were. Blocking; safe to share between threads."""

    def __init__(self, events: Events, series: Series) -> None:
        self._events = events
        self._series = series
        self._lock = threading.Lock()
        self._after = {"events": "", "schedules": "-"}
        self._found: dict[str, list[Mark]] = {"events": [], "schedules": []}

    def all(self) -> list[Mark]:
        """Every mark, oldest first. Raises redis.RedisError."""
        with self._lock:
            while page := self._events.read(self._after["events"], 1000):
                self._after["events"] = page[-1].id
                self._found["events"] += [m for m in map(mark_of, page) if m is not None]
            for change in self._series.read("schedules", self._after["schedules"]):
                self._after["schedules"] = change.id
                self._found["schedules"].append(ramp_of(change))
            for kept in self._found.values():
                del kept[:-MAX_MARKS]
            return sorted((m for kept in self._found.values() for m in kept), key=lambda m: m.at)

