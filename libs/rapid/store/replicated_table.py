"""A table replicated in its readers' memory by a log of updates.

A `Table` reads all rows at each update. Here the cost of reading and updating depends on what changed, not on the
table's size. Any number of processes may write. The log is a stream of bounded length; its last entry is the table's
version.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rapid.store.events import event_fields
from rapid.store.idempotency import next_position, record_key
from rapid.store.rows import read_json
from rapid.store.state import RunState
from rapid.store.tables import Json
from rapid.store.transaction import transaction

Rows = Mapping[str, Json]
LOG_ENTRIES = 10_000  # a reader further behind reloads the table
RELOAD_SECONDS = 60.0
_CHANGES = b"rows"


class ReplicatedTable:
    """A replica of a table, with atomic updates. Not thread-safe: its owner locks.

    ``on_rows`` receives changed rows as (rows, False), where None marks a removed row, or all rows as (rows, True). It
    has received everything up to now before ``change`` of an update is called.
    """

    def __init__(self, state: RunState, name: str, on_rows: Callable[[Rows, bool], None]) -> None:
        self._state = state
        self._name = name
        self._key = state.keys.table(name)
        self._log = state.keys.table_log(name)
        self._once = state.keys.once(name)
        self._on_rows = on_rows
        self._texts: dict[bytes, bytes] = {}
        self._position: Any = None  # last applied log entry; None: the log was empty
        self._loaded: float | None = None

    def refresh(self) -> None:
        """Apply what other processes have written since the last call."""
        self._refresh(self._state.redis)

    def update(self, change: Callable[[], dict[str, Json] | None], once: str = "",
               event: tuple[str, str, dict[str, Json]] | None = None,
               also: Callable[[], Sequence[tuple[str, ...]]] = tuple) -> bool:
        """Write what ``change`` returns in one atomic step (a None row is removed; None writes nothing).

        ``change`` uses what ``on_rows`` received and must not modify it, because it is called again after a concurrent
        write. ``on_rows`` receives the new rows once they are written. With ``once`` the update is applied at most once
        for that identity, by whichever process. ``also`` is called after ``change`` for more commands of the same step.
        Returns whether the update was applied.
        """
        def attempt(pipeline: Any) -> bool | Callable[[list[Any] | None], bool]:
            position = next_position(pipeline, self._once, once) if once else 0
            if position is None:
                return False
            self._refresh(pipeline)
            changed = change()
            if changed is not None and not self._is_current(pipeline, changed):
                self._load(pipeline)
                changed = change()
            return self._write(pipeline, changed, once, position, event, also()) if changed else False

        # Idempotency keys change only together with the table, so they need no watch.
        return bool(transaction(self._state.redis, self._state.keys, attempt, self._key, self._log))

    def _refresh(self, client: Any) -> None:
        if self._loaded is None or time.monotonic() - self._loaded > RELOAD_SECONDS:
            # Also periodically, because a writer of an earlier release, or a person, writes no log.
            self._load(client)
            return
        if self._position is None:
            if client.exists(self._log):
                self._load(client)
            return
        entries = client.xrange(self._log, min=self._position[0])
        # If the last applied entry is missing or differs, the log was trimmed or Redis lost writes.
        if not entries or entries[0] != self._position:
            self._load(client)
            return
        for entry in entries[1:]:
            self._apply(entry)

    def _load(self, client: Any) -> None:
        # The log first: a write between the two reads is in the table already, and is applied again.
        last = client.xrevrange(self._log, count=1)
        self._texts = client.hgetall(self._key)
        self._position = last[0] if last else None
        self._loaded = time.monotonic()
        self._on_rows({field.decode(): read_json(text, f"{self._key} {field.decode()}")
                       for field, text in self._texts.items()}, True)

    def _apply(self, entry: Any) -> None:
        rows: dict[str, Json] = read_json(entry[1][_CHANGES], self._log)
        for field, value in rows.items():
            if value is None:
                self._texts.pop(field.encode(), None)
            else:
                self._texts[field.encode()] = _text(value)
        self._position = entry
        self._on_rows(rows, False)

    def _is_current(self, pipeline: Any, changed: Rows) -> bool:
        """Return whether the rows about to be written are the same in Redis as in this replica."""
        if not changed:
            return True
        fields = [field.encode() for field in changed]
        return bool(pipeline.hmget(self._key, fields) == [self._texts.get(field) for field in fields])

    def _write(self, pipeline: Any, changed: Rows, once: str, position: int,
               event: tuple[str, str, dict[str, Json]] | None, also: Sequence[tuple[str, ...]]
               ) -> Callable[[list[Any] | None], bool]:
        fields = {_CHANGES: _text(changed)}
        pipeline.multi()
        pipeline.xadd(self._log, fields, maxlen=LOG_ENTRIES, approximate=True)
        for field, value in changed.items():
            if value is None:
                pipeline.hdel(self._key, field)
            else:
                pipeline.hset(self._key, field, _text(value))
        if once:
            record_key(pipeline, self._once, once, position)
        if event:
            pipeline.xadd(self._state.events.appended_key, event_fields(*event))
        for command in also:
            pipeline.execute_command(*command)

        def written(replies: list[Any] | None) -> bool:
            if replies is None:  # lost, and with them the id of the log entry
                self._refresh(self._state.redis)
            else:
                self._apply((replies[0], fields))
            return True

        return written


def _text(value: Json) -> bytes:
    return json.dumps(value, allow_nan=False).encode()
