"""The games of the preset ``laptop-1v1`` in self-play, as one array a hero, for trainers of other projects."""

from typing import Any

import numpy as np
import numpy.typing as npt

from dota.gymnasium_vector_env import DotaVectorEnv

Array = npt.NDArray[Any]
ROWS = 256  # heroes that play at once, as in the preset: 128 games of two
WIDTH = 96  # units of encoder and LSTM: some 317,000 parameters, where the preset's network has 303,764
UNROLL = 16  # steps of a sample, the preset's learning.lstm_unroll_length
LEARNING_RATE = 1e-3


def self_play(rows: int) -> DotaVectorEnv:
    """Return ``rows / 2`` games whose heroes are the rows."""
    return DotaVectorEnv(rows, preset="laptop-1v1", opponent="self", autoreset="same_step")


class LastHits:
    """Last hits a minute of the last games that ended."""

    def __init__(self, games: int = 200) -> None:
        self._games = games
        self._rates: list[float] = []

    def record(self, infos: dict[str, Any]) -> None:
        """Take the ended games of one step from the environment's ``infos``."""
        final = infos.get("final_info")
        if final is None:
            return
        ended = np.flatnonzero(infos["_final_info"])
        # Gymnasium below 1.0 has a dictionary for each row, later versions an array for each statistic.
        rows = [(final["last_hits"][i], final["game_time"][i]) if isinstance(final, dict)
                else (final[i]["last_hits"], final[i]["game_time"]) for i in ended.tolist()]
        self._rates += [60 * float(hits) / max(float(seconds), 60.0) for hits, seconds in rows]
        del self._rates[: -2 * self._games]

    def mean(self) -> float:
        """Return the mean over heroes, 0 before a game has ended."""
        return float(np.mean(self._rates)) if self._rates else 0.0
