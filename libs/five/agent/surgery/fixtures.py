"""Synthetic policies and samples that resemble trained ones, to measure surgery without a run."""

from typing import Any

import numpy as np
import numpy.typing as npt

from dota.spaces import MAX_AVAILABLE, Layout
from five.agent.surgery.check import RecordedSamples
from five.agent.surgery.observation_labels import SPACES
from five.agent.surgery.remap import sample_initial
from five.agent.surgery.spec import AgentSpec
from five.agent.surgery.tensor_labels import TensorLabels

Array = npt.NDArray[Any]
HEAD_SCALE = 10.0  # factor on the heads' initial scale, because an initial policy is nearly uniform
STATISTIC_ROWS = 1e5  # count of the input statistics
PRESENT_SHARE = 0.4  # share of slots that are occupied


def make_trained_version(spec: AgentSpec, seed: int = 0) -> dict[str, Array]:
    """Return a random version of ``spec`` with non-uniform heads, gates and input statistics, so that any wrong weight
    shows."""
    random = np.random.default_rng(seed)
    return {name: _make_tensor(name, labelled, random) for name, labelled in spec.labels.items()}


def _make_tensor(name: str, labelled: TensorLabels, random: np.random.Generator) -> Array:
    if not labelled.trained:
        kind = name.rpartition(".")[2]
        values = {"count": np.full(labelled.shape, STATISTIC_ROWS), "mean": 0.5 * random.normal(size=labelled.shape),
                  "squares": STATISTIC_ROWS * random.uniform(0.2, 3.0, labelled.shape)}
        return values[kind].astype(labelled.dtype)
    array = sample_initial(labelled.initial, labelled.shape, random)
    if name.startswith(("heads.", "value.")):
        array *= HEAD_SCALE
    if name == "heads.gate.weight":
        array = random.normal(size=labelled.shape).astype(np.float32)
    if name.startswith("core."):
        array += (0.3 * random.normal(size=array.shape) / array.shape[-1] ** 0.5).astype(np.float32)
    if labelled.none:
        array[0] = 0
    return array


def make_random_samples(spec: AgentSpec, steps: int = 5, teams: int = 3, seed: int = 1) -> RecordedSamples:
    """Return random but valid samples, time first: present units, available actions, recurrent states, and one game
    start."""
    random = np.random.default_rng(seed)
    layout, model = spec.layout, spec.model
    arrays = _make_observations(layout, (steps, teams), random)
    actions = np.zeros((steps, teams, layout.heroes, 6), np.int16)
    offered = (arrays["available"] != 0).sum(-1)
    for part, below in enumerate((offered, 4, layout.units, layout.units, 9, 9)):
        actions[..., part] = random.integers(0, below, actions.shape[:-1])
    resets = np.zeros((steps, teams), np.bool_)
    resets[steps // 2, 0] = True
    widths = {"h": model.lstm, "c": model.lstm, "target_embedding": model.key}
    state = {name: (0.5 * random.normal(size=(teams, layout.heroes, width))).astype(np.float32)
             for name, width in widths.items()}
    return RecordedSamples(arrays, actions, state, resets)


def _make_observations(layout: Layout, leading: tuple[int, ...], random: np.random.Generator) -> dict[str, Array]:
    arrays = layout.allocate(*leading)
    for name in ("shared", "private"):
        arrays[name][:] = random.normal(size=arrays[name].shape)
    named = {"unit": 30, "animation": 8, "modifier": 40, "ability": 40, "item": 40, "pickup": 4, "build": 5, "area": 20,
             "action": len(layout.actions), "target_slot": layout.units}
    for block in layout.blocks.values():
        for field in block.fields:
            space = SPACES.get(f"{block.name}.{field.name}")
            if space is None or field.array not in arrays:
                continue
            rows = arrays[field.array][..., block.span(field.array)].reshape(
                *arrays[field.array].shape[:-1], block.instances, block.width(field.array))
            shape = rows[..., field.offset:field.offset + field.count].shape
            ids = random.integers(1, named[space], shape) * (random.random(shape) < PRESENT_SHARE)
            if space == "unit":
                ids[..., :layout.heroes, 0] = random.integers(1, named[space], ids[..., :layout.heroes, 0].shape)
                present = ids[..., 0] != 0
            rows[..., field.offset:field.offset + field.count] = ids
            arrays[field.array][..., block.span(field.array)] = rows.reshape(*rows.shape[:-2], -1)
    heroes = (*leading, layout.heroes)
    order = np.argsort(random.random((*heroes, len(layout.actions) - 1)), -1)[..., :MAX_AVAILABLE] + 1
    arrays["available"][:] = np.where(np.arange(MAX_AVAILABLE) < random.integers(1, 13, (*heroes, 1)), order, 0)
    arrays["target_mask"][:] = (random.random(arrays["target_mask"].shape) < 0.3) & present[..., None, None, :]
    return arrays
