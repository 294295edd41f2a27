"""Store of operations: a table of documents, changed by compare-and-set; the oldest ended ones are dropped."""

import json
import secrets
import time
from collections.abc import Callable

from five.services.controller.operations.document import (
    Operation,
    OperationKind,
    OperationRequest,
    change_event,
    new_operation,
)
from rapid.store.state import Json, RunState

TABLE = "operations"
MAX_ENDED = 100  # stored ended operations; their events remain


class OperationInProgress(RuntimeError):
    """Another operation is active; ``operation`` is that one."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        step = operation.current
        at = f", at step {step.name}" if step is not None else ""
        super().__init__(f"operation {operation.id} ({operation.kind.value} {operation.request.name!r}, begun "
                         f"by {operation.who}{at}) is active, and only one can be: wait for it or cancel it")


def _row(operation: Operation) -> Json:
    return json.loads(operation.model_dump_json())


class OperationStore:
    """The operations of one run. Every change is atomic with its event. Methods raise redis.RedisError."""

    def __init__(self, state: RunState, max_ended: int = MAX_ENDED) -> None:
        self._table = state.table(TABLE)
        self._max_ended = max_ended
        self._parsed: dict[str, tuple[bytes, Operation]] = {}

    def all(self) -> list[Operation]:
        """Return all stored operations, newest first. Only documents that changed since the last call are parsed."""
        known, found = self._parsed, {}
        for identity, text in self._table.texts().items():
            before = known.get(identity)
            found[identity] = before if before is not None and before[0] == text else (
                text, Operation.model_validate(self._table.parse(identity, text)))
        self._parsed = found
        return sorted((o for _, o in found.values()), key=lambda o: (o.created_at, o.id), reverse=True)

    def get(self, identity: str) -> Operation | None:
        """Return an operation by id, or None."""
        row = self._table.get(identity)
        return None if row is None else Operation.model_validate(row)

    def active(self) -> Operation | None:
        """Return the active operation, or None. There is at most one."""
        return next((o for o in self.all() if not o.is_over), None)

    def begin(self, kind: OperationKind, who: str, request: OperationRequest, was: str, reason: str = "") -> Operation:
        """Create an operation. Raise OperationInProgress if another one is active."""
        identity = f"{kind.value}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(3)}"
        operation = new_operation(identity, kind, who, request, time.time(), was, reason)
        other: list[Operation] = []

        def change(rows: dict[str, Json]) -> dict[str, Json] | None:
            other.clear()
            if operation.id in rows:  # the write is repeated after a lost reply
                return None
            known = [Operation.model_validate(row) for row in rows.values()]
            other.extend(o for o in known if not o.is_over)
            if other:
                return None
            ended = sorted((o for o in known if o.is_over), key=lambda o: (o.created_at, o.id), reverse=True)
            dropped: dict[str, Json] = {o.id: None for o in ended[self._max_ended - 1:]}
            return {**dropped, operation.id: _row(operation)}

        if not self._table.update(change, event=change_event(None, operation)) and other:
            raise OperationInProgress(other[0])
        return operation

    def save(self, before: Operation, after: Operation) -> bool:
        """Replace a document if it is unchanged since ``before`` was read. Return whether it was replaced."""
        if after == before:
            return True
        after = after.model_copy(update={"changes": before.changes + 1})

        def change(rows: dict[str, Json]) -> dict[str, Json] | None:
            row = rows.get(before.id)
            # Compared as documents: a row of an earlier release lacks fields that have been added since.
            return {after.id: _row(after)} if row is not None and Operation.model_validate(row) == before else None

        return self._table.update(change, event=change_event(before, after))

    def change(self, identity: str, make: Callable[[Operation], Operation]) -> Operation:
        """Change the current document; ``make`` may run several times and raises to refuse.

        Raise LookupError if there is no such operation.
        """
        while True:
            before = self.get(identity)
            if before is None:
                raise LookupError(f"there is no operation {identity!r}")
            after = make(before)
            if self.save(before, after):
                return self.get(identity) or after
