"""Gymnasium vector environment of many games, stepped together by the compiled core, against a bot or in self-play."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.utils import seeding
from gymnasium.vector.utils import batch_space

from dota.agents import parse_seed, reset_options
from dota.config import GameConfig, RewardConfig
from dota.gymnasium_env import RENDER_MODES, checked_render_mode
from dota.gymnasium_spaces import action_space, observation_space
from dota.picture import render_frame
from dota.team_games import TeamGames, steps_of
from dota.vec_game import TEAMS, Winner

Array = npt.NDArray[Any]
if TYPE_CHECKING:
    _VectorEnv = gymnasium.vector.VectorEnv[Any, Any, Array]
else:
    _VectorEnv = gymnasium.vector.VectorEnv

AUTORESETS = ("next_step", "same_step", "disabled")
# Below 1.0 Gymnasium resets in the step that ends a game, and has no AutoresetMode.
BEFORE_1 = int(gymnasium.__version__.partition(".")[0]) < 1
RESET_OPTIONS = ("reset_mask", "lineup", "opponent")


class DotaVectorEnv(_VectorEnv):
    """Vector environment with ``num_envs`` rows, one agent each.

    Against a bot there is one game a row. With ``opponent="self"`` there are half as many games: row 2 g is Radiant and
    row 2 g + 1 is Dire of game g.

    Everything else is as in ``dota.gymnasium_env.DotaEnv``, with arrays of leading dimension [num_envs]; ``winner`` in
    infos is a number (``dota.vec_game.Winner``). ``threads`` threads step the games. ``autoreset`` defines what follows
    the end of a game. ``next_step``: the next step starts a new game and ignores the action (Gymnasium's default since
    1.0). ``same_step``: the step that ended the game starts a new one, with ``final_obs`` and ``final_info`` in infos
    (the earlier default; called ``final_observation`` there). ``disabled``: nothing until reset with a mask.

    Raises ValueError for invalid arguments.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": list(RENDER_MODES), "render_fps": 7.5}  # type: ignore[misc]
    is_vector_env = True

    def __init__(self, num_envs: int = 1, preset: str | None = None, *, config: GameConfig | None = None,
                 game: Mapping[str, Any] | None = None, observation: str = "flat", actions: str = "discrete",
                 opponent: str | int = "scripted", side: int = 0,
                 rewards: str | Mapping[str, float] | RewardConfig | None = None, team_spirit: float | None = None,
                 zero_sum: bool = True, threads: int = 1, autoreset: str | None = None,
                 render_mode: str | None = None) -> None:
        if opponent == "self" and num_envs % TEAMS:
            raise ValueError(f"in self-play a game has two rows: num_envs must be even, not {num_envs}")
        if num_envs < 1:
            raise ValueError(f"num_envs must be 1 or more, not {num_envs}")
        mode = getattr(autoreset, "value", autoreset) or ("same_step" if BEFORE_1 else "next_step")
        self._autoreset = str(mode).lower().removesuffix("reset").replace("nextstep", "next_step").replace(
            "samestep", "same_step")
        if self._autoreset not in AUTORESETS:
            raise ValueError(f"autoreset is one of {', '.join(AUTORESETS)}, not {autoreset!r}")
        known = getattr(gymnasium.vector, "AutoresetMode", None)
        self.render_mode = checked_render_mode(render_mode)
        self.num_envs = num_envs
        self.team = TeamGames(num_envs // TEAMS if opponent == "self" else num_envs, preset=preset, config=config,
                              game=game, observation=observation, actions=actions, opponent=opponent, side=side,
                              rewards=rewards, team_spirit=team_spirit, zero_sum=zero_sum, threads=threads)
        self.metadata = {**type(self).metadata,  # type: ignore[misc]
                         "render_fps": 1.0 / self.team.config.timestep_seconds,
                         "autoreset_mode": known[self._autoreset.upper()] if known else self._autoreset}
        self.max_steps = steps_of(self.team.config)
        self.single_observation_space = observation_space(self.team.view)
        self.single_action_space = action_space(self.team.view)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.closed = False
        self._lineup: Sequence[Sequence[str]] | None = None
        self._streams: list[np.random.Generator] = []

    def reset(self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
              ) -> tuple[Any, dict[str, Any]]:
        """Start new games, of ``seed``, ``seed + 1``, ... or of one seed a row; without a seed the games' streams
        continue. In self-play a game has the seed of its first row.

        ``options``: ``reset_mask`` bool [num_envs] selects the games to reset. ``lineup`` (hero names, one list a team)
        holds for all games that start from now on, ``opponent`` for those of the reset rows. Raises ValueError for an
        unknown option or an invalid value, for a mask of another shape or dtype, and for seeds of a wrong length.
        """
        given = reset_options(options, RESET_OPTIONS)
        n, rows_of_game = self.num_envs, self.team.rows // self.team.games.games
        mask = np.asarray(given.get("reset_mask", np.ones(n, np.bool_)))
        whole = None if seed is None or isinstance(seed, Sequence | np.ndarray) else parse_seed(seed)
        seeds = [whole + i for i in range(n)] if whole is not None else \
            [parse_seed(s) for s in seed] if isinstance(seed, Sequence | np.ndarray) else [None] * n
        if len(seeds) != n:
            raise ValueError(f"{len(seeds)} seeds for {n} rows: give one seed a row, or one integer")
        if mask.dtype != np.bool_ or mask.shape != (n,):
            raise ValueError(f"reset_mask must be bool {(n,)}, not {mask.dtype} {mask.shape}")
        games = mask.reshape(-1, rows_of_game)
        if (games.any(1) != games.all(1)).any():
            raise ValueError("reset_mask selects one side of a game: in self-play both rows of a game reset together")
        if not self._streams:
            self._streams = [seeding.np_random(None)[0] for _ in range(len(games))]
        which = np.flatnonzero(games[:, 0])
        if "opponent" in given:
            self.team.set_opponent(given["opponent"], which.tolist())
        lineup = given.get("lineup", self._lineup)
        for g in which.tolist():
            if (own := seeds[g * rows_of_game]) is not None:
                self._streams[g], _ = seeding.np_random(own)
            self._begin(g, lineup)
        self._lineup = lineup  # not one that was refused
        return self.team.observe()

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        """Play one step, ``game.frameskip`` frames of game time, of every running game.

        Raises ValueError for actions of a wrong type, shape or range, and ResetNeeded before the first reset.
        """
        if not self._streams:
            raise gymnasium.error.ResetNeeded("call reset before step")
        over = self.team.games.winner != Winner.RUNNING
        if self._autoreset == "next_step":
            for g in np.flatnonzero(over).tolist():
                self._begin(g, self._lineup)
        earned = self.team.step(actions, np.flatnonzero(~over))
        terminated, truncated = self.team.ended()
        observations, infos = self.team.observe()
        ended = terminated | truncated
        if self._autoreset == "same_step" and ended.any():
            last = observations, infos
            for g in np.flatnonzero(self.team.games.winner != Winner.RUNNING).tolist():
                self._begin(g, self._lineup)
            observations, infos = self.team.observe()
            infos |= _final(*last, ended)
        return observations, earned, terminated, truncated, infos

    def render(self) -> Any:
        """Return a picture uint8 [520, 520, 3] of each row's game with ``render_mode="rgb_array"``, else None."""
        if self.render_mode is None:
            return None
        patch = self.team.config.patch
        pictures = [render_frame(patch, self.team.games.spectate(g)) for g in range(self.team.games.games)]
        return tuple(pictures[g] for g in self.team.game_of.tolist())

    def close(self, **kwargs: Any) -> None:
        """Do nothing: the environment holds no resource but memory."""
        self.closed = True

    def _begin(self, game: int, lineup: Sequence[Sequence[str]] | None) -> None:
        self.team.begin(game, int(self._streams[game].integers(2**63)), lineup)


def _final(observations: Any, infos: dict[str, Any], ended: Array) -> dict[str, Any]:
    """Return the final observations of ended games in the form of the installed Gymnasium version."""
    def row(i: int) -> Any:
        return {name: v[i] for name, v in observations.items()} if isinstance(observations, dict) else observations[i]

    last = np.full(len(ended), None, object)
    infos_of = np.full(len(ended), None, object)
    for i in np.flatnonzero(ended).tolist():
        last[i] = row(i)
        infos_of[i] = {name: values[i] for name, values in infos.items()}
    if BEFORE_1:
        return {"final_observation": last, "_final_observation": ended, "final_info": infos_of, "_final_info": ended}
    return {"final_obs": last, "_final_obs": ended, "_final_info": ended,
            "final_info": {**infos, **{f"_{name}": ended for name in infos}}}
