"""Gymnasium environment of one game: an agent commands a team against a bot."""

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium
import numpy as np
import numpy.typing as npt

from dota import registration
from dota.agents import SELF, parse_seed, reset_options
from dota.config import GameConfig, RewardConfig
from dota.gymnasium_spaces import action_space, observation_space
from dota.picture import render_frame
from dota.team_games import TeamGames, steps_of
from dota.vec_game import Winner

RENDER_MODES = ("rgb_array",)
RESET_OPTIONS = ("lineup", "side", "opponent")


def checked_render_mode(mode: str | None) -> str | None:
    """Return the render mode. Raises ValueError for an unknown one."""
    if mode is not None and mode not in RENDER_MODES:
        raise ValueError(f"render_mode is {' or '.join(map(repr, RENDER_MODES))} or None, not {mode!r}")
    return mode


class DotaEnv(gymnasium.Env[Any, Any]):
    """Game whose agent commands the heroes of team ``side`` (0 Radiant, 1 Dire) against ``opponent`` (``random``,
    ``easy``, ``scripted``, ``hard``).

    ``preset``, ``config``, ``game``, ``rewards``, ``team_spirit``, ``zero_sum``: see ``dota.team_games.TeamGames``.
    ``observation`` and ``actions``: see ``dota.agents.AgentView``. A step is ``game.frameskip`` frames at 30 frames a
    second; an action takes effect four frames after the step begins. A won or lost game is terminated; a game that
    reaches its time limit is truncated, after at most ``max_steps`` steps. Infos: the mask, ``dota.vec_game.STATS``
    averaged over the team, ``game_time`` in seconds, ``invalid_actions`` (heroes whose last choice was invalid),
    ``winner`` ("" while it runs, "radiant", "dire" or "draw") and ``won``.

    Raises ValueError for invalid arguments.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": list(RENDER_MODES), "render_fps": 7.5}  # type: ignore[misc]

    def __init__(self, preset: str | None = None, *, config: GameConfig | None = None,
                 game: Mapping[str, Any] | None = None, observation: str = "flat", actions: str = "discrete",
                 opponent: str | int = "scripted", side: int = 0,
                 rewards: str | Mapping[str, float] | RewardConfig | None = None, team_spirit: float | None = None,
                 zero_sum: bool = True, render_mode: str | None = None) -> None:
        if opponent == SELF:
            raise ValueError("DotaEnv has one agent and cannot play itself: DotaVectorEnv(opponent='self') has a row "
                             "for each side, and dota.pettingzoo_env an agent for each hero")
        self.render_mode = checked_render_mode(render_mode)
        self.team = TeamGames(1, preset=preset, config=config, game=game, observation=observation, actions=actions,
                              opponent=opponent, side=side, rewards=rewards, team_spirit=team_spirit,
                              zero_sum=zero_sum, threads=1)
        self.metadata = {**type(self).metadata,  # type: ignore[misc]
                         "render_fps": 1.0 / self.team.config.timestep_seconds}
        self.max_steps = steps_of(self.team.config)
        self.observation_space = observation_space(self.team.view)
        self.action_space = action_space(self.team.view)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start a new game, of ``seed`` or of the next seed in the stream of the last one.

        ``options``: ``lineup`` (hero names, one list a team) for this game; ``side`` and ``opponent`` from this game
        on. Raises ValueError for an unknown option or an invalid value.
        """
        super().reset(seed=parse_seed(seed))
        given = reset_options(options, RESET_OPTIONS)
        if "side" in given:
            self.team.set_side(given["side"])
        if "opponent" in given:
            self.team.set_opponent(given["opponent"], [0])
        self.team.begin(0, int(self.np_random.integers(2**63)), given.get("lineup"))
        return self._observe()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play one step. Raises ValueError for an action of a wrong type, shape or range."""
        chosen = self.team.view.parse_actions(action, (), "the action").reshape(1, -1)
        earned = self.team.step(chosen, np.arange(1))
        terminated, truncated = self.team.ended()
        observation, info = self._observe()
        return observation, float(earned[0]), bool(terminated[0]), bool(truncated[0]), info

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return the mask bool [mask_width], as a method for sb3-contrib."""
        _, infos = self.team.observe()
        mask: npt.NDArray[np.bool_] = infos[self.team.view.mask_name][0] != 0
        return mask

    def render(self) -> Any:
        """Return uint8 [520, 520, 3] with ``render_mode="rgb_array"``, else None."""
        if self.render_mode is None:
            return None
        return render_frame(self.team.config.patch, self.team.games.spectate(0))

    def _observe(self) -> tuple[Any, dict[str, Any]]:
        observation, infos = self.team.observe()
        first = {name: values[0] for name, values in observation.items()} if isinstance(observation, dict) \
            else observation[0]
        info = {name: values[0].item() if values.ndim == 1 else values[0] for name, values in infos.items()}
        winner = Winner(info["winner"])
        return first, info | {"winner": "" if winner is Winner.RUNNING else winner.name.lower()}


registration.register()
