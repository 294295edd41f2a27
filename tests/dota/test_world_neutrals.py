"""Camps, Roshan and runes."""

import math
from itertools import pairwise
from typing import Any

import pytest


def test_camps_fill_at_the_minute(new_world: Any, data: dict[str, Any]) -> None:
    world = new_world(neutrals=True, start_s=58.0)
    world.step(14)
    assert not world.units("neutral")
    world.step(2)
    camps = {u["camp"] for u in world.units("neutral")}
    assert camps == set(range(len(data["map"]["camps"])))


def test_an_occupied_camp_stays_as_it_is(new_world: Any, data: dict[str, Any]) -> None:
    world = new_world(neutrals=True, start_s=58.0)
    camp = data["map"]["camps"][3]
    world.set_unit(world.hero(0)["unit"], x=camp["x"], y=camp["y"])
    world.step(20)
    assert 3 not in {u["camp"] for u in world.units("neutral")}


def test_camps_respawn_only_when_empty(new_world: Any) -> None:
    world = new_world(neutrals=True, start_s=59.0)
    world.step(12)
    first = [u for u in world.units("neutral") if u["camp"] == 0]
    total = len(world.units("neutral"))
    for u in first:
        world.kill(u["index"], world.hero(0)["unit"])
    world.set_time(119)
    world.step(12)
    again = [u for u in world.units("neutral") if u["camp"] == 0]
    assert again
    assert len(world.units("neutral")) == total - len(first) + len(again)


def test_neutrals_fight_back_and_give_up(new_world: Any, data: dict[str, Any]) -> None:
    world = new_world(neutrals=True, start_s=59.0)
    world.step(12)
    victim = next(u for u in world.units("neutral") if u["camp"] == 0)
    hero = world.hero(0)["unit"]
    world.set_unit(hero, x=victim["x"] + 250, y=victim["y"])
    world.damage(hero, victim["index"], 1)
    world.step(2)
    mates = [u for u in world.units("neutral") if u["camp"] == 0]
    assert all(u["attack_target"] == hero for u in mates)
    world.set_unit(hero, x=-7000, y=-6500)
    world.step(int(20 * 7.5))
    camp = data["map"]["camps"][0]
    for u in world.units("neutral"):
        if u["camp"] == 0:
            assert ((u["x"] - camp["x"]) ** 2 + (u["y"] - camp["y"]) ** 2) ** 0.5 < 400
            assert u["attack_target"] == -1


def pulled_camps(new_world: Any, data: dict[str, Any], seconds: float) -> tuple[Any, int, int]:
    """Return a world of three Radiant heroes, and two camps that heroes 0 and 1 have pulled into the open on the other
    side of the map, so many seconds before the next spawn."""
    world = new_world(radiant=("nevermore", "sniper", "lion"), neutrals=True, start_s=59.0)
    world.step(12)
    first, second = (next(k for k, camp in enumerate(data["map"]["camps"]) if camp["tier"] == tier)
                     for tier in ("large", "medium"))
    world.set_time(120.0 - seconds)
    for camp, hero in ((first, 0), (second, 1)):
        creeps = [u for u in world.units("neutral") if u["camp"] == camp]
        world.damage(world.hero(hero)["unit"], creeps[0]["index"], 1)
        for k, u in enumerate(creeps):
            world.set_unit(u["index"], x=5500 + 80 * k, y=-6500)
    return world, first, second


def of_camp(world: Any, camp: int) -> list[dict[str, Any]]:
    return [u for u in world.units("neutral") if u["camp"] == camp]


def paid(world: Any, victim: int, killer: int) -> list[float]:
    """Return the gold of heroes 0 to 2 for the creep's death."""
    before = [world.hero(k)["gold"] + world.hero(k)["reliable"] for k in range(3)]
    world.kill(victim, world.hero(killer)["unit"])
    return [world.hero(k)["gold"] + world.hero(k)["reliable"] - was for k, was in enumerate(before)]


def test_a_stack_pays_its_puller_in_another_camps_box(new_world: Any, data: dict[str, Any]) -> None:
    """Creeps of one camp are in another's spawn box at the spawn time. Their camp refills, and they are their hero's
    stack. The other camp does not refill, and its creeps are no stack."""
    world, first, second = pulled_camps(new_world, data, 0.5)
    old, others = of_camp(world, first), of_camp(world, second)
    place = data["map"]["camps"][second]
    world.set_unit(old[0]["index"], x=place["x"], y=place["y"])
    world.step(6)
    assert len(of_camp(world, first)) > len(old) and len(of_camp(world, second)) == len(others)
    assert paid(world, old[0]["index"], 2)[0] > 0
    assert paid(world, old[1]["index"], 2)[1] == 0
    assert paid(world, others[0]["index"], 2)[:2] == [0, 0]
    new = next(u for u in of_camp(world, first) if u["index"] not in {o["index"] for o in old})
    assert paid(world, new["index"], 2)[:2] == [0, 0]


def test_two_stacks_belong_to_their_heroes(new_world: Any, data: dict[str, Any]) -> None:
    world, first, second = pulled_camps(new_world, data, 0.5)
    old, others = of_camp(world, first), of_camp(world, second)
    world.step(6)
    assert paid(world, old[0]["index"], 2)[0] > 0 == paid(world, old[1]["index"], 2)[1]
    assert paid(world, others[0]["index"], 2)[1] > 0 == paid(world, others[1]["index"], 2)[0]


def test_stack_belongs_to_its_hero_while_a_lane_creep_tanks(new_world: Any, data: dict[str, Any]) -> None:
    """A camp led to a wave fights the wave at the spawn time; the stack belongs to the hero that led it there."""
    world, first, _ = pulled_camps(new_world, data, 7.0)
    world.set_unit(world.hero(0)["unit"], x=-7000, y=-6500)
    old = of_camp(world, first)
    world.step(40)  # they stop chasing the hero
    creep = world.spawn("npc_dota_creep_goodguys_melee", 0, old[0]["x"] + 100, old[0]["y"])
    for u in old:
        world.set_unit(u["index"], x=5500, y=-6500)
        world.damage(creep, u["index"], 1)
    world.step(14)
    assert len(of_camp(world, first)) > len(old)
    assert paid(world, old[0]["index"], 2)[0] > 0


def test_creeps_pulled_by_a_wave_give_no_stack_bounty(new_world: Any, data: dict[str, Any]) -> None:
    """A hero attacked them earlier, and they have returned home since."""
    world, first, _ = pulled_camps(new_world, data, 30.0)
    old = of_camp(world, first)
    camp = data["map"]["camps"][first]
    world.set_unit(world.hero(0)["unit"], x=-7000, y=-6500)
    for u in old:
        world.set_unit(u["index"], x=camp["x"], y=camp["y"])
    world.step(200)  # home and calm
    world.set_time(119.5)
    old = of_camp(world, first)
    creep = world.spawn("npc_dota_creep_goodguys_melee", 0, 5500, -6600)
    for u in old:
        world.damage(creep, u["index"], 1)
        world.set_unit(u["index"], x=5500, y=-6500)
    world.step(6)
    assert len(of_camp(world, first)) > len(old)
    assert paid(world, old[0]["index"], 2)[:2] == [0, 0]


def test_roshan_grows_and_pays(new_world: Any) -> None:
    """6000 hp and 115 a minute; 150 gold for each of the team, an Aegis for the killer."""
    world = new_world(roshan=True)
    world.step()
    assert world.units("roshan")[0]["max_hp"] == pytest.approx(6000)
    world.set_time(600)
    world.step()
    roshan = world.units("roshan")[0]
    assert roshan["max_hp"] == pytest.approx(6000 + 10 * 115)
    assert roshan["armor"] == pytest.approx(18 + 10 * 0.375)
    assert roshan["dmg_min"] == pytest.approx(75 + 40)
    world.clear_signals()
    world.clear_items(0)
    world.kill(roshan["index"], world.hero(0)["unit"])
    assert world.hero(0)["signals"]["aegis"] == 1
    assert "item_aegis" in [i[0] for i in world.hero(0)["items"] if i]
    assert 150 + 150 <= world.hero(0)["signals"]["gold"] <= 150 + 400
    world.set_time(600 + 479)
    world.step()
    assert not world.units("roshan")
    world.set_time(600 + 661)
    world.step()
    assert world.units("roshan")


def fill_inventory(world: Any, hero: int) -> None:
    """Fill the hero's inventory with nine items without common recipes, and empty its stash."""
    world.clear_items(hero)
    world.set_gold(hero, -1e6)
    for _ in range(9):
        assert world.give_item(hero, "reaver")


def held(world: Any, hero: int) -> list[str]:
    return [i[0] for i in world.hero(hero)["items"] if i]


def dead_roshan(new_world: Any, full: tuple[int, ...]) -> tuple[Any, Any]:
    """Let hero 0 kill Roshan at his pit; hero 1 is at home; the named heroes have full inventories."""
    world = new_world(("nevermore", "sven"), roshan=True, keep_teleport=0)
    world.step()
    roshan = world.units("roshan")[0]
    for hero in (0, 1):
        world.clear_items(hero)
        world.set_gold(hero, -1e6)
    for hero in full:
        fill_inventory(world, hero)
    world.set_unit(world.hero(0)["unit"], x=roshan["x"] + 400, y=roshan["y"])
    world.clear_signals()
    world.kill(roshan["index"], world.hero(0)["unit"])
    return world, roshan


def test_roshan_items_go_to_an_ally_when_the_killer_is_full(new_world: Any) -> None:
    world, _ = dead_roshan(new_world, full=(0,))
    assert "item_aegis" not in held(world, 0) and "item_aegis" in held(world, 1)
    assert world.ground_items() == []


def test_roshans_items_drop_when_inventories_are_full(new_world: Any) -> None:
    """A hero of either side with a free slot picks them up, and the Aegis's time starts then."""
    world, roshan = dead_roshan(new_world, full=(0, 1))
    assert [held(world, h).count("item_aegis") for h in (0, 1)] == [0, 0]
    assert world.ground_items() == [("item_aegis", roshan["x"], roshan["y"])]
    assert world.hero(0)["signals"]["aegis"] == 0
    world.set_unit(world.hero(0)["unit"], x=roshan["x"], y=roshan["y"])
    world.step(2)
    assert world.ground_items()  # his inventory is full
    world.clear_items(5)
    world.set_gold(5, -1e6)
    world.set_unit(world.hero(0)["unit"], x=roshan["x"] + 100, y=roshan["y"])
    world.set_unit(world.hero(5)["unit"], x=roshan["x"] + 140, y=roshan["y"], extra_hp=5000)
    world.step(2)  # the nearest has no free slot: the other takes it
    assert world.ground_items() == [] and "item_aegis" in held(world, 5)
    assert world.hero(5)["signals"]["aegis"] == 1
    hero = world.hero(5)["unit"]
    world.kill(hero, world.hero(0)["unit"])
    world.step(40)  # slightly more than 5 s
    assert world.unit(hero)["alive"] and world.hero(5)["deaths"] == 0


def test_roshan_stays_in_his_pit(new_world: Any, data: dict[str, Any]) -> None:
    world = new_world(roshan=True)
    world.step()
    roshan = world.units("roshan")[0]
    hero = world.hero(0)["unit"]
    world.set_unit(hero, x=roshan["x"] + 100, y=roshan["y"] - 100)
    world.damage(hero, roshan["index"], 10)
    world.step(10)  # he slams first
    assert world.units("roshan")[0]["attack_target"] == hero
    world.set_unit(hero, x=0, y=0)
    world.damage(hero, roshan["index"], 10)
    world.step(30)
    x0, y0, x1, y1 = data["map"]["roshan"]["pit_box"]
    u = world.units("roshan")[0]
    assert x0 - 50 <= u["x"] <= x1 + 50
    assert y0 - 50 <= u["y"] <= y1 + 50


def test_bounty_runes(new_world: Any) -> None:
    """Four at the horn and each five minutes; 40 + 2 a minute to each hero of the team."""
    world = new_world(radiant=("nevermore", "sniper"), runes=True)
    world.step()
    spots = world.pickups()
    assert [p[0] for p in spots] == [True] * 4 + [False] * 2
    hero = world.hero(0)["unit"]
    world.set_unit(hero, x=spots[0][2] + 100, y=spots[0][3])
    world.clear_signals()
    world.order(hero, "pickup", x=spots[0][2], y=spots[0][3])
    world.step(6)
    assert not world.pickups()[0][0]
    passive = 2
    assert world.hero(0)["signals"]["gold"] == pytest.approx(40, abs=passive)
    assert world.hero(1)["signals"]["gold"] == pytest.approx(40, abs=passive)


def test_order_to_a_taken_rune_takes_no_other(new_world: Any) -> None:
    """After another hero took it, the hero still walks to its place and to no other rune."""
    world = new_world(radiant=("nevermore",), dire=("sniper",), runes=True)
    world.step()
    spots = world.pickups()
    there = spots[0][2:4]
    hero, thief = world.hero(0)["unit"], world.hero(5)["unit"]
    world.set_unit(hero, x=there[0] + 500, y=there[1])
    world.set_unit(thief, x=there[0], y=there[1])
    world.order(hero, "pickup", x=there[0], y=there[1])
    world.order(thief, "pickup", x=there[0], y=there[1])
    world.step(2)
    assert not world.pickups()[0][0]
    world.step(60)
    u = world.unit(hero)
    assert math.hypot(u["x"] - there[0], u["y"] - there[1]) < 520
    assert u["order"] == 0
    assert [p[0] for p in world.pickups()[1:4]] == [True] * 3
    before = world.unit(hero)
    world.order(hero, "pickup", x=before["x"] - 600, y=before["y"])
    world.step(10)
    after = world.unit(hero)
    assert (after["x"], after["y"]) == (before["x"], before["y"])


def test_power_runes_change_kind(new_world: Any) -> None:
    world = new_world(runes=True, start_s=119.0)
    kinds: list[int] = []
    for k in range(6):
        world.set_time(119.9 + 120 * k)
        world.step(2)
        on = [p for p in world.pickups()[4:] if p[0]]
        assert len(on) == 1
        kinds.append(on[0][1])
    assert all(a != b for a, b in pairwise(kinds))
    assert all(1 <= k <= 5 for k in kinds)


def test_haste(new_world: Any) -> None:
    world = new_world(runes=True, start_s=119.0)
    hero = world.hero(0)["unit"]
    for k in range(40):
        world.set_time(119.9 + 120 * k)
        world.step(2)
        rune = next(p for p in world.pickups()[4:] if p[0])
        if rune[1] == 2:
            break
    world.set_unit(hero, x=rune[2], y=rune[3])
    world.order(hero, "pickup", x=rune[2], y=rune[3])
    world.step(3)
    assert world.unit(hero)["move_speed"] == pytest.approx(550)
