"""Run state as the game groups see it: whether to play, the schedules and the anneal."""

import asyncio
import logging

import redis

from five.agent.schedules import hyperparameters_at, load_schedules
from five.run.config import RunConfig
from five.services.rollout.anneal_assignment import AnnealAssignment
from five.services.rollout.segment_builder import ScheduleValues
from rapid.service import Service
from rapid.store.anneal import AnnealStore

log = logging.getLogger(__name__)


class RunControl:
    """Play gate of the groups (`game_group.PlayGate`) and the scheduled values of their segments."""

    def __init__(self, service: Service[RunConfig]) -> None:
        self._service = service
        self._schedules = service.config.schedules
        self._anneals = AnnealStore(service.state)
        self.anneal = AnnealAssignment(service.config.game)

    @property
    def is_stopping(self) -> bool:
        return self._service.lifecycle.draining

    @property
    def is_paused(self) -> bool:
        return not self._service.lifecycle.active and not self.is_stopping

    async def wait_until_active(self) -> None:
        await self._service.lifecycle.wait_active()

    def schedule_values(self, version: int, reward_std: float) -> ScheduleValues:
        """Return the scheduled values at a version with that running deviation of rewards."""
        now = hyperparameters_at(self._schedules, max(version, 0))
        return ScheduleValues(now.team_spirit, now.gae_horizon_seconds, max(reward_std, 1e-6))

    async def poll(self) -> None:
        """Read schedules and anneal periodically; both may change during a run."""
        while True:
            try:
                changed = await asyncio.to_thread(self._service.state.schedules)
                if changed is not None:
                    self._schedules = load_schedules(changed)
                self.anneal.update(await asyncio.to_thread(self._anneals.read))
            except (redis.RedisError, ValueError) as error:
                log.warning("cannot read schedules or anneal, keeping the previous values: %s", error)
            await asyncio.sleep(self._service.config.services.rollout.schedule_poll_seconds)
