"""The optimizer's dealings with the run's state: schedules in, records and events out."""

import logging
import time
from typing import Any

import redis

from five.config import SchedulesConfig
from five.schedules import load_schedules
from rapid.lifecycle import Lifecycle
from rapid.store.series import Series
from rapid.store.state import RunState
from services.optimizer.records import WindowRecord

log = logging.getLogger(__name__)
SCHEDULE_SECONDS = 2.0


class StateDesk:
    """services.optimizer.training.Desk over a run's Redis. A Redis that is away costs records, never the loop."""

    def __init__(self, state: RunState, lifecycle: Lifecycle, configured: SchedulesConfig, who: str) -> None:
        self._state = state
        self._series = Series(state.redis, state.run)
        self._lifecycle = lifecycle
        self._schedules = configured
        self._read_at = 0.0
        self._who = who
        self.last: WindowRecord = {}

    def active(self) -> bool:
        """Whether the run learns now."""
        return self._lifecycle.active

    def schedules(self) -> SchedulesConfig:
        """The schedules in force, read again every few seconds."""
        if time.monotonic() - self._read_at > SCHEDULE_SECONDS:
            try:
                changed = self._state.schedules()
            except redis.RedisError as error:
                log.warning("the schedules cannot be read, the last ones hold: %s", error)
                return self._schedules
            self._read_at = time.monotonic()
            if changed is not None:
                self._schedules = load_schedules(changed)
        return self._schedules

    def record(self, record: WindowRecord) -> None:
        """Keeps a version's record."""
        self.last = record
        try:
            self._series.append("versions", record)
        except redis.RedisError as error:
            log.warning("version %s: its record is lost: %s", record["version"], error)

    def event(self, what: str, details: dict[str, Any]) -> None:
        """Keeps an event."""
        try:
            self._state.events.append(self._who, what, details)
        except redis.RedisError as error:
            log.warning("event %s is lost: %s", what, error)
