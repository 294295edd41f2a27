"""Where a group's games run: in this process, or in the environment service. Both look the same from here."""

import asyncio
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from dota.config import GameConfig
from dota.spectator.camera import Camera
from dota.spectator.schema import game_schema, unpack_frame
from dota.vec_game import STATS, VecGame
from five.clients.environment import EnvironmentClient, SeenGame
from five.services.rollout.step_buffer import SIDES, Array, Arrays, split_team_rows
from rapid.packed_array import PackedArray
from rapid.rpc.errors import CallFailed, StatusCode
from rapid.rpc.fencing_epoch import is_stale_epoch

Ints = npt.NDArray[np.int32]
LineUps = npt.NDArray[np.int16]


@dataclass(frozen=True)
class StepResult:
    """What a timestep brought to all G games: ``signals`` float32 [G, 2, H, signals], ``winners`` uint8 [G] (0 still
    running, 1 Radiant, 2 Dire, 3 draw), ``game_time`` float32 [G] in seconds, ``statistics`` float32 [G, 2, H, n].
    Valid until the next call."""

    signals: npt.NDArray[np.float32]
    winners: npt.NDArray[np.uint8]
    game_time: npt.NDArray[np.float32]
    statistics: npt.NDArray[np.float32]


class Environment(Protocol):
    """G games in lockstep. ``out`` is the layout's arrays, [G, 2, ...]; the rows of the games touched are written. From
    games with packed observations they are the bytes of each team-step, object [G, 2], for those that are packed."""

    @property
    def statistic_names(self) -> tuple[str, ...]: ...

    @property
    def server(self) -> str:
        """Address of the server that has the games; '' where they are in this process, or lost."""
        ...

    async def reset(self, games: Ints, controllers: npt.NDArray[np.uint8], out: Arrays,
                    rules: Sequence[GameConfig | None] = ()) -> LineUps | None:
        """Begin new games in the places ``games`` int32 [k]; ``controllers`` uint8 [k, 2]: who plays each side (0 the
        actions that are handed in, otherwise a bot). ``rules``: for each what it is played under, None as all were
        made; empty, all are. Returns the heroes of each, int16 [k, 2, H], by their number in the registry; None from a
        server that does not say."""
        ...

    async def step(self, actions: npt.NDArray[np.int16], out: Arrays) -> StepResult:
        """One timestep of all games; ``actions`` int16 [G, 2, H, 6]. A game that ended must be reset before the next.

        Raises ConnectionError when the games are lost with their server: begin others with ``reset`` of all.
        """
        ...

    def watch(self, places: Collection[int]) -> None:
        """From the next step on these places are looked at, and no others."""
        ...

    def capture(self, place: int, camera: Camera) -> bool:
        """Lets the camera look at a place that is watched. False when nothing of it is here yet."""
        ...

    def slot_units(self, place: int, side: int) -> npt.NDArray[np.int16] | None:
        """Which unit of the game stands in each unit slot of a side's observation [units], -1: none; None: unknown."""
        ...

    async def close(self) -> None: ...


class LocalEnvironment:
    """Games of this process. They step in a thread of their own, with the interpreter lock released."""

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

    def watch(self, places: Collection[int]) -> None:
        pass  # whatever is played here can be looked at

    def capture(self, place: int, camera: Camera) -> bool:
        camera.record(self._games, place)
        return True

    def slot_units(self, place: int, side: int) -> npt.NDArray[np.int16] | None:
        return self._games.slot_units(place, side)

    async def close(self) -> None:
        self._thread.shutdown()

    def _reset(self, games: Ints, controllers: npt.NDArray[np.uint8], out: Arrays,
               rules: Sequence[GameConfig | None]) -> LineUps:
        self._games.controllers[games] = controllers
        variants = [0 if rule is None else self._games.add_variant(rule) for rule in rules]
        self._games.reset(games, variants=variants or [0] * len(games))
        for name, array in self._games.obs.items():
            out[name][games] = array[games]
        self._take_packed(out, games)
        return self._games.lineups[games]

    def _step(self, actions: npt.NDArray[np.int16], out: Arrays) -> StepResult:
        self._games.step(actions)
        for name, array in self._games.obs.items():
            out[name][...] = array
        self._take_packed(out, self._everything)
        return StepResult(self._games.signals, self._games.winner, self._games.game_time, self._games.stats)

    def _take_packed(self, out: Arrays, games: Ints) -> None:
        for name in self._games.packed:
            out[name][games] = np.array(self._games.packed_obs(name, games), np.object_).reshape(-1, SIDES)


class RemoteEnvironment:
    """Games in the environment service. They are opened at first use, and again after they were lost."""

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
        self._seen: dict[int, SeenGame] = {}
        self._schema = game_schema(thoughts=False)

    @property
    def statistic_names(self) -> tuple[str, ...]:
        return STATS

    @property
    def server(self) -> str:
        return "" if self._client is None else self._client.server

    async def reset(self, games: Ints, controllers: npt.NDArray[np.uint8], out: Arrays,
                    rules: Sequence[GameConfig | None] = ()) -> LineUps | None:
        """Raises ConnectionError when no games can be had now, or those there were are lost."""
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
        except CallFailed as failure:
            await self._lose(failure)
        _take(step.observations, out, games)
        return step.lineups

    async def step(self, actions: npt.NDArray[np.int16], out: Arrays) -> StepResult:
        if self._client is None:
            raise ConnectionError("there are no games: reset them first")
        try:
            step = await self._client.step(self._all, actions, self._watched)
        except CallFailed as failure:
            await self._lose(failure)
        self._seen = step.seen
        _take(step.observations, out, self._all)
        return StepResult(step.signals, step.winners, step.game_time, step.statistics)

    def watch(self, places: Collection[int]) -> None:
        self._watched = tuple(places)

    def capture(self, place: int, camera: Camera) -> bool:
        seen = self._seen.get(place)
        if seen is None or seen.schema != self._schema.hash:
            return False
        frame = unpack_frame(self._schema, seen.frame)

        def write(out: dict[str, Array]) -> None:
            for name, array in frame.items():
                out[name][...] = array

        camera.record_frame(write, json.loads(seen.happened or b"[]"))
        return True

    def slot_units(self, place: int, side: int) -> npt.NDArray[np.int16] | None:
        seen = self._seen.get(place)
        return None if seen is None else seen.slots[side]

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _lose(self, failure: CallFailed) -> NoReturn:
        await self.close()
        if not (failure.may_retry or failure.code is StatusCode.INTERNAL or is_stale_epoch(failure)):
            raise failure  # refused: another try would be refused again
        raise ConnectionError(str(failure)) from failure


def _take(observations: Mapping[str, Array | PackedArray], out: Arrays, games: Ints) -> None:
    for name, array in observations.items():
        out[name][games] = split_team_rows(array) if isinstance(array, PackedArray) else array
