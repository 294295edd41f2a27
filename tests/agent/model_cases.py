"""Layouts, sizes and random but valid team-steps for the model's tests."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dota.config import GameConfig, ObservationConfig
from dota.spaces import Layout
from five.agent.config import ModelConfig

# Tests share their cores: threads that wait for each other there cost more than they give at these sizes.
torch.set_num_threads(1)

SMALL = ModelConfig(
    lstm=24, lstm_input=16, key=6, unit_hidden=12, unit=8, set_hidden=7, set=5, unit_embedding=4,
    animation_embedding=2, modifier_embedding=3, ability_embedding=3, item_embedding=3, pickup_embedding=2,
    build_embedding=2, area_embedding=2, conv_filters=3, auxiliary_hidden=8)


def layout(heroes: int) -> Layout:
    """A small layout of 1 or 5 heroes a team."""
    slots = ObservationConfig(allied_creeps=6, neutral_creeps=3, buildings=4, wards=2, hero_modifiers=3, pickups=2,
                              minimap=6, nearby_map=4, passability=3)
    if heroes == 1:
        return Layout(GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], observation=slots))
    return Layout(GameConfig(heroes_per_team=heroes, observation=slots))


def random_arrays(of: Layout, *lead: int, seed: int = 0, present: float = 0.4) -> dict[str, npt.NDArray]:
    """Team-steps with random floats, random present rows, 1 to 12 available actions and some valid targets."""
    rng = np.random.default_rng(seed)
    arrays = of.allocate(*lead)
    arrays["shared"][:] = rng.normal(size=arrays["shared"].shape)
    arrays["private"][:] = rng.normal(size=arrays["private"].shape)
    spaces = {"unit": 30, "animation": 8, "modifier": 40, "ability": 40, "item": 40, "pickup": 4, "build": 5,
              "next_item": 40, "area_effect": 20, "action": len(of.actions), "target_slot": of.units}
    for block in of.blocks.values():
        for field in block.fields:
            if field.array not in ("shared_ids", "private_ids"):
                continue
            rows = arrays[field.array][..., block.span(field.array)].reshape(
                *arrays[field.array].shape[:-1], block.instances, block.width(field.array))
            shape = rows[..., field.offset:field.offset + field.count].shape
            ids = rng.integers(1, spaces[field.name], shape) * (rng.random(shape) < present)
            rows[..., field.offset:field.offset + field.count] = ids
            arrays[field.array][..., block.span(field.array)] = rows.reshape(*rows.shape[:-2], -1)
    units = arrays["shared_ids"][..., of.blocks["units"].span("shared_ids")].reshape(*lead, of.units, -1)
    units[..., :of.heroes, 0] = rng.integers(1, 30, (*lead, of.heroes))
    arrays["shared_ids"][..., of.blocks["units"].span("shared_ids")] = units.reshape(*lead, -1)
    many = rng.integers(1, 13, (*lead, of.heroes, 1))
    order = np.argsort(rng.random((*lead, of.heroes, len(of.actions) - 1)), -1)[..., :30] + 1
    arrays["available"][:] = np.where(np.arange(30) < many, order, 0)
    valid = rng.random(arrays["target_mask"].shape) < 0.3
    arrays["target_mask"][:] = valid & (units[..., 0] != 0)[..., None, None, :]
    return arrays


def random_obs(of: Layout, *lead: int, seed: int = 0, present: float = 0.4) -> dict[str, Tensor]:
    """The same as tensors."""
    return {name: torch.from_numpy(array) for name, array in random_arrays(of, *lead, seed=seed,
                                                                           present=present).items()}


def write_rows(of: Layout, arrays: dict[str, Tensor], array: str, block: str, rows: slice | list[int],
               values: Tensor | int | float) -> None:
    """Overwrites rows of a block in place: all fields of ``array``."""
    b = of.blocks[block]
    view = arrays[array][..., b.span(array)].unflatten(-1, (b.instances, b.width(array)))
    view[..., rows, :] = values
