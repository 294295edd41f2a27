"""Shapes of a team's recurrent state, for rollouts, which do not import the model."""

import numpy as np
import numpy.typing as npt

from dota.spaces import Layout
from five.agent.config import ModelConfig


def state_specs(layout: Layout, config: ModelConfig) -> dict[str, tuple[tuple[int, ...], npt.DTypeLike]]:
    """Return shape and dtype of each array of a team's recurrent state, which is zero at the start of a game.

    ``target_embedding`` is the embedding of the last targeted unit; the previous-action block shows it.
    """
    h = layout.heroes
    return {"h": ((h, config.lstm), np.float32), "c": ((h, config.lstm), np.float32),
            "target_embedding": ((h, config.key), np.float32)}
