"""The games of one stream: stepped by the core outside the event loop, one request after another."""

import asyncio
import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dota.config import GameConfig
from dota.packing import join_changes, join_f16
from dota.spectator.happenings import happenings
from dota.spectator.schema import game_schema, pack_frame
from dota.vec_game import STATS, TEAMS, Controller, VecGame
from rapid.packed_array import PackedRows, RowJoiner

Array = npt.NDArray[Any]
JOIN = RowJoiner(join_f16, join_changes)


@dataclass(frozen=True)
class Shown:
    """What k games show; ``observations`` lead with [k, 2]. Copies: the games go on beneath."""

    observations: dict[str, Array | PackedRows]
    signals: npt.NDArray[np.float32]
    winners: npt.NDArray[np.uint8]
    game_time: npt.NDArray[np.float32]
    statistics: npt.NDArray[np.float32]
    step_us: int
    lineups: npt.NDArray[np.int16]
    # By place: frame, slots int16 [2, units], what happened (JSON).
    seen: dict[int, tuple[bytes, bytes, bytes]] = field(default_factory=dict)


class GameBatch:
    """G games and the thread that steps them. The core releases the interpreter lock and uses threads of its own.

    Everything is checked before the core is called: a bad request changes nothing.
    """

    statistic_names = STATS

    def __init__(self, games: VecGame) -> None:
        self._games = games
        self._thread = ThreadPoolExecutor(1, "games")
        self._heroes = games.layout.heroes
        self._schema = game_schema(thoughts=False)
        self._specs = games.layout.array_specs()

    @classmethod
    async def create(cls, config: GameConfig, games: int, seed: int, threads: int) -> "GameBatch":
        """Makes the games. Raises ValueError as VecGame does."""
        return cls(await asyncio.to_thread(VecGame, config, games, seed, threads, observations="packed"))

    @property
    def seen_schema(self) -> bytes:
        """Hash of the schema of frames that spectators are shown."""
        return self._schema.hash

    @property
    def games(self) -> int:
        """G."""
        return self._games.games

    async def all(self) -> Shown:
        """What all games show now."""
        return await self._run(lambda: self._shown(np.arange(self.games, dtype=np.int32), 0.0))

    async def reset(self, which: npt.NDArray[np.int32], controllers: npt.NDArray[np.uint8],
                    configs: Sequence[GameConfig] = (), variants: npt.NDArray[np.uint8] | None = None) -> Shown:
        """New games in the places ``which`` int32 [k]; ``controllers`` uint8 [k, 2], values of Controller.

        ``variants`` uint8 [k]: 0 as the games were made, n under the n-th of ``configs``. Raises ValueError for one
        that does not fit the games.
        """
        self._check(which)
        if variants is not None and variants.size and int(variants.max()) > len(configs):
            raise ValueError(f"variants: {int(variants.max())} is not one of the {len(configs)} configurations given")
        if controllers.size and int(controllers.max()) > max(Controller):
            raise ValueError(f"controllers: {int(controllers.max())} is not one; the last is {int(max(Controller))}")

        def work() -> Shown:
            began = time.perf_counter()
            known = [0, *(self._games.add_variant(config) for config in configs)]
            self._games.controllers[which] = controllers
            self._games.reset(which, variants=[known[v] for v in (np.zeros_like(which) if variants is None
                                                                   else variants)])
            return self._shown(which, began)

        return await self._run(work)

    async def step(self, which: npt.NDArray[np.int32], actions: npt.NDArray[np.int16],
                   watched: npt.NDArray[np.int32] | None = None) -> Shown:
        """One timestep of the games ``which`` by actions int16 [k, 2, H, 6]; ``watched`` int32 [m] are shown as a
        spectator sees them after it."""
        self._check(which)
        watched = np.zeros(0, np.int32) if watched is None else watched
        if watched.size:
            self._check(watched)

        def work() -> Shown:
            began = time.perf_counter()
            everyone = len(which) == self.games and bool((np.diff(which) == 1).all())
            if everyone:
                self._games.step(np.ascontiguousarray(actions))
            else:
                full = np.zeros((self.games, *actions.shape[1:]), np.int16)
                full[which] = actions
                self._games.step(full, which)
            shown = self._shown(which, began)
            return replace(shown, seen={int(place): self._seen(int(place)) for place in watched})

        return await self._run(work)

    def close(self) -> None:
        """Ends the games."""
        self._thread.shutdown(wait=False)

    def _check(self, which: npt.NDArray[np.int32]) -> None:
        if not which.size:
            raise ValueError("games: no game is named")
        if int(which.min()) < 0 or int(which.max()) >= self.games:
            raise ValueError(f"games: places 0 to {self.games - 1} exist, {which.tolist()[:8]} was asked for")
        if len(np.unique(which)) != which.size:
            raise ValueError("games: a place is named twice")

    def _shown(self, which: npt.NDArray[np.int32], began: float) -> Shown:
        g = self._games
        took = int((time.perf_counter() - began) * 1e6) if began else 0
        seen: dict[str, Array | PackedRows] = {name: array[which] for name, array in g.obs.items()}
        for name in g.packed:
            rows = np.array(g.packed_obs(name, which), np.object_).reshape(len(which), TEAMS)
            seen[name] = PackedRows(rows, self._specs[name][0], JOIN)
        return Shown(seen, g.signals[which], g.winner[which], g.game_time[which], g.stats[which], took,
                     g.lineups[which])

    def _seen(self, place: int) -> tuple[bytes, bytes, bytes]:
        frame = self._schema.empty()
        self._games.write_seen(place, frame)
        return pack_frame(self._schema, frame), np.stack([
            self._games.slot_units(place, side) for side in range(2)]).tobytes(), json.dumps(
                happenings(self._games.events(place))).encode()

    async def _run(self, work: Any) -> Shown:
        shown: Shown = await asyncio.get_running_loop().run_in_executor(self._thread, work)
        return shown
