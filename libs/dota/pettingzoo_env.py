"""One game as a PettingZoo ``ParallelEnv``: an agent is a hero, named ``radiant_0`` ... ``dire_4``."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.utils import seeding
from pettingzoo import ParallelEnv

from dota.config import GameConfig, RewardConfig
from dota.game import Game
from dota.rewards import rewards
from dota.spaces import MAX_AVAILABLE, OFFSETS, Layout
from dota.vec_game import STATS, TEAMS, Winner

Array = npt.NDArray[Any]
TEAM_NAMES = ("radiant", "dire")
DELAYS = 4


def space_of(shape: tuple[int, ...], dtype: npt.DTypeLike) -> spaces.Box:
    """The space of one observation array: numbers, ids or flags by its dtype."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return spaces.Box(-np.inf, np.inf, shape, kind.type)
    return spaces.Box(0, 1 if kind == np.uint8 else np.iinfo(kind).max, shape, kind.type)


def action_space_of(layout: Layout) -> spaces.MultiDiscrete:
    """A hero's action: slot, delay, unit, teleport unit, offset x, offset y (``dota.spaces.ActionPart``)."""
    return spaces.MultiDiscrete([MAX_AVAILABLE, DELAYS, layout.units, layout.units, OFFSETS, OFFSETS], dtype=np.int16)  # type: ignore[arg-type]


class DotaParallelEnv(ParallelEnv[str, dict[str, Array], Array]):  # type: ignore[misc]
    """A game in which every hero of both teams is an agent.

    An observation is a dictionary of the arrays of ``Layout.array_specs()``, a hero's own row where it has one. An
    action is int16 [6]; what cannot be taken does nothing. Rewards are those of ``dota.rewards`` at ``team_spirit``.
    All agents end together: terminated when the game is won, truncated when its time is up. ``infos`` hold the
    hero's ``STATS``, ``game_time`` in seconds, and at the end ``won``.

    Raises ValueError as ``dota.Game`` does.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "dota_v0", "render_modes": [], "is_parallelizable": True}
    render_mode = None

    def __init__(self, config: GameConfig | None = None, reward_config: RewardConfig | None = None,
                 team_spirit: float = 0.3) -> None:
        self.game = Game(config or GameConfig())
        self.layout = self.game.layout
        self._rewards = reward_config
        self._spirit = team_spirit
        self._random: np.random.Generator | None = None
        heroes = self.layout.heroes
        self.possible_agents = [f"{team}_{i}" for team in TEAM_NAMES for i in range(heroes)]
        self._places = {agent: divmod(k, heroes) for k, agent in enumerate(self.possible_agents)}
        self.agents: list[str] = []
        self._per_hero = {n for n, (shape, _) in self.layout.array_specs().items() if n not in ("shared", "shared_ids")}
        self.observation_spaces = {agent: spaces.Dict({
            name: space_of(shape[1:] if name in self._per_hero else shape, dtype)
            for name, (shape, dtype) in self.layout.array_specs().items()}) for agent in self.possible_agents}
        self.action_spaces = {agent: action_space_of(self.layout) for agent in self.possible_agents}

    def observation_space(self, agent: str) -> spaces.Dict:
        """The same object at each call."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.MultiDiscrete:
        """The same object at each call."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None
              ) -> tuple[dict[str, dict[str, Array]], dict[str, dict[str, Any]]]:
        """A new game: of ``seed``, or of the next seed of the stream that the last one began."""
        if seed is not None or self._random is None:
            self._random, _ = seeding.np_random(seed)
        self.game.reset(int(self._random.integers(2**63)))
        self.agents = list(self.possible_agents)
        return self._observations(), self._infos()

    def step(self, actions: Mapping[str, Array]
             ) -> tuple[dict[str, dict[str, Array]], dict[str, float], dict[str, bool], dict[str, bool],
                        dict[str, dict[str, Any]]]:
        """One timestep, 4 / 30 s of game time. Heroes without an action stand as they are."""
        taken = np.zeros((TEAMS, self.layout.heroes, 6), np.int16)
        for agent, action in actions.items():
            taken[self._places[agent]] = action
        self.game.step(taken)
        earned, _ = rewards(self.game.signals, np.array(self.game.time, np.float32), self._spirit, self._rewards)
        winner = self.game.winner
        out = (self._observations(), {a: float(earned[self._places[a]]) for a in self.agents},
               dict.fromkeys(self.agents, winner in (Winner.RADIANT, Winner.DIRE)),
               dict.fromkeys(self.agents, winner is Winner.DRAW), self._infos())
        if winner is not Winner.RUNNING:
            self.agents = []
        return out

    def render(self) -> None:
        """Nothing: ``dota.replay`` and the ``five watch`` command show games."""

    def close(self) -> None:
        """Nothing is held beyond memory."""

    def _observations(self) -> dict[str, dict[str, Array]]:
        # Copies: the core writes the next step over its arrays.
        return {agent: {name: (array[team, hero] if name in self._per_hero else array[team]).copy()
                        for name, array in self.game.obs.items()}
                for agent, (team, hero) in self._places.items() if agent in self.agents}

    def _infos(self) -> dict[str, dict[str, Any]]:
        winner, out = self.game.winner, {}
        for agent in self.agents:
            team, hero = self._places[agent]
            info: dict[str, Any] = dict(zip(STATS, self.game.stats[team, hero].tolist(), strict=True))
            info["game_time"] = self.game.time
            if winner is not Winner.RUNNING:
                info["won"] = int(winner) == team + 1
            out[agent] = info
        return out
