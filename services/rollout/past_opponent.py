"""Which past version the games of one group meet: one at a time, and none before it is loaded."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from five.clients.inference import NEWEST

log = logging.getLogger(__name__)

LOAD_SECONDS = 60.0  # a version that is not loaded by then is given up
PAUSE_SECONDS = 0.5  # between two looks whether it is
RENEW_SECONDS = 20.0  # between two words that it is still played: servers let go of what nobody asks for


class PastOpponent:
    """The past version of a group of games.

    Each version in play is a forward pass of its own and takes memory, so a group meets one in ``games`` games against
    the past in a row; every game still has its own chance of being one, and over many games each version is met as
    often as it is drawn. A group steps in lockstep: a game that waited for a load would hold up all of them. So the
    next version is asked for while the present one goes on to be met, and before the first is there games are
    self-play. They are so too where the next one cannot be had: the present one is let go then, or the versions that
    are in memory would be played by all groups from then on.

    Args:
        want: whether a version is loaded where it is played; has it loaded if not.
        games: how many games a version is met in.
    """

    def __init__(self, want: Callable[[int], Awaitable[bool]], games: int) -> None:
        self._want = want
        self._games = max(games, 1)
        self._games_left = 0  # games still to be played against the present one
        self._loading: asyncio.Task[None] | None = None
        self._renewing: asyncio.Task[None] | None = None
        self.version = NEWEST

    def assign(self, drawn: int) -> int:
        """The version to be played where ``drawn`` was drawn. Never waits."""
        if drawn == NEWEST:
            return NEWEST
        if self._games_left == 0 and drawn == self.version:
            self._games_left = self._games
        elif self._games_left == 0 and self._loading is None:
            self._loading = asyncio.get_running_loop().create_task(self._load(drawn))
        if self.version != NEWEST:
            self._games_left = max(self._games_left - 1, 0)
        return self.version

    async def close(self) -> None:
        """Asks for nothing more."""
        tasks = [task for task in (self._loading, self._renewing) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _load(self, version: int) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + LOAD_SECONDS
        try:
            while not await self._want(version):
                if loop.time() >= end:
                    log.warning("past version %d was not loaded within %g s: games are self-play until one is", version,
                                LOAD_SECONDS)
                    self.version = NEWEST
                    return
                await asyncio.sleep(PAUSE_SECONDS)
            self.version, self._games_left = version, self._games
            if self._renewing is None:
                self._renewing = loop.create_task(self._renew())
        finally:
            self._loading = None

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            version = self.version
            # One that had to go is not met again before it is back.
            if version != NEWEST and not await self._want(version) and self.version == version:
                self.version, self._games_left = NEWEST, 0
