"""PettingZoo ``ParallelEnv`` of one game: each hero is an agent, named ``radiant_0`` ... ``dire_4``."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.utils import seeding
from pettingzoo import ParallelEnv

from dota.agents import AgentView, parse_seed, reset_options
from dota.config import GameConfig, RewardConfig
from dota.flat import FlatObservation
from dota.game import Game
from dota.gymnasium_env import RENDER_MODES, checked_render_mode
from dota.gymnasium_spaces import action_space, observation_space
from dota.picture import render_frame
from dota.team_games import resolve_game, steps_of
from dota.vec_game import STATS, TEAMS, Winner

Array = npt.NDArray[Any]
TEAM_NAMES = ("radiant", "dire")


class DotaParallelEnv(ParallelEnv[str, Any, Any]):  # type: ignore[misc]
    """Game in which every hero of both teams is an agent.

    ``preset``, ``config``, ``game``, ``rewards``, ``team_spirit`` and ``zero_sum`` are those of
    ``dota.gymnasium_env.DotaEnv``; ``observation`` and ``actions`` are those of ``dota.agents.AgentView`` for one hero.
    By default an observation is ``{"observation": float32 [F], "action_mask": int8 [N]}`` and an action is a number. An
    action takes effect four frames after the step begins; an invalid or missing one lets the hero continue. All agents
    end together: terminated when the game is won, truncated at the time limit, after at most ``max_steps`` steps.
    ``infos`` hold the mask, the hero's ``STATS``, ``game_time`` in seconds, ``invalid_actions`` (1 when the last choice
    was invalid), ``winner`` ("" while it runs, "radiant", "dire", "draw") and ``won``.

    Raises ValueError for invalid arguments.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "five_dota_v0", "render_modes": list(RENDER_MODES),
                                          "is_parallelizable": True, "render_fps": 7.5}

    def __init__(self, preset: str | None = None, *, config: GameConfig | None = None,
                 game: Mapping[str, Any] | None = None, observation: str = "masked", actions: str = "discrete",
                 rewards: str | Mapping[str, float] | RewardConfig | None = None, team_spirit: float | None = None,
                 zero_sum: bool = True, render_mode: str | None = None) -> None:
        self.config, self._weighting = resolve_game(preset, config, game, rewards, team_spirit, zero_sum)
        self.render_mode = checked_render_mode(render_mode)
        self.game = Game(self.config)
        self.layout = self.game.layout
        self.view = AgentView(self.config, self.layout, observation, actions, 1)
        self.metadata = {**type(self).metadata,  # type: ignore[misc]
                         "render_fps": 1.0 / self.config.timestep_seconds}
        self.max_steps = steps_of(self.config)
        self._random: np.random.Generator | None = None
        heroes = self.layout.heroes
        self.possible_agents = [f"{team}_{i}" for team in TEAM_NAMES for i in range(heroes)]
        self._seats = {agent: divmod(k, heroes) for k, agent in enumerate(self.possible_agents)}
        self.agents: list[str] = []
        self._invalid = np.zeros((TEAMS, heroes), np.int64)
        self.observation_spaces = {agent: observation_space(self.view) for agent in self.possible_agents}
        self.action_spaces = {agent: action_space(self.view) for agent in self.possible_agents}
        self._state = FlatObservation(self.layout, heroes)
        self.state_space = spaces.Box(-np.inf, np.inf, (TEAMS * self._state.size,), np.float32)

    def observation_space(self, agent: str) -> Any:
        """Return an agent's observation space, the same object at each call. Raises KeyError that names an unknown
        agent."""
        return self.observation_spaces[self._require_agent(agent)]

    def action_space(self, agent: str) -> Any:
        """Return an agent's action space, the same object at each call. Raises KeyError that names an unknown agent."""
        return self.action_spaces[self._require_agent(agent)]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None
              ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Start a new game, of ``seed`` or of the next seed in the stream of the last one.

        ``options``: ``lineup``, hero names of this game, one list a team. Warns of an unknown option, because
        PettingZoo's own test passes one. Raises ValueError for an invalid value.
        """
        given = reset_options(options, ("lineup",), refuse=False)
        whole = parse_seed(seed)
        if whole is not None or self._random is None:
            self._random, _ = seeding.np_random(whole)
        self.game.reset(int(self._random.integers(2**63)), given.get("lineup"))
        self.agents = list(self.possible_agents)
        self._invalid[:] = 0
        return self._observe()

    def step(self, actions: Mapping[str, Any]
             ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Play one step, ``game.frameskip`` frames of game time. Heroes without an action continue their current
        command.

        Raises KeyError that names an unknown agent, ValueError for an action of a wrong type, shape or range.
        """
        orders = np.zeros((TEAMS, self.layout.heroes, 6), np.int16)
        self._invalid[:] = 0
        for agent, action in actions.items():
            seat = self._seats[self._require_agent(agent)]
            chosen = self.view.parse_actions(action, (), f"the action of {agent}")
            hero = {name: array[seat][None] for name, array in self.game.obs.items() if not name.startswith("shared")}
            order, allowed = self.view.choices.orders(chosen, self.view.action_inputs(hero))
            orders[seat], self._invalid[seat] = order[0], not allowed[0]
        self.game.step(orders)
        earned = self._weighting(self.game.signals, np.array(self.game.time, np.float32))
        winner, agents = self.game.winner, self.agents
        observations, infos = self._observe()
        out = (observations, {a: float(earned[self._seats[a]]) for a in agents},
               dict.fromkeys(agents, winner in (Winner.RADIANT, Winner.DIRE)),
               dict.fromkeys(agents, winner is Winner.DRAW), infos)
        if winner is not Winner.RUNNING:
            self.agents = []
        return out

    def state(self) -> npt.NDArray[np.float32]:
        """Return float32 [2 F] (``state_space``): the flat observations of all Radiant heroes, then of all Dire heroes.
        """
        return self._state(self.game.obs).reshape(-1)

    def render(self) -> Any:
        """Return uint8 [520, 520, 3] with ``render_mode="rgb_array"``, else None."""
        return None if self.render_mode is None else render_frame(self.config.patch, self.game.spectate())

    def close(self) -> None:
        """Do nothing: the environment holds no resource but memory."""

    def _require_agent(self, agent: str) -> str:
        if agent not in self._seats:
            raise KeyError(f"unknown agent {agent!r}; known: {', '.join(self.possible_agents)}")
        return agent

    def _observe(self) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        heroes = self.layout.heroes
        # Every hero sees the shared arrays. The views expect an axis of an agent's heroes, which has length 1 here.
        arrays = {name: np.broadcast_to(a[:, None], (TEAMS, heroes, a.shape[-1])) if name.startswith("shared")
                  else a[:, :, None] for name, a in self.game.obs.items()}
        mask = self.view.mask(arrays)
        seen = self.view.observe(arrays, mask)
        winner, observations, infos = self.game.winner, {}, {}
        for agent in self.agents:
            seat = self._seats[agent]
            observations[agent] = {name: array[seat] for name, array in seen.items()} if isinstance(seen, dict) \
                else seen[seat]
            infos[agent] = {
                **dict(zip(STATS, self.game.stats[seat].tolist(), strict=True)), "game_time": self.game.time,
                "invalid_actions": int(self._invalid[seat]), "won": int(winner) == seat[0] + 1,
                "winner": "" if winner is Winner.RUNNING else winner.name.lower(), self.view.mask_name: mask[seat]}
        return observations, infos
