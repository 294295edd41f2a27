"""Games in which an agent commands a team: the common base of the single and vectorised Gymnasium environments."""

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from dota import presets
from dota.agents import SELF, AgentView, Weighting, controller_of
from dota.config import GameConfig, RewardConfig
from dota.vec_game import STATS, TEAMS, Controller, VecGame, Winner

Array = npt.NDArray[Any]
DEFAULT_PRESET = "laptop-1v1"


def resolve_game(preset: str | None, config: GameConfig | None, game: Mapping[str, Any] | None,
                 rewards: str | Mapping[str, float] | RewardConfig | None, team_spirit: float | None, zero_sum: bool
                 ) -> tuple[GameConfig, Weighting]:
    """Return game and rewards: those of a preset, or a ``config``, with overrides from ``game`` as in
    ``dota.presets.with_changes``.

    Raises ValueError when both are given, and for unknown names and invalid values.
    """
    if config is not None and preset is not None:
        raise ValueError("give a preset or a config, not both")
    found = presets.load(preset or DEFAULT_PRESET)
    base = found.game if config is None else config
    own_rewards = found.rewards if config is None else None
    spirit = team_spirit if team_spirit is not None else found.team_spirit if config is None else \
        presets.DEFAULT_TEAM_SPIRIT
    return (GameConfig.model_validate(presets.with_changes(base.model_dump(mode="json"), game or {})),
            Weighting(rewards if rewards is not None else own_rewards, spirit, zero_sum))


class TeamGames:
    """Vector of ``games`` games with one agent a row: one row a game for team ``side`` (0 Radiant, 1 Dire) against
    ``opponent``; or, with the opponent ``self``, two rows a game, Radiant's and then Dire's.

    ``preset`` names game and rewards (``dota.presets``); ``config`` is a game instead; ``game`` overrides values of it.
    ``rewards``, ``team_spirit`` and ``zero_sum`` are those of ``dota.agents.Weighting``, by default the preset's.

    Raises ValueError for unknown names, sides and configurations, and invalid combinations.
    """

    def __init__(self, games: int, *, preset: str | None, config: GameConfig | None, game: Mapping[str, Any] | None,
                 observation: str, actions: str, opponent: str | int, side: int,
                 rewards: str | Mapping[str, float] | RewardConfig | None, team_spirit: float | None, zero_sum: bool,
                 threads: int) -> None:
        self.config, self.weighting = resolve_game(preset, config, game, rewards, team_spirit, zero_sum)
        self.games = VecGame(self.config, games, threads=threads)
        self.heroes = self.games.layout.heroes
        self.view = AgentView(self.config, self.games.layout, observation, actions, self.heroes)
        self.self_play = opponent == SELF
        self._orders = np.zeros((games, TEAMS, self.heroes, 6), np.int16)
        if self.self_play:
            self.game_of, self.team_of = np.repeat(np.arange(games), TEAMS), np.tile(np.arange(TEAMS), games)
        else:
            self.game_of, self.team_of = np.arange(games), np.zeros(games, np.int64)
            self.set_side(side)
            self.games.controllers[self.game_of, 1 - self.team_of] = controller_of(opponent)
        self.rows = len(self.game_of)
        self._invalid = np.zeros(self.rows, np.int64)  # by row: heroes whose last choice was invalid

    def set_side(self, side: Any) -> None:
        """Set the team that all rows' agents command from the next reset on. Raises ValueError for an unknown side."""
        if self.self_play or isinstance(side, bool) or side not in (0, 1):
            raise ValueError("in self-play an agent commands each side" if self.self_play else
                             f"side is 0 (Radiant) or 1 (Dire), not {side!r}")
        who = self.games.controllers[0, 1 - self.team_of[0]]
        self.team_of[:] = index(side)
        self.games.controllers[:] = Controller.POLICY
        self.games.controllers[self.game_of, 1 - self.team_of] = who

    def set_opponent(self, opponent: str | int, games: Iterable[int]) -> None:
        """Set the opponent in these games. Raises ValueError for an unknown opponent."""
        if self.self_play or opponent == SELF:
            raise ValueError("the opponent of self-play is chosen when the environment is created")
        for g in games:
            self.games.controllers[g, 1 - self.team_of[g]] = controller_of(opponent)

    def begin(self, game: int, seed: int, lineup: Sequence[Sequence[str]] | None = None) -> None:
        """Start the game of a seed. Raises ValueError for an invalid lineup."""
        self.games.reset_as(game, seed, None if lineup is None else self.games.lineup(lineup))
        self._invalid[self.game_of == game] = 0

    def step(self, actions: Any, running: Array) -> npt.NDArray[np.float64]:
        """Play one step of the games ``running``; return the rows' rewards, 0 for those of other games.

        Raises ValueError for actions of a wrong shape, type or range.
        """
        arrays = self._arrays()
        chosen = self.view.parse_actions(actions, (self.rows,), "actions")
        orders, allowed = self.view.choices.orders(chosen, self.view.action_inputs(arrays))
        self._orders[self.game_of, self.team_of] = orders
        going = np.isin(self.game_of, running)
        self._invalid = np.where(going, (~allowed).sum(-1), 0)
        earned = np.zeros(self.rows, np.float64)
        if len(running):
            self.games.step(self._orders, running)
            each = self.weighting(self.games.signals, self.games.game_time)[self.game_of, self.team_of].mean(-1)
            earned[going] = each[going]
        return earned

    def observe(self) -> tuple[Any, dict[str, Any]]:
        """Return the rows' observations and infos, in new memory."""
        arrays = self._arrays()
        mask = self.view.mask(arrays)
        stats = self.games.stats[self.game_of, self.team_of].mean(1)
        winner = self.games.winner[self.game_of]
        infos: dict[str, Any] = {name: stats[:, i].copy() for i, name in enumerate(STATS)}
        infos |= {"game_time": self.games.game_time[self.game_of], "winner": winner,
                  "won": winner == self.team_of + 1, "invalid_actions": self._invalid.copy(), self.view.mask_name: mask}
        return self.view.observe(arrays, mask), infos

    def ended(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return which rows are terminated (won or lost) and which are truncated (time limit)."""
        winner = self.games.winner[self.game_of]
        return (winner == Winner.RADIANT) | (winner == Winner.DIRE), winner == Winner.DRAW

    def _arrays(self) -> dict[str, Array]:
        return {name: array[self.game_of, self.team_of] for name, array in self.games.obs.items()}


def steps_of(config: GameConfig) -> int:
    """Return the maximum number of steps of a game."""
    return int(np.ceil((config.max_game_seconds - config.start_seconds) / config.timestep_seconds))
