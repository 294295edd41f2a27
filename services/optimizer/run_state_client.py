"""The run's state as the training loop sees it: schedules in, records and events out."""

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
from rapid.store.errors import FencedOut
from rapid.store.fencing import Command, FencingToken
from rapid.store.series import Series
from rapid.store.state import RunState

log = logging.getLogger(__name__)
SCHEDULE_SECONDS = 2.0


class RunStateClient:
    """services.optimizer.neighbours.StateClient over a run's Redis. The loop that learns never waits for Redis here:
    schedules are read on a thread of their own, once `follow` has begun it, and records are written beside learning.

    Records and events are written under ``authority``: those of a group that was replaced are refused.
    """

    def __init__(self, state: RunState, lifecycle: Lifecycle, configured: SchedulesConfig, who: str,
                 authority: Callable[[], FencingToken | None]) -> None:
        self._state = state
        self._series = Series(state.redis, state.run)
        self._lifecycle = lifecycle
        self._schedules = configured
        self._read = False
        self._who = who
        self._authority = authority
        self._leaving = False
        self.last: VersionRecord = {}

    def active(self) -> bool:
        """Whether the run learns now."""
        return self._lifecycle.active

    def schedules(self) -> SchedulesConfig:
        """The schedules in force, as they were read last; the first time they are read here."""
        if not self._read:
            self.read_schedules()
        return self._schedules

    def read_schedules(self) -> None:
        """Reads the schedules; a Redis that is away leaves them as they are."""
        try:
            changed = self._state.schedules()
        except redis.RedisError as error:
            log.warning("the schedules cannot be read, the last ones hold: %s", error)
            return
        if changed is not None:
            self._schedules = load_schedules(changed)
        self._read = True

    def start_polling(self, critical_tasks: CriticalTasks) -> None:
        """Reads the schedules every few seconds from now on, on a thread of the process's critical ones."""
        def read() -> None:
            while True:
                time.sleep(SCHEDULE_SECONDS)
                self.read_schedules()

        critical_tasks.thread("schedule-poller", read).start()

    def record(self, record: VersionRecord) -> None:
        """Keeps a version's record, once: it may be told of again. Raises redis.RedisError while Redis is away."""
        self.last = record
        name = f"{record['version']}"
        self._write(self._series.once_command("versions", name, record), f"the record of version {name}", lose=False)

    def leave_epoch(self) -> None:
        """Events from now on are this process's last words in its epoch: written whatever the run's is by now."""
        self._leaving = True

    def event(self, what: str, details: dict[str, Any]) -> None:
        """Keeps an event."""
        if self._leaving:
            try:
                self._state.events.append(self._who, what, details)
            except redis.RedisError as error:
                log.warning("event %s is lost: %s", what, error)
            return
        self._write(self._state.event_command(self._who, what, details), f"event {what}")

    def _write(self, command: Command, what: str, lose: bool = True) -> None:
        authority = self._authority()
        if authority is None:
            log.warning("%s is lost: this optimizer does not hold the publisher's lease", what)
            return
        try:
            self._state.fenced_write(authority, [command], what)
        except FencedOut as error:
            log.warning("%s is lost: %s", what, error)
        except redis.RedisError as error:
            if not lose:
                raise
            log.warning("%s is lost: %s", what, error)
