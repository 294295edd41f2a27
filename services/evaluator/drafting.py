"""Draft tables of rated versions, for pools with few enough line-ups to be evaluated during training."""

import asyncio
import itertools
import logging
import secrets
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dota.config import GameConfig
from dota.vec_game import TEAMS
from five.agent.draft.leaves import Floats, HeroPool, Ints, LeafTable, win_from_heads
from five.agent.draft.pick_order import DraftError
from five.clients.inference import CLOSE, RESET, WANT_STATE
from five.run import draft_tables
from five.run.line_ups import METHOD, LineUps
from five.services.evaluator.matches import Inference
from five.services.evaluator.uploads import UploadQueue
from rapid.rpc.errors import CallFailed
from rapid.store.errors import Corrupt

log = logging.getLogger(__name__)
WIN = "win_probability"
POLL_SECONDS = 5.0
BATCH = 16  # line-ups of one request


class DraftReader:
    """Builder of draft tables; the store keeps the newest ones. ``game`` is the evaluated game; ``most`` limits a
    table's line-ups, 0 disables tables; ``rated`` returns the version rated last; ``uploads`` stores the tables."""

    def __init__(self, game: GameConfig, inference: Inference, tables: draft_tables.DraftTableStore, most: int,
                 rated: Callable[[], int], uploads: UploadQueue) -> None:
        self._game = game
        self._inference = inference
        self._tables = tables
        self._rated = rated
        self._uploads = uploads
        self._session = itertools.count(secrets.randbits(40) << 20)
        self._made = -1  # version of the newest table
        self.is_idle = True  # no request to inference is pending
        self.pool: HeroPool | None = None
        try:
            pool = draft_tables.pool_of(game)
            self.pool = pool if pool.line_ups <= most else None
        except DraftError as error:
            log.info("draft tables disabled: %s", error)

    async def run(self, active: Callable[[], bool], draining: Callable[[], bool]) -> None:
        """Build a table for each rated version, the newest first, until the service drains."""
        if self.pool is None:
            return
        line_ups = LineUps(self._game, self.pool, min(BATCH, self.pool.line_ups))
        while not draining():
            version = self._rated()
            if active() and version > self._made:
                try:
                    await self._build_table(self.pool, line_ups, version, active)
                except CallFailed as error:
                    log.warning("draft table of version %d failed, next attempt in %g s: %s", version, POLL_SECONDS,
                                error)
                finally:
                    self.is_idle = True
            await asyncio.sleep(POLL_SECONDS)

    async def _build_table(self, pool: HeroPool, line_ups: LineUps, version: int, active: Callable[[], bool]) -> None:
        win = np.empty(pool.line_ups, np.float32)
        for at in range(0, pool.line_ups, line_ups.games):
            while not active():
                self.is_idle = True
                await asyncio.sleep(0.2)
            self.is_idle = False
            leaves = np.arange(at, min(at + line_ups.games, pool.line_ups))
            win[leaves] = await self._read_values(line_ups.observe(leaves), len(leaves), version)
        facts = {"version": version, **METHOD, "at": time.time()}
        table = LeafTable(pool, win.reshape(pool.shape), facts)
        self.is_idle = True
        store = partial(self._store_table, version, table)
        # Not in the event loop's threads, which the end of the process waits for.
        await asyncio.wrap_future(self._uploads.submit(store, lambda: None))
        self._made = version

    async def _read_values(self, seen: Mapping[str, npt.NDArray[Any]], k: int, version: int) -> Floats:
        """Return the win probabilities of k line-ups, from both teams' first observations, float32 [k]."""
        sessions: Ints = np.array([next(self._session) for _ in range(k * TEAMS)], np.int64)
        policies = np.full(k * TEAMS, version, np.int64)
        flags = np.full(k * TEAMS, RESET | WANT_STATE | CLOSE, np.uint8)
        answer = await self._inference.act(sessions, policies, flags, seen)
        return win_from_heads(answer.auxiliary[WIN].reshape(k, TEAMS, -1))

    def _store_table(self, version: int, table: LeafTable) -> None:
        try:
            self._tables.put(draft_tables.table_name(version, table.pool, self._game), table)
            self._tables.forget_old()
        except (OSError, Corrupt) as error:
            log.warning("draft table of version %d cannot be stored: %s", version, error)
