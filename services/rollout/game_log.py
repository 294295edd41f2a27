"""Log of finished games: writes their records to the run's series."""

import asyncio
import logging
from typing import Any

import redis

from rapid.store.series import Series

log = logging.getLogger(__name__)
WRITE_SECONDS = 1.0
MAX_UNWRITTEN = 10_000


class GameLog:
    """Queue of finished games' records."""

    def __init__(self, series: Series) -> None:
        self._series = series
        self._unwritten: list[dict[str, Any]] = []

    def put(self, record: dict[str, Any]) -> None:
        """Queue a record. Never blocks."""
        self._unwritten.append(record)

    async def run(self) -> None:
        """Write the queued records every second."""
        while True:
            await self.flush()
            await asyncio.sleep(WRITE_SECONDS)

    async def flush(self) -> None:
        """Write the queued records.

        Each game is written once, also after a retry. While Redis is unavailable the newest `MAX_UNWRITTEN` records
        wait for the next call.
        """
        records, self._unwritten = self._unwritten, []
        if not records:
            return
        try:
            await asyncio.to_thread(self._series.extend_once, "games", [(r["game"], r) for r in records])
        except redis.RedisError as error:
            log.warning("game records not written, retrying games=%d: %s", len(records), error)
            self._unwritten = (records + self._unwritten)[-MAX_UNWRITTEN:]
