"""Time series of a run in its state Redis, the source of reports and live views.

Each kind is a capped Redis stream of JSON records: ``versions`` (one per version, by the optimizer), ``games`` (one per
finished game, by rollouts), ``ratings`` (one per rating, by the evaluator), ``matches`` (one per requested match),
``schedules`` (one per change of a schedule, by the controller).
"""

import json
import secrets
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import redis

from rapid.store import functions, idempotency
from rapid.store.keys import Keys
from rapid.store.rows import read_json

_BATCH = 200  # records of one call


class Record(NamedTuple):
    """A record: stream id, time of appending (seconds since 1970), and values."""

    id: str
    at: float
    values: dict[str, Any]


class Series:
    """The series of one run. ``length`` caps each kind, approximately; writers pass ``store.series_records``."""

    def __init__(self, state: redis.Redis, run: str, length: int = 100_000) -> None:
        self._redis = state
        self._keys = Keys(run)
        self._length = length

    def key(self, kind: str) -> str:
        """Return the Redis key of a kind."""
        return self._keys.series(kind)

    def append(self, kind: str, values: dict[str, Any]) -> None:
        """Append one record of JSON values."""
        self.extend(kind, [values])

    def extend(self, kind: str, records: list[dict[str, Any]]) -> None:
        """Append several records, each under an idempotency key of its own."""
        self.extend_once(kind, [(secrets.token_hex(16), values) for values in records])

    def extend_once(self, kind: str, records: Sequence[tuple[str, dict[str, Any]]]) -> int:
        """Append (idempotency key, record) pairs, each unless its key is recorded. Return how many were appended now.

        Records whose response was lost may therefore be sent again.
        """
        appended = 0
        keys = [self._keys.once_in(kind), self.key(kind)]
        for start in range(0, len(records), _BATCH):
            pairs = [text for name, values in records[start:start + _BATCH] for text in (name, _body(values))]
            appended += int(functions.call(self._redis, "append_once", keys, str(idempotency.MAX_KEYS),
                                           str(self._length), *pairs))
        return appended

    def once_command(self, kind: str, name: str, values: dict[str, Any]) -> tuple[str, ...]:
        """Return the command of `fenced_write` that appends one record once under an idempotency key."""
        return "ONCE", self._keys.once_in(kind), name, *self.command(kind, values)

    def command(self, kind: str, values: dict[str, Any]) -> tuple[str, ...]:
        """Return the Redis command that appends one record, for `rapid.store.fencing.fenced_write`."""
        return "XADD", self.key(kind), "MAXLEN", "~", str(self._length), "*", "v", _body(values)

    def read(self, kind: str, after: str = "-", page: int = 2000) -> Iterator[Record]:
        """Yield records in order, from the one after id ``after`` ('-': all)."""
        start = after if after == "-" else f"({after}"
        while True:
            rows: Any = self._redis.xrange(self.key(kind), min=start, max="+", count=page)
            for name, fields in rows:
                yield _record((name, fields))
            if len(rows) < page:
                return
            start = f"({rows[-1][0].decode()}"

    def last(self, kind: str) -> Record | None:
        """Return the newest record of a kind."""
        return next(iter(self.latest(kind, 1)), None)

    def latest(self, kind: str, limit: int, before: str = "") -> list[Record]:
        """Return the newest records of a kind, or the newest before an id, newest first."""
        if before and not before.strip("0-"):
            return []  # nothing precedes the first id, and Redis rejects the range
        rows: Any = self._redis.xrevrange(self.key(kind), max=f"({before}" if before else "+", count=limit)
        return [_record(row) for row in rows]

    def following(self, kind: str, after: str, limit: int) -> list[Record]:
        """Return records of a kind after an id ('': from the first), oldest first."""
        rows: Any = self._redis.xrange(self.key(kind), min=f"({after}" if after else "-", count=limit)
        return [_record(row) for row in rows]


def _body(values: dict[str, Any]) -> str:
    return json.dumps(values, separators=(",", ":"), allow_nan=False)


def _record(row: Any) -> Record:
    identity = row[0].decode()
    return Record(identity, int(identity.split("-")[0]) / 1000.0, read_json(row[1][b"v"], f"record {identity}"))
