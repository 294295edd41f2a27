"""Run state as the game groups see it: whether to play, the schedules and the anneal."""

import asyncio
import logging
import math
from dataclasses import replace

import redis

from five.agent.schedules import Hyperparameters, counts_hero_steps, hyperparameters_at, load_schedules
from five.run.config import RunConfig
from five.services.rollout.anneal_assignment import AnnealAssignment
from five.services.rollout.segment_builder import ScheduleValues
from rapid.service import Service
from rapid.store.anneal import AnnealStore
from rapid.store.errors import Corrupt
from rapid.store.series import Series

log = logging.getLogger(__name__)


class RunControl:
    """Play gate of the groups (`group_dependencies.PlayGate`) and the scheduled values of their games and segments."""

    def __init__(self, service: Service[RunConfig]) -> None:
        self._service = service
        self._schedules = service.config.schedules
        self._hero_steps = 0  # that the run had received when the newest version was recorded
        self._anneals = AnnealStore(service.state)
        self._series = Series(service.state.redis, service.state.run)
        self._polled = asyncio.Event()
        self.anneal = AnnealAssignment(service.config.game)

    @property
    def is_stopping(self) -> bool:
        return self._service.lifecycle.draining

    @property
    def is_paused(self) -> bool:
        return not self._service.lifecycle.active and not self.is_stopping

    async def wait_until_active(self) -> None:
        await self._service.lifecycle.wait_active()

    def hyperparameters(self, version: int) -> Hyperparameters:
        """Return the scheduled values at a version, ``game_seconds`` infinite where no game is cut."""
        now = hyperparameters_at(self._schedules, max(version, 0), self._hero_steps)
        is_cut = now.game_seconds < self._service.config.game.max_game_seconds
        return now if is_cut else replace(now, game_seconds=math.inf)

    def schedule_values(self, version: int, reward_std: float) -> ScheduleValues:
        """Return the scheduled values of segments at a version with that running deviation of rewards."""
        now = self.hyperparameters(version)
        return ScheduleValues(now.team_spirit, now.gae_horizon_seconds, max(reward_std, 1e-6))

    async def wait_until_polled(self) -> None:
        """Wait until `poll` has read everything once, or has failed to."""
        await self._polled.wait()

    async def poll(self) -> None:
        """Read schedules, their progress and the anneal periodically; all may change during a run."""
        while True:
            try:
                changed = await asyncio.to_thread(self._service.state.schedules)
                if changed is not None:
                    self._schedules = load_schedules(changed)
                if counts_hero_steps(self._schedules):
                    record = await asyncio.to_thread(self._series.last, "versions")
                    self._hero_steps = 0 if record is None else int(record.values["hero_steps"])
                self.anneal.update(await asyncio.to_thread(self._anneals.read))
            except (redis.RedisError, Corrupt, ValueError) as error:
                log.warning("cannot read schedules or anneal, keeping the previous values: %s", error)
            self._polled.set()
            await asyncio.sleep(self._service.config.services.rollout.schedule_poll_seconds)
