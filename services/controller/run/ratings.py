"""The ratings as the evaluator keeps them, read once and followed from then on: a page of them walks not over all."""

import threading
from collections.abc import Mapping
from typing import Any

from five.agent.standings import Standing, standings_of, version_of
from rapid.store.replicated_table import FollowedTable
from rapid.store.state import RunState


class RatingTable:
    """The rated players of a run, each with its place: a version's number; bots have those below 0, in the order of
    their names. Blocking; safe to share between threads."""

    def __init__(self, state: RunState) -> None:
        self._lock = threading.Lock()
        self._rows: dict[str, Any] = {}
        self._ordered: list[tuple[int, Standing]] | None = None
        self._table = FollowedTable(state, "ratings", self._apply_rows)

    def _apply_rows(self, rows: Mapping[str, Any], replace: bool) -> None:
        if replace:
            self._rows = {}
        for field, row in rows.items():
            if row is None:
                self._rows.pop(field, None)
            else:
                self._rows[field] = row
        self._ordered = None

    def ordered(self) -> list[tuple[int, Standing]]:
        """Places and standings, the highest place first: versions from the newest on, then bots. Raises
        redis.RedisError."""
        with self._lock:
            self._table.refresh()
            if self._ordered is None:
                standings = standings_of(self._rows)
                versions = [(v, s) for s in standings if (v := version_of(s.player)) is not None]
                bots = sorted((s for s in standings if version_of(s.player) is None), key=lambda s: s.player)
                self._ordered = [*sorted(versions, key=lambda one: -one[0]),
                                *((-1 - i, s) for i, s in enumerate(bots))]
            return self._ordered
