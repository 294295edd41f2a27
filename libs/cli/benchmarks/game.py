"""The game engine on one core: five against five from minute 10 of scripted games."""

from dataclasses import dataclass, field

import numpy as np

from cli.benchmarks.table import Row, machine, median_rate, row
from dota.config import GameConfig
from dota.vec_game import Controller, VecGame, Winner

FRAMES = 4  # of a timestep


@dataclass(frozen=True)
class Size:
    """How much is measured. The defaults are the paper's game and observation."""

    game: GameConfig = field(default_factory=GameConfig)
    from_seconds: float = 600.0  # game time at which measuring begins
    games: int = 3
    steps: int = 300  # timesteps before the games are set back
    seconds: float = 2.0
    repeats: int = 5


def snapshots(game: GameConfig, games: int, seconds: float) -> list[bytes]:
    """Games of different seeds at ``seconds`` of game time, both sides scripted."""
    players = VecGame(game, games, seed=1, observations=False)
    players.controllers[:] = Controller.SCRIPTED
    running = list(range(games))
    while running:
        players.step(which=running)
        over = [i for i in running if players.winner[i] != Winner.RUNNING]
        if over:  # a short game: another one takes its place
            players.reset(over)
        running = [i for i in running if players.game_time[i] < seconds]
    return [players.snapshot(i) for i in range(games)]


class Stretch:
    """Games that go on from snapshots and are set back to them every ``steps`` timesteps."""

    def __init__(self, size: Size, saved: list[bytes], observations: bool) -> None:
        self.games = VecGame(size.game, len(saved), seed=1, observations=observations)
        self.games.controllers[:] = Controller.SCRIPTED
        self._saved = saved
        self._steps = size.steps
        self._played = size.steps

    def step(self) -> float:
        """One timestep of all; returns how many games took it."""
        if self._played >= self._steps:
            for i, snapshot in enumerate(self._saved):
                self.games.restore(i, snapshot)
            self._played = 0
        self._played += 1
        self.games.step()
        return float(len(self._saved))


def copy_rate(games: VecGame, seconds: float, repeats: int) -> float:
    """Timesteps of a game a second when all that is done is to copy the bytes of its observation."""
    sources = list(games.obs.values())
    copies = [np.empty_like(a) for a in sources]

    def copy() -> float:
        for source, target in zip(sources, copies, strict=True):
            np.copyto(target, source)
        return float(games.games)

    return median_rate(copy, seconds, repeats)


def measure(size: Size | None = None) -> list[Row]:
    """Rows ``game.frames``, ``game.hero_steps`` without observations, ``game.hero_steps_observed`` with them.

    The reference of each is the rate at which the observations of both teams could be copied.
    """
    size = size or Size()
    conditions = machine(game=size.game.mode, heroes_per_team=size.game.heroes_per_team, threads=1, games=size.games,
                         from_seconds=size.from_seconds)
    saved = snapshots(size.game, size.games, size.from_seconds)
    blind, seeing = Stretch(size, saved, False), Stretch(size, saved, True)
    unseen = median_rate(blind.step, size.seconds, size.repeats)
    observed = median_rate(seeing.step, size.seconds, size.repeats)
    copied = copy_rate(seeing.games, size.seconds / 4, size.repeats)
    heroes = 2 * size.game.heroes_per_team
    conditions["observation_bytes"] = sum(a.nbytes for a in seeing.games.obs.values()) // size.games
    return [
        row("game.frames", FRAMES * unseen, "frames/s", FRAMES * copied, conditions),
        row("game.hero_steps", heroes * unseen, "hero-steps/s", heroes * copied, conditions),
        row("game.hero_steps_observed", heroes * observed, "hero-steps/s", heroes * copied, conditions),
    ]
