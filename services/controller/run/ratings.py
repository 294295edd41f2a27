"""The evaluator's ratings, read once and then followed, so that a page does not read the whole table."""

import logging
import threading
from collections.abc import Mapping
from typing import Any

from five.agent.standings import Standing, parse_standings, player_version
from rapid.store.replicated_table import ReplicatedTable
from rapid.store.state import RunState

log = logging.getLogger(__name__)


class RatingTable:
    """The rated players of a run with their positions: a version's number, and negative numbers for bots by name.

    Damaged rows, for instance of a later release, are left out and logged. Blocking and thread-safe.
    """

    def __init__(self, state: RunState) -> None:
        self._lock = threading.Lock()
        self._rows: dict[str, Any] = {}
        self._ordered: list[tuple[int, Standing]] | None = None
        self._table = ReplicatedTable(state, "ratings", self._apply_rows)

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
        """Return positions and standings by descending position: versions from the newest, then bots. Raise
        redis.RedisError."""
        with self._lock:
            self._table.refresh()
            if self._ordered is None:
                standings = parse_standings(self._rows, lambda error: log.warning("%s", error))
                versions = [(v, s) for s in standings if (v := player_version(s.player)) is not None]
                bots = sorted((s for s in standings if player_version(s.player) is None), key=lambda s: s.player)
                self._ordered = [*sorted(versions, key=lambda one: -one[0]),
                                 *((-1 - i, s) for i, s in enumerate(bots))]
            return self._ordered
