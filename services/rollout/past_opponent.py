"""Choice of the past version that one group's games play against: one at a time, after it is loaded."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from five.clients.inference import NEWEST

log = logging.getLogger(__name__)

LOAD_SECONDS = 60.0  # a load is abandoned after this time
POLL_SECONDS = 0.5  # between two checks whether a version is loaded
RENEW_SECONDS = 20.0  # between two requests for the present version; servers drop unrequested ones


class PastOpponent:
    """The past version of a group of games.

    Each version in play needs a forward pass and memory of its own, so a group plays one of them several times in a
    row. Every game keeps its own chance of being against the past, so over many games each version is played as often
    as it is sampled.

    A group steps in lockstep, so no game may wait for a load. The next version is requested while the present one is
    still played, and before the first one is loaded games are self-play. If the next version cannot be loaded, the
    present one is dropped as well. Otherwise all groups would play the versions in memory from then on.

    Args:
        want: requests a version from inference and returns whether it is loaded.
        games: number of games in a row against one version.
    """

    def __init__(self, want: Callable[[int], Awaitable[bool]], games: int) -> None:
        self._want = want
        self._games = max(games, 1)
        self._games_left = 0  # against the present version
        self._loading: asyncio.Task[None] | None = None
        self._renewing: asyncio.Task[None] | None = None
        self.version = NEWEST
        self.drawn_by = ""  # the game for which the present version was sampled

    def assign(self, drawn: int, game_id: str = "") -> int:
        """Return the version to play against where ``drawn`` was sampled for a game. Never waits."""
        if drawn == NEWEST:
            return NEWEST
        if self._games_left == 0 and drawn == self.version:
            self._games_left, self.drawn_by = self._games, game_id
        elif self._games_left == 0 and self._loading is None:
            self._loading = asyncio.get_running_loop().create_task(self._load(drawn, game_id))
        if self.version != NEWEST:
            self._games_left = max(self._games_left - 1, 0)
        return self.version

    def drop(self) -> None:
        """Play self-play until another version is loaded."""
        self.version, self._games_left = NEWEST, 0

    async def close(self) -> None:
        """Stop requesting versions."""
        tasks = [task for task in (self._loading, self._renewing) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _load(self, version: int, game_id: str) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + LOAD_SECONDS
        try:
            while not await self._want(version):
                if loop.time() >= end:
                    log.warning("past version not loaded, playing self-play version=%d seconds=%g", version,
                                LOAD_SECONDS)
                    self.drop()
                    return
                await asyncio.sleep(POLL_SECONDS)
            self.version, self._games_left, self.drawn_by = version, self._games, game_id
            if self._renewing is None:
                self._renewing = loop.create_task(self._renew())
        finally:
            self._loading = None

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            version = self.version
            # A dropped version is not played before it is loaded again.
            if version != NEWEST and not await self._want(version) and self.version == version:
                self.drop()
