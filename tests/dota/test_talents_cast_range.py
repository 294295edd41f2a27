"""Talents that add to the cast range, in both patches."""

import pytest

from tests.dota.arena import CENTRE
from tests.dota.conftest import read_data
from tests.dota.tooltip_scenes import PATCHES, scene

# An ability whose target is an enemy unit, by hero.
AIMED = {"crystal_maiden": "crystal_maiden_frostbite", "death_prophet": "death_prophet_carrion_swarm",
         "lich": "lich_frost_nova"}
LONGER = [(patch, hero, talent["id"], talent["values"]["value"]) for patch in PATCHES for hero in AIMED
          for talent in read_data(patch)["heroes"]["heroes"]["npc_dota_hero_" + hero]["talents"]
          if "cast_range" in talent["id"]]


@pytest.mark.parametrize(("patch", "hero", "talent", "value"), LONGER)
def test_a_talent_lengthens_the_cast_range(core: object, patch: str, hero: str, talent: str, value: float) -> None:
    """At an enemy beyond the plain range, by four fifths of the value, the hero casts without a step."""
    steps = []
    for taken in (0, 1):
        arena = scene(core, hero, patch, away=3000)
        me, enemy = arena.unit(0), arena.unit(5)
        arena.world.teach(0, talent, taken)
        slot = arena.teach(0, AIMED[hero], 1)
        bodies = arena.world.unit(me)["radius"] + arena.world.unit(enemy)["radius"]
        arena.place(enemy, arena.field(AIMED[hero], "cast_range")[0] + bodies + 0.8 * value, 0)
        arena.seconds(0.2)
        arena.world.order(me, "cast_unit", target=enemy, slot=slot)
        arena.world.step(1)
        steps.append(arena.world.unit(me)["x"] - CENTRE[0])
    assert steps[0] > 10 and steps[1] == pytest.approx(0, abs=1)
