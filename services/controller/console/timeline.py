"""Events on the console's time line: changes to the run, its schedules and its services."""

import threading

from pydantic import BaseModel, Field

from rapid.store.events import Event, Events
from rapid.store.series import Record, Series

MAX_EVENTS = 5000  # of each source; the oldest are dropped first
# Kind of the time-line entry by event.
KINDS = {
    "run.cut_over": "surgery", "anneal.made_the_game": "anneal", "optimizer.resumed": "restart",
    "run.created": "start", "run.starting": "start", "run.pausing": "pause", "run.stopping": "stop",
    "run.failed": "failure", "run.restored": "restart", "run.rules_changed": "restart",
    "operation.failed": "failure", "events.lost": "failure",
}
ANNEAL = "anneal."


class TimelineEvent(BaseModel):
    """An event on the time line."""

    at: float = Field(description="When, seconds since the epoch.")
    kind: str = Field(description="surgery, revert, ramp, anneal, pause, start, stop, restart or failure.")
    label: str = Field(description="Short description.")
    who: str = Field(description="Author: a token's name, or a service.")
    version: int | None = Field(None, description="Its version; null: none.")


def timeline_event(event: Event) -> TimelineEvent | None:
    """Return the time-line entry of an event, or None if it has none."""
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
    elif event.what == "events.lost":
        label = f"events of {details.get('writer')} lost before they were recorded"
    elif event.what == "optimizer.resumed":
        label = "optimizer resumed from a checkpoint"
    elif details.get("reason"):
        label = f"{label}: {details['reason']}"
    return TimelineEvent(at=event.at, kind=kind, label=label[:200], who=event.who,
                         version=version if isinstance(version, int) else None)


def schedule_event(change: Record) -> TimelineEvent:
    """Return the time-line entry of a schedule change."""
    row = change.values
    after = row.get("after", {})
    ramps = after.get("ramps") or [{}]
    name = str(row.get("name", "schedule")).replace("_", " ")
    label = f"{name} restored" if row.get("reverts") else f"{name} to {ramps[-1].get('to', '?')}"
    return TimelineEvent(at=change.at, kind="ramp", label=label, who=str(row.get("who", "")),
                         version=None if after.get("unit") == "hero_steps" else ramps[-1].get("start"))


class Timeline:
    """The time line of a run, read incrementally. Blocking and thread-safe."""

    def __init__(self, events: Events, series: Series) -> None:
        self._events = events
        self._series = series
        self._lock = threading.Lock()
        self._after = {"events": "", "schedules": "-"}
        self._found: dict[str, list[TimelineEvent]] = {"events": [], "schedules": []}

    def all(self) -> list[TimelineEvent]:
        """Return all entries, oldest first. Raise redis.RedisError."""
        with self._lock:
            while page := self._events.read(self._after["events"], 1000):
                self._after["events"] = page[-1].id
                self._found["events"] += [m for m in map(timeline_event, page) if m is not None]
            for change in self._series.read("schedules", self._after["schedules"]):
                self._after["schedules"] = change.id
                self._found["schedules"].append(schedule_event(change))
            for kept in self._found.values():
                del kept[:-MAX_EVENTS]
            return sorted((m for kept in self._found.values() for m in kept), key=lambda m: m.at)

