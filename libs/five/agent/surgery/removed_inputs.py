"""Recorded team-steps with some inputs replaced by constants, the reference for removing these inputs."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from five.agent.model.input_structure import feature_streams, unit_groups
from five.agent.surgery.observation_labels import cell_labels, slot_labels
from five.agent.surgery.spec import AgentSpec
from five.agent.surgery.steps.remove import RemoveInputs
from five.agent.surgery.tensor_labels import field_of

Array = npt.NDArray[Any]


def replace_removed_inputs(step: RemoveInputs, spec: AgentSpec, tensors: Mapping[str, Array],
                           arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return ``arrays`` with the fields that ``step`` removes replaced by constants.

    A field gets its value of ``constants``, otherwise the running mean of its row's group; ids become "none". Numeric
    arrays are returned as float32, because a mean may not be a float16.
    """
    removed = set(step.apply(spec).layout.omitted) - set(spec.layout.omitted)
    (statistics,) = spec.labels["normaliser.mean"].axes
    statistic_index = {label: i for i, label in enumerate(statistics.labels)}
    stream_of = {(stream.block.name, stream.array): (name, stream.groups)
                 for name, stream in feature_streams(spec.layout).items()}
    tower_of = _unit_branches(spec)
    out = dict(arrays)
    for name, labels in cell_labels(spec.layout).items():
        cells: list[tuple[int, list[str]]] = [
            (i, label.split("|")) for i, label in enumerate(labels) if field_of(label) in removed]
        if not cells or name not in arrays:
            continue
        numeric = np.issubdtype(arrays[name].dtype, np.floating)
        changed = arrays[name].astype(np.float32 if numeric else arrays[name].dtype)
        for i, (block, instance, label) in cells:
            value = 0.0
            if numeric:
                stream, groups = stream_of[block, name]
                group = tower_of[instance] if any(groups) else ""
                value = _constant_value(step, label, statistic_index[f"{stream}:{group}:{label}"], tensors)
            changed[..., i] = value
        out[name] = changed
    return out


def _constant_value(step: RemoveInputs, label: str, index: int, tensors: Mapping[str, Array]) -> float:
    field = field_of(label)
    if field in step.constants:
        return step.constants[field]
    return float(tensors["normaliser.mean"][index]) if tensors["normaliser.count"][index] > 0 else 0.0


def _unit_branches(spec: AgentSpec) -> dict[str, str]:
    """Return the network branch of each unit slot, by the slot's label."""
    labels = slot_labels(spec.layout)
    return {labels[slot]: tower.name for tower in unit_groups(spec.layout) for slot in tower.slots}
