"""Conversion of recorded observations between layouts: shared entries move, new ones are empty or random.

Ids need no conversion, because they are the same in every patch and layout (`dota.registry`).
"""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dota.spaces import ActionPart, Layout
from five.agent.config import IdSpace, ModelConfig
from five.agent.model.input_structure import id_rows
from five.agent.surgery.observation_labels import ARRAYS, SPACES, cell_labels, slot_labels
from five.agent.surgery.plan import Plan
from five.agent.surgery.spec import AgentSpec
from five.agent.surgery.steps.slots import ResizeSlots
from five.agent.surgery.tensor_labels import field_of

Array = npt.NDArray[Any]
Arrays = dict[str, Array]
NewInputs = Literal["empty", "random"]


def convert_observations(plan: Plan, old: AgentSpec, arrays: Mapping[str, Array], new_inputs: NewInputs = "empty",
                         seed: int = 0) -> Arrays:
    """Convert team-steps, and ``actions`` if present, from the layout of the plan's parent to that of its target.

    ``arrays``: `Layout.array_specs` with any leading dimensions. New entries are zero. With ``new_inputs`` "random" new
    fields hold random numbers and ids, and added slots stay empty. Raise ValueError for arrays of another layout, or as
    `Plan.stages` does.
    """
    found = dict(arrays)
    for stage in plan.stages(old):
        fill: NewInputs = "empty" if isinstance(stage.step, ResizeSlots) else new_inputs
        found = convert(stage.before, stage.after, found, fill, seed + stage.number)
    return found


def convert(old: AgentSpec, new: AgentSpec, arrays: Mapping[str, Array], new_inputs: NewInputs = "empty",
            seed: int = 0) -> Arrays:
    """Convert arrays over one step; see `convert_observations`."""
    before, after = old.layout, new.layout
    if before.heroes != after.heroes:
        raise ValueError(f"observations of {before.heroes} heroes cannot be converted to {after.heroes} heroes")
    for name, (shape, _) in before.array_specs().items():
        if name in arrays and arrays[name].shape[-len(shape):] != shape:
            raise ValueError(f"{name} is {list(arrays[name].shape)} and does not end in {list(shape)} of layout "
                             f"{before.hash}")
    if before.hash == after.hash:
        return dict(arrays)
    random = np.random.default_rng(seed)
    out = dict(arrays)
    old_cells, new_cells = cell_labels(before), cell_labels(after)
    for name in ARRAYS:
        if name in arrays:
            source = _convert_target_slots(before, after, arrays[name]) if name == "private_ids" else arrays[name]
            out[name] = _convert_array(source, old_cells[name], new_cells[name], new_inputs, random, new)
    slots = {label: i for i, label in enumerate(slot_labels(before))}
    kept = np.array([slots.get(label, -1) for label in slot_labels(after)], np.int64)
    if "target_mask" in arrays:
        mask = np.zeros((*arrays["target_mask"].shape[:-1], after.units), np.uint8)
        mask[..., kept >= 0] = arrays["target_mask"][..., kept[kept >= 0]]
        out["target_mask"] = mask
    if "actions" in arrays:
        out["actions"] = _convert_actions(arrays["actions"], before.units, kept)
    return out


def convert_state(old: AgentSpec, new: AgentSpec, state: Mapping[str, Array]) -> Arrays:
    """Convert a recurrent state [..., H, width] to the new model. New units begin at zero, as at the start of a
    game."""
    widths = {"h": new.model.lstm, "c": new.model.lstm, "target_embedding": new.model.key}
    out = {}
    for name, array in state.items():
        out[name] = np.zeros((*array.shape[:-1], widths[name]), array.dtype)
        out[name][..., :array.shape[-1]] = array[..., :widths[name]]
    return out


def _convert_array(source: Array, old: tuple[str, ...], new: tuple[str, ...], new_inputs: NewInputs,
                   random: np.random.Generator, spec: AgentSpec) -> Array:
    if old == new:
        return source
    old_index = {label: i for i, label in enumerate(old)}
    index = np.array([old_index.get(label, -1) for label in new], np.int64)
    out = np.zeros((*source.shape[:-1], len(new)), source.dtype)
    out[..., index >= 0] = source[..., index[index >= 0]]
    if new_inputs == "random":
        for i in np.flatnonzero(index < 0):
            shape = source.shape[:-1]
            if source.dtype.kind == "f":
                out[..., i] = random.normal(size=shape)
                continue
            space = SPACES[field_of(new[i])]
            high = spec.layout.units + 1 if space == "target_slot" else _id_rows(spec.model, space)
            out[..., i] = random.integers(0, high, shape) * (random.random(shape) < 0.5)
    return out


def _id_rows(model: ModelConfig, space: str) -> int:
    known: IdSpace = space  # type: ignore[assignment]
    return id_rows(model, known)


def _convert_actions(actions: Array, units: int, kept: Array) -> Array:
    """Return actions with their targets in the new slots, 0 for removed slots."""
    new_slot = np.zeros(units + 1, np.int64)
    new_slot[kept[kept >= 0]] = np.flatnonzero(kept >= 0)
    out = actions.copy()
    for part in (ActionPart.UNIT, ActionPart.TELEPORT):
        out[..., part] = new_slot[np.clip(actions[..., part], 0, units - 1)]
    return out


def _convert_target_slots(before: Layout, after: Layout, array: Array) -> Array:
    """Return previously targeted slots (slot plus one) with their new numbers, in the old layout."""
    new_slots = {label: i for i, label in enumerate(slot_labels(after))}
    table = np.array([0, *(new_slots.get(label, -1) + 1 for label in slot_labels(before))], np.int64)
    block = before.blocks["previous_action"]
    if not block.has("target_slot"):
        return array
    out = array.copy()
    column = block.offset["private_ids"] + block.field("target_slot").offset
    out[..., column] = table[np.minimum(array[..., column], before.units)]
    return out
