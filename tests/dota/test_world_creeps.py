"""Lane creeps from rules.json lane_creeps and creep_ai: waves, upgrades, walking, fighting, aggro."""

import math
from collections import Counter
from typing import Any

import pytest

from tests.dota.scenes.actions import cast
from tests.dota.scenes.arena import CENTRE
from tests.dota.scenes.duels import duel
from tests.dota.scenes.statuses import TAUNTED

MID_ONLY = [False, True, False]


def wave(world: Any, team: int = 0) -> Counter[str]:
    return Counter(u["type"] for u in world.units("lane_creep") if u["team"] == team)


@pytest.mark.parametrize(("minute", "melee", "ranged", "siege"), [
    (0.0, 3, 1, 0), (5.0, 3, 1, 1), (5.5, 3, 1, 0), (15.0, 4, 1, 1), (30.0, 5, 1, 2), (40.0, 5, 2, 2), (45.0, 6, 2, 2)])
def test_composition(new_world: Any, minute: float, melee: int, ranged: int, siege: int) -> None:
    world = new_world(lanes=MID_ONLY)
    world.set_time(minute * 60)
    world.step()
    for team, side in enumerate(("goodguys", "badguys")):
        got = wave(world, team)
        assert got[f"npc_dota_creep_{side}_melee"] == melee
        assert got[f"npc_dota_creep_{side}_ranged"] == ranged
        assert got[f"npc_dota_{side}_siege"] == siege
        assert sum(got.values()) == melee + ranged + siege


def test_waves_come_every_half_minute_in_the_enabled_lanes(new_world: Any) -> None:
    world = new_world(lanes=[True, True, True], start_s=-2.0)
    world.step(14)  # -2 s to -0.13 s
    assert not world.units("lane_creep")
    world.step(2)
    assert Counter(u["lane"] for u in world.units("lane_creep")) == {0: 8, 1: 8, 2: 8}
    assert world.waves == 1
    world.step(int(29.5 * 7.5))
    assert world.waves == 1
    world.step(8)
    assert world.waves == 2


@pytest.mark.parametrize(("minute", "upgrades"), [(7.0, 0), (7.5, 1), (22.5, 3)])
def test_upgrades(new_world: Any, minute: float, upgrades: int) -> None:
    """Every 7.5 minutes: melee +12 hp and +1 damage, ranged +12 hp and +2 damage; siege nothing."""
    world = new_world(lanes=MID_ONLY)
    world.set_time(minute * 60)
    world.step()
    units = {u["type"]: u for u in world.units("lane_creep")}
    melee, ranged = units["npc_dota_creep_badguys_melee"], units["npc_dota_creep_badguys_ranged"]
    assert melee["max_hp"] == pytest.approx(550 + 12 * upgrades)
    assert (melee["dmg_min"], melee["dmg_max"]) == (19 + upgrades, 23 + upgrades)
    assert ranged["max_hp"] == pytest.approx(300 + 12 * upgrades)
    assert ranged["dmg_min"] == 21 + 2 * upgrades


def test_super_and_mega_creeps(new_world: Any) -> None:
    world = new_world(lanes=[True, True, True])
    racks = {u["building"]: u["index"] for u in world.units("barracks") if u["team"] == 1}
    world.kill(racks["bad_rax_melee_mid"])
    world.step()
    got = wave(world)
    assert got["npc_dota_creep_goodguys_melee_upgraded"] == 3
    assert got["npc_dota_creep_goodguys_melee"] == 6
    assert got["npc_dota_creep_goodguys_ranged"] == 3
    assert not world.team(0)["megas"]
    for name, index in racks.items():
        if name != "bad_rax_melee_mid":
            world.kill(index)
    assert world.team(0)["megas"]
    assert world.hero(0)["signals"]["megas"] == 1
    assert world.hero(5)["signals"]["megas"] == 0
    world.set_time(30)
    world.step()
    assert wave(world)["npc_dota_creep_goodguys_melee_upgraded_mega"] == 9
    assert not any("mega" in t for t in wave(world, 1))


def test_the_lanes_meet_and_fight(new_world: Any) -> None:
    world = new_world(lanes=[True, True, True])
    world.step(int(45 * 7.5))
    mid = [u for u in world.units("lane_creep") if u["lane"] == 1]
    for u in mid:
        assert abs(u["x"] - u["y"]) < 2500  # they keep to the diagonal
    lost = {(lane, team): 0.0 for lane in range(3) for team in range(2)}
    for _ in range(30):
        for u in world.units("lane_creep"):
            lost[u["lane"], u["team"]] = max(lost[u["lane"], u["team"]], u["max_hp"] - u["hp"])
        world.step(5)
    # In every lane creeps of both sides hit each other: they meet outside the range of towers.
    assert min(lost.values()) > 20, lost
    for lane in range(3):
        fronts = [[u for u in world.units("lane_creep") if u["lane"] == lane and u["team"] == team] for team in (0, 1)]
        gap = min(((a["x"] - b["x"]) ** 2 + (a["y"] - b["y"]) ** 2) ** 0.5 for a in fronts[0] for b in fronts[1])
        assert gap < 800, lane


def test_creeps_of_a_wave_move_at_their_speed(new_world: Any) -> None:
    world = new_world(lanes=MID_ONLY)
    world.step(30)  # past the barracks' corners
    before = {u["index"]: (u["x"], u["y"]) for u in world.units("lane_creep")}
    world.step(15)  # 2 s
    for u in world.units("lane_creep"):
        x, y = before[u["index"]]
        assert ((u["x"] - x) ** 2 + (u["y"] - y) ** 2) ** 0.5 == pytest.approx(650, rel=0.05)


def test_nobody_walks_back_first(new_world: Any, data: dict[str, Any]) -> None:
    """Every creep is nearer to the enemy's Ancient after five seconds than after one."""
    world = new_world(lanes=[False, True, False])
    forts = {b["team"]: (b["x"], b["y"]) for b in data["map"]["buildings"] if b["kind"] == "fort"}

    def gaps() -> dict[int, float]:
        out = {}
        for u in world.units("lane_creep"):
            x, y = forts["dire" if u["team"] == 0 else "radiant"]
            out[u["index"]] = ((u["x"] - x) ** 2 + (u["y"] - y) ** 2) ** 0.5
        return out

    world.step(8)
    before = gaps()
    world.step(30)
    after = gaps()
    assert all(before[i] - after[i] > 1000 for i in before)


def test_attacking_a_hero_angers_his_creeps(new_world: Any) -> None:
    """Within 500 of the attacker, for 2.3 s, and not again within 3 s."""
    world = new_world()
    a, b = world.hero(0)["unit"], world.hero(5)["unit"]
    world.set_unit(a, x=-500, y=-400)
    world.set_unit(b, x=-200, y=-250)
    near = world.spawn("npc_dota_creep_badguys_ranged", 1, -300, -150, 1)
    bait = world.spawn("npc_dota_creep_goodguys_ranged", 0, -380, -60, 1)
    world.set_unit(bait, extra_armor=300)
    world.step(2)
    assert world.unit(near)["attack_target"] in (-1, bait)
    world.order(a, "attack", b)
    world.step(2)
    assert world.unit(near)["attack_target"] == a
    world.order(a, "move", x=-900, y=-800)
    world.step(20)
    assert world.unit(near)["attack_target"] != a


def test_farther_creeps_stay_calm(new_world: Any) -> None:
    world = new_world()
    a, b = world.hero(0)["unit"], world.hero(5)["unit"]
    world.set_unit(a, x=-500, y=-400)
    world.set_unit(b, x=-200, y=-250)
    far = world.spawn("npc_dota_creep_badguys_ranged", 1, 200, 0, 1)
    world.order(a, "attack", b)
    world.step(2)
    assert world.unit(far)["attack_target"] != a


def first_waves(new_world: Any, hero_ahead: float | None) -> tuple[Any, list[int], list[int]]:
    """Return the first top-lane waves 450 apart, with the Dire's hero in front, at that distance from the Radiant's
    creeps."""
    world = new_world(lanes=[True, False, False])
    world.step(2)
    sides: list[list[int]] = [[], []]
    for u in world.units("lane_creep"):
        sides[u["team"]].append(u["index"])
    x, y = -6300.0, 1500.0
    for team, creeps in enumerate(sides):
        for i, creep in enumerate(creeps):
            world.set_unit(creep, x=x + 60 * i, y=y + (450 if team else 0), extra_hp=5000)
    hero = world.hero(5)["unit"]
    if hero_ahead is not None:
        world.set_unit(hero, x=x + 60, y=y + hero_ahead, extra_hp=5000, attack_ready=1e9)
        world.order(hero, "hold")
    return world, sides[0], sides[1]


def test_a_first_wave_passes_a_hero_who_is_alone(new_world: Any) -> None:
    world, ours, theirs = first_waves(new_world, 200.0)
    for creep in theirs:
        world.set_unit(creep, x=6000, y=-6000)
    world.step(12)
    assert all(world.unit(creep)["attack_target"] == -1 for creep in ours)


def test_a_hero_in_front_does_not_keep_two_first_waves_peaceful(new_world: Any) -> None:
    """Enemy creeps are in range: a nearer hero only changes the target."""
    world, ours, theirs = first_waves(new_world, 150.0)
    world.step(12)
    struck = {world.unit(creep)["attack_target"] for creep in ours}
    assert -1 not in struck and struck <= {*theirs, world.hero(5)["unit"]}


def test_creeps_walk_on_after_a_fear(core: Any) -> None:
    """Scream of Pain frightens for 1.5 s with its talent; then a creep follows its lane again."""
    arena = duel(core, "queenofpain", away=2000)
    creep = arena.world.spawn("npc_dota_creep_badguys_melee", 1, CENTRE[0] + 150, CENTRE[1], 1)
    arena.world.set_unit(creep, extra_hp=5000)
    arena.world.teach(0, "special_bonus_unique_queen_of_pain_2", 1)
    cast(arena, "queenofpain_scream_of_pain", 1, wait=1)
    assert arena.world.unit(creep)["status"] & TAUNTED
    for hero in (0, 1):
        arena.place(arena.unit(hero), 3000, 3000 + 300 * hero)
    arena.seconds(1.2)
    assert not arena.world.unit(creep)["status"] & TAUNTED
    before = arena.world.unit(creep)
    arena.seconds(2)
    after = arena.world.unit(creep)
    assert math.hypot(after["x"] - before["x"], after["y"] - before["y"]) > 300
