"""The games of the preset ``laptop-1v1`` in self-play, as one array a hero, for trainers of other projects."""

from typing import Any, NamedTuple

import numpy.typing as npt

from dota import presets
from dota.gymnasium_vector_env import DotaVectorEnv

Array = npt.NDArray[Any]
ROWS = 512  # heroes that play at once, as in the preset: 256 games of two
WIDTH = 96  # units of encoder and LSTM: some 317,000 parameters, where the preset's network has 303,764
UNROLL = 16  # steps of a sample, the preset's learning.lstm_unroll_length
LEARNING_RATE = 1e-3


class Learning(NamedTuple):
    """Settings of a training that is judged by what it learned, nearer to the preset's: its gradient steps have 768
    hero-steps, its first horizon is 30 s."""

    minibatch: int = 2048
    entropy: float = 0.01
    discount: float = 1 - presets.load("laptop-1v1").game.timestep_seconds / 30
    gae_lambda: float = 0.95


def self_play(rows: int) -> DotaVectorEnv:
    """Return ``rows / 2`` games whose heroes are the rows."""
    return DotaVectorEnv(rows, preset="laptop-1v1", opponent="self", autoreset="same_step")
