"""Lockstep of one game with its clients.

A game is paused at an observation. It advances when a side requests the next one. If the other side sends actions,
those for the current observation must have arrived.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

from dota.vec_game import Winner
from five.protos.valve import dotaservice_pb2 as pb
from five.run.config.dotaservice import DotaServiceConfig
from five.services.dotaservice import metrics
from five.services.dotaservice.action_orders import Action
from five.services.dotaservice.game_plan import GamePlan
from five.services.dotaservice.lockstep_game import LockstepGame
from rapid.rpc.errors import Conflict

log = logging.getLogger(__name__)
T = TypeVar("T")
STATUS = {Winner.RADIANT: pb.RADIANT_WIN, Winner.DIRE: pb.DIRE_WIN, Winner.DRAW: pb.RESOURCE_EXHAUSTED}
CAUSE = {Winner.RADIANT: "radiant", Winner.DIRE: "dire", Winner.DRAW: "draw"}


class Session:
    """The current game of one port; a reset replaces it. Teams are 0 and 1.

    ``seed`` returns the seed of the next game. Games are simulated in ``threads``.
    """

    def __init__(self, settings: DotaServiceConfig, threads: Executor, seed: Callable[[], int]) -> None:
        self._settings = settings
        self._threads = threads
        self._seed = seed
        self._changed = asyncio.Condition()  # hold its lock to use the game
        self._game: LockstepGame | None = None
        self._ended = False
        self._observed: dict[int, int] = {}  # by team, the last tick
        self._acted: dict[int, int] = {}
        self._attached: set[int] = set()  # teams whose actions the other side waits for

    async def reset(self, plan: GamePlan) -> tuple[bytes, bytes]:
        """Start a game; return the first states of both sides. Raises ValueError for a plan that cannot be played."""
        async with self._changed:
            game = await self._in_thread(lambda: LockstepGame(plan, self._seed(), self._settings))
            states = await self._in_thread(lambda: (game.state(0), game.state(1)))
            self._end("reset")
            self._game, self._ended = game, False
            self._observed, self._acted = {0: 0, 1: 0}, {}
            self._attached.clear()
            metrics.STARTED.labels(plan.config.mode).inc()
            metrics.GAMES.inc()
            self._changed.notify_all()
            return states

    async def observe(self, team: int) -> tuple[pb.Status, bytes]:
        """Return status and state of the side's next observation. The state is empty after the end of the game.

        Raises Conflict without a game.
        """
        async with self._changed:
            game = self._game
            if game is None:
                raise Conflict("no game is in progress: call reset first")
            if self._observed[team] == game.tick and game.winner is Winner.RUNNING:
                tick = game.tick
                await self._wait_for_other_side(game, 1 - team)
                if self._game is not game:
                    return pb.RESOURCE_EXHAUSTED, b""
                if game.tick == tick:
                    began = time.perf_counter()
                    try:
                        await self._in_thread(game.advance)
                    finally:  # the game has advanced also if this call is cancelled
                        metrics.STEP_SECONDS.observe(time.perf_counter() - began)
                        self._changed.notify_all()
            if game.winner is not Winner.RUNNING:
                self._end(CAUSE[game.winner])
                return STATUS[game.winner], b""
            self._observed[team] = game.tick
            return pb.OK, game.state(team)  # it holds the GIL, so a thread would not help

    async def act(self, team: int, dota_time: float | None, actions: list[Action]) -> None:
        """Submit a side's actions. The other side is released unless they are stale. Raises Conflict without a game."""
        async with self._changed:
            if self._game is None:
                raise Conflict("no game is in progress: call reset first")
            if self._game.act(team, dota_time, actions):
                self._acted[team] = self._game.tick
            self._attached.add(team)
            self._changed.notify_all()

    def close(self) -> None:
        """End the game."""
        self._end("reset")
        self._game = None

    async def _wait_for_other_side(self, game: LockstepGame, other: int) -> None:
        """Wait until the other side has acted, the game has advanced or is replaced, or ``lockstep_seconds`` pass."""
        tick = game.tick
        if other not in self._attached or not game.controls(other) or self._acted.get(other) == tick:
            return
        try:
            async with asyncio.timeout(self._settings.lockstep_seconds):
                await self._changed.wait_for(lambda: self._game is not game or game.tick != tick
                                             or self._acted.get(other) == tick)
        except TimeoutError:
            self._attached.discard(other)
            metrics.WAITS.inc()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Return the result of ``work``. A cancelled call ends after it, because the game is in use until then."""
        running = asyncio.get_running_loop().run_in_executor(self._threads, work)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running])
            raise

    def _end(self, cause: str) -> None:
        if self._game is None or self._ended:
            return
        self._ended = True
        metrics.ENDED.labels(cause).inc()
        metrics.GAMES.dec()
        log.info("game ended cause=%s observations=%d", cause, self._game.tick)
