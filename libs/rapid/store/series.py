"""Time series of a run, kept in its state Redis: what reports and live views are drawn from.

Each kind is a capped Redis stream of JSON records. Kinds in use: ``versions`` (one record a version, by the
optimizer), ``games`` (one a finished game, by rollouts), ``ratings`` (one a rating, by the evaluator), ``matches``
(one a match on request).
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import redis

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
        pipeline = self._redis.pipeline(transaction=False)
        for values in records:
            body = json.dumps(values, separators=(",", ":"), allow_nan=False)
            pipeline.xadd(self.key(kind), {"v": body}, maxlen=self._length, approximate=True)
        pipeline.execute()

    def read(self, kind: str, after: str = "-", page: int = 2000) -> Iterator[Record]:
        """Records in order, from the one after id ``after`` ('-': all)."""
        start = after if after == "-" else f"({after}"
        while True:
            rows: Any = self._redis.xrange(self.key(kind), min=start, max="+", count=page)
            for name, fields in rows:
                identity = name.decode()
                yield Record(identity, int(identity.split("-")[0]) / 1000.0, json.loads(fields[b"v"]))
            if len(rows) < page:
                return
            start = f"({rows[-1][0].decode()}"

    def last(self, kind: str) -> Record | None:
        """The newest record of a kind."""
        rows: Any = self._redis.xrevrange(self.key(kind), count=1)
        if not rows:
            return None
        identity = rows[0][0].decode()
        return Record(identity, int(identity.split("-")[0]) / 1000.0, json.loads(rows[0][1][b"v"]))
