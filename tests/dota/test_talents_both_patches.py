"""Talents of cast ranges, of Lina and of Leshrac in both patches, against numbers computed by hand."""

from typing import Any

import pytest

from tests.dota.scenes.actions import cast
from tests.dota.scenes.arena import CENTRE, Arena
from tests.dota.scenes.duels import duel, line_up
from tests.dota.scenes.patches import PATCHES, read_data

# An ability whose target is an enemy unit, by hero.
AIMED = {"crystal_maiden": "crystal_maiden_frostbite", "death_prophet": "death_prophet_carrion_swarm",
         "lich": "lich_frost_nova"}
LONGER = [(patch, hero, talent["id"], talent["values"]["value"]) for patch in PATCHES for hero in AIMED
          for talent in read_data(patch)["heroes"]["heroes"]["npc_dota_hero_" + hero]["talents"]
          if "cast_range" in talent["id"]]


def learn(arena: Arena, talent: str) -> None:
    arena.world.teach(0, "special_bonus_" + talent, 1)
    arena.seconds(0.2)


@pytest.mark.parametrize("taken", [False, True])
def test_lina_casts_farther(core: Any, patch: str, taken: bool) -> None:
    """Light Strike Array reaches 625, and 750 with the talent."""
    arena = line_up(core, patch, ("lina",), ("sven",), {0: 0, 5: 300})
    if taken:
        learn(arena, "cast_range_125")
    slot = arena.teach(0, "lina_light_strike_array", 1)
    before = arena.world.unit(arena.unit(0))["x"]
    arena.world.order(arena.unit(0), "cast_point", x=CENTRE[0] + 740, y=CENTRE[1], slot=slot)
    arena.seconds(0.4)
    assert (arena.world.unit(arena.unit(0))["x"] == before) == taken


@pytest.mark.parametrize(("patch", "speed"), [("7.21d", 30), ("7.19", 25)])
def test_fiery_soul_burns_hotter(core: Any, patch: str, speed: float) -> None:
    """40 and the talent's attack speed a stack at rank 1, 5 and 2 % movement speed."""
    arena = line_up(core, patch, ("lina",), ("sven",), {0: 0, 5: 300})
    learn(arena, "unique_lina_2")
    arena.teach(0, "lina_fiery_soul", 1)
    before = arena.world.unit(arena.unit(0))
    cast(arena, "lina_dragon_slave", 1, arena.unit(5))
    after = arena.world.unit(arena.unit(0))
    assert after["attack_speed"] - before["attack_speed"] == pytest.approx(40 + speed)
    assert after["move_speed"] - before["move_speed"] == pytest.approx(0.07 * arena.base_speed("lina"), abs=0.01)


def test_dragon_slave_comes_again_sooner(core: Any, patch: str) -> None:
    """8 s, 6 less with the talent."""
    arena = line_up(core, patch, ("lina",), ("sven",), {0: 0, 5: 300})
    learn(arena, "unique_lina_1")
    cast(arena, "lina_dragon_slave", 4, arena.unit(5), wait=0.7)
    assert not arena.world.ability(0, "lina_dragon_slave")["castable"]
    arena.seconds(1.9)
    assert arena.world.ability(0, "lina_dragon_slave")["castable"]


@pytest.mark.parametrize(("hero", "talent", "ability", "amount"), [
    ("lina", "unique_lina_3", "lina_light_strike_array", 80 + 140),
    ("leshrac", "unique_leshrac_3", "leshrac_pulse_nova", 100 + 50)])
def test_a_talent_adds_damage(core: Any, patch: str, hero: str, talent: str, ability: str, amount: float) -> None:
    arena = line_up(core, patch, (hero,), ("sven",), {0: 0, 5: 300})
    learn(arena, talent)
    enemy = arena.unit(5)
    hp = arena.hp(enemy)
    slot = arena.teach(0, ability, 1)
    if hero == "lina":
        arena.world.order(arena.unit(0), "cast_point", x=CENTRE[0] + 300, y=CENTRE[1], slot=slot)
        arena.seconds(1.2)
    else:
        arena.world.order(arena.unit(0), "cast", slot=slot)
        arena.seconds(0.5)
    assert hp - arena.hp(enemy) == pytest.approx(amount * arena.magic(enemy) * arena.amp(arena.unit(0)), rel=1e-3)


@pytest.mark.parametrize(("patch", "hero", "talent", "value"), LONGER)
def test_a_talent_lengthens_the_cast_range(core: Any, patch: str, hero: str, talent: str, value: float) -> None:
    """At an enemy beyond the plain range, by four fifths of the value, the hero casts without a step."""
    steps = []
    for taken in (0, 1):
        arena = duel(core, hero, patch, away=3000)
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
