"""Games of one stream, stepped by the core outside the event loop, one request at a time."""

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
from dota.spectator.console_events import console_events
from dota.spectator.schema import game_schema, pack_frame
from dota.vec_game import STATS, TEAMS, Controller, VecGame
from rapid.packed_array import PackedRows, RowJoiner

Array = npt.NDArray[Any]
JOIN = RowJoiner(join_f16, join_changes)


@dataclass(frozen=True)
class BatchOutput:
    """Output of k games, copied from the core's memory. ``observations`` have leading [k, 2]."""

    observations: dict[str, Array | PackedRows]
    signals: npt.NDArray[np.float32]
    winners: npt.NDArray[np.uint8]
    game_time: npt.NDArray[np.float32]
    statistics: npt.NDArray[np.float32]
    step_us: int
    lineups: npt.NDArray[np.int16]
    # Spectator views by env slot: frame, slots int16 [2, units], events (JSON).
    seen: dict[int, tuple[bytes, bytes, bytes]] = field(default_factory=dict)


class GameBatch:
    """G games and the thread that steps them. The core releases the GIL and uses threads of its own.

    Requests are validated before the core is called, so an invalid request changes nothing.
    """

    statistic_names = STATS

    def __init__(self, games: VecGame) -> None:
        self._games = games
        self._thread = ThreadPoolExecutor(1, "games")
        self._heroes = games.layout.heroes
        self._schema = game_schema(policy_debug=False)
        self._specs = games.layout.array_specs()

    @classmethod
    async def create(cls, config: GameConfig, games: int, seed: int, threads: int) -> "GameBatch":
        """Create the games. Raise ValueError as VecGame does."""
        return cls(await asyncio.to_thread(VecGame, config, games, seed, threads, observations="packed"))

    @property
    def seen_schema(self) -> bytes:
        """Hash of the schema of spectator frames."""
        return self._schema.hash

    @property
    def games(self) -> int:
        """Number of games, G."""
        return self._games.games

    async def observe_all(self) -> BatchOutput:
        """Return the output of all games."""
        return await self._run(lambda: self._output(np.arange(self.games, dtype=np.int32), 0.0))

    async def reset(self, which: npt.NDArray[np.int32], controllers: npt.NDArray[np.uint8],
                    configs: Sequence[GameConfig] = (), variants: npt.NDArray[np.uint8] | None = None) -> BatchOutput:
        """Start new games in the env slots ``which`` int32 [k]; ``controllers`` uint8 [k, 2] are values of Controller.

        ``variants`` uint8 [k] selects configurations: 0 is the one of `create`, n the n-th of ``configs``. Raises
        ValueError for a configuration of another layout.
        """
        self._check(which)
        if variants is not None and variants.size and int(variants.max()) > len(configs):
            raise ValueError(f"variants: {int(variants.max())} is not one of the {len(configs)} configurations given")
        if controllers.size and int(controllers.max()) > max(Controller):
            raise ValueError(f"controllers: {int(controllers.max())} is not a controller; the last is "
                             f"{int(max(Controller))}")

        def work() -> BatchOutput:
            began = time.perf_counter()
            known = [0, *(self._games.add_variant(config) for config in configs)]
            self._games.controllers[which] = controllers
            self._games.reset(which, variants=[known[v] for v in (np.zeros_like(which) if variants is None
                                                                  else variants)])
            return self._output(which, began)

        return await self._run(work)

    async def branch(self, game: int, snapshot: bytes, seed: int, building_health: float) -> BatchOutput:
        """Replace a game by one that continues ``snapshot``, as VecGame's ``restore`` and ``branch`` do.

        Raises ValueError for another factor than they allow, and for a snapshot that is damaged or of another build,
        data or settings.
        """
        which = np.array([game], np.int32)
        self._check(which)
        if not 0.0 < building_health <= 1.0:
            raise ValueError(f"building_health {building_health:g}: above 0 and at most 1 is allowed")

        def work() -> BatchOutput:
            began = time.perf_counter()
            self._games.restore(game, snapshot)
            self._games.branch(game, seed, building_health)
            return self._output(which, began)

        return await self._run(work)

    async def step(self, which: npt.NDArray[np.int32], actions: npt.NDArray[np.int16],
                   watched: npt.NDArray[np.int32] | None = None) -> BatchOutput:
        """Step the games ``which`` by actions int16 [k, 2, H, 6]. Add spectator views of ``watched`` int32 [m]."""
        self._check(which)
        watched = np.zeros(0, np.int32) if watched is None else watched
        if watched.size:
            self._check(watched)

        def work() -> BatchOutput:
            began = time.perf_counter()
            everyone = len(which) == self.games and bool((np.diff(which) == 1).all())
            if everyone:
                self._games.step(np.ascontiguousarray(actions))
            else:
                full = np.zeros((self.games, *actions.shape[1:]), np.int16)
                full[which] = actions
                self._games.step(full, which)
            output = self._output(which, began)
            return replace(output, seen={int(env_slot): self._spectator_view(int(env_slot)) for env_slot in watched})

        return await self._run(work)

    def close(self) -> None:
        """End the games."""
        self._thread.shutdown(wait=False)

    def _check(self, which: npt.NDArray[np.int32]) -> None:
        if not which.size:
            raise ValueError("games: at least one env slot is needed")
        if int(which.min()) < 0 or int(which.max()) >= self.games:
            raise ValueError(f"games {which.tolist()[:8]}: env slots must be 0 to {self.games - 1}")
        if len(np.unique(which)) != which.size:
            raise ValueError("games: an env slot occurs twice")

    def _output(self, which: npt.NDArray[np.int32], began: float) -> BatchOutput:
        g = self._games
        took = int((time.perf_counter() - began) * 1e6) if began else 0
        observations: dict[str, Array | PackedRows] = {name: array[which] for name, array in g.obs.items()}
        for name in g.packed:
            rows = np.array(g.packed_obs(name, which), np.object_).reshape(len(which), TEAMS)
            observations[name] = PackedRows(rows, self._specs[name][0], JOIN)
        return BatchOutput(observations, g.signals[which], g.winner[which], g.game_time[which], g.stats[which], took,
                           g.lineups[which])

    def _spectator_view(self, env_slot: int) -> tuple[bytes, bytes, bytes]:
        frame = self._schema.empty()
        self._games.write_seen(env_slot, frame)
        return pack_frame(self._schema, frame), np.stack([
            self._games.slot_units(env_slot, side) for side in range(2)]).tobytes(), json.dumps(
                console_events(self._games.events(env_slot))).encode()

    async def _run(self, work: Any) -> BatchOutput:
        output: BatchOutput = await asyncio.get_running_loop().run_in_executor(self._thread, work)
        return output
