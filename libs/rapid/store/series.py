"""Time series of a run, kept in its state Redis: what reports and live views are drawn from.

Each kind is a capped Redis stream of JSON records. Kinds in use: ``versions`` (one record a version, by the
optimizer), ``games`` (one a finished game, by rollouts), ``ratings`` (one a rating, by the evaluator), ``matches``
(one a match on request), ``schedules`` (one a change of a schedule, by the controller).
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import redis

from rapid.store.idempotency import apply_once
from rapid.store.keys import Keys


class Record(NamedTuple):
    """One record: its stream id, seconds since the epoch at which it was appended, and its values."""

    id: str
    at: float
    values: dict[str, Any]


class Series:
    """Appends to and reads from the series of one run. ``length`` caps each kind (approximately)."""

    def __init__(self, state: redis.Redis, run: str, length: int = 200_000) -> None:
        self._redis = state
        self._keys = Keys(run)
        self._length = length

    def key(self, kind: str) -> str:
        """The Redis key of a kind."""
        return self._keys.series(kind)

    def append(self, kind: str, values: dict[str, Any]) -> None:
        """Appends one record of JSON values."""
        self.extend(kind, [values])

    def extend(self, kind: str, records: list[dict[str, Any]]) -> None:
        """Appends several records in one round trip."""
        pipeline: Any = self._redis.pipeline(transaction=False)
        for values in records:
            pipeline.execute_command(*self.command(kind, values))
        pipeline.execute()

    def extend_once(self, kind: str, records: Sequence[tuple[str, dict[str, Any]]]) -> int:
        """Appends records, each under its name and unless one of that name was appended lately: what was sent and not
        answered may be sent again. Returns how many were appended now."""
        texts = json.dumps([[name, self.command(kind, values)] for name, values in records])
        return apply_once(self._redis, self._keys.once_in(kind), texts)

    def once_command(self, kind: str, name: str, values: dict[str, Any]) -> tuple[str, ...]:
        """The command that appends one record under its name, once, for a step of several."""
        return "ONCE", self._keys.once_in(kind), name, *self.command(kind, values)

    def command(self, kind: str, values: dict[str, Any]) -> tuple[str, ...]:
        """The Redis command that appends one record, for a step of several (rapid.store.fencing.write)."""
        body = json.dumps(values, separators=(",", ":"), allow_nan=False)
        return "XADD", self.key(kind), "MAXLEN", "~", str(self._length), "*", "v", body

    def read(self, kind: str, after: str = "-", page: int = 2000) -> Iterator[Record]:
        """Records in order, from the one after id ``after`` ('-': all)."""
        start = after if after == "-" else f"({after}"
        while True:
            rows: Any = self._redis.xrange(self.key(kind), min=start, max="+", count=page)
            for name, fields in rows:
                yield _record((name, fields))
            if len(rows) < page:
                return
            start = f"({rows[-1][0].decode()}"

    def last(self, kind: str) -> Record | None:
        """The newest record of a kind."""
        return next(iter(self.latest(kind, 1)), None)

    def latest(self, kind: str, limit: int, before: str = "") -> list[Record]:
        """The newest records of a kind, or the newest of those before an id, newest first."""
        if before and not before.strip("0-"):
            return []  # nothing is before the first id, and Redis refuses to look there
        rows: Any = self._redis.xrevrange(self.key(kind), max=f"({before}" if before else "+", count=limit)
        return [_record(row) for row in rows]

    def following(self, kind: str, after: str, limit: int) -> list[Record]:
        """Records of a kind after an id ('': from the first), oldest first."""
        rows: Any = self._redis.xrange(self.key(kind), min=f"({after}" if after else "-", count=limit)
        return [_record(row) for row in rows]


def _record(row: Any) -> Record:
    identity = row[0].decode()
    return Record(identity, int(identity.split("-")[0]) / 1000.0, json.loads(row[1][b"v"]))
