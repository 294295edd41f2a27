"""Main loop of a rollout process: play in groups until the process drains, then send the remaining segments."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from five.clients.inference_pools import InferencePools
from five.clients.opponents import OpponentsClient
from five.run.config import RunConfig
from five.services.rollout.bot_games import BotGames
from five.services.rollout.game_group import GameGroup, split_games
from five.services.rollout.game_log import GameLog
from five.services.rollout.matchmaking import Matchmaker
from five.services.rollout.metrics import RolloutMeter
from five.services.rollout.optimizer_assignment import OptimizerAssignment
from five.services.rollout.run_control import RunControl
from five.services.rollout.sender import Sender
from rapid.lifecycle import Lifecycle
from rapid.live_source import LiveSource
from rapid.rpc.errors import CallFailed
from rapid.service import Service

log = logging.getLogger(__name__)
METRICS_SECONDS = 1.0
ASSIGNMENT_SECONDS = 5.0  # between two readings of the rollout's ordinal
FIRST_VERSION_SECONDS = 0.2  # between two checks for a version to play
NO_VERSION = "inference has no version to play yet"


class RolloutService:
    """Runs the game groups and the background tasks of one rollout process.

    ``make_group(index, games)`` builds a group once there is a version to play; ``groups`` receives it.
    """

    def __init__(self, service: Service[RunConfig], control: RunControl, sender: Sender,
                 assignment: OptimizerAssignment, matchmaker: Matchmaker, opponents: OpponentsClient,
                 inference: Sequence[InferencePools], game_log: GameLog, meter: RolloutMeter, live: LiveSource,
                 groups: list[GameGroup], make_group: Callable[[int, int], Awaitable[GameGroup]],
                 bot_games: BotGames | None = None) -> None:
        self._service = service
        self._control = control
        self._sender = sender
        self._assignment = assignment
        self._matchmaker = matchmaker
        self._opponents = opponents
        self._inference = inference
        self._game_log = game_log
        self._meter = meter
        self._live = live
        self._groups = groups
        self._make_group = make_group
        self._bot_games = bot_games
        self._waits_for = NO_VERSION  # until there are groups

    async def run(self) -> None:
        """Play until the process drains, then send the complete samples. Raises the error that ended a group."""
        service, settings = self._service, self._service.config.services.rollout
        service.report_with(self.not_ready, stats=self.stats, is_idle=self.is_idle)
        self._matchmaker.start(service.critical_tasks)
        helpers = [service.critical_tasks.task(name, task) for name, task in (
            ("schedule-poller", self._control.poll()), ("optimizer-assignment", self._assign_optimizers()),
            ("game-log", self._game_log.run()),
            ("metrics", self._update_metrics()), ("live-games", self._live.run()))]
        if self._bot_games is not None:
            helpers.append(service.critical_tasks.task("bot-games", self._bot_games.run()))
        drained = asyncio.create_task(service.lifecycle.wait_drained())
        playing = asyncio.create_task(self._play())
        await asyncio.wait({drained, playing}, return_when=asyncio.FIRST_COMPLETED)
        self._sender.end_waits()
        await asyncio.wait({playing}, timeout=sending_seconds(settings.drain_seconds, service.lifecycle) / 2)
        playing.cancel()
        for task in helpers:
            task.cancel()
        await asyncio.gather(playing, *helpers, return_exceptions=True)
        unsent = await self._sender.drain(sending_seconds(settings.drain_seconds, service.lifecycle))
        if unsent:
            log.warning("segments not sent at shutdown segments=%d", unsent)
        await self._game_log.flush()
        await self._matchmaker.close()
        await asyncio.gather(*(group.close() for group in self._groups))
        await asyncio.gather(*(client.close() for client in self._inference), self._opponents.close())
        drained.cancel()
        if not playing.cancelled() and playing.exception() is not None:
            raise playing.exception()  # type: ignore[misc]

    async def _play(self) -> None:
        version = await self._wait_for_first_version()
        if self._control.is_stopping:
            return
        self._waits_for = "the run's schedules are not read yet"
        await self._control.wait_until_polled()  # the first games follow the run's schedules and anneal too
        settings = self._service.config.services.rollout
        for index, games in enumerate(split_games(settings.games, settings.groups)):
            group = await self._make_group(index, games)
            # The first games begin before inference has answered, and schedules and anneals depend on the version.
            group.progress.newest_version = max(group.progress.newest_version, version)
            self._groups.append(group)
        log.info("playing games=%d groups=%d", settings.games, len(self._groups))
        await asyncio.gather(*(group.play() for group in self._groups))

    async def _wait_for_first_version(self) -> int:
        """Wait until inference serves a version of this epoch, and return it; -1 when the process stops before."""
        while not self._control.is_stopping:
            try:
                served = await self._inference[0].model()
                if served.newest_version >= 0 and served.epoch == self._service.epoch:
                    return int(served.newest_version)
                self._waits_for = NO_VERSION
            except CallFailed as error:
                if not error.may_retry:
                    raise
                self._waits_for = f"inference does not respond: {error}"
            await asyncio.sleep(FIRST_VERSION_SECONDS)
        return -1

    async def _assign_optimizers(self) -> None:
        while True:
            self._sender.assign(await asyncio.to_thread(self._assignment.update))
            await asyncio.sleep(ASSIGNMENT_SECONDS)

    async def _update_metrics(self) -> None:
        while True:
            self._meter.show([group.progress for group in self._groups], self._sender, self._matchmaker.unassigned)
            await asyncio.sleep(METRICS_SECONDS)

    def not_ready(self) -> str:
        """Return why no games are played; "" while they are, or while the run is paused."""
        if not self._groups:
            return self._waits_for
        progress = [group.progress for group in self._groups]
        if self._service.lifecycle.active and not any(part.team_steps for part in progress):
            return "; ".join(["the first games have not begun", *sorted({part.failure for part in progress} - {""})])
        return ""

    def stats(self) -> dict[str, Any]:
        """Return the statistics that go with each heartbeat."""
        progress = [group.progress for group in self._groups]
        servers = {group.environment_server for group in self._groups} - {""}
        return {**self._meter.recent(progress, self._sender), "environments": sorted(servers)}

    def is_idle(self) -> bool:
        """Return whether the run is paused, every group has ended its segments, and none is unacknowledged."""
        # In this order: a group clears its idle flag before it checks whether the run is still paused.
        paused = not self._service.lifecycle.active
        return paused and all(group.progress.is_idle for group in self._groups) and self._sender.unsent == 0


def sending_seconds(configured: float, lifecycle: Lifecycle) -> float:
    """Return for how many seconds an ending process sends its remaining segments; 0 when it does not drain.

    An optimizer that restarts as well may take longer than the grace period. A process that waited for it until the end
    would be killed, so half of the remaining time is left for everything else.
    """
    return min(configured, lifecycle.remaining_seconds / 2) if lifecycle.draining else 0.0
