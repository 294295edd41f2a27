"""Client of the run's state for the training loop: reads schedules, writes records and events."""

import logging
import time
from collections.abc import Callable
from typing import Any

import redis

from five.agent.config import SchedulesConfig
from five.agent.schedules import load_schedules
from five.services.optimizer.version_records import VersionRecord
from rapid.critical_tasks import CriticalTasks
from rapid.lifecycle import Lifecycle
from rapid.store.errors import Corrupt, FencedOut
from rapid.store.fencing import Command, FencingToken
from rapid.store.series import Series
from rapid.store.state import RunState

log = logging.getLogger(__name__)
SCHEDULE_SECONDS = 2.0


class RunStateClient:
    """StateClient (services.optimizer.interfaces) on a run's Redis.

    The training loop never waits for Redis here: a thread reads the schedules after `start_polling`, and records are
    written in the background. Records and events are written under ``fencing_token``, so those of a replaced group are
    refused.
    """

    def __init__(self, state: RunState, series: Series, lifecycle: Lifecycle, configured: SchedulesConfig, who: str,
                 fencing_token: Callable[[], FencingToken | None]) -> None:
        self._state = state
        self._series = series
        self._lifecycle = lifecycle
        self._schedules = configured
        self._read = False
        self._who = who
        self._fencing_token = fencing_token
        self._leaving = False
        self._unavailable = False  # whether the last reading of the schedules found no Redis
        self.last: VersionRecord = {}

    def active(self) -> bool:
        """Return whether the run learns now."""
        return self._lifecycle.active

    def schedules(self) -> SchedulesConfig:
        """Return the schedules as last read; the first call reads them."""
        if not self._read:
            self.read_schedules()
        return self._schedules

    def read_schedules(self) -> None:
        """Read the schedules; keep the previous ones while Redis is unavailable. Raises ValueError or Corrupt."""
        try:
            changed = self._state.schedules()
        except redis.RedisError as error:
            if not self._unavailable:
                log.warning("cannot read schedules, keeping the previous values: %s", error)
            self._unavailable = True
            return
        self._unavailable = False
        if changed is not None:
            self._schedules = load_schedules(changed)
        self._read = True

    def start_polling(self, critical_tasks: CriticalTasks) -> None:
        """Start the critical thread that reads the schedules periodically. Unreadable ones change nothing."""
        def read() -> None:
            logged = ""
            while True:
                time.sleep(SCHEDULE_SECONDS)
                try:
                    self.read_schedules()
                    logged = ""
                except (ValueError, Corrupt) as error:  # as of a controller of another release
                    if logged != str(error):
                        logged = str(error)
                        log.warning("schedules are unreadable, keeping the previous values: %s", error)

        critical_tasks.thread("schedule-poller", read).start()

    def record(self, record: VersionRecord) -> None:
        """Write a version's record. Idempotent. Raises redis.RedisError while Redis is unavailable."""
        self.last = record
        name = f"{record['version']}"
        self._write(self._series.once_command("versions", name, record), f"the record of version {name}", lose=False)

    def leave_epoch(self) -> None:
        """Write later events without a fencing token: they are this process's last events in its epoch."""
        self._leaving = True

    def event(self, what: str, details: dict[str, Any]) -> None:
        """Write an event; log it as lost when it is refused or Redis is unavailable."""
        if self._leaving:
            try:
                self._state.events.append(self._who, what, details)
            except redis.RedisError as error:
                log.warning("event %s lost: %s", what, error)
            return
        self._write(self._state.event_command(self._who, what, details), f"event {what}")

    def _write(self, command: Command, what: str, lose: bool = True) -> None:
        fencing_token = self._fencing_token()
        if fencing_token is None:
            log.warning("%s lost: this optimizer does not hold the publisher's lease", what)
            return
        try:
            self._state.fenced_write(fencing_token, [command], what)
        except FencedOut as error:
            log.warning("%s lost: %s", what, error)
        except redis.RedisError as error:
            if not lose:
                raise
            log.warning("%s lost: %s", what, error)
