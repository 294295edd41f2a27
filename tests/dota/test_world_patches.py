"""Rules that differ between the patches, each tested in both (docs/game.md, "Two versions")."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.dota.scenes.actions import give
from tests.dota.scenes.arena import Arena
from tests.dota.scenes.patches import PATCHES, load, quiet_world, read_data

MID = (-500.0, -400.0)


def bare_world(core: Any, patch: str, radiant: Sequence[str] = ("sven",), dire: Sequence[str] = ("nevermore",)) -> Any:
    """Create a quiet world of a patch, without items."""
    world = quiet_world(core, patch, radiant, dire)
    for hero in (*range(len(radiant)), *range(5, 5 + len(dire))):
        world.clear_items(hero)
        world.set_gold(hero, -1e6)
    return world


def unit(world: Any, hero: int) -> Any:
    return world.unit(world.hero(hero)["unit"])


@pytest.mark.parametrize(("patch", "factor", "hp"), [("7.21d", 1.0, 20), ("7.19", 1.25, 18)])
def test_bonuses_of_the_primary_attribute(core: Any, patch: str, factor: float, hp: float) -> None:
    """7.19 gives a quarter more, except damage; the other two attributes give the usual amount."""
    world = bare_world(core, patch)
    for hero, name in ((0, "sven"), (5, "nevermore")):
        base = load(core, patch)[0]["heroes"]["heroes"]["npc_dota_hero_" + name]
        strength = base["base_str"] * (factor if base["primary"] == "str" else 1)
        agility = base["base_agi"] * (factor if base["primary"] == "agi" else 1)
        u = unit(world, hero)
        assert u["max_hp"] == pytest.approx(base["base_hp"] + hp * strength, abs=0.01)
        assert u["attack_speed"] == pytest.approx(100 + agility, abs=0.01)
        assert u["armor"] == pytest.approx(base["base_armor"] + 0.16 * agility, abs=0.01)
        assert u["dmg_min"] == pytest.approx(base["base_dmg_min"] + base["base_" + base["primary"]], abs=1)


@pytest.mark.parametrize(("near", "by_level", "by_lag"), [
    (1, 20, 0.138), (2, 15, 0.138), (3, 10, 0.12), (4, 7, 0.09), (5, 5, 0.072)])
def test_experience_of_a_kill_in_7_19(core: Any, near: int, by_level: float, by_lag: float) -> None:
    """Each of those near gets so much a level of the victim's, 6, and of his experience, 2,300, the share by which his
    team is ahead: (3,300 - 100) / (3,300 + 100)."""
    world = bare_world(core, "7.19", ("sven", "lion", "viper", "axe", "razor"), ("nevermore", "lich"))
    world.give_xp(5, 2300)
    world.give_xp(6, 1000)
    world.give_xp(4, 100)
    assert world.hero(5)["level"] == 6
    for hero in range(near):
        world.set_unit(world.hero(hero)["unit"], x=MID[0] + 200 * hero, y=MID[1])
    world.set_unit(world.hero(5)["unit"], x=MID[0], y=MID[1] + 300)
    creep = world.spawn("npc_dota_creep_goodguys_melee", 0, *MID)
    world.kill(world.hero(5)["unit"], creep)
    each = 6 * by_level + by_lag * 2300 * 3200 / 3400
    got = [world.hero(i)["xp"] - (100 if i == 4 else 0) for i in range(5)]
    assert got == pytest.approx([each] * near + [0] * (5 - near), abs=0.01)


def test_a_team_ahead_gets_only_the_level_bounty(core: Any) -> None:
    world = bare_world(core, "7.19")
    world.give_xp(5, 2300)
    world.give_xp(0, 5000)
    for hero in (0, 5):
        world.set_unit(world.hero(hero)["unit"], x=MID[0], y=MID[1])
    world.kill(world.hero(5)["unit"], world.hero(0)["unit"])
    assert world.hero(0)["xp"] - 5000 == pytest.approx(6 * 20, abs=0.01)


@pytest.mark.parametrize(("patch", "denier", "enemy", "gold"), [("7.21d", 0.0, 0.35, 0.2), ("7.19", 0.25, 0.25, 0.0)])
def test_experience_of_a_deny(core: Any, patch: str, denier: float, enemy: float, gold: float) -> None:
    """Shares of the creep's experience for the heroes of each side nearby, and of its gold for the denier."""
    world = bare_world(core, patch)
    for hero in (0, 5):
        world.set_unit(world.hero(hero)["unit"], x=MID[0] + 200, y=MID[1])
    row = load(core, patch)[0]["units"]["units"]["npc_dota_creep_goodguys_melee"]
    world.clear_signals()
    world.kill(world.spawn("npc_dota_creep_goodguys_melee", 0, *MID), world.hero(0)["unit"])
    assert world.hero(0)["xp"] == pytest.approx(denier * row["xp"], abs=1e-3)
    assert world.hero(5)["xp"] == pytest.approx(enemy * row["xp"], abs=1e-3)
    low, high = row["gold_min"] * gold, row["gold_max"] * gold
    assert low - 1e-3 <= world.hero(0)["signals"]["gold"] <= high + 1e-3


@pytest.mark.parametrize(("patch", "each"), [("7.21d", 0), ("7.19", 3)])
def test_armor_of_a_tower_by_the_enemy_heroes_near(core: Any, patch: str, each: float) -> None:
    world = bare_world(core, patch, ("sven", "lion", "viper"))
    tower = next(u for u in world.units("tower") if u["building"] == "dota_badguys_tower1_mid")
    for near in (0, 1, 3):
        for hero in range(3):
            away = 800 if hero < near else 1200
            world.set_unit(world.hero(hero)["unit"], x=tower["x"] - away, y=tower["y"], extra_hp=50000)
        world.step(15)
        assert world.unit(tower["index"])["armor"] - tower["armor"] == pytest.approx(each * near)


@pytest.mark.parametrize(("patch", "first", "others"), [("7.21d", 2, 4), ("7.19", 2, 3)])
def test_armor_that_towers_lend(core: Any, patch: str, first: float, others: float) -> None:
    world = bare_world(core, patch)
    bare = unit(world, 0)["armor"]
    for name, armor in (("dota_goodguys_tower1_mid", first), ("dota_goodguys_tower2_mid", others)):
        tower = next(u for u in world.units("tower") if u["building"] == name)
        world.set_unit(world.hero(0)["unit"], x=tower["x"] + 300, y=tower["y"])
        world.step(15)
        assert unit(world, 0)["armor"] - bare == pytest.approx(armor, abs=1e-3)


@pytest.mark.parametrize(("patch", "flat", "share"), [("7.21d", 90, 0.02), ("7.19", 75, 0.0)])
def test_healing_of_a_shrine(core: Any, patch: str, flat: float, share: float) -> None:
    """Healing a second, in addition to the hero's own regeneration."""
    world = bare_world(core, patch)
    shrine = next(u for u in world.units("shrine") if u["building"] == "good_healer_6")
    hero = world.hero(0)["unit"]
    world.set_unit(hero, x=shrine["x"] + 250, y=shrine["y"] + 100, extra_hp=5000)
    world.set_time(301)
    world.set_unit(hero, hp=50)
    assert world.shrine(0)
    world.step(15)
    u = world.unit(hero)
    assert u["hp"] - 50 == pytest.approx(2 * (flat + share * u["max_hp"] + u["hp_regen"]), rel=0.03)


@pytest.mark.parametrize(("patch", "most"), [("7.21d", 700), ("7.19", 600)])
def test_the_highest_attack_speed(core: Any, patch: str, most: float) -> None:
    world = bare_world(core, patch)
    world.set_unit(world.hero(0)["unit"], extra_as=most - 150)
    assert unit(world, 0)["attack_speed"] < most
    world.set_unit(world.hero(0)["unit"], extra_as=2000)
    u = unit(world, 0)
    assert u["attack_speed"] == most
    base = load(core, patch)[0]["heroes"]["heroes"]["npc_dota_hero_sven"]["base_attack_time"]
    assert u["attack_interval"] == pytest.approx(base / (most / 100), rel=1e-5)


@pytest.mark.parametrize(("patch", "ends"), [("7.21d", True), ("7.19", False)])
def test_roots_end_teleports(core: Any, patch: str, ends: bool) -> None:
    """In 7.21d a root, here Rod of Atos, ends the channel and prevents a new one; in 7.19 neither."""
    data = load(core, patch)[0]
    arena = Arena(bare_world(core, patch, ("sven",), ("crystal_maiden",)), data)
    hero, maiden = arena.unit(0), arena.unit(5)
    tower = next(u for u in arena.world.units("tower") if u["building"] == "dota_goodguys_tower2_mid")
    arena.place(hero, 0, 0)
    arena.place(maiden, 300, 0)
    arena.world.set_unit(hero, extra_hp=5000)
    give(arena, "tpscroll", charges=2)
    scroll = arena.world.ability(0, "item_tpscroll")["slot"]
    rod = give(arena, "rod_of_atos", 5)
    arena.world.order(hero, "cast_point", x=tower["x"] + 200, y=tower["y"], slot=scroll)
    arena.seconds(0.5)
    assert arena.world.unit(hero)["act"] == "channel"
    arena.world.order(maiden, "cast_unit", target=hero, slot=rod)
    arena.seconds(1.0)
    assert arena.modifiers(hero, "item_rod_of_atos")
    assert (arena.world.unit(hero)["act"] == "channel") != ends
    if ends:
        arena.world.set_unit(hero, mana=500)
        give(arena, "travel_boots")
        assert not arena.world.ability(0, "item_travel_boots")["castable"]
    arena.seconds(2.5)
    u = arena.world.unit(hero)
    assert (abs(u["x"] - tower["x"]) + abs(u["y"] - tower["y"]) < 1000) != ends


@pytest.mark.parametrize(("patch", "low", "high"), [("7.21d", 56, 65), ("7.19", 53, 62)])
def test_gold_of_a_neutral_creep(core: Any, patch: str, low: int, high: int) -> None:
    """A Centaur Conqueror pays the unit file's 53 to 62 gold, 5 % more since 7.20. A game of 7.06f was recorded with
    the file's values for other creeps; 7.22g takes 5 % away, and the file of 7.27c has 53 to 62 again."""
    world = bare_world(core, patch)
    got = set()
    for _ in range(60):
        world.set_gold(0, 0)
        world.kill(world.spawn("npc_dota_neutral_centaur_khan", 2, *MID), world.hero(0)["unit"])
        got.add(round(world.hero(0)["gold"] + world.hero(0)["reliable"]))
    assert min(got) == low and max(got) == high


def test_neutrals_pay_5_percent_more_since_7_20() -> None:
    """Ancients pay the same, and so do creeps of few coins."""
    new, old = (read_data(patch)["units"]["units"] for patch in PATCHES)
    for name, u in old.items():
        if u["class"] == "neutral":
            more = 1 if u.get("ancient") else 1.05
            for key in ("gold_min", "gold_max"):
                assert new[name][key] == int(u[key] * more + 0.5), name
