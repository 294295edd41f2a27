"""The input reader compared with the layout's description, slot by slot."""

import numpy as np
import pytest
import torch

from dota.config import GameConfig, ObservationConfig
from dota.spaces import Block, Layout
from five.agent.model.input_structure import unit_groups
from five.agent.model.inputs import InputReader
from five.agent.model.policy import Policy
from tests.agent.model_cases import SMALL, layout, random_arrays


def bare_layout() -> Layout:
    """Return a layout with as many empty blocks as a configuration allows."""
    slots = ObservationConfig(allied_creeps=3, neutral_creeps=0, buildings=2, wards=0, couriers=0, hero_modifiers=0,
                              unit_modifiers=0, pickups=0, minimap=2, nearby_map=2, passability=2)
    return Layout(GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], observation=slots))


def row(arrays: dict[str, np.ndarray], block: Block, array: str, lead: tuple[int, ...], i: int) -> np.ndarray:
    """Return a block's row as the layout's docstring defines it."""
    at = block.offset[array] + i * block.stride[array]
    values: np.ndarray = arrays[array][lead][at:at + block.stride[array]]
    return values


@pytest.mark.parametrize("of", [layout(1), layout(5), bare_layout()], ids=["1v1", "5v5", "bare"])
def test_rows_match_the_layout(of: Layout) -> None:
    arrays = random_arrays(of, 3)
    inputs = InputReader(of)({name: torch.from_numpy(a) for name, a in arrays.items()})
    b, h = of.blocks, of.heroes
    packed = 0
    for n in range(3):
        for slot in range(of.units):
            identity = row(arrays, b["units"], "shared_ids", (n,), slot)
            r = int(inputs.unit_row[n, slot])
            assert (r >= 0) == (identity[0] != 0)
            if r < 0:
                continue
            packed += 1
            assert (int(inputs.unit_step[r]), int(inputs.unit_slot[r])) == (n, slot)
            assert slot in unit_groups(of)[int(inputs.unit_group[r])].slots
            np.testing.assert_array_equal(inputs.floats["units"][r], row(arrays, b["units"], "shared", (n,), slot))
            assert (int(inputs.ids["unit"][r]), int(inputs.ids["animation"][r])) == tuple(identity)
            for hero in range(h):
                np.testing.assert_array_equal(inputs.floats["units/private"][r, hero],
                                              row(arrays, b["units"], "private", (n, hero), slot))
                if slot < 2 * h:
                    np.testing.assert_array_equal(inputs.floats["heroes/private"][r, hero],
                                                  row(arrays, b["heroes"], "private", (n, hero), slot))
            if slot < 2 * h:
                np.testing.assert_array_equal(inputs.floats["heroes"][r],
                                              row(arrays, b["heroes"], "shared", (n,), slot))
            if slot < h:
                np.testing.assert_array_equal(inputs.floats["allied_heroes"][r],
                                              row(arrays, b["allied_heroes"], "shared", (n,), slot))
                purchases = row(arrays, b["allied_heroes"], "shared_ids", (n,), slot)
                assert (int(inputs.ids["build"][r]), int(inputs.ids["next_item"][r])) == tuple(purchases)
    assert packed == len(inputs.unit_step) == sum(inputs.group_rows)


@pytest.mark.parametrize("name", ["hero_modifiers", "unit_modifiers", "hero_abilities", "hero_items", "pickups"])
def test_set_rows_belong_to_their_owner(name: str) -> None:
    of = layout(5)
    arrays = random_arrays(of, 3)
    reader = InputReader(of)
    inputs = reader({key: torch.from_numpy(a) for key, a in arrays.items()})
    spec = reader.sets[name]
    heroes = sum(inputs.group_rows[:2])
    expected = []
    for n in range(3):
        for i in range(spec.block.instances):
            identity = int(row(arrays, spec.block, "shared_ids", (n,), i)[0])
            values = row(arrays, spec.block, "shared", (n,), i)
            if name == "pickups":
                if identity or values[:3].any():
                    expected.append((n, identity, values.tolist()))
                continue
            owner = int(inputs.unit_row[n, spec.first_owner + i // spec.per_owner])
            if identity and owner >= 0:
                expected.append((owner - (heroes if name == "unit_modifiers" else 0), identity, values.tolist()))
    found = list(zip(inputs.sets[name].owner.tolist(), inputs.ids[name].tolist(), inputs.floats[name].tolist(),
                     strict=True))
    assert sorted(found) == sorted(expected) and len(found) > 3


def test_maps_and_previous_action_are_read() -> None:
    of = layout(5)
    arrays = random_arrays(of, 2)
    inputs = InputReader(of)({name: torch.from_numpy(a) for name, a in arrays.items()})
    b = of.blocks
    np.testing.assert_array_equal(inputs.floats["minimap"][1, 7], row(arrays, b["minimap"], "shared", (1,), 7))
    np.testing.assert_array_equal(inputs.floats["nearby_map"][1, 3, 5],
                                  row(arrays, b["nearby_map"], "private", (1, 3), 5))
    np.testing.assert_array_equal(inputs.ids["area"][1, 3, 5], row(arrays, b["nearby_map"], "private_ids", (1, 3), 5))
    np.testing.assert_array_equal(inputs.floats["global"][1], row(arrays, b["global"], "shared", (1,), 0))
    previous = b["previous_action"]
    np.testing.assert_array_equal(inputs.floats["previous_action"][0, 2], row(arrays, previous, "private", (0, 2), 0))
    assert int(inputs.ids["previous_action"][0, 2]) == int(
        row(arrays, previous, "private_ids", (0, 2), 0)[previous.field("action").offset])


def test_ids_of_any_integer_type() -> None:
    of = layout(1)
    obs = {name: torch.from_numpy(a) for name, a in random_arrays(of, 2).items()}
    policy = Policy(of, SMALL)
    base = policy.act(obs, policy.initial_state(2), greedy=True)
    wide = {name: a.to(torch.int32) if a.dtype == torch.uint16 else a for name, a in obs.items()}
    assert torch.equal(policy.act(wide, policy.initial_state(2), greedy=True).logp, base.logp)


def test_a_bare_layout_acts_and_learns() -> None:
    of = bare_layout()
    policy = Policy(of, SMALL)
    obs = {name: torch.from_numpy(a) for name, a in random_arrays(of, 4, 3).items()}
    actions = torch.zeros(4, 3, 1, 6, dtype=torch.int16)
    out = policy.unroll(obs, actions, policy.initial_state(3))
    (out.logp.sum() + out.values.sum()).backward()
    assert torch.isfinite(out.values).all()
