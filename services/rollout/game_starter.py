"""Starts games in the slots of a group and replaces games that cannot continue."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import numpy as np

from dota.config import GameConfig
from dota.rewards import SIGNALS
from dota.vec_game import BOTS
from five.agent.schedules import Hyperparameters
from five.services.rollout.env_slots import EnvSlots
from five.services.rollout.environment import Ints
from five.services.rollout.group_dependencies import GroupDependencies
from five.services.rollout.group_progress import GroupProgress
from five.services.rollout.matchmaking import GameRecord
from five.services.rollout.middle_games import GameSnapshot
from five.services.rollout.segment_builder import SegmentBuilder
from five.services.rollout.step_buffer import SIDES, StepBuffer

log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 0.5  # between two attempts to start games; pauses double
MAX_PAUSE_SECONDS = 5.0


@dataclass
class GameStarter:
    """Starts games in the slots of a group and abandons games that cannot continue.

    Attributes:
        records: of the running games, by slot. Those of new games replace them.
        wait_while_paused: waits while the run is paused, between two attempts to start games.
    """

    dependencies: GroupDependencies
    buffer: StepBuffer
    slots: EnvSlots
    segments: SegmentBuilder
    records: list[GameRecord]
    progress: GroupProgress
    wait_while_paused: Callable[[], Awaitable[None]]

    async def start(self, step: int, games: Ints, stagger: bool = False) -> None:
        """Start new games in the slots ``games``; their first observation is that of ``step``.

        With ``stagger`` the slots' first segments differ in length, and their first games in their limit, so that they
        do not stay in phase. If the games' server is lost, abandon all games and start others.
        """
        try:
            await self._try_start(step, games, stagger)
        except ConnectionError as error:
            await self.abandon_all(step, error)

    async def abandon_all(self, step: int, error: ConnectionError) -> None:
        """Abandon all games, because they were lost with their server, and start others."""
        log.warning("games lost with their server, starting new ones: %s", error)
        await self.abandon(step, self._all_games())

    async def abandon(self, step: int, games: Ints) -> None:
        """Abandon games that cannot continue, with their unsent steps, and start others.

        Retry while the games' server is unavailable, until the gate stops. If all games are
        abandoned, stagger the new ones.
        """
        self.progress.abandoned_games += len(games)
        pause = FIRST_PAUSE_SECONDS
        while not self.dependencies.gate.is_stopping:
            try:
                await self._try_start(step, games, stagger=len(games) == self.buffer.games)
                self.progress.failure = ""
                return
            except ConnectionError as error:
                self.progress.failure = str(error)
                log.warning("cannot start games yet: %s", error)
                # The other slots' games are lost with their server as well.
                self.progress.abandoned_games += self.buffer.games - len(games)
                games = self._all_games()
                await self.wait_while_paused()
                await asyncio.sleep(pause)
                pause = min(2 * pause, MAX_PAUSE_SECONDS)

    def _all_games(self) -> Ints:
        return np.arange(self.buffer.games, dtype=np.int32)

    async def _try_start(self, step: int, games: Ints, stagger: bool = False) -> None:
        """Start new games in these slots. Raises ConnectionError when their server is lost."""
        environment, snapshots = self.dependencies.environment, self.dependencies.snapshots
        hyper = self.dependencies.hyperparameters(self.progress.newest_version)
        controllers = np.zeros((len(games), SIDES), np.uint8)
        rules: list[GameConfig | None] = []
        middles: dict[int, GameSnapshot] = {}  # of the games that begin in the middle
        for i, game in enumerate(games.tolist()):
            record, snapshot = await self._choose_game(hyper)
            if record.match.bot is not None:
                controllers[i, record.match.side] = BOTS[record.match.bot]
            rules.append(record.variant.config)
            if snapshot is not None:
                middles[game] = snapshot
            self._fill_slot(game, step, record, hyper.game_seconds, stagger)
        observation = self.buffer.observation(step)
        lineups = await environment.reset(games, controllers, observation, rules)
        if lineups is not None:
            for i, game in enumerate(games.tolist()):
                self.records[game].lineup = lineups[i].copy()
        if snapshots is not None:
            for game, middle in middles.items():
                lineup = await environment.branch(game, middle.state, snapshots.seed(), hyper.building_health,
                                                  observation)
                self.records[game].lineup = lineup.copy()

    async def _choose_game(self, hyper: Hyperparameters) -> tuple[GameRecord, GameSnapshot | None]:
        """Return the record of a new game, and the snapshot that it continues if it begins in the middle."""
        dependencies = self.dependencies
        match = await dependencies.matchmaker.next(dependencies.past, hyper.scripted_fraction, hyper.scripted_bot)
        variant = dependencies.assign_variant(match.game_id, self.progress.newest_version)
        snapshot: GameSnapshot | None = None
        if dependencies.snapshots is not None and variant.config is None:
            snapshot = dependencies.snapshots.choose(hyper.middle_fraction)
        record = GameRecord(match, np.zeros((SIDES, self.buffer.heroes, len(SIGNALS))), variant,
                            start_seconds=None if snapshot is None else snapshot.game_seconds)
        return record, snapshot

    def _fill_slot(self, game: int, step: int, record: GameRecord, game_seconds: float, stagger: bool) -> None:
        """Let a new game of ``game_seconds`` begin in a slot at ``step``."""
        first_target: int | None = None
        if stagger:
            first_target = self.slots.staggered_target(game)
            game_seconds *= (1 + game) / self.buffer.games
        self.records[game] = record
        self.slots.start_game(game, step, record.match.seats, first_target,
                              (record.start_seconds or 0.0) + game_seconds)
        self.segments.start_game(game)
