"""Many games as a Gymnasium vector environment: one team is the agent, a bot plays the other."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from dota.config import GameConfig, RewardConfig
from dota.pettingzoo_env import DELAYS, space_of
from dota.rewards import rewards
from dota.spaces import MAX_AVAILABLE, OFFSETS
from dota.vec_game import STATS, TEAMS, Controller, VecGame, Winner

Array = npt.NDArray[Any]


class DotaVectorEnv(VectorEnv[dict[str, Array], Array, Array]):
    """``num_envs`` games; the agent commands all heroes of the team ``side`` (0 Radiant, 1 Dire).

    An observation is a dictionary of the arrays of ``Layout.array_specs()`` with leading [num_envs], an action int16
    [num_envs, H, 6]. The reward is the mean over the team's heroes of ``dota.rewards`` (their sum over both teams is
    zero). A won game is terminated, one whose time is up truncated; the step after resets it, whatever the
    action (``AutoresetMode.NEXT_STEP``). ``infos``: ``STATS`` as means over the team [num_envs], ``game_time``.

    Raises ValueError as ``dota.VecGame`` does.
    """

    metadata: ClassVar[dict[str, Any]] = {"autoreset_mode": AutoresetMode.NEXT_STEP, "render_modes": []}  # type: ignore[misc]

    def __init__(self, num_envs: int, config: GameConfig | None = None, opponent: Controller = Controller.SCRIPTED,
                 side: int = 0, reward_config: RewardConfig | None = None, team_spirit: float = 0.3,
                 threads: int = 1) -> None:
        if side not in (0, 1):
            raise ValueError(f"side is 0 (Radiant) or 1 (Dire), not {side}")
        self.num_envs = num_envs
        self.games = VecGame(config or GameConfig(), num_envs, threads=threads)
        self.games.controllers[:, 1 - side] = opponent
        self._side = side
        self._rewards = reward_config
        self._spirit = team_spirit
        self._streams: list[np.random.Generator] = []
        layout = self.games.layout
        self.single_observation_space = spaces.Dict({
            name: space_of(shape, dtype) for name, (shape, dtype) in layout.array_specs().items()})
        parts = [MAX_AVAILABLE, DELAYS, layout.units, layout.units, OFFSETS, OFFSETS]
        self.single_action_space = spaces.MultiDiscrete(np.tile(parts, (layout.heroes, 1)), dtype=np.int16)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._actions = np.zeros((num_envs, TEAMS, layout.heroes, 6), np.int16)

    def reset(self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
              ) -> tuple[dict[str, Array], dict[str, Any]]:
        """New games: of ``seed``, ``seed + 1``, ... or of a seed each; without one the streams of games go on.

        ``options["reset_mask"]`` bool [num_envs] leaves the others as they are. Raises ValueError for a mask or a
        list of seeds of another length.
        """
        super().reset(seed=seed if isinstance(seed, int) else None)
        mask = np.asarray((options or {}).get("reset_mask", np.ones(self.num_envs)), np.bool_)
        seeds = [seed + i for i in range(self.num_envs)] if isinstance(seed, int) else \
            list(seed) if seed is not None else [None] * self.num_envs
        if len(seeds) != self.num_envs or mask.shape != (self.num_envs,):
            raise ValueError(f"{len(seeds)} seeds and a mask of {mask.shape} do not fit {self.num_envs} games")
        if not self._streams:
            self._streams = [seeding.np_random(None)[0] for _ in range(self.num_envs)]
        for i in np.flatnonzero(mask):
            if seeds[i] is not None:
                self._streams[i], _ = seeding.np_random(seeds[i])
            self._begin(int(i))
        return self._observations(), self._infos()

    def step(self, actions: Array) -> tuple[dict[str, Array], Array, Array, Array, dict[str, Any]]:
        """One timestep, 4 / 30 s of game time, of every game; those that ended in the last one are reset instead."""
        over = np.flatnonzero(self.games.winner != Winner.RUNNING)
        for i in over:
            self._begin(int(i))
        self._actions[:, self._side] = actions
        running = np.setdiff1d(np.arange(self.num_envs), over)
        earned = np.zeros(self.num_envs, np.float64)
        if running.size:
            self.games.step(self._actions, running)
            each, _ = rewards(self.games.signals, self.games.game_time, self._spirit, self._rewards)
            earned[running] = each[running, self._side].mean(-1)
        winner = self.games.winner
        return (self._observations(), earned, (winner == Winner.RADIANT) | (winner == Winner.DIRE),
                winner == Winner.DRAW, self._infos())

    def _begin(self, game: int) -> None:
        self.games.reset_as(game, int(self._streams[game].integers(2**63)))

    def _observations(self) -> dict[str, Array]:
        # Copies: the core writes the next step over its arrays.
        return {name: array[:, self._side].copy() for name, array in self.games.obs.items()}

    def _infos(self) -> dict[str, Any]:
        means = self.games.stats[:, self._side].mean(1)
        return {**{name: means[:, i].copy() for i, name in enumerate(STATS)}, "game_time": self.games.game_time.copy()}
