"""Derived stats of units, computed by hand from heroes.json, items.json and rules.json."""

from typing import Any

import pytest

from tests.dota.scenes.arena import CENTRE


def body(world: Any, hero: int = 0) -> dict[str, Any]:
    unit: dict[str, Any] = world.unit(world.hero(hero)["unit"])
    return unit


def test_hero_at_level_one_without_items(new_world: Any) -> None:
    """Shadow Fiend: 19 str, 20 agi, 18 int; 20 hp and 0.1 regeneration a str, 12 mana an int, 0.16 armor an agi."""
    world = new_world()
    world.clear_items(0)
    u = body(world)
    assert u["max_hp"] == pytest.approx(200 + 19 * 20)
    assert u["max_mana"] == pytest.approx(75 + 18 * 12)
    assert u["hp_regen"] == pytest.approx(0.25 + 19 * 0.1)
    assert u["mana_regen"] == pytest.approx(18 * 0.05)
    assert u["armor"] == pytest.approx(20 * 0.16)
    assert u["attack_speed"] == pytest.approx(120)
    assert u["attack_interval"] == pytest.approx(1.7 / 1.2)
    assert u["attack_point"] == pytest.approx(0.5 / 1.2)
    assert (u["dmg_min"], u["dmg_max"]) == pytest.approx((15 + 20, 21 + 20))
    assert u["move_speed"] == pytest.approx(305 * (1 + 20 * 0.05 / 100))
    assert u["magic_resist"] == pytest.approx(1 - 0.75 * (1 - 19 * 0.08 / 100))
    assert u["spell_amp"] == pytest.approx(18 * 0.07 / 100)


def test_growth_by_level(new_world: Any) -> None:
    world = new_world()
    world.clear_items(0)
    world.give_xp(0, 600)  # level 3
    world.step()
    u = body(world)
    assert world.hero(0)["level"] == 3
    assert u["str"] == pytest.approx(19 + 2 * 2.3)
    assert u["agi"] == pytest.approx(20 + 2 * 3.3)
    assert u["max_hp"] == pytest.approx(200 + (19 + 2 * 2.3) * 20)


def test_items_add_their_stats(new_world: Any) -> None:
    """Wraith Band: +3 str, +6 agi, +3 int, +6 attack speed."""
    world = new_world()
    world.clear_items(0)
    world.give_item(0, "wraith_band")
    world.step()
    u = body(world)
    assert (u["str"], u["agi"], u["int"]) == pytest.approx((22, 26, 21))
    assert u["attack_speed"] == pytest.approx(100 + 26 + 6)


def test_boots_do_not_stack(new_world: Any) -> None:
    world = new_world()
    world.clear_items(0)
    world.give_item(0, "boots")
    world.step()
    one = body(world)["move_speed"]
    world.give_item(0, "boots")
    world.step()
    assert one == pytest.approx(305 * (1 + (20 * 0.05 + 15) / 100))
    assert body(world)["move_speed"] == pytest.approx(one)


def test_a_new_maximum_keeps_the_filled_share(new_world: Any) -> None:
    world = new_world()
    world.clear_items(0)
    unit = world.hero(0)["unit"]
    world.set_unit(unit, hp=290)  # half of 580
    world.give_item(0, "reaver")
    world.step()
    u = body(world)
    assert u["max_hp"] > 700
    assert u["hp"] / u["max_hp"] == pytest.approx(0.5, abs=0.02)


def test_backpack_items_give_nothing(new_world: Any) -> None:
    world = new_world()
    world.clear_items(0)
    for _ in range(6):
        world.give_item(0, "reaver")
    world.give_item(0, "gauntlets")  # the seventh goes to the backpack
    world.step()
    assert world.hero(0)["items"][6][0] == "item_gauntlets"
    assert body(world)["str"] == pytest.approx(19 + 6 * 25)


def test_skills_follow_the_build(new_world: Any) -> None:
    """Necromastery first, then a raze; the three razes share one rank."""
    world = new_world()
    assert world.hero(0)["abilities"]["nevermore_necromastery"] == 1
    world.give_xp(0, 230)
    ranks = world.hero(0)["abilities"]
    assert (ranks["nevermore_shadowraze1"], ranks["nevermore_shadowraze3"]) == (1, 1)
    world.give_xp(0, 27235)
    assert world.hero(0)["level"] == 25
    assert world.hero(0)["ability_points"] == 0
    assert bin(world.hero(0)["talents"]).count("1") == 4


def test_levels_stop_at_the_cap(new_world: Any) -> None:
    world = new_world()
    world.give_xp(0, 50_000)
    assert world.hero(0)["xp"] == pytest.approx(27235)
    assert world.hero(0)["signals"]["xp"] == pytest.approx(27235)


@pytest.mark.parametrize(("unit", "team", "why"), [
    ("npc_dota_hero_axe", 0, "line-up"), ("npc_dota_courier", 2, "belongs to a side"),
    ("npc_dota_observer_wards", 2, "belongs to a side"), ("npc_dota_creep_goodguys_melee", 2, "belongs to a side"),
    ("npc_dota_goodguys_fort", 0, "where the map has them")])
def test_units_spawned_only_by_the_game_are_refused(new_world: Any, unit: str, team: int, why: str) -> None:
    """A hero's body without the hero, or a courier without a side, would lack the state that its death changes."""
    with pytest.raises(ValueError, match=why):
        new_world().spawn(unit, team, 0, 0)


def test_a_ward_ends_before_the_horn(new_world: Any, data: dict[str, Any]) -> None:
    lasts = data["rules"]["rules"]["wards"]["observer"]["life_s"]
    world = new_world(("lion",), start_s=-lasts - 60)
    world.clear_items(0)
    world.give_item(0, "item_ward_observer", 1)
    hero = world.hero(0)["unit"]
    world.set_unit(hero, x=CENTRE[0], y=CENTRE[1])
    world.step(1)
    world.order(hero, "cast_point", x=CENTRE[0] + 100, y=CENTRE[1], slot=world.ability(0, "item_ward_observer")["slot"])
    world.step(15)
    assert world.units("ward")
    world.step(int(7.5 * lasts))
    assert not world.units("ward") and world.time < 0


def test_spawned_unit_takes_no_slot_freed_in_its_frame(new_world: Any) -> None:
    """A golem's shards spawn inside the loop that killed it, which may still visit the freed slots. They are reused
    from the next frame on."""
    world = new_world()
    x, y = CENTRE
    golems = [world.spawn("npc_dota_neutral_mud_golem", 2, x + 200 * k, y) for k in range(3)]
    hero = world.hero(0)["unit"]
    world.step(1)
    before = {u["index"] for u in world.units()}
    for golem in golems:
        world.damage(hero, golem, 1e5, "pure")
    born = {u["index"] for u in world.units()} - before
    assert len(born) == 6 and not born & set(golems)
    world.step(1)
    assert world.spawn("npc_dota_neutral_kobold", 2, x, y) == min(golems)
