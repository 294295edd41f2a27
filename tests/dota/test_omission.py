"""Omitted layout fields: the rest is unchanged to the bit, and required fields cannot be omitted."""

import numpy as np
import pytest

from dota.config import GameConfig
from dota.omission import NEEDED, WHOLE_BLOCKS
from dota.spaces import Layout
from dota.tables import core_layout
from dota.vec_game import Controller, VecGame
from tests.dota.watching import SMALL, read

BASE = {"heroes_per_team": 2, "observation": SMALL.model_dump(), "start_seconds": -5.0}
FULL = Layout(GameConfig.model_validate(BASE))
FIELDS = [f"{block.name}.{field.name}" for block in FULL.blocks.values() for field in block.fields
          if f"{block.name}.{field.name}" not in NEEDED]


def config(*omit: str) -> GameConfig:
    return GameConfig.model_validate(BASE | {"observation": BASE["observation"] | {"omit": omit}})


def played(of: GameConfig, steps: int) -> VecGame:
    game = VecGame(of, 1, seed=3)
    game.controllers[:] = Controller.SCRIPTED
    for _ in range(steps):
        game.step()
    return game


def equal(full: VecGame, less: VecGame) -> None:
    for block in less.layout.blocks.values():
        for field in block.fields:
            if field.array == "model":
                continue
            for team in range(2):
                for hero in range(less.layout.heroes):
                    np.testing.assert_array_equal(
                        read(full.layout, full.obs, block.name, field.name, (0, team), hero),
                        read(less.layout, less.obs, block.name, field.name, (0, team), hero),
                        err_msg=f"{block.name}.{field.name}")
    for name in ("available", "target_mask"):
        np.testing.assert_array_equal(full.obs[name], less.obs[name])


def test_every_field_that_may_go_is_one_of_the_tables() -> None:
    for field in FIELDS:
        assert Layout(config(field)).omitted == (field,)
    assert Layout(config()).omitted == () and Layout(config()).hash == FULL.hash


@pytest.mark.parametrize("omit", [
    WHOLE_BLOCKS,
    ("global.time", "units.position", "units.animation", "heroes.in_line", "allied_heroes.build",
     "allied_heroes.next_item", "nearby_map.area_effect", "pickups.distance", "previous_action.offsets",
     "previous_action.action", "previous_action.target_slot", "units.vector"),
    ("nearby_map.area", "nearby_map.elevation", "items.treads", "abilities.levels", "minimap.cell",
     "unit_modifiers.remaining", "hero_modifiers.stacks", "allied_heroes.passability"),
], ids=["blocks", "most arrays", "within rows"])
def test_the_rest_of_the_observation_is_the_same(core, omit: tuple[str, ...]) -> None:
    full, less = played(config(), 260), played(config(*omit), 260)
    assert full.hash(0) == less.hash(0), "what is seen changes no game"
    assert less.layout.hash != full.layout.hash and less.layout.shared < full.layout.shared
    equal(full, less)


def test_the_core_finds_every_remaining_field(core) -> None:
    for field in FIELDS:
        layout = Layout(config(field))
        resolved = core.Layout(core_layout(layout))
        assert field not in resolved.unwritten_fields
        for number, array in enumerate(("shared", "private", "shared_ids", "private_ids")):
            assert len(resolved.trace(number)[0]) == layout.array_specs()[array][0][-1]


@pytest.mark.parametrize(("omit", "words"), [
    (("units.positions",), r"'units\.positions' is not a field; did you mean 'units\.position'"),
    (("nonsense",), "is not a field"), (("units",), "is not a field"), (("pickups",), "slot count to 0"),
    (("units.unit",), "it says whether a slot is taken"), (("units.max_hp",), "building events"),
    (("items", "items.charges"), "listed twice"), (("global.time", "global.time"), "listed twice"),
    (("minimap.visible", "minimap.creeps", "minimap.wards", "minimap.enemy_heroes", "minimap.cell"),
     "leave out the block 'minimap' instead"),
    (tuple(f for f in FIELDS if f.startswith("global.")), "keep one of its fields"),
])
def test_required_fields_cannot_be_omitted(omit: tuple[str, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Layout(config(*omit))
