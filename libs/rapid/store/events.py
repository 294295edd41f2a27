"""What was decided in a run, when and by whom: an append-only stream."""

import json
from typing import Any, NamedTuple

import redis

from rapid.store.keys import Keys

_PAGE = 1000


class Event(NamedTuple):
    """One event. ``id`` orders events; ``at`` is in seconds since the epoch; ``details`` are JSON values."""

    id: str
    at: float
    who: str
    what: str
    details: dict[str, Any]


def event_fields(who: str, what: str, details: dict[str, Any] | None) -> dict[str, str]:
    """An event as fields of a Redis stream. Raises ValueError when nobody did it or nothing happened."""
    if not who or not what:
        raise ValueError("an event needs who and what")
    return {"who": who, "what": what, "details": json.dumps(details or {}, allow_nan=False)}


class Events:
    """The event stream of a run. Nothing in it is ever changed or removed."""

    def __init__(self, state: redis.Redis, run: str) -> None:
        self._redis = state
        self._key = Keys(run).events

    def append(self, who: str, what: str, details: dict[str, Any] | None = None) -> str:
        """Writes an event down. Returns its id."""
        return _text(self._redis.xadd(self._key, event_fields(who, what, details)))  # type: ignore[arg-type]

    def read(self, after: str = "", limit: int = _PAGE) -> list[Event]:
        """Events after an id ('' is from the first), oldest first, at most ``limit``."""
        rows: Any = self._redis.xrange(self._key, min=f"({after}" if after else "-", count=limit)
        return [_event(row) for row in rows]

    def last(self, limit: int = 100, before: str = "") -> list[Event]:
        """The newest events, or the newest of those before an id, newest first."""
        if before and not before.strip("0-"):
            return []  # nothing is before the first id, and Redis refuses to look there
        rows: Any = self._redis.xrevrange(self._key, max=f"({before}" if before else "+", count=limit)
        return [_event(row) for row in rows]


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _event(row: Any) -> Event:
    identity = _text(row[0])
    fields = {_text(k): _text(v) for k, v in row[1].items()}
    return Event(identity, int(identity.split("-")[0]) / 1000, fields["who"], fields["what"],
                 json.loads(fields["details"]))
