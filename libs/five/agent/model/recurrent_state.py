"""Shapes of a team's recurrent state: what rollouts keep of a model without knowing it."""

import numpy as np
import numpy.typing as npt

from dota.spaces import Layout
from five.agent.config import ModelConfig


def state_specs(layout: Layout, config: ModelConfig) -> dict[str, tuple[tuple[int, ...], npt.DTypeLike]]:
    """Shape and dtype of each array of one team's recurrent state. All zero at the start of a game.

    ``target_embedding`` is the embedding that the unit targeted last had then: the previous-action block shows it.
    """
    h = layout.heroes
    return {"h": ((h, config.lstm), np.float32), "c": ((h, config.lstm), np.float32),
            "target_embedding": ((h, config.key), np.float32)}
