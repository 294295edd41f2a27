"""Nimbus, the ability that Aghanim's Scepter gives Zeus, in both patches."""

import math
from typing import Any

import pytest

from tests.dota.scenes.actions import give, order_slot, use
from tests.dota.scenes.arena import Arena
from tests.dota.scenes.duels import river_scene
from tests.dota.scenes.readings import lost
from tests.dota.scenes.units import down_river, river, river_creep, set_health

CLOUD = "npc_dota_zeus_cloud"


def duel(core: Any, patch: str, away: float = 2500, enemy: str = "sven") -> Arena:
    """Return Zeus with the scepter and Lightning Bolt at rank 1, an enemy, and a second enemy far away."""
    arena = river_scene(core, patch, ("zuus", "sniper"), (enemy, "viper"), {0: 0, 1: -900, 5: away, 6: 3000})
    give(arena, "ultimate_scepter")
    arena.teach(0, "zuus_lightning_bolt", 1)
    return arena


def clouds(arena: Arena) -> list[int]:
    return [u["index"] for u in arena.world.units("summon") if u["type"] == CLOUD]


def make_cloud(arena: Arena, along: float, across: float = 0.0) -> int:
    arena.world.set_unit(arena.unit(0), mana=1000)
    order_slot(arena, arena.world.ability(0, "zuus_cloud")["slot"], at=river(along, across))
    arena.seconds(0.4)
    (cloud,) = clouds(arena)
    return cloud


def test_the_scepter_gives_the_ability_and_takes_it_away(core: Any, patch: str) -> None:
    arena = river_scene(core, patch, ("zuus",), ("sven",), {0: 0, 5: 2500})
    assert arena.world.ability(0, "zuus_cloud")["level"] == 0
    give(arena, "ultimate_scepter")
    state = arena.world.ability(0, "zuus_cloud")
    assert state["level"] == 1 and state["castable"]
    arena.world.clear_items(0)
    arena.seconds(0.3)
    assert arena.world.ability(0, "zuus_cloud")["level"] == 0


def test_it_is_not_learned_with_a_point(core: Any, patch: str) -> None:
    arena = river_scene(core, patch, ("zuus",), ("sven",), {0: 0, 5: 2500})
    arena.world.give_xp(0, 1e6)
    abilities = arena.data["heroes"]["heroes"]["npc_dota_hero_zuus"]["abilities"]
    levels = {name: arena.world.ability(0, name)["level"] for name in abilities}
    assert levels.pop("zuus_cloud") == 0 and all(levels.values())


def test_cost_and_reach(core: Any, patch: str) -> None:
    """KV: 275 mana, 35 s; anywhere on the map, without walking."""
    arena = duel(core, patch)
    a = arena.unit(0)
    before = arena.world.unit(a)
    cloud = make_cloud(arena, 6000)
    assert 1000 - arena.world.unit(a)["mana"] == pytest.approx(275, abs=0.5)
    assert arena.world.ability(0, "zuus_cloud")["ready"] - arena.world.time == pytest.approx(35, abs=0.4)
    assert (arena.world.unit(a)["x"], arena.world.unit(a)["y"]) == (before["x"], before["y"])
    at = arena.world.unit(cloud)
    assert math.hypot(at["x"] - before["x"], at["y"] - before["y"]) == pytest.approx(6000, abs=70)


def test_it_strikes_the_closest_enemy_every_2_25_seconds(core: Any, patch: str) -> None:
    """Tooltip and note: Lightning Bolt (125 at rank 1) on the closest enemy unit within 450."""
    arena = duel(core, patch, away=1000 + 400)
    b, near, beyond = arena.unit(5), river_creep(arena, 1000, 300), river_creep(arena, 1000, -480)
    hp, hp_near, hp_beyond = arena.hp(b), arena.hp(near), arena.hp(beyond)
    make_cloud(arena, 1000)
    assert lost(arena, near, hp_near) == pytest.approx(125, rel=1e-3)
    arena.seconds(2.25)
    assert lost(arena, near, hp_near) == pytest.approx(250, rel=1e-3)
    assert arena.hp(b) == hp and arena.hp(beyond) == hp_beyond
    down_river(arena, near, 3000)
    arena.seconds(2.25)
    assert lost(arena, b, hp) == pytest.approx(125, rel=1e-3)


def test_it_waits_for_an_enemy(core: Any, patch: str) -> None:
    """The interval is a cooldown: who comes near is struck at once."""
    arena = duel(core, patch)
    make_cloud(arena, 1000)
    arena.seconds(3)
    b = arena.unit(5)
    hp = arena.hp(b)
    down_river(arena, b, 1100)
    arena.seconds(0.3)
    assert lost(arena, b, hp) == pytest.approx(125, rel=1e-3)


def test_it_spares_the_spell_immune(core: Any, patch: str) -> None:
    arena = duel(core, patch)
    b = arena.unit(5)
    use(arena, give(arena, "black_king_bar", 5), hero=5)
    hp = arena.hp(b)
    down_river(arena, b, 1100)
    make_cloud(arena, 1000)
    arena.seconds(1)
    assert arena.hp(b) == hp


def test_it_lasts_35_seconds(core: Any, patch: str) -> None:
    arena = duel(core, patch)
    make_cloud(arena, 1000)
    arena.seconds(34)
    assert clouds(arena)
    arena.seconds(1.2)
    b = arena.unit(5)
    hp = arena.hp(b)
    down_river(arena, b, 1100)
    arena.seconds(2.5)
    assert not clouds(arena) and arena.hp(b) == hp


def test_heroes_destroy_it_with_four_attacks_for_100_gold(core: Any, patch: str) -> None:
    """Note: 100 gold to the hero. KV: 16 health; public wikis: an attack of a hero takes 4, of others 1."""
    arena = duel(core, patch)
    cloud, b, other = make_cloud(arena, 1000), arena.unit(5), arena.dummy(0, 0)
    assert arena.world.damage(b, cloud, 500, "magical") == 0
    arena.world.damage(other, cloud, 50, attack=True)
    assert arena.hp(cloud) == 15
    for _ in range(3):
        arena.world.damage(b, cloud, 50, attack=True)
    assert arena.hp(cloud) == 3
    arena.world.set_gold(5, 0)
    arena.world.damage(b, cloud, 50, attack=True)
    assert not clouds(arena)
    hero = arena.world.hero(5)
    assert hero["gold"] + hero["reliable"] == pytest.approx(100)
    set_health(arena, b, hp=4000, max_hp=6000)
    down_river(arena, b, 1100)
    hp = arena.hp(b)
    arena.seconds(3)
    assert arena.hp(b) >= hp  # the gained level heals a little


def test_it_strikes_after_its_master_died(core: Any, patch: str) -> None:
    arena = duel(core, patch)
    make_cloud(arena, 1000)
    arena.world.kill(arena.unit(0))
    b = arena.unit(5)
    hp = arena.hp(b)
    down_river(arena, b, 1100)
    arena.seconds(0.5)
    assert arena.hp(b) < hp
