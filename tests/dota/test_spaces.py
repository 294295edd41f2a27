"""The layout's sizes, and equality of the cells that the core writes and Python reads."""

import copy
import re
from pathlib import Path

import numpy as np
import pytest

from dota.config import GameConfig, ObservationConfig
from dota.spaces import MAX_AVAILABLE, ActionPart, Layout, MaskClass, TargetType, action_parts_used, actions_of
from dota.tables import core_layout

DOCS = Path(__file__).parents[2] / "docs" / "observations.md"
ARRAYS = ("shared", "private", "shared_ids", "private_ids")
SIZES = [
    GameConfig(),
    GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], observation=ObservationConfig(
        allied_creeps=7, neutral_creeps=0, buildings=5, wards=0, couriers=0, hero_modifiers=3, unit_modifiers=0,
        pickups=2, minimap=6, nearby_map=5, passability=3)),
    GameConfig(heroes_per_team=3, observation=ObservationConfig(allied_creeps=1, buildings=32, minimap=32,
                                                                nearby_map=16, passability=16, hero_modifiers=32)),
]


def test_paper_sizes() -> None:
    """Sizes of the first generation of fields: later additions are not the paper's."""
    layout = Layout(GameConfig(observation=ObservationConfig(generation=1)))
    assert layout.units == 189
    assert layout.paper_values == (14554, 1200)  # Berner et al. 2019, table 4
    # The five heroes of a team share most values: a team-step has far fewer than five times 15,754.
    assert layout.shared + layout.shared_ids == 13758
    assert layout.private + (layout.private_ids - 2) + 256 == 1996


@pytest.mark.parametrize("config", SIZES, ids=["paper", "small", "odd"])
def test_core_writes_where_python_reads(core, config: GameConfig) -> None:
    """Every field of the core fills exactly the cells that the layout gives it, and no cell twice."""
    layout = Layout(config)
    resolved = core.Layout(core_layout(layout))
    fields = [(b, f) for b in layout.blocks.values() for f in b.fields]
    for number, array in enumerate(ARRAYS):
        expected = np.zeros(layout.array_specs()[array][0][-1], np.int64)
        rows = np.zeros_like(expected)
        for index, (block, field) in enumerate(fields):
            if field.array != array:
                continue
            for i in range(block.instances):
                start = block.offset[array] + i * block.stride[array] + field.offset
                assert not expected[start:start + field.count].any(), "fields overlap"
                expected[start:start + field.count] = index + 1
                rows[start:start + field.count] = i
        got, got_rows = resolved.trace(number)
        unwritten = {name for name in resolved.unwritten_fields}
        for index, (block, field) in enumerate(fields):
            if f"{block.name}.{field.name}" in unwritten:
                rows[expected == index + 1] = 0
                expected[expected == index + 1] = 0
        np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(got_rows, rows)
        assert (np.array(got) != 0).all() or unwritten


def test_missing_and_misshapen_fields_are_named(core) -> None:
    described = core_layout(Layout(GameConfig()))
    lost = copy.deepcopy(described)
    lost["blocks"][0]["fields"] = [f for f in lost["blocks"][0]["fields"] if f["name"] != "time"]
    with pytest.raises(ValueError, match=r"global\.time is missing"):
        core.Layout(lost)
    wide = copy.deepcopy(described)
    next(f for f in wide["blocks"][1]["fields"] if f["name"] == "hp_history")["count"] = 12
    with pytest.raises(ValueError, match=r"units\.hp_history has 12 values, the core writes 16"):
        core.Layout(wide)
    moved = copy.deepcopy(described)
    next(f for f in moved["blocks"][1]["fields"] if f["name"] == "vector")["array"] = "shared"
    with pytest.raises(ValueError, match=r"units\.vector lies in 'shared'"):
        core.Layout(moved)
    outside = copy.deepcopy(described)
    outside["widths"]["shared"] = 100
    with pytest.raises(ValueError, match="ends at"):
        core.Layout(outside)


def test_docs_list_every_block_and_field(core) -> None:
    text = DOCS.read_text()
    layout = Layout(GameConfig())
    for block in layout.blocks.values():
        assert f"`{block.name}`" in text, block.name
        for field in block.fields:
            assert f"`{field.name}`" in text, f"{block.name}.{field.name}"
    unwritten = core.Layout(core_layout(layout)).unwritten_fields
    section = text.split("## Fields that are zero", 1)[1]
    for name in unwritten:
        assert f"`{name}`" in section, name
    for name in re.findall(r"^- `([a-z_]+\.[a-z_]+)` \(not written\)", section, re.M):
        assert name in unwritten, f"{name} is written now: take it off the list"


def test_hash_tells_layouts_apart() -> None:
    base = GameConfig()
    same = Layout(GameConfig())
    assert Layout(base).hash == same.hash and re.fullmatch("[0-9a-f]{16}", same.hash)
    for change in ({"observation": {"allied_creeps": 29}}, {"observation": {"mirror_dire": True}},
                   {"heroes_per_team": 4}):
        assert Layout(GameConfig.model_validate(change)).hash != same.hash
    # Games of one layout may differ in their rules.
    for change in ({"patch": "7.19"}, {"buyback": False}, {"commit_windups": True}):
        assert Layout(GameConfig.model_validate(change)).hash == same.hash


def test_actions_of_both_patches() -> None:
    for patch in ("7.21d", "7.19"):
        actions = actions_of(patch)
        assert len({a.id for a in actions}) == len({a.casts or a.name for a in actions}) == len(actions) > 140
    by_name = {a.name: a for a in actions_of("7.21d")}
    # Berner et al. 2019, table 5's examples.
    assert by_name["move"].target is TargetType.POINT
    assert by_name["attack"].target is TargetType.UNIT
    assert by_name["item_power_treads"].target is TargetType.NONE
    assert by_name["sniper_shrapnel"].target is TargetType.UNIT_OFFSET
    assert by_name["item_tpscroll"].target is TargetType.TELEPORT
    assert by_name["item_ward_observer"].target is TargetType.WARD
    assert by_name["item_tpscroll"].mask is MaskClass.TELEPORT
    assert "sniper_headshot" not in by_name  # passive


def test_parts_used() -> None:
    s, d = ActionPart.SLOT, ActionPart.DELAY
    xy = (ActionPart.OFFSET_X, ActionPart.OFFSET_Y)
    assert action_parts_used(TargetType.NONE) == (s, d)
    assert action_parts_used(TargetType.POINT) == (s, d, *xy)
    assert action_parts_used(TargetType.UNIT) == (s, d, ActionPart.UNIT)
    assert action_parts_used(TargetType.UNIT_OFFSET) == (s, d, ActionPart.UNIT, *xy)
    assert action_parts_used(TargetType.TELEPORT) == (s, d, ActionPart.TELEPORT, *xy)
    assert action_parts_used(TargetType.WARD) == (s, d, *xy)


def test_allocate_has_wire_shapes() -> None:
    layout = Layout(SIZES[1])
    arrays = layout.allocate(3, 2)
    assert arrays["available"].shape == (3, 2, 1, MAX_AVAILABLE)
    assert arrays["private"].shape == (3, 2, 1, layout.private) and arrays["private"].dtype == np.float16


def test_stub_matches_the_core(core) -> None:
    stub = (DOCS.parents[1] / "libs" / "dota" / "_core.pyi").read_text()
    named = set(re.findall(r"^(?:def|class) (\w+)|^(\w+):", stub, re.M))
    missing = [n for n in dir(core) if not n.startswith("_") and n not in {a or b for a, b in named}]
    assert not missing, f"make the stub again: python -m nanobind.stubgen -m dota._core (missing {missing})"
    methods = set(re.findall(r"    def (\w+)\(", stub))
    lost = [m for m in dir(core.VecGame) if not m.startswith("__") and m not in methods]
    assert not lost, f"make the stub again (missing VecGame.{lost})"
