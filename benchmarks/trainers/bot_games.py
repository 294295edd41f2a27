"""Games of a trained policy against a bot, for trainers of other projects."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from dota import presets
from dota.config import evaluation_game
from dota.gymnasium_vector_env import DotaVectorEnv
from dota.vec_game import TEAMS

Array = npt.NDArray[Any]
Act = Callable[[Array, Array], Array]  # observations [n, F] and masks [n, A] to actions [n]
AGAINST = "scripted-easy"
GAMES = 100


def play_bot(begin: Callable[[DotaVectorEnv], Act], games: int = GAMES, against: str = AGAINST) -> dict[str, float]:
    """Play half of the games on each side, without randomisation, and return the sums of their results.

    ``begin`` returns the policy at the start of ``games / 2`` games that are played at once.
    """
    total = dict.fromkeys(("won", "drawn", "lost", "last_hits", "game_minutes"), 0.0)
    for side in range(TEAMS):
        env = DotaVectorEnv(games // TEAMS, config=evaluation_game(presets.load("laptop-1v1").game),
                            opponent=against.removeprefix("scripted-"), side=side, autoreset="disabled")
        observations, infos = env.reset(seed=0)
        act, running = begin(env), np.ones(games // TEAMS, np.bool_)
        while running.any():
            observations, _, terminated, truncated, infos = env.step(act(observations, infos["action_mask"]))
            ended = running & (terminated | truncated)
            running &= ~ended
            for row in np.flatnonzero(ended).tolist():
                total["won" if infos["won"][row] else "drawn" if truncated[row] else "lost"] += 1
                total["last_hits"] += float(infos["last_hits"][row])
                total["game_minutes"] += float(infos["game_time"][row]) / 60
    return total
