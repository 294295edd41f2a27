"""Player of games between versions and bots, many at a time."""

import asyncio
import itertools
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dota.config import GameConfig
from five.clients.inference import CLOSE, RESET, WANT_POLICY_DEBUG, ActResult

Array = npt.NDArray[Any]
PAUSE_SECONDS = 0.2  # between two checks whether a pause has begun or ended
RUNNING = 0
DRAW = 3


class Games(Protocol):
    """Interface of dota.VecGame that matches use."""

    obs: dict[str, Array]  # [G, 2, ...]
    controllers: Array  # uint8 [G, 2]
    winner: Array  # uint8 [G]
    game_time: Array  # float32 [G]
    stats: Array  # float32 [G, 2, H, K]

    def reset(self, indices: Array, *, variants: Sequence[int]) -> None: ...

    def reset_as(self, index: int, seed: int, *, variant: int) -> None: ...

    def add_variant(self, config: GameConfig) -> int: ...

    def step(self, actions: Array, which: Array) -> None:
        """Play one step of the games ``which``; ``actions`` int16 [G, 2, H, 6] for all."""
        ...


class GameObserver(Protocol):
    """Observer of games during play (services.evaluator.cameras)."""

    def wants(self, slot: int) -> bool:
        """Return whether a slot's game is observed, which needs the policies' debug outputs."""
        ...

    def record_outputs(self, slots: Array, sides: Array, has_debug: npt.NDArray[np.bool_], answer: ActResult) -> None:
        """Record the policies' outputs of a step; ``has_debug`` bool [rows] marks those with debug outputs."""
        ...

    def record_step(self, slots: Collection[int]) -> None:
        """Record the games in these slots after their step."""
        ...


class Inference(Protocol):
    """Interface of five.clients.inference.InferenceClient that matches use."""

    async def act(self, sessions: Array, policies: Array, flags: Array, observations: Mapping[str, Array]
                  ) -> ActResult: ...

    async def close(self) -> None: ...


@dataclass(frozen=True)
class TeamPlayer:
    """Player of a team: a bot of the core (``controller`` > 0), or a version (-1: the newest)."""

    name: str
    controller: int = 0
    version: int = -1


@dataclass(frozen=True)
class Pairing:
    """Game between the measured agent and an opponent; ``side`` 0 or 1 is the agent's.

    ``seed``: the game's, if it matters; ``rules``: the game's configuration, if it differs; ``game``: its id, if it was
    assigned; ``number``: its number in a match, from 0.
    """

    agent: TeamPlayer
    opponent: TeamPlayer
    side: int
    seed: int | None = None
    rules: GameConfig | None = None
    game: str = ""
    number: int = -1


@dataclass(frozen=True)
class PairingResult:
    """Finished game. ``score``: 1 the agent won, 0.5 a draw, 0 lost; statistics float32 [K], means over heroes."""

    pairing: Pairing
    score: float
    game_seconds: float
    agent_statistics: Array
    opponent_statistics: Array
    slot: int  # of the game, which holds its last state while ``on_result`` runs


class Matches:
    """Runner that keeps a vector of games busy with pairings."""

    def __init__(self, games: Games, inference: Inference, heroes: int, observer: GameObserver | None = None) -> None:
        self._games = games
        self._observer = observer
        self._inference = inference
        self._count = len(games.winner)
        self._heroes = heroes
        self._session = itertools.count(secrets.randbits(40) << 20)
        self._sessions = np.zeros((self._count, 2), np.int64)
        self._policies = np.full((self._count, 2), -1, np.int64)
        self._fresh = np.zeros((self._count, 2), bool)
        self._pairings: list[Pairing | None] = [None] * self._count
        self._on_start: Callable[[int], None] = lambda game: None
        self._actions = np.zeros((self._count, 2, heroes, 6), np.int16)
        self.is_idle = True  # no game advances: a pause holds all between two steps, or none is in progress

    async def play(self, next_pairing: Callable[[], Pairing | None], on_result: Callable[[PairingResult], None],
                   pause: Callable[[], bool] = lambda: False, delay: Callable[[], float] = lambda: 0.0,
                   on_start: Callable[[int], None] = lambda game: None) -> None:
        """Play until ``next_pairing`` returns None and every game has ended.

        Whenever a game ends, ``next_pairing`` is called again for every empty slot. No game advances while ``pause``
        returns True. ``delay`` returns the seconds to sleep after a step; a pause ends the sleep. ``on_start`` receives
        the slot of each new game. Raises CallFailed when inference refuses permanently; unfinished games then have no
        result.
        """
        self._on_start = on_start
        self.is_idle = False
        try:
            await self._play(next_pairing, on_result, pause, delay)
        finally:
            self.is_idle = True

    async def _play(self, next_pairing: Callable[[], Pairing | None], on_result: Callable[[PairingResult], None],
                    pause: Callable[[], bool], delay: Callable[[], float]) -> None:
        self._start([i for i in range(self._count)], next_pairing)
        while any(p is not None for p in self._pairings):
            while pause():
                self.is_idle = True
                await asyncio.sleep(PAUSE_SECONDS)
                # Set before `pause` is called again: a caller that sees the pause and then idle games can rely on both.
                self.is_idle = False
            if not await self._act():
                self._start([i for i, p in enumerate(self._pairings) if p is not None], None)
                continue
            live = np.flatnonzero([p is not None for p in self._pairings]).astype(np.int32)
            await asyncio.to_thread(self._games.step, self._actions, live)
            if self._observer is not None:
                self._observer.record_step(live.tolist())
            ended = [int(i) for i in live if self._games.winner[i] != RUNNING]
            for i in ended:
                on_result(self._result(i))
                self._pairings[i] = None
            if ended:
                await self._close(ended)
                self._start([i for i, p in enumerate(self._pairings) if p is None], next_pairing)
            end = asyncio.get_running_loop().time() + delay()
            while (left := end - asyncio.get_running_loop().time()) > 0 and not pause():
                await asyncio.sleep(min(left, PAUSE_SECONDS))

    @property
    def in_progress(self) -> int:
        """Number of games in progress."""
        return sum(p is not None for p in self._pairings)

    def pairing(self, slot: int) -> Pairing | None:
        """Return the pairing of a slot."""
        return self._pairings[slot]

    def _start(self, games: list[int], next_pairing: Callable[[], Pairing | None] | None) -> None:
        """Start new games; without ``next_pairing`` restart the same pairings, whose policies' states were lost."""
        begun = []
        for i in games:
            pairing = self._pairings[i] if next_pairing is None else next_pairing()
            self._pairings[i] = pairing
            if pairing is None:
                continue
            begun.append(i)
            for team in (0, 1):
                player = pairing.agent if team == pairing.side else pairing.opponent
                self._games.controllers[i, team] = player.controller
                self._policies[i, team] = player.version
                self._sessions[i, team] = next(self._session)
                self._fresh[i, team] = True
        unseeded = []
        for i in begun:
            pairing = self._pairings[i]
            assert pairing is not None
            variant = 0 if pairing.rules is None else self._games.add_variant(pairing.rules)
            if pairing.seed is None:
                unseeded.append((i, variant))
            else:
                self._games.reset_as(i, pairing.seed, variant=variant)
        if unseeded:
            self._games.reset(np.array([i for i, _ in unseeded], np.int32), variants=[v for _, v in unseeded])
        for i in begun:
            self._on_start(i)

    async def _act(self) -> bool:
        """Update the actions of every team with a policy. Return False if the server lost their states."""
        rows = self._policy_rows([i for i, p in enumerate(self._pairings) if p is not None])
        if not len(rows[0]):
            return True
        flags = np.where(self._fresh[rows], RESET, 0).astype(np.uint8)
        observed = np.zeros(len(flags), np.bool_)
        if self._observer is not None:
            wanted = {slot for slot in set(rows[0].tolist()) if self._observer.wants(slot)}
            observed = np.isin(rows[0], list(wanted))
            flags[observed] |= WANT_POLICY_DEBUG
        answer = await self._inference.act(self._sessions[rows], self._policies[rows], flags,
                                           {name: array[rows] for name, array in self._games.obs.items()})
        if answer.unknown_sessions.size:
            return False
        self._fresh[rows] = False
        self._actions[rows] = answer.actions
        if self._observer is not None and observed.any():
            self._observer.record_outputs(rows[0], rows[1], observed, answer)
        return True

    async def _close(self, ended: list[int]) -> None:
        """Close ended games' sessions at the server, which would otherwise expire with their lease."""
        rows = self._policy_rows(ended)
        if len(rows[0]):
            flags = np.full(len(rows[0]), CLOSE, np.uint8)
            await self._inference.act(self._sessions[rows], self._policies[rows], flags,
                                      {name: array[rows] for name, array in self._games.obs.items()})

    def _policy_rows(self, games: list[int]) -> tuple[Array, Array]:
        pairs = [(i, team) for i in games for team in (0, 1) if self._games.controllers[i, team] == 0]
        table = np.array(pairs, np.int64).reshape(-1, 2)
        return table[:, 0], table[:, 1]

    def _result(self, i: int) -> PairingResult:
        pairing = self._pairings[i]
        assert pairing is not None
        winner = int(self._games.winner[i])
        score = 0.5 if winner == DRAW else float(winner - 1 == pairing.side)
        statistics = self._games.stats[i].mean(axis=1)
        return PairingResult(pairing, score, float(self._games.game_time[i]), statistics[pairing.side].copy(),
                             statistics[1 - pairing.side].copy(), i)
