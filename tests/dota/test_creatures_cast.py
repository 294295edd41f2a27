"""Units other than heroes follow orders like heroes: they cast abilities, pay for them, and hold items."""

import math
from typing import Any

import pytest

from tests.dota.scenes.arena import CENTRE, STEP, Arena


def arena(new_world: Any, data: dict[str, Any], **settings: Any) -> Arena:
    made = Arena(new_world(**settings), data)
    made.place(made.unit(0), 0, 0)
    made.place(made.unit(5), 2500, 0)
    return made


def spawned(a: Arena, kind: str, x: float, y: float = 0) -> int:
    unit: int = a.world.spawn(kind, 2, CENTRE[0] + x, CENTRE[1] + y)
    return unit


def test_a_camp_creep_stomps_attackers(new_world: Any, data: dict[str, Any]) -> None:
    """War Stomp: 25 magical damage and 2 s of stun within 250, for 50 mana, again after 20 s."""
    a = arena(new_world, data, neutrals=True)
    hero = a.unit(0)
    khan = spawned(a, "npc_dota_neutral_centaur_khan", 150)
    a.world.damage(hero, khan, 10, "pure")
    mana, hp = a.world.unit(khan)["mana"], a.hp(hero)
    a.seconds(1.0)
    stomp = data["abilities"]["abilities"]["centaur_khan_war_stomp"]
    assert a.hp(hero) <= hp - stomp["damage"][0] * a.magic(hero) + 0.01
    stun = a.modifiers(hero, "centaur_khan_war_stomp")
    assert stun and 0 < stun[0]["left"] <= a.special("centaur_khan_war_stomp", "hero_stun_duration")[0]
    assert mana - 50 <= a.world.unit(khan)["mana"] < mana - 48
    ready = a.world.unit_ability(khan, "centaur_khan_war_stomp")
    assert not ready["castable"]
    assert ready["ready"] == pytest.approx(a.world.time - 1.0 + 20, abs=1.0)


def test_a_boulder_is_hurled_at_units_in_range(new_world: Any, data: dict[str, Any]) -> None:
    """Hurl Boulder: 125 magical damage from 800 away, beyond melee range."""
    a = arena(new_world, data, neutrals=True)
    hero = a.unit(0)
    golem = spawned(a, "npc_dota_neutral_mud_golem", 600)
    a.world.damage(hero, golem, 10, "pure")
    hp = a.hp(hero)
    a.seconds(1.3)
    assert hp - a.hp(hero) == pytest.approx(a.special("mud_golem_hurl_boulder", "damage")[0] * a.magic(hero), abs=0.01)


def test_a_priest_heals_the_weakest(new_world: Any, data: dict[str, Any]) -> None:
    a = arena(new_world, data, neutrals=True)
    priest = spawned(a, "npc_dota_neutral_forest_troll_high_priest", 450)
    hurt = spawned(a, "npc_dota_neutral_kobold", 450, 100)
    a.still(hurt)
    a.world.set_unit(hurt, hp=100)
    a.world.damage(a.unit(0), priest, 10, "pure")
    a.seconds(1.0)
    assert a.hp(hurt) >= 100 + a.special("forest_troll_high_priest_heal", "health")[0]


def test_roshan_slams(new_world: Any, data: dict[str, Any]) -> None:
    """70 damage within 350, and a 50 % slow on each unit hit."""
    world = new_world(roshan=True)
    world.step(1)
    (roshan,) = [u["index"] for u in world.units("roshan")]
    hero = world.hero(0)["unit"]
    at = world.unit(roshan)
    world.set_unit(hero, x=CENTRE[0], y=CENTRE[1], extra_hp=3000)
    world.order(hero, "hold")
    world.step(int(4 / STEP))  # the fountain heals for a while after it is left
    world.set_unit(hero, x=at["x"] + 150, y=at["y"], hp=3500, extra_hp_regen=-world.unit(hero)["hp_regen"])
    slow: list[dict[str, Any]] = []
    hp = speed = 0.0
    for frame in range(90):
        hp, speed = world.unit(hero)["hp"], world.unit(hero)["move_speed"]
        world.run_frames(1)
        slow = [m for m in world.modifiers(hero) if m["name"].startswith("roshan_slam")]
        if slow:
            break
        if frame % 20 == 19:
            world.step(1)
    assert slow and 1.9 < slow[0]["left"] <= 2
    damage = data["abilities"]["abilities"]["roshan_slam"]["specials"]["damage"]["v"][0]
    assert hp - world.unit(hero)["hp"] == pytest.approx(damage * (1 - world.unit(hero)["magic_resist"]), abs=0.01)
    world.run_frames(1)
    base = data["heroes"]["heroes"]["npc_dota_hero_nevermore"]["move_speed"]
    assert speed - world.unit(hero)["move_speed"] == pytest.approx(base / 2, abs=0.01)


def test_roshan_resists_status_by_a_quarter(new_world: Any, data: dict[str, Any]) -> None:
    """A stun of 2 s on him lasts 1.5 s (rules.json roshan.status_resist_pct)."""
    world = new_world(("lion",), roshan=True)
    world.step(1)
    (roshan,) = [u["index"] for u in world.units("roshan")]
    hero = world.hero(0)["unit"]
    at = world.unit(roshan)
    world.set_unit(hero, x=at["x"] + 300, y=at["y"], facing=math.pi)
    world.teach(0, "lion_impale", 4)
    world.step(1)
    world.set_unit(hero, mana=500)
    world.order(hero, "cast_point", x=at["x"], y=at["y"], slot=0)
    longest = 0.0
    for _ in range(12):
        world.step(1)
        stun = [m["left"] for m in world.modifiers(roshan) if m["name"].startswith("lion_impale") and m["status"] & 1]
        longest = max([longest, *stun])
    full = data["abilities"]["abilities"]["lion_impale"]["specials"]["duration"]["v"][-1]
    assert full * 0.75 - 2 * STEP <= longest <= full * 0.75


def test_roshan_bashes(new_world: Any, data: dict[str, Any]) -> None:
    """15 % of his attacks stun for 1.65 s: over 60 attacks, some and not all."""
    world = new_world(roshan=True)
    world.step(1)
    (roshan,) = [u["index"] for u in world.units("roshan")]
    hero = world.hero(0)["unit"]
    at = world.unit(roshan)
    world.set_unit(hero, x=at["x"] + 150, y=at["y"], extra_hp=60000)
    world.set_unit(hero, hp=60000)
    world.order(hero, "hold")
    stunned = 0
    for _ in range(int(60 / STEP)):
        world.step(1)
        stunned += any(m["name"].startswith("roshan_bash") for m in world.modifiers(hero))
    assert 0.02 < stunned / int(60 / STEP) < 0.6


@pytest.mark.parametrize("kind", ["courier", "flying_courier"])
def test_a_courier_shields_itself(new_world: Any, data: dict[str, Any], kind: str) -> None:
    """Two seconds of invulnerability, once in 200 s, when an enemy hero comes close; also for a courier spawned as a
    flying one."""
    flies = data["rules"]["rules"]["courier"]["flying_at_s"]
    world = new_world(courier_scripted=True, start_s=0.0 if kind == "courier" else flies + 10)
    world.step(2)
    courier, enemy = world.team(0)["courier"], world.hero(5)["unit"]
    at = world.unit(courier)
    assert at["type"] == "npc_dota_" + kind
    world.set_unit(enemy, x=at["x"] + 200, y=at["y"])
    world.step(4)
    banished = 1 << 9
    assert world.unit(courier)["status"] & banished
    assert not world.unit_ability(courier, "courier_shield")["castable"]
    world.damage(enemy, courier, 1000, "pure")
    assert world.unit(courier)["alive"]
    world.step(int(2 / STEP) + 3)
    assert not world.unit(courier)["status"] & banished


def test_any_unit_uses_an_item(new_world: Any, data: dict[str, Any]) -> None:
    """Dagon in a centaur's hands: 400 magical damage, its mana paid, its cooldown running."""
    a = arena(new_world, data)
    khan = spawned(a, "npc_dota_neutral_centaur_khan", 400)
    slot = a.world.give_unit_item(khan, "dagon")
    assert slot == 16
    a.world.set_unit(khan, mana=200)
    hero, hp = a.unit(0), a.hp(a.unit(0))
    a.world.order(khan, "cast_unit", target=hero, slot=slot)
    a.seconds(0.6)
    dagon = data["items"]["items"]["item_dagon"]
    assert hp - a.hp(hero) == pytest.approx(dagon["specials"]["damage"]["v"][0] * a.magic(hero), abs=0.01)
    assert a.world.unit(khan)["mana"] < 200 - dagon["mana_cost"][0] + 5
    a.world.order(khan, "cast_unit", target=hero, slot=slot)
    a.seconds(0.6)
    assert hp - a.hp(hero) == pytest.approx(dagon["specials"]["damage"]["v"][0] * a.magic(hero), abs=0.01)


def test_a_tied_last_hit_is_random(new_world: Any, data: dict[str, Any]) -> None:
    """Two heroes hit in the same frame: over many kills each side gets a share, instead of Radiant all of them."""
    won = 0
    games = 40
    for seed in range(games):
        world = new_world(("sven",), ("sven",), seed=seed)
        places = [world.hero(0)["unit"], world.hero(5)["unit"]]
        target = world.spawn("npc_dota_neutral_kobold", 2, *CENTRE)
        world.set_unit(target, hp=1)
        for side, unit in enumerate(places):
            world.clear_items(5 * side)
            world.set_unit(unit, x=CENTRE[0] + (100 if side else -100), y=CENTRE[1], facing=math.pi * side)
        for unit in places:
            world.order(unit, "attack", target=target)
        world.step(20)
        kills = [world.hero(h)["last_hits"] for h in (0, 5)]
        assert sum(kills) == 1
        won += kills[0]
    assert 0.2 * games < won < 0.8 * games


def test_nothing_is_dropped_in_a_fight(new_world: Any, data: dict[str, Any]) -> None:
    """Pools that are full are counted; a lane fight fills none."""
    world = new_world(lanes=[True, True, True], neutrals=True, roshan=True, runes=True)
    world.step(int(180 / STEP))
    assert not any(world.dropped().values())
    for _ in range(400):
        world.spawn("npc_dota_neutral_kobold", 2, *CENTRE)
    assert world.dropped()["units"] > 0


def test_lane_creeps_fight_a_camp_that_was_pulled(new_world: Any, data: dict[str, Any]) -> None:
    """Lane creeps fight a camp that chases a hero into the wave, and ignore one that stands nearby."""
    for angry in (True, False):
        world = new_world(neutrals=True)
        creep = world.spawn("npc_dota_creep_goodguys_melee", 0, *CENTRE, lane=1)
        kobold = world.spawn("npc_dota_neutral_kobold", 2, CENTRE[0] + 250, CENTRE[1] + 200)
        world.set_unit(kobold, extra_hp=5000)
        world.set_time(301)  # by night it sleeps
        hp = world.unit(kobold)["hp"]
        if angry:
            world.damage(creep, kobold, 1, "pure")
        world.step(int(2 / STEP))
        assert (world.unit(kobold)["hp"] < hp - 5) == angry
