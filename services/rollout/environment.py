"""Environments of a group's games, in this process or in the environment service, behind one interface."""

import asyncio
import itertools
import json
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from dota.config import GameConfig
from dota.spectator.camera import Camera
from dota.spectator.schema import game_schema, unpack_frame
from dota.vec_game import STATS, VecGame
from five.clients.environment import METHOD, EnvironmentClient, EnvironmentStep, SpectatorView
from five.services.rollout.step_buffer import SIDES, Array, Arrays, split_team_rows
from rapid.packed_array import PackedArray
from rapid.rpc.errors import CallFailed, StatusCode
from rapid.rpc.fencing_epoch import is_stale_epoch

Ints = npt.NDArray[np.int32]
LineUps = npt.NDArray[np.int16]


@dataclass(frozen=True)
class StepResult:
    """Result of one timestep of all G games; valid until the next call.

    Attributes:
        signals: float32 [G, 2, H, signals].
        winners: uint8 [G], 0 while running, 1 Radiant, 2 Dire, 3 a draw.
        game_time: float32 [G], seconds.
        statistics: float32 [G, 2, H, n].
    """

    signals: npt.NDArray[np.float32]
    winners: npt.NDArray[np.uint8]
    game_time: npt.NDArray[np.float32]
    statistics: npt.NDArray[np.float32]


class Environment(Protocol):
    """G games in lockstep.

    ``out`` holds the layout's arrays, [G, 2, ...]; a call writes the rows of the games it touches. Packed observations
    are object [G, 2] with the bytes of each team-step.
    """

    @property
    def statistic_names(self) -> tuple[str, ...]: ...

    @property
    def server(self) -> str:
        """Address of the server that runs the games; "" when they run in this process or are lost."""
        ...

    async def reset(self, games: Ints, controllers: npt.NDArray[np.uint8], out: Arrays,
                    rules: Sequence[GameConfig | None] = ()) -> LineUps | None:
        """Start new games in the slots ``games`` int32 [k].

        Args:
            games: the slots.
            controllers: uint8 [k, 2], who plays each side: 0 the actions passed to `step`, otherwise a bot.
            out: receives the first observations.
            rules: game configuration of each game, None for the run's; empty for all of them.

        Returns the heroes by their number in the registry, int16 [k, 2, H], or None if the server does not report them.
        """
        ...

    async def step(self, actions: npt.NDArray[np.int16], out: Arrays) -> StepResult:
        """Advance all games by one timestep; ``actions`` int16 [G, 2, H, 6]. A finished game must be reset first.

        Raises ConnectionError when the games are lost with their server; reset all games then.
        """
        ...

    async def snapshot(self, slot: int) -> bytes:
        """Return the state of a running game, for `branch`. Raises NotImplementedError where games are remote."""
        ...

    async def branch(self, slot: int, snapshot: bytes, seed: int, building_health: float, out: Arrays) -> LineUps:
        """Replace a game that was just reset by one that continues a snapshot with the random state of ``seed``.

        ``building_health`` multiplies the health of standing buildings. ``out`` receives the game's observation.
        Returns its heroes, int16 [2, H]. Raises ConnectionError when all games are lost with their server, or because
        it refuses the snapshot: a server of another release does.
        """
        ...

    def watch(self, slots: Collection[int]) -> None:
        """Capture these slots, and no others, from the next step on."""
        ...

    def capture(self, slot: int, camera: Camera) -> bool:
        """Let the camera capture a watched slot; return False while nothing of it has arrived."""
        ...

    def slot_units(self, slot: int, side: int) -> npt.NDArray[np.int16] | None:
        """Return which unit is in each unit slot of a side's observation [units], -1 for none; None if unknown."""
        ...

    async def close(self) -> None: ...


class LocalEnvironment:
    """Games of this process. They step in a separate thread without the interpreter lock."""

    def __init__(self, games: VecGame) -> None:
        self._games = games
        self._everything = np.arange(games.games, dtype=np.int32)
        self._thread = ThreadPoolExecutor(1, "games")

    @property
    def statistic_names(self) -> tuple[str, ...]:
        return STATS

    @property
    def server(self) -> str:
        return ""

    async def reset(self, games: Ints, controllers: npt.NDArray[np.uint8], out: Arrays,
                    rules: Sequence[GameConfig | None] = ()) -> LineUps | None:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._reset, games, controllers, out,
                                                                rules)

    async def step(self, actions: npt.NDArray[np.int16], out: Arrays) -> StepResult:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._step, actions, out)

    async def snapshot(self, slot: int) -> bytes:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._games.snapshot, slot)

    async def branch(self, slot: int, snapshot: bytes, seed: int, building_health: float, out: Arrays) -> LineUps:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._branch, slot, snapshot, seed,
                                                                building_health, out)

    def watch(self, slots: Collection[int]) -> None:
        pass  # every local game can be captured

    def capture(self, slot: int, camera: Camera) -> bool:
        camera.record(self._games, slot)
        return True

    def slot_units(self, slot: int, side: int) -> npt.NDArray[np.int16] | None:
        return self._games.slot_units(slot, side)

    async def close(self) -> None:
        self._thread.shutdown()

    def _reset(self, games: Ints, controllers: npt.NDArray[np.uint8], out: Arrays,
               rules: Sequence[GameConfig | None]) -> LineUps:
        self._games.controllers[games] = controllers
        variants = [0 if rule is None else self._games.add_variant(rule) for rule in rules]
        self._games.reset(games, variants=variants or [0] * len(games))
        self._copy_observations(out, games)
        return self._games.lineups[games]

    def _branch(self, slot: int, snapshot: bytes, seed: int, building_health: float, out: Arrays) -> LineUps:
        self._games.restore(slot, snapshot)
        self._games.branch(slot, seed, building_health)
        self._copy_observations(out, np.array([slot], np.int32))
        lineup: LineUps = self._games.lineups[slot]
        return lineup

    def _copy_observations(self, out: Arrays, games: Ints) -> None:
        for name, array in self._games.obs.items():
            out[name][games] = array[games]
        self._take_packed(out, games)

    def _step(self, actions: npt.NDArray[np.int16], out: Arrays) -> StepResult:
        self._games.step(actions)
        for name, array in self._games.obs.items():
            out[name][...] = array
        self._take_packed(out, self._everything)
        return StepResult(self._games.signals, self._games.winner, self._games.game_time, self._games.stats)

    def _take_packed(self, out: Arrays, games: Ints) -> None:
        for name in self._games.packed:
            out[name][games] = np.array(self._games.packed_obs(name, games), np.object_).reshape(-1, SIDES)


def connect_in_turn(connect: Callable[[str], EnvironmentClient], addresses: Sequence[str], first: int
                    ) -> Callable[[], EnvironmentClient]:
    """Return a function that connects to the next address at each call, from the one at ``first`` on, modulo their
    number. New games thus leave a lost server."""
    positions = itertools.count(first)
    return lambda: connect(addresses[next(positions) % len(addresses)])


class RemoteEnvironment:
    """Games in the environment service, opened at first use and again after a loss."""

    def __init__(self, connect: Callable[[], EnvironmentClient], games: int, seed: int, game_config: str,
                 threads: int) -> None:
        self._connect = connect
        self._games = games
        self._seed = seed
        self._config = game_config
        self._threads = threads
        self._client: EnvironmentClient | None = None
        self._all = np.arange(games, dtype=np.int32)
        self._watched: tuple[int, ...] = ()
        self._seen: dict[int, SpectatorView] = {}
        self._schema = game_schema(policy_debug=False)

    @property
    def statistic_names(self) -> tuple[str, ...]:
        return STATS

    @property
    def server(self) -> str:
        return "" if self._client is None else self._client.server

    async def reset(self, games: Ints, controllers: npt.NDArray[np.uint8], out: Arrays,
                    rules: Sequence[GameConfig | None] = ()) -> LineUps | None:
        """Implement Environment. Raises ConnectionError when no games are available or the present ones are lost."""
        try:
            if self._client is None:
                client = self._connect()
                try:
                    await client.open(self._games, self._seed, self._config, self._threads)
                except BaseException:
                    await client.close()
                    raise
                self._client = client
                self._seed = (self._seed + 1) % 2**63
            others = list(dict.fromkeys(rule.model_dump_json() for rule in rules if rule is not None))
            variants = np.array([0 if rule is None else 1 + others.index(rule.model_dump_json()) for rule in rules],
                                np.uint8)
            step = await self._client.reset(games, controllers, others, variants if others else None)
            self._copy_rows(step, out, games)
        except CallFailed as failure:
            await self._mark_lost(failure)
        return step.lineups

    async def step(self, actions: npt.NDArray[np.int16], out: Arrays) -> StepResult:
        if self._client is None:
            raise ConnectionError("no games: call reset first")
        try:
            step = await self._client.step(self._all, actions, self._watched)
            self._copy_rows(step, out, self._all)
        except CallFailed as failure:
            await self._mark_lost(failure)
        self._seen = step.seen
        return StepResult(step.signals, step.winners, step.game_time, step.statistics)

    async def snapshot(self, slot: int) -> bytes:
        raise NotImplementedError("remote games cannot be snapshotted: set services.rollout.environment to local, or "
                                  "services.rollout.snapshot_bots")

    async def branch(self, slot: int, snapshot: bytes, seed: int, building_health: float, out: Arrays) -> LineUps:
        if self._client is None:
            raise ConnectionError("no games: call reset first")
        try:
            step = await self._client.branch(slot, snapshot, seed, building_health)
            self._copy_rows(step, out, self._all[slot:slot + 1])
            if step.lineups is None:
                raise CallFailed(StatusCode.INTERNAL, self.server, METHOD, "its response is malformed: no lineups")
        except CallFailed as failure:
            await self.close()
            raise ConnectionError(str(failure)) from failure
        lineup: LineUps = step.lineups[0]
        return lineup

    def watch(self, slots: Collection[int]) -> None:
        self._watched = tuple(slots)

    def capture(self, slot: int, camera: Camera) -> bool:
        seen = self._seen.get(slot)
        if seen is None or seen.schema != self._schema.hash:
            return False
        frame = unpack_frame(self._schema, seen.frame)

        def write(out: dict[str, Array]) -> None:
            for name, array in frame.items():
                out[name][...] = array

        camera.record_frame(write, json.loads(seen.events or b"[]"))
        return True

    def slot_units(self, slot: int, side: int) -> npt.NDArray[np.int16] | None:
        seen = self._seen.get(slot)
        return None if seen is None else seen.slots[side]

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _copy_rows(self, step: EnvironmentStep, out: Arrays, games: Ints) -> None:
        """Copy the observations of games into ``out``. Raise CallFailed for those of other games or another layout."""
        try:
            _require_equal("games", step.winners.shape, (len(games),))
            _require_equal("observations", step.observations.keys(), out.keys())
            rows = {name: split_team_rows(array) if isinstance(array, PackedArray) else array
                    for name, array in step.observations.items()}
            for name, array in rows.items():
                _require_equal(name, array.shape, (len(games), *out[name].shape[1:]))
        except ValueError as error:
            raise CallFailed(StatusCode.INTERNAL, self.server, METHOD, f"its response is malformed: {error}") from None
        for name, array in rows.items():
            out[name][games] = array

    async def _mark_lost(self, failure: CallFailed) -> NoReturn:
        await self.close()
        if not (failure.may_retry or failure.code is StatusCode.INTERNAL or is_stale_epoch(failure)):
            raise failure  # a retry would be refused as well
        raise ConnectionError(str(failure)) from failure


def _require_equal(what: str, found: object, expected: object) -> None:
    """Raise ValueError unless the two are equal."""
    if found != expected:
        raise ValueError(f"{what}: {found} instead of {expected}")
