"""Plans that a run has to do with: what was checked, and what was applied, by the plan's digest.

Two tables: "checks" holds the newest results of checks, "plans" the texts of plans whose cut-over was begun. Which of
these were applied, and in which order, the run's record says (`rapid.store.record.RunRecord.chain`).
"""

import time
from collections.abc import Mapping
from typing import Any

from rapid.store.state import Json, RunState

CHECKS_TABLE = "checks"
PLANS_TABLE = "plans"
MAX_CHECKS = 100


class PlanChecks:
    """Results of checks. A check of the same plan replaces the one before it."""

    def __init__(self, state: RunState) -> None:
        self._table = state.table(CHECKS_TABLE)

    def get(self, digest: str) -> dict[str, Any] | None:
        """The newest result for a plan; None when it was never checked."""
        row = self._table.get(digest)
        return None if row is None else dict(row)

    def keep(self, digest: str, row: Mapping[str, Json]) -> None:
        """Keeps a result; the oldest beyond `MAX_CHECKS` go. Repeating it changes nothing but the time."""
        def change(rows: dict[str, Json]) -> dict[str, Json] | None:
            others = sorted((r["at"], d) for d, r in rows.items() if d != digest)
            dropped: dict[str, Json] = {d: None for _, d in others[:max(0, len(others) + 1 - MAX_CHECKS)]}
            return {**dropped, digest: {**row, "digest": digest, "at": time.time()}}

        self._table.update(change)


class PlanStore:
    """Texts of the plans that were applied, or were about to be."""

    def __init__(self, state: RunState) -> None:
        self._table = state.table(PLANS_TABLE)

    def get(self, digest: str) -> dict[str, Any] | None:
        """A plan's row: ``plan`` (its text), ``game`` and ``model`` it started from, and what was made of it."""
        row = self._table.get(digest)
        return None if row is None else dict(row)

    def all(self) -> dict[str, dict[str, Any]]:
        """All of them, by digest."""
        return self._table.all()

    def put(self, digest: str, row: Mapping[str, Json]) -> None:
        """Writes a plan down. It counts as applied once the record's chain names it."""
        self._table.set(digest, dict(row))
