"""Where operations are kept: a table of documents, changed by compare-and-set, the oldest ended ones dropped."""

import json
import secrets
import time
from collections.abc import Callable

from five.services.controller.operations.document import Operation, OperationKind, SurgeryRequest, event_of, new
from rapid.store.state import Json, RunState

TABLE = "operations"
KEPT = 100  # ended operations; their events stay


class Busy(RuntimeError):
    """Another operation is under way; ``operation`` is that one."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        step = operation.current
        at = f", at step {step.name}" if step is not None else ""
        super().__init__(f"operation {operation.id} ({operation.kind.value} {operation.request.name!r}, begun "
                         f"by {operation.who}{at}) is under way; one at a time: wait for it or cancel it")


def _row(operation: Operation) -> Json:
    return json.loads(operation.model_dump_json())


class OperationStore:
    """The operations of one run. Every change is one atomic step with its event; raises redis.RedisError."""

    def __init__(self, state: RunState, kept: int = KEPT) -> None:
        self._table = state.table(TABLE)
        self._kept = kept

    def all(self) -> list[Operation]:
        """All that are kept, newest first."""
        found = [Operation.model_validate(row) for row in self._table.all().values()]
        return sorted(found, key=lambda o: (o.created_at, o.id), reverse=True)

    def get(self, identity: str) -> Operation | None:
        """One operation; None when there is none of that name."""
        row = self._table.get(identity)
        return None if row is None else Operation.model_validate(row)

    def going(self) -> Operation | None:
        """The operation that is under way; there is at most one."""
        return next((o for o in self.all() if not o.over), None)

    def begin(self, kind: OperationKind, who: str, request: SurgeryRequest, was: str, reason: str = "") -> Operation:
        """A new operation. Raises Busy naming the one that is under way."""
        identity = f"{kind.value}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(3)}"
        operation = new(identity, kind, who, request, time.time(), was, reason)
        other: list[Operation] = []

        def change(rows: dict[str, Json]) -> dict[str, Json] | None:
            other.clear()
            known = [Operation.model_validate(row) for row in rows.values()]
            other.extend(o for o in known if not o.over)
            if other:
                return None
            ended = sorted((o for o in known if o.over), key=lambda o: (o.created_at, o.id), reverse=True)
            dropped: dict[str, Json] = {o.id: None for o in ended[self._kept - 1:]}
            return {**dropped, operation.id: _row(operation)}

        if not self._table.update(change, event=event_of(None, operation)):
            raise Busy(other[0])
        return operation

    def save(self, before: Operation, after: Operation) -> bool:
        """Replaces a document that is still as it was read. Returns whether it was."""
        if after == before:
            return True
        after = after.model_copy(update={"changes": before.changes + 1})
        was = _row(before)

        def change(rows: dict[str, Json]) -> dict[str, Json] | None:
            return {after.id: _row(after)} if rows.get(before.id) == was else None

        return self._table.update(change, event=event_of(before, after))

    def change(self, identity: str, make: Callable[[Operation], Operation]) -> Operation:
        """Changes a document whatever it is by now; ``make`` may be asked again, and raises to refuse.

        Raises LookupError when there is none of that name.
        """
        while True:
            before = self.get(identity)
            if before is None:
                raise LookupError(f"there is no operation {identity!r}")
            after = make(before)
            if self.save(before, after):
                return self.get(identity) or after
