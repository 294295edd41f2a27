"""Damage, attacks, denies and deaths, computed by hand from rules.json."""

from typing import Any

import pytest

from tests.dota.scenes.patches import load_tables, read_data
from tests.dota.scenes.readings import physical_share

MID = (-500.0, -400.0)


def creep(world: Any, team: int, x: float = MID[0], y: float = MID[1], kind: str = "melee") -> int:
    side = ("goodguys", "badguys")[team]
    index: int = world.spawn(f"npc_dota_creep_{side}_{kind}", team, x, y)
    return index


def far_heroes(world: Any) -> tuple[int, int]:
    return world.hero(0)["unit"], world.hero(5)["unit"]


@pytest.mark.parametrize("armor", [-5.0, 0.0, 2.0, 12.0, 25.0])
def test_armor(new_world: Any, armor: float) -> None:
    world = new_world()
    target = creep(world, 1)
    world.set_unit(target, extra_armor=armor - 2)  # the creep's own is 2
    lost = world.damage(world.hero(0)["unit"], target, 100)
    assert lost == pytest.approx(100 * physical_share(armor), rel=1e-5)


def test_magic_resistance_and_pure(new_world: Any) -> None:
    world = new_world()
    a, b = far_heroes(world)
    world.clear_items(5)
    assert world.damage(a, b, 100, "magical") == pytest.approx(100 * 0.75 * (1 - 19 * 0.0008), rel=1e-4)
    assert world.damage(a, b, 100, "pure") == pytest.approx(100)


@pytest.mark.parametrize(("attacker", "factor"), [
    ("npc_dota_creep_goodguys_melee", 1.0), ("npc_dota_creep_goodguys_ranged", 1.5), ("npc_dota_goodguys_siege", 1.0),
    ("npc_dota_goodguys_tower1_mid", 1.0)])
def test_class_table_against_creeps(new_world: Any, attacker: str, factor: float) -> None:
    world = new_world()
    standing = [u["index"] for u in world.units("tower") if u["building"] == attacker.removeprefix("npc_")]
    source = standing[0] if standing else world.spawn(attacker, 0, *MID)
    target = creep(world, 1)
    lost = world.damage(source, target, 100, attack=True)
    assert lost == pytest.approx(100 * factor * physical_share(2), rel=1e-5)


def test_a_building_stands_only_where_the_map_has_it(new_world: Any) -> None:
    """Its protection and the effects of its loss depend on its position."""
    with pytest.raises(ValueError, match="'npc_dota_goodguys_tower1_mid' is a building"):
        new_world().spawn("npc_dota_goodguys_tower1_mid", 0, *MID)


def test_class_table_against_towers_and_siege(new_world: Any) -> None:
    world = new_world()
    tower = next(u["index"] for u in world.units("tower") if u["building"] == "dota_badguys_tower1_mid")
    hero = world.hero(0)["unit"]
    siege = world.spawn("npc_dota_goodguys_siege", 0, *MID)
    own = physical_share(12)
    assert world.damage(hero, tower, 100, attack=True) == pytest.approx(100 * 0.5 * own, rel=1e-5)
    assert world.damage(siege, tower, 100, attack=True) == pytest.approx(100 * 2.5 * own, rel=1e-5)
    enemy_siege = world.spawn("npc_dota_badguys_siege", 1, *MID)
    assert world.damage(hero, enemy_siege, 100, attack=True) == pytest.approx(50, rel=1e-5)


def test_attacks_keep_their_interval(new_world: Any) -> None:
    """Over many attacks the mean interval is exact although frames are discrete."""
    world = new_world()
    hero = world.hero(0)["unit"]
    target = world.spawn("npc_dota_badguys_siege", 1, MID[0] + 300, MID[1])
    world.set_unit(target, extra_armor=400)
    world.set_unit(hero, x=MID[0], y=MID[1], facing=0)
    world.order(hero, "attack", target)
    times: list[float] = []
    for _ in range(200):
        world.step()
        at = world.unit(hero)["last_attack"]
        if at > 0 and (not times or at > times[-1] + 1e-3):
            times.append(at)
        world.set_unit(target, hp=800)
    interval = world.unit(hero)["attack_interval"]
    assert len(times) > 10
    assert (times[-1] - times[0]) / (len(times) - 1) == pytest.approx(interval, abs=0.067 / (len(times) - 1))


def test_first_attack_takes_the_attack_point_and_the_flight(new_world: Any) -> None:
    world = new_world()
    hero = world.hero(0)["unit"]
    target = world.spawn("npc_dota_badguys_siege", 1, MID[0] + 450, MID[1])
    world.set_unit(hero, x=MID[0], y=MID[1], facing=0)
    world.order(hero, "attack", target)
    hit_after = None
    full = world.unit(target)["hp"]
    for step in range(20):
        world.step()
        if world.unit(target)["hp"] < full:
            hit_after = (step + 1) * 4 / 30
            break
    u = world.unit(hero)
    expected = u["attack_point"] + 450 / 1200
    assert hit_after is not None
    assert expected - 0.1 <= hit_after <= expected + 4 / 30 + 0.1


def test_melee_hero_walks_up(new_world: Any) -> None:
    world = new_world(radiant=("sven",))
    hero = world.hero(0)["unit"]
    target = creep(world, 1, MID[0] + 500, MID[1])
    world.set_unit(hero, x=MID[0], y=MID[1], facing=0)
    world.order(hero, "attack", target)
    world.step(20)
    assert world.unit(target)["hp"] < 550


def test_deny_needs_half_health(new_world: Any) -> None:
    world = new_world()
    hero = world.hero(0)["unit"]
    own = creep(world, 0)
    world.set_unit(own, hp=276)
    assert not world.can_attack(hero, own)
    world.set_unit(own, hp=274)
    assert world.can_attack(hero, own)


def test_tower_deny_needs_a_tenth(new_world: Any) -> None:
    world = new_world()
    hero = world.hero(0)["unit"]
    tower = next(u["index"] for u in world.units("tower") if u["building"] == "dota_goodguys_tower1_mid")
    world.set_unit(tower, hp=181)
    assert not world.can_attack(hero, tower)
    world.set_unit(tower, hp=179)
    assert world.can_attack(hero, tower)


def test_a_deny_gives_the_enemy_a_third_of_the_experience(new_world: Any) -> None:
    """Enemy heroes nearby get 35 % of 57 experience. The denier gets none, and a fifth of the bounty."""
    world = new_world()
    a, b = far_heroes(world)
    own = creep(world, 0)
    world.set_unit(a, x=MID[0] + 200, y=MID[1])
    world.set_unit(b, x=MID[0] + 400, y=MID[1])
    world.clear_signals()
    world.kill(own, a)
    assert world.hero(0)["denies"] == 1
    assert world.hero(0)["last_hits"] == 0
    assert world.hero(0)["signals"]["deny"] == 1
    assert world.hero(0)["xp"] == 0
    assert world.hero(5)["xp"] == pytest.approx(57 * 0.35)
    assert 32 * 0.2 <= world.hero(0)["signals"]["gold"] <= 38 * 0.2 + 1e-4


def test_last_hit_pays_and_experience_is_shared(new_world: Any) -> None:
    world = new_world(radiant=("nevermore", "sniper"))
    first, second = world.hero(0)["unit"], world.hero(1)["unit"]
    target = creep(world, 1)
    world.set_unit(first, x=MID[0] + 1499, y=MID[1])
    world.set_unit(second, x=MID[0] - 300, y=MID[1])
    world.clear_signals()
    world.kill(target, second)
    assert world.hero(1)["last_hits"] == 1
    assert 32 <= world.hero(1)["signals"]["gold"] <= 38
    assert world.hero(0)["xp"] == pytest.approx(57 / 2)
    assert world.hero(1)["xp"] == pytest.approx(57 / 2)


def test_experience_ends_at_its_radius(new_world: Any) -> None:
    world = new_world()
    hero = world.hero(0)["unit"]
    world.set_unit(hero, x=MID[0] + 1501, y=MID[1])
    world.kill(creep(world, 1))
    assert world.hero(0)["xp"] == 0
    world.set_unit(hero, x=MID[0] + 1499, y=MID[1])
    world.kill(creep(world, 1))
    assert world.hero(0)["xp"] == pytest.approx(57)


def test_hero_kill_gold_and_experience(new_world: Any) -> None:
    """First kill of a level 1 hero by one hero in the radius, teams equal in net worth.

    Last hit: 110 + 8 + 150 for first blood. Area, n = 1: 1.2 (the victim is his team's richest) * 1 * (126 + 4.5).
    Experience: 40 + 0.14 * 0.
    """
    world = new_world()
    a, b = far_heroes(world)
    world.set_unit(a, x=MID[0], y=MID[1])
    world.set_unit(b, x=MID[0] + 300, y=MID[1])
    world.clear_signals()
    world.kill(b, a)
    killer, victim = world.hero(0), world.hero(5)
    assert killer["signals"]["gold"] == pytest.approx(110 + 8 + 150 + 1.2 * (126 + 4.5), rel=1e-4)
    assert killer["xp"] == pytest.approx(40)
    assert (killer["kills"], victim["deaths"], killer["streak"]) == (1, 1, 1)
    assert killer["signals"]["killed_hero"] == 1
    assert victim["signals"]["hero_death"] == 1


def test_death_takes_unreliable_gold(new_world: Any) -> None:
    world = new_world()
    world.clear_items(5)
    world.set_gold(5, 400, 1000)
    a, b = far_heroes(world)
    world.kill(b, a)
    assert world.hero(5)["gold"] == pytest.approx(400 - (50 + 1400 / 40))
    assert world.hero(5)["reliable"] == pytest.approx(1000)


@pytest.mark.parametrize(("level", "xp", "wait"), [(1, 0, 6), (6, 2300, 26), (12, 7070, 44), (25, 27235, 100)])
def test_respawn_time(new_world: Any, level: int, xp: float, wait: float) -> None:
    world = new_world()
    world.give_xp(5, xp)
    assert world.hero(5)["level"] == level
    a, b = far_heroes(world)
    world.kill(b, a)
    assert world.hero(5)["respawn_at"] == pytest.approx(world.time + wait, abs=1e-3)


def test_respawn_restores_health_without_reward(new_world: Any) -> None:
    world = new_world()
    a, b = far_heroes(world)
    world.step()
    world.clear_signals()
    world.kill(b, a)
    world.step()
    assert world.hero(5)["signals"]["health"] == pytest.approx(-1)  # h(1) - h(0)
    world.clear_signals()
    world.step(60)
    u = world.unit(b)
    assert u["alive"]
    assert u["hp"] == pytest.approx(u["max_hp"])
    assert world.hero(5)["signals"]["health"] == pytest.approx(0, abs=1e-6)
    assert world.hero(5)["signals"]["mana"] == pytest.approx(0, abs=1e-6)


def test_health_signal_follows_the_published_curve(new_world: Any) -> None:
    """h(x) = (x + 1 - (1 - x)^4) / 2, Berner et al. 2019, table 6."""
    world = new_world()
    hero = world.hero(0)["unit"]
    world.set_unit(hero, x=MID[0], y=MID[1])  # away from the fountain
    world.step()
    world.clear_signals()
    world.set_unit(hero, hp=world.unit(hero)["max_hp"] * 0.3)
    world.step()
    u = world.unit(hero)
    x = u["hp"] / u["max_hp"]
    assert world.hero(0)["signals"]["health"] == pytest.approx((x + 1 - (1 - x) ** 4) / 2 - 1, abs=1e-5)


def test_buyback(new_world: Any) -> None:
    """100 + net worth / 13, reliable gold first; the next death lasts 25 s longer; the cooldown is eight minutes."""
    world = new_world()
    world.clear_items(5)
    world.set_gold(5, 1000, 300)
    a, b = far_heroes(world)
    world.kill(b, a)
    worth = world.hero(5)["net_worth"]
    cost = 100 + worth / 13
    assert world.hero(5)["buyback_cost"] == pytest.approx(cost)
    assert world.buyback(5)
    assert world.unit(b)["alive"]
    assert world.hero(5)["net_worth"] == pytest.approx(worth - cost)
    assert world.hero(5)["reliable"] == pytest.approx(max(0.0, 300 - cost), abs=1e-3)
    world.kill(b, a)
    assert world.hero(5)["respawn_at"] == pytest.approx(world.time + 6 + 25, abs=1e-3)
    assert not world.buyback(5)


def test_wards_die_by_two_hero_hits(new_world: Any) -> None:
    world = new_world()
    ward = world.spawn("npc_dota_observer_wards", 1, *MID)
    hero = world.hero(0)["unit"]
    own = creep(world, 0)
    assert world.damage(own, ward, 500, attack=True) == 0
    world.damage(hero, ward, 50, attack=True)
    assert world.unit(ward)["alive"]
    world.damage(hero, ward, 50, attack=True)
    assert all(u["index"] != ward for u in world.units("ward"))


def test_aegis_brings_its_bearer_back_on_the_spot(new_world: Any) -> None:
    world = new_world()
    a, b = far_heroes(world)
    world.set_unit(b, x=MID[0], y=MID[1])
    world.clear_items(5)
    world.give_item(5, "aegis")
    world.kill(b, a)
    assert not world.unit(b)["alive"]
    assert world.hero(5)["deaths"] == 0
    assert world.hero(0)["kills"] == 0
    world.step(40)  # slightly more than 5 s
    u = world.unit(b)
    assert u["alive"]
    assert abs(u["x"] - MID[0]) < 400
    world.kill(b, a)
    assert world.hero(5)["deaths"] == 1


def uphill_pair(data: dict[str, Any]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return two walkable positions 300 apart near mid, the second one level higher."""
    grids, world = data["map"]["grids"], data["map"]["world"]

    def cells(name: str) -> list[int]:
        runs = grids[name]
        return [v for k in range(0, len(runs), 2) for v in [runs[k]] * runs[k + 1]]

    level, blocked = cells("elevation"), cells("blocked_at_start")
    for r in range(90, 170):
        for c in range(90, 165):
            row = r * world["w"]
            if all(not blocked[row + k] for k in range(c, c + 6)) and level[row + c + 5] == level[row + c] + 1 >= 1:
                x, y = world["min_x"] + 64 * c + 32, world["min_y"] + 64 * r + 32
                return (x, y), (x + 5 * 64, y)
    raise AssertionError("the map has no step near mid")


@pytest.mark.parametrize("uphill", [True, False])
def test_a_quarter_of_ranged_attacks_misses_uphill(new_world: Any, data: dict[str, Any], uphill: bool) -> None:
    low, high = uphill_pair(data)
    world = new_world()
    hero = world.hero(0)["unit"]
    world.clear_items(0)
    for _ in range(6):
        world.give_item(0, "hyperstone")
    source, goal = (low, high) if uphill else (high, low)
    target = world.spawn("npc_dota_badguys_siege", 1, *goal)
    world.set_unit(target, extra_armor=100)
    world.set_unit(hero, x=source[0], y=source[1], facing=0.0 if uphill else 3.14)
    watcher = world.spawn("npc_dota_creep_goodguys_ranged", 0, goal[0], goal[1] + 60)  # gives sight of the high ground
    world.set_unit(watcher, extra_armor=2000)
    world.step()
    world.order(hero, "attack", target)
    shots = hits = 0
    last = 0.0
    for _ in range(600):
        world.step()
        u = world.unit(hero)
        shots += u["last_attack"] > last + 1e-3
        last = max(last, u["last_attack"])
        hits += world.unit(target)["hp"] < 875
        world.set_unit(target, hp=875)
    assert shots > 150
    missed = shots - hits
    if uphill:
        assert 0.12 * shots < missed < 0.4 * shots
    else:
        assert missed <= 3  # in flight at the end, or two hits in one step


def test_combat_numbers_of_7_19(core: Any) -> None:
    """7.19: 18 hp per strength, regeneration as a percentage of strength, armor 0.05 A / (1 + 0.05 A)."""

    old = read_data("7.19")
    tables = load_tables(core, old)
    world = core.World(tables, {"start_s": 0.0, "lanes": [False, True, False]}, ["nevermore"], ["nevermore"], 1)
    world.clear_items(0)
    hero = old["heroes"]["heroes"]["npc_dota_hero_nevermore"]
    u = world.unit(world.hero(0)["unit"])
    assert u["max_hp"] == pytest.approx(hero["base_hp"] + 18 * hero["base_str"])
    assert u["hp_regen"] == pytest.approx(hero["base_hp_regen"] * (1 + 0.0055 * hero["base_str"]), rel=1e-4)
    target = world.spawn("npc_dota_creep_badguys_melee", 1, *MID)
    armor = world.unit(target)["armor"]
    lost = world.damage(world.hero(0)["unit"], target, 100)
    assert lost == pytest.approx(100 * (1 - 0.05 * armor / (1 + 0.05 * armor)), rel=1e-5)
    world.step(300)
    assert world.units("lane_creep")
