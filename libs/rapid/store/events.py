"""Event log of a run: an append-only stream of decisions with their time and author.

Only the controller writes the log. Other services append to streams of their own, in the transaction of the change that
an event describes. The controller moves their events into the log (`rapid.store.event_merger`).
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import redis

from rapid.store.keys import Keys
from rapid.store.rows import read_json
from rapid.store.transaction import transaction

WRITERS = ("opponents", "optimizer")  # kinds of services with a stream of their own
_PAGE = 1000


class Event(NamedTuple):
    """An event. ``id`` orders events by the time of recording; ``at`` is when it happened, in seconds since 1970;
    ``details`` are JSON values."""

    id: str
    at: float
    who: str
    what: str
    details: dict[str, Any]


def event_fields(who: str, what: str, details: dict[str, Any] | None) -> dict[str, str]:
    """Return an event as fields of a Redis stream. Raise ValueError for an empty ``who`` or ``what``."""
    if not who or not what:
        raise ValueError("an event needs who and what")
    return {"who": who, "what": what, "details": json.dumps(details or {}, allow_nan=False)}


class Events:
    """The event log of a run. Events are never changed or removed.

    ``writer`` is the kind of service that appends. Events of the kinds in `WRITERS` appear in the log after the merge.
    """

    def __init__(self, state: redis.Redis, run: str, writer: str = "") -> None:
        self._redis = state
        self._keys = Keys(run)
        self._key = self._keys.events
        self.appended_key = self._keys.events_of(writer) if writer in WRITERS else self._key

    def append(self, who: str, what: str, details: dict[str, Any] | None = None) -> str:
        """Append an event. Return its id, '' if the reply with it was lost."""
        def write(pipeline: Any) -> Callable[[list[Any] | None], str]:
            pipeline.multi()
            pipeline.xadd(self.appended_key, event_fields(who, what, details))
            return lambda replies: _text(replies[0]) if replies else ""

        return str(transaction(self._redis, self._keys, write))

    def read(self, after: str = "", limit: int = _PAGE) -> list[Event]:
        """Return at most ``limit`` events after an id ('' is from the first), oldest first."""
        rows: Any = self._redis.xrange(self._key, min=f"({after}" if after else "-", count=limit)
        return [_event(row) for row in rows]

    def last(self, limit: int = 100, before: str = "") -> list[Event]:
        """Return the newest events, or the newest before an id, newest first."""
        if before and not before.strip("0-"):
            return []  # nothing precedes the first id, and Redis rejects the range
        rows: Any = self._redis.xrevrange(self._key, max=f"({before}" if before else "+", count=limit)
        return [_event(row) for row in rows]


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _event(row: Any) -> Event:
    identity = _text(row[0])
    fields = {_text(k): _text(v) for k, v in row[1].items()}
    at = float(fields["at"]) if "at" in fields else int(identity.split("-")[0]) / 1000
    return Event(identity, at, fields["who"], fields["what"], read_json(fields["details"], f"event {identity}"))
