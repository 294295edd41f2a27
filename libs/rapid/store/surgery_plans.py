"""Surgery plans of a run by their digest: results of checks, and texts of plans whose cut-over began.

The table "checks" holds the newest results, the table "plans" the texts. Which plans were applied, and in which order,
is in the run record (`rapid.store.record.RunRecord.chain`).
"""

import time
from collections.abc import Mapping
from typing import Any

from rapid.store.state import Json, RunState

CHECKS_TABLE = "checks"
PLANS_TABLE = "plans"
MAX_CHECKS = 100


class PlanChecks:
    """Results of checks. A new check of a plan replaces its last one."""

    def __init__(self, state: RunState) -> None:
        self._table = state.table(CHECKS_TABLE)

    def get(self, digest: str) -> dict[str, Any] | None:
        """Return the newest result for a plan; None when it was never checked."""
        row = self._table.get(digest)
        return None if row is None else dict(row)

    def put(self, digest: str, row: Mapping[str, Json]) -> None:
        """Store a result, and remove the oldest beyond `MAX_CHECKS`."""
        def change(rows: dict[str, Json]) -> dict[str, Json] | None:
            others = sorted((r["at"], d) for d, r in rows.items() if d != digest)
            dropped: dict[str, Json] = {d: None for _, d in others[:max(0, len(others) + 1 - MAX_CHECKS)]}
            return {**dropped, digest: {**row, "digest": digest, "at": time.time()}}

        self._table.update(change)


class PlanStore:
    """Texts of plans that were applied or about to be."""

    def __init__(self, state: RunState) -> None:
        self._table = state.table(PLANS_TABLE)

    def get(self, digest: str) -> dict[str, Any] | None:
        """Return a plan's row: ``plan`` (its text), the ``game`` and ``model`` it started from, and their results."""
        row = self._table.get(digest)
        return None if row is None else dict(row)

    def all(self) -> dict[str, dict[str, Any]]:
        """Return all plans by digest."""
        return self._table.all()

    def put(self, digest: str, row: Mapping[str, Json]) -> None:
        """Store a plan. It counts as applied once the record's chain names it."""
        self._table.set(digest, dict(row))
