"""Tables of a run: hashes of JSON values with atomic updates, for one part's own state."""

import json
from collections.abc import Callable
from typing import Any

import redis

from rapid.store.events import event_fields
from rapid.store.idempotency import is_recorded, next_position, record_key
from rapid.store.keys import Keys
from rapid.store.rows import read_json
from rapid.store.transaction import transaction

Json = Any


class Table:
    """Fields of JSON values with atomic updates. ``events`` is the key to which events are appended."""

    def __init__(self, state: redis.Redis, keys: Keys, name: str, events: str) -> None:
        self._redis = state
        self._events = events
        self._keys = keys
        self._name = name
        self._key = keys.table(name)

    def get(self, field: str) -> Json:
        """Return a field's value; None when it is not set. Raise Corrupt for a damaged one."""
        text: Any = self._redis.hget(self._key, field)
        return None if text is None else self.parse(field, text)

    def all(self) -> dict[str, Json]:
        """Return all fields. Raise Corrupt for a damaged one."""
        return {field: self.parse(field, text) for field, text in self.texts().items()}

    def texts(self) -> dict[str, bytes]:
        """Return all fields as they are stored, for readers that do not need every value."""
        rows: Any = self._redis.hgetall(self._key)
        return {field.decode(): text for field, text in rows.items()}

    def parse(self, field: str, text: bytes) -> Json:
        """Return the value of a field's text. Raise Corrupt for a damaged one."""
        return read_json(text, f"{self._key} {field}")

    def _parsed(self, rows: dict[bytes, bytes]) -> dict[str, Json]:
        return {k.decode(): self.parse(k.decode(), v) for k, v in rows.items()}

    def set(self, field: str, value: Json) -> None:
        """Set a field. None removes it."""
        if value is None:
            self._redis.hdel(self._key, field)
        else:
            self._redis.hset(self._key, field, json.dumps(value, allow_nan=False))

    def seen(self, identity: str) -> bool:
        """Return whether an update with ``once=identity`` was applied, among the newest
        `rapid.store.idempotency.MAX_KEYS`."""
        return is_recorded(self._redis, self._keys.once(self._name), identity)

    def update(self, change: Callable[[dict[str, Json]], dict[str, Json] | None], once: str = "",
               event: "tuple[str, str, dict[str, Json]] | None" = None) -> bool:
        """Read all fields and write what ``change`` returns, in one atomic step.

        ``change`` gets all fields and returns those to set (a None value removes one), or None to leave the table. It
        may be called again after a concurrent write. With ``once`` the update is applied at most once for that
        identity. ``event`` (who, what, details) is appended with it. Returns whether anything was applied.
        """
        marks = self._keys.once(self._name)

        def attempt(pipeline: Any) -> bool:
            position = next_position(pipeline, marks, once) if once else 0
            if position is None:
                pipeline.multi()
                return False
            rows = self._parsed(pipeline.hgetall(self._key))
            changed = change(rows)
            pipeline.multi()
            if changed is None:
                return False
            for field, value in changed.items():
                if value is None:
                    pipeline.hdel(self._key, field)
                else:
                    pipeline.hset(self._key, field, json.dumps(value, allow_nan=False))
            if once:
                record_key(pipeline, marks, once, position)
            if event:
                pipeline.xadd(self._events, event_fields(*event))
            return True

        return bool(transaction(self._redis, self._keys, attempt, self._key, *((marks,) if once else ())))
