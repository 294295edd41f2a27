"""Arrays of segments, samples and batches: names and shapes.

A *segment* is a dictionary of arrays with a leading time dimension. Recurrent states, named ``state/<name>``, have a
leading sample dimension instead. A *sample* is ``unroll`` timesteps of it. A *batch* holds many samples, time first:
[T, B, ...], states [B, ...].

Names besides the observation's: ``actions`` int16 [T, H, 6]; ``behaviour_logp``, ``behaviour_values``,
``advantages``, ``returns``, ``mask`` float32 [T, H]; ``resets`` bool [T]; ``versions`` int32 [T]; ``win_label``
float32 [T], ``rank_label`` float32 [T, H, 5], ``building_label`` float32 [T, n]; ``outcome_mask`` float32 [T], 1 in
outcome samples (`five.agent.learning.outcome_samples`), whose ``mask`` is 0.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from five.agent.learning.labels import RANKS

STATE_PREFIX = "state/"
ACTION_PARTS = 6
LEARNING_ARRAYS = (
    "actions", "behaviour_logp", "behaviour_values", "advantages", "returns", "mask", "resets", "versions",
    "win_label", "rank_label", "building_label", "outcome_mask")

Array = npt.NDArray[Any]
Arrays = dict[str, Array]


def learning_specs(heroes: int, buildings: int) -> dict[str, tuple[tuple[int, ...], npt.DTypeLike]]:
    """Return shape and dtype per timestep of each of `LEARNING_ARRAYS`.

    ``heroes`` is the size of a team, and ``buildings`` the number of building slots of the enemy.
    """
    per_hero: tuple[tuple[int, ...], npt.DTypeLike] = ((heroes,), np.float32)
    return {
        "actions": ((heroes, ACTION_PARTS), np.int16), "behaviour_logp": per_hero, "behaviour_values": per_hero,
        "advantages": per_hero, "returns": per_hero, "mask": per_hero, "resets": ((), np.bool_),
        "versions": ((), np.int32), "win_label": ((), np.float32), "rank_label": ((heroes, RANKS), np.float32),
        "building_label": ((buildings,), np.float32), "outcome_mask": ((), np.float32)}


def split_batch(batch: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return (observation, state, learning arrays) of a batch, with states by name without prefix."""
    observation, state, learning = {}, {}, {}
    for name, array in batch.items():
        if name.startswith(STATE_PREFIX):
            state[name[len(STATE_PREFIX) :]] = array
        elif name in LEARNING_ARRAYS:
            learning[name] = array
        else:
            observation[name] = array
    return observation, state, learning


def check_batch(batch: Mapping[str, Any]) -> None:
    """Raise ValueError naming an array that is missing or whose shape does not match the actions."""
    missing = {"actions", "behaviour_logp", "advantages", "returns", "mask", "resets", "win_label", "rank_label",
               "building_label", "outcome_mask"} - batch.keys()
    if missing:
        raise ValueError(f"the batch lacks {', '.join(sorted(missing))}")
    lead, heroes = tuple(batch["actions"].shape[:2]), batch["actions"].shape[2]
    for name in ("behaviour_logp", "advantages", "returns", "mask"):
        if tuple(batch[name].shape) != (*lead, heroes):
            raise ValueError(f"{name} has shape {tuple(batch[name].shape)}, expected {(*lead, heroes)} as of actions")
    for name, array in batch.items():
        if not name.startswith(STATE_PREFIX) and tuple(array.shape[:2]) != lead:
            raise ValueError(f"{name} has shape {tuple(array.shape)}, which must begin with {lead} as of actions")
