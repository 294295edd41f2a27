"""Sampling of actions at another temperature than that of training.

At a temperature below 1 a policy takes its more probable actions more often. In training the entropy bonus keeps
probability on poor actions, so that they are tried; who plays to win need not.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
# Layers whose outputs are logits or, as queries in dot products with keys, proportional to them.
LAYERS = ("heads.primary.", "heads.unit.", "heads.teleport.", "heads.delay.", "heads.offsets.", "heads.unit_splits.")


def at_temperature(tensors: Mapping[str, Array], temperature: float) -> dict[str, Array]:
    """Return a version's tensors for a policy whose action logits are those of ``tensors`` divided by ``temperature``.

    Values, state and auxiliary outputs stay. Tensors of the action heads are copies, others the given ones. Raises
    ValueError for a temperature of 0 or less.
    """
    if not temperature > 0:
        raise ValueError(f"temperature {temperature!r}: must be above 0; the most probable actions are `greedy`")
    if temperature == 1:
        return dict(tensors)
    return {name: array / np.asarray(temperature, array.dtype) if name.startswith(LAYERS) else array
            for name, array in tensors.items()}
