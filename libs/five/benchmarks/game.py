"""The game on one core: five against five from minute 10 of games between the strongest bots."""

import math
import statistics
import time
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from dota.config import GameConfig
from dota.packing import join_f16
from dota.play import InteractiveGame
from dota.vec_game import Controller, VecGame, Winner
from five.benchmarks.results import BenchmarkRow, machine, median_rate, row

FRAMES = 4  # frames of a timestep
BOTS = Controller.HARD


@dataclass(frozen=True)
class GameWorkload:
    """Workload of the benchmark ``game``. The defaults are the paper's game and observation."""

    game: GameConfig = field(default_factory=GameConfig)
    from_seconds: float = 600.0  # game time at the start of the measurement
    games: int = 32  # more than fit a core's cache, as in a training run
    steps: int = 300  # timesteps before the games are restored
    seconds: float = 2.0
    repeats: int = 5


def snapshots(game: GameConfig, games: int, seconds: float) -> list[bytes]:
    """Return snapshots of games of different seeds at ``seconds`` of game time, the strongest bots on both sides."""
    players = VecGame(game, games, seed=1, observations=False)
    players.controllers[:] = BOTS
    running = list(range(games))
    while running:
        players.step(which=running)
        over = [i for i in running if players.winner[i] != Winner.RUNNING]
        if over:  # the game ended early: start another one
            players.reset(over)
        running = [i for i in running if players.game_time[i] < seconds]
    return [players.snapshot(i) for i in range(games)]


class LoopedGames:
    """Games that start from snapshots and are restored to them every ``steps`` timesteps."""

    def __init__(self, size: GameWorkload, saved: list[bytes], observations: bool | Literal["packed"],
                 threads: int = 1) -> None:
        self.games = VecGame(size.game, len(saved), seed=1, threads=threads, observations=observations)
        self.games.controllers[:] = BOTS
        self._saved = saved
        self._steps = size.steps
        self._played = size.steps
        specs = self.games.layout.array_specs()
        self._packed = {name: math.prod(specs[name][0]) for name in self.games.packed}
        self._commands: list[npt.NDArray[np.int16]] = []

    def restore_all(self) -> None:
        """Restore all games to their snapshots."""
        for i, snapshot in enumerate(self._saved):
            self.games.restore(i, snapshot)
        self._played = 0

    def step(self) -> float:
        """Step all games once. Return the number of games."""
        if self._played >= self._steps:
            self.restore_all()
        self._played += 1
        self.games.step()
        return float(len(self._saved))

    def step_packed(self) -> float:
        """Step all games with packed observations, joined into one message. Return the number of games."""
        done = self.step()
        self._send()
        return done

    def record(self) -> None:
        """Play one loop and record the bots' commands for `step_agents`."""
        self.restore_all()
        for _ in range(self._steps):
            self.games.step()
            self._commands.extend(np.stack([self.games.commands(i) for i in range(len(self._saved))], 1))
        self._played = self._steps

    def step_agents(self) -> float:
        """Step as `step_packed` does, with the recorded commands."""
        if self._played >= len(self._commands):
            self.restore_all()
        self.games.step_commands(self._commands[self._played])
        self._played += 1
        self._send()
        return float(len(self._saved))

    def _send(self) -> None:
        for name, values in self._packed.items():
            join_f16(self.games.packed_obs(name), values)

    def parts(self, repeats: int) -> dict[str, float]:
        """Return the microseconds of processor time a timestep of a game, by the parts of ``VecGame.time_parts``: the
        median of ``repeats`` loops after one that is not counted."""
        rounds = []
        for _ in range(repeats + 1):
            self.restore_all()
            rounds.append(self.games.time_parts(self._steps, BOTS))
        scale = 1e6 / (self._steps * len(self._saved))
        return {part: scale * statistics.median(r[part] for r in rounds[1:]) for part in rounds[0]}


def copy_rate(games: VecGame, seconds: float, repeats: int) -> float:
    """Return the timesteps of a game a second of copying the bytes of its observation only."""
    sources = list(games.obs.values())
    copies = [np.empty_like(a) for a in sources]

    def copy() -> float:
        for source, target in zip(sources, copies, strict=True):
            np.copyto(target, source)
        return float(games.games)

    return median_rate(copy, seconds, repeats)


def world_states(size: GameWorkload) -> tuple[float, float]:
    """Return the microseconds of both teams' world states for Dota 2's bots, from ``from_seconds`` of a game between
    the strongest bots, and the mean bytes of one. The time of the game's own frames between them is left out."""
    game = InteractiveGame(size.game, seed=1)
    game.controllers[:] = BOTS
    while game.time < size.from_seconds and not game.winner:
        game.step()
    spent = total = 0.0
    steps = 0
    while steps < size.steps and not game.winner:
        game.step()
        began = time.perf_counter()
        states = [game.world_state(team) for team in range(2)]
        spent += time.perf_counter() - began
        total += sum(map(len, states)) / 2
        steps += 1
    if not steps:
        raise RuntimeError(f"the game ended before its measurement at {size.from_seconds} s: start it earlier")
    return 1e6 * spent / steps, total / steps


def measure(size: GameWorkload | None = None) -> list[BenchmarkRow]:
    """Return the rows ``game.*``.

    ``game.frames``: the engine alone, without views and bots. ``game.views``, ``game.bots``, ``game.encode`` (both
    teams', packed): what each adds a timestep. ``game.hero_steps``: whole timesteps with bots on both sides;
    ``game.hero_steps_observed`` with both teams' packed observations; ``game.hero_steps_agents`` with the bots'
    recorded commands, which is what learned agents on both sides leave to the games. Then two threads, and
    ``game.world_states``: both teams' world states in Dota 2's protocol, a timestep.

    The reference of rates is copying the observations of both teams; of microseconds the engine's own; of two
    threads one thread. Parts are processor time, rates wall clock.
    """
    size = size or GameWorkload()
    conditions = machine(game=size.game.mode, heroes_per_team=size.game.heroes_per_team, threads=1, games=size.games,
                         from_seconds=size.from_seconds)
    saved = snapshots(size.game, size.games, size.from_seconds)
    blind, seeing = LoopedGames(size, saved, False), LoopedGames(size, saved, True)
    packing = LoopedGames(size, saved, "packed")
    parts = packing.parts(size.repeats)
    unseen = median_rate(blind.step, size.seconds, size.repeats)
    observed = median_rate(packing.step_packed, size.seconds, size.repeats)
    packing.record()
    agents = median_rate(packing.step_agents, size.seconds, size.repeats)
    copied = copy_rate(seeing.games, size.seconds / 4, size.repeats)
    two = LoopedGames(size, saved, True, threads=2)
    both = median_rate(two.step, size.seconds, size.repeats)
    one = median_rate(seeing.step, size.seconds, size.repeats)
    states_us, state_bytes = world_states(size)
    heroes = 2 * size.game.heroes_per_team
    conditions["observation_bytes"] = sum(a.nbytes for a in seeing.games.obs.values()) // size.games
    engine = parts["alone"]
    return [
        row("game.frames", FRAMES * 1e6 / engine, "frames/s", FRAMES * copied, conditions),
        *(row(f"game.{part}", parts[part], "µs", engine, conditions) for part in ("views", "bots", "encode")),
        row("game.hero_steps", heroes * unseen, "hero-steps/s", heroes * copied, conditions),
        row("game.hero_steps_observed", heroes * observed, "hero-steps/s", heroes * copied, conditions),
        row("game.hero_steps_agents", heroes * agents, "hero-steps/s", heroes * copied, conditions),
        row("game.threads2", both, "timesteps/s", one, {**conditions, "threads": 2}),
        row("game.world_states", states_us, "µs", engine,
            {**conditions, "games": 1, "state_bytes": round(state_bytes)}),
    ]
