"""Games of bots against each other, played only for their snapshots.

From them games begin in the middle before the policy's own games have any: with heroes in their lanes, levels, items
and towers that fell, so that fights and wins are near from the first minute of a run.
"""

import asyncio
from collections.abc import Sequence

import numpy as np

from dota.config import GameConfig
from dota.vec_game import BOTS, TEAMS, VecGame, Winner
from five.services.rollout.middle_games import GameSnapshot, SnapshotRing

GAMES = 4  # at once; consecutive snapshots then have several line-ups
IDLE_SECONDS = 0.2  # between two checks whether snapshots are wanted


class BotGames:
    """Plays games between random pairs of ``bots`` while ``ring`` wants snapshots.

    ``game`` is the run's configuration.
    """

    def __init__(self, game: GameConfig, bots: Sequence[str], ring: SnapshotRing, seed: int) -> None:
        self._ring = ring
        self._bots = [BOTS[bot] for bot in bots]
        self._rng = np.random.default_rng(seed)
        self._games = VecGame(game, GAMES, seed, observations=False)
        self._choose_bots(range(GAMES))

    async def run(self) -> None:
        """Play in a thread, never more than the ring wants, until the task is cancelled."""
        while True:
            if self._ring.wants_snapshots:
                await asyncio.to_thread(self.advance)
            else:
                await asyncio.sleep(IDLE_SECONDS)

    def advance(self) -> None:
        """Play until a snapshot was taken or a game ended. Games that ended begin again, with other bots."""
        games = self._games
        while True:
            before = games.game_time.copy()
            games.step()
            over = np.flatnonzero(games.winner != Winner.RUNNING)
            due = self._ring.due(before, games.game_time)
            due[over] = False
            for game in np.flatnonzero(due).tolist():
                self._ring.add(GameSnapshot(games.snapshot(game), float(games.game_time[game])))
            if len(over):
                games.reset(over)
                self._choose_bots(over.tolist())
            if due.any() or len(over):
                return

    def _choose_bots(self, games: Sequence[int]) -> None:
        for game in games:
            self._games.controllers[game] = self._rng.choice(self._bots, TEAMS)
