"""Schedules in force, changed one at a time while the run continues, by compare-and-set and with a history."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from rapid.store.events import event_fields
from rapid.store.fencing import FencingToken, fenced_out
from rapid.store.record import RunRecord
from rapid.store.rows import read_json
from rapid.store.series import Record, Series
from rapid.store.state import RunState
from rapid.store.transaction import transaction

DOCUMENT = "schedules"
KIND = "schedules"  # series of the history
Json = Any


class ScheduleEdit(NamedTuple):
    """A requested change: the whole new document, and the named schedule before and after."""

    name: str
    document: Json
    before: Json
    after: Json


class ScheduleStore:
    """Schedules of one run. Blocking; safe to share between threads."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._series = Series(state.redis, state.run)

    def change(self, edit: Callable[[Json], ScheduleEdit | None], who: str, reason: str = "", reverts: str = "",
               epoch: int | None = None, dry_run: bool = False) -> str:
        """Apply ``edit`` to the document (None: nothing was set yet), with an event and a history entry, in one atomic
        step.

        ``edit`` may be called again after a concurrent write. Its exceptions reach the caller. A None result changes
        nothing, and neither does ``dry_run``. ``epoch`` is the epoch in which the change was decided, if that matters.
        Returns the id of the history entry, '' without a change. Raises FencedOut when the run is in another epoch.
        """
        state = self._state
        documents, history, events = state.keys.documents, self._series.key(KIND), state.events.appended_key

        def attempt(pipeline: Any) -> str | Callable[[list[Any] | None], str]:
            stored = pipeline.get(state.keys.record)
            now = 0 if stored is None else RunRecord.from_json(stored).epoch
            if epoch is not None and epoch != now:
                raise fenced_out(state.run, "epoch", FencingToken(who, epoch, None), "a change of a schedule")
            text = pipeline.hget(documents, DOCUMENT)
            change = edit(None if text is None else read_json(text, f"{documents} {DOCUMENT}"))
            if change is None or dry_run:
                return ""
            pipeline.multi()
            record = {"name": change.name, "who": who, "reason": reason, "before": change.before,
                      "after": change.after, "reverts": reverts or None, "epoch": now}
            pipeline.hset(documents, DOCUMENT, json.dumps(change.document, allow_nan=False))
            entry = json.dumps(record, separators=(",", ":"), allow_nan=False)
            pipeline.xadd(history, {"v": entry})
            details = {key: record[key] for key in ("name", "reason", "before", "after", "reverts", "epoch")}
            pipeline.xadd(events, event_fields(who, f"{DOCUMENT}.set", details))
            return lambda replies: self._newest(entry) if replies is None else str(replies[1].decode())

        return str(transaction(state.redis, state.keys, attempt, documents, state.keys.record))

    def history(self, limit: int, before: str = "") -> list[Record]:
        """Return changes, or those before an id, newest first."""
        return self._series.latest(KIND, limit, before)

    def _newest(self, entry: str) -> str:
        """Return the id of the newest history entry with that text, '' without one."""
        rows: Any = self._state.redis.xrevrange(self._series.key(KIND), count=100)  # written just now
        return next((str(name.decode()) for name, fields in rows if fields[b"v"] == entry.encode()), "")

    def find(self, identity: str) -> Record | None:
        """Return the change of that id."""
        rows: Any = self._state.redis.xrange(self._series.key(KIND), min=identity, max=identity, count=1)
        if not rows:
            return None
        name, fields = rows[0]
        at = int(name.decode().split("-")[0]) / 1000.0
        return Record(name.decode(), at, read_json(fields[b"v"], f"change {identity}"))
