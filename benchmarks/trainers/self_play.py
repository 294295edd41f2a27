"""The games of the preset ``laptop-1v1`` in self-play, as one array a hero, for trainers of other projects."""

from typing import Any

import numpy.typing as npt

from dota.gymnasium_vector_env import DotaVectorEnv

Array = npt.NDArray[Any]
ROWS = 512  # heroes that play at once, as in the preset: 256 games of two
WIDTH = 96  # units of encoder and LSTM: some 317,000 parameters, where the preset's network has 303,764
UNROLL = 16  # steps of a sample, the preset's learning.lstm_unroll_length
LEARNING_RATE = 1e-3
# Of a training that is judged by what it learned: a minibatch and a bonus nearer to the preset's, whose gradient steps
# have 768 hero-steps, and the discount of its first horizon, 30 s of choices every 0.27 s.
LEARNING_MINIBATCH = 2048
LEARNING_ENTROPY = 0.01
LEARNING_DISCOUNT = 1 - 0.267 / 30


def self_play(rows: int) -> DotaVectorEnv:
    """Return ``rows / 2`` games whose heroes are the rows."""
    return DotaVectorEnv(rows, preset="laptop-1v1", opponent="self", autoreset="same_step")
