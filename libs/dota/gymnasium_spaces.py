"""Gymnasium spaces of observations and actions."""

import numpy as np
from gymnasium import spaces

from dota.agents import AgentView


def _box(shape: tuple[int, ...], dtype: np.dtype) -> spaces.Box:
    if dtype.kind == "f":
        return spaces.Box(-np.inf, np.inf, shape, dtype.type)
    return spaces.Box(0, 1 if dtype == np.int8 else np.iinfo(np.uint16).max, shape, dtype.type)


def observation_space(view: AgentView) -> spaces.Space:  # type: ignore[type-arg]
    """Return a Box of one row for ``flat``, else a Dict."""
    boxes = {name: _box(shape, np.dtype(dtype)) for name, (shape, dtype) in view.array_shapes().items()}
    return boxes["observation"] if view.observation == "flat" else spaces.Dict(boxes)  # type: ignore[arg-type]


def action_space(view: AgentView) -> spaces.Space:  # type: ignore[type-arg]
    """Return a Discrete for one-number actions, else a MultiDiscrete of all heroes' parts."""
    return spaces.Discrete(int(view.parts[0])) if len(view.parts) == 1 else spaces.MultiDiscrete(view.parts)
