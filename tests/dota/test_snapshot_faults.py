"""A snapshot with a valid checksum whose state a step could not play is refused: one field of a sound state is changed.

The offsets are those of core/world/hero_state.hpp and unit.hpp; each test asserts what stands there before.
"""

import re
import struct
from typing import Any

import pytest

from dota import _core
from tests.dota.scenes.arena import CENTRE

HEAD = 48  # bytes of a snapshot's header
UNITS, UNIT = HEAD + 64, 576  # the first unit, and the size of one
GOLD = 12345.5


@pytest.fixture
def world(new_world: Any) -> Any:
    world = new_world(("sniper",), ("nevermore",), seed=3)
    world.give_gold(0, GOLD - world.hero(0)["gold"])
    return world


def refused(world: Any, saved: bytearray, at: int, layout: str, was: float, value: float, why: str) -> None:
    """Change one field and check that the state is accepted without the change and refused with it."""
    assert struct.unpack_from(layout, saved, at) == (was,)
    before = world.hash()
    world.restore(_core.sealed(bytes(saved)))
    struct.pack_into(layout, saved, at, value)
    with pytest.raises(ValueError, match="snapshot: " + why):
        world.restore(_core.sealed(bytes(saved)))
    assert world.hash() == before


def hero_at(world: Any, saved: bytearray) -> int:
    """Return the offset of the first hero's state."""
    assert world.hero(0)["gold"] == GOLD and saved.count(struct.pack("<f", GOLD)) == 1
    return saved.index(struct.pack("<f", GOLD)) - 16


@pytest.mark.parametrize(("at", "layout", "was", "value"), [
    (10, "<B", 1, 0),  # a unit belongs to the hero, who is not in the game
    (572, "<h", -1, "item_tango"),  # a recipe of an item that is not assembled
    (796, "<I", 0, 1 << 24),  # the last of the 25 entries of the skill order and the next one change places
    (804, "<i", 0, -2**31)])  # payments of passive gold
def test_hero_that_cannot_be_played_on_is_refused(world: Any, tables: Any, at: int, layout: str, was: int,
                                                  value: Any) -> None:
    saved = bytearray(world.snapshot())
    number = list(tables.items).index(value) if isinstance(value, str) else value
    refused(world, saved, hero_at(world, saved) + at, layout, was, number, "(hero 0|unit)")


def test_hero_whose_ability_is_an_item_is_refused(world: Any, tables: Any) -> None:
    names, saved = list(tables.abilities), bytearray(world.snapshot())
    was, value = (names.index(name) for name in ("sniper_shrapnel", "item_courier"))
    refused(world, saved, hero_at(world, saved) + 68, "<h", was, value, "hero 0")


def test_building_without_a_place_on_the_map_is_refused(world: Any) -> None:
    tower = next(u for u in world.units("tower") if u["team"] == 1)
    saved = bytearray(world.snapshot())
    at = UNITS + UNIT * tower["index"] + 5
    assert struct.unpack_from("<f", saved, at + 27) == (tower["hp"],)
    refused(world, saved, at, "<B", saved[at], 0, f"unit {tower['index']}")


def test_creep_with_a_place_of_a_building_is_refused(world: Any) -> None:
    creep = world.spawn("npc_dota_creep_goodguys_melee", 0, 100, 200)
    saved = bytearray(world.snapshot())
    refused(world, saved, UNITS + UNIT * creep + 5, "<B", 0, 1, f"unit {creep}")


@pytest.mark.parametrize("at", [16, 20])
def test_counter_that_would_overflow_is_refused(world: Any, at: int) -> None:
    """Frames, and timesteps."""
    world.step(3)
    saved = bytearray(world.snapshot())
    refused(world, saved, HEAD + at, "<i", {16: 12, 20: 3}[at], 2**31 - 1, "a count")


def test_state_without_lists_of_units_is_refused(world: Any, data: dict[str, Any]) -> None:
    """The flag follows the set of the buildings that block cells; the first set is that of those that stand."""
    tower = next(u for u in world.units("tower") if u["team"] == 1 and u["tier"] == 1)
    number = next(i for i, b in enumerate(data["map"]["buildings"]) if b["id"] == tower["building"])
    world.kill(tower["index"])
    world.step(1)
    saved = bytearray(world.snapshot())
    standing = struct.pack("<Q", (1 << len(data["map"]["buildings"])) - 1 - (1 << number))
    assert saved.count(standing) == 2
    refused(world, saved, saved.rindex(standing) + 8, "<B", 1, 0, "the spatial index")


def test_attack_that_names_an_ability_is_refused(world: Any, data: dict[str, Any]) -> None:
    """Nothing says which part of the ability it would be."""
    sniper, enemy = (world.hero(hero)["unit"] for hero in (0, 5))
    world.set_unit(sniper, x=CENTRE[0], y=CENTRE[1])
    world.set_unit(enemy, x=CENTRE[0] + 500, y=CENTRE[1])
    world.step(1)
    world.order(sniper, "attack", target=enemy)
    for _ in range(60):
        world.run_frames(1)
        if world.projectiles():
            break
    saved = bytearray(world.snapshot())
    speed = data["heroes"]["heroes"]["npc_dota_hero_sniper"]["projectile_speed"]
    # Lengths, widths, a delay and the damage, then no ability and no node.
    (found,) = re.finditer(re.escape(struct.pack("<f", speed)) + b".{24}\xff{4}", saved, re.DOTALL)
    refused(world, saved, found.end() - 4, "<h", -1, 0, "a projectile")
