"""Talents of Lina and Leshrac in both patches, against numbers worked by hand."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.dota.arena import CENTRE, Arena
from tests.dota.conftest import FILES, read_data

PATCHES = ("7.21d", "7.19")
Fight = Callable[[str, str], Arena]


@pytest.fixture(scope="module")
def fight(core: Any) -> Fight:
    """Create a hero at the centre of the arena, of either patch."""
    loaded = {patch: read_data(patch) for patch in PATCHES}
    tables = {patch: core.load_tables(*(data[f] for f in FILES)) for patch, data in loaded.items()}
    quiet = {"start_s": 0.0, "neutrals": False, "roshan": False, "runes": False, "lanes": [False] * 3}

    def make(patch: str, hero: str) -> Arena:
        arena = Arena(core.World(tables[patch], quiet, [hero], ["sven"], 1), loaded[patch])
        arena.place(arena.unit(0), 0, 0)
        arena.place(arena.unit(5), 300, 0, math.pi)
        arena.seconds(0.2)
        return arena

    return make


def learn(arena: Arena, talent: str) -> None:
    arena.world.teach(0, "special_bonus_" + talent, 1)
    arena.seconds(0.2)


@pytest.mark.parametrize("patch", PATCHES)
@pytest.mark.parametrize("taken", [False, True])
def test_lina_casts_farther(fight: Fight, patch: str, taken: bool) -> None:
    """Light Strike Array reaches 625, and 750 with the talent."""
    arena = fight(patch, "lina")
    if taken:
        learn(arena, "cast_range_125")
    slot = arena.teach(0, "lina_light_strike_array", 1)
    before = arena.world.unit(arena.unit(0))["x"]
    arena.world.order(arena.unit(0), "cast_point", x=CENTRE[0] + 740, y=CENTRE[1], slot=slot)
    arena.seconds(0.4)
    assert (arena.world.unit(arena.unit(0))["x"] == before) == taken


@pytest.mark.parametrize(("patch", "speed"), [("7.21d", 30), ("7.19", 25)])
def test_fiery_soul_burns_hotter(fight: Fight, patch: str, speed: float) -> None:
    """40 and the talent's attack speed a stack at rank 1, 5 and 2 % movement speed."""
    arena = fight(patch, "lina")
    learn(arena, "unique_lina_2")
    arena.teach(0, "lina_fiery_soul", 1)
    before = arena.world.unit(arena.unit(0))
    slot = arena.teach(0, "lina_dragon_slave", 1)
    arena.world.order(arena.unit(0), "cast_unit", target=arena.unit(5), slot=slot)
    arena.seconds(0.8)
    after = arena.world.unit(arena.unit(0))
    assert after["attack_speed"] - before["attack_speed"] == pytest.approx(40 + speed)
    assert after["move_speed"] - before["move_speed"] == pytest.approx(0.07 * arena.base_speed("lina"), abs=0.01)


@pytest.mark.parametrize("patch", PATCHES)
def test_dragon_slave_comes_again_sooner(fight: Fight, patch: str) -> None:
    """8 s, 6 less with the talent."""
    arena = fight(patch, "lina")
    learn(arena, "unique_lina_1")
    slot = arena.teach(0, "lina_dragon_slave", 4)
    arena.world.order(arena.unit(0), "cast_unit", target=arena.unit(5), slot=slot)
    arena.seconds(0.7)
    assert not arena.world.ability(0, "lina_dragon_slave")["castable"]
    arena.seconds(1.9)
    assert arena.world.ability(0, "lina_dragon_slave")["castable"]


@pytest.mark.parametrize("patch", PATCHES)
@pytest.mark.parametrize(("hero", "talent", "ability", "amount"), [
    ("lina", "unique_lina_3", "lina_light_strike_array", 80 + 140),
    ("leshrac", "unique_leshrac_3", "leshrac_pulse_nova", 100 + 50)])
def test_a_talent_adds_damage(fight: Fight, patch: str, hero: str, talent: str, ability: str, amount: float) -> None:
    arena = fight(patch, hero)
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
