"""Rules between players: stacks, hero denies, teleports to one place, kill bounties, visible enemy state."""

import math
from typing import Any

import pytest

from tests.dota.scenes.actions import cast, give
from tests.dota.scenes.arena import CENTRE, STEP, Arena
from tests.dota.scenes.duels import line_up
from tests.dota.scenes.patches import PATCHES, read_data
from tests.dota.scenes.statuses import DENIABLE
from tests.dota.scenes.talents import duel
from tests.dota.test_scepter import scepter_duels

STEPS_A_SECOND = 7.5


def test_a_stack_pays_its_stacker(new_world: Any, data: dict[str, Any]) -> None:
    """Creeps pulled out of their camp at the minute pay the stacker 35 % of the gold that an ally gets for them."""
    world = new_world(("sven", "lion"), neutrals=True, start_s=30.0)
    world.step(int(31 * 7.5))
    camps: dict[int, list[dict[str, Any]]] = {}
    for u in world.units("neutral"):
        camps.setdefault(u["camp"], []).append(u)
    camp = next(c for c, us in camps.items() if len(us) >= 2)
    stacker, mate = world.hero(0)["unit"], world.hero(1)["unit"]
    one = camps[camp][0]
    world.set_unit(stacker, x=one["x"] + 200, y=one["y"], extra_hp=5000)
    world.step(int((118 - world.time) * 7.5))
    world.damage(stacker, one["index"], 1)
    for u in camps[camp]:
        world.set_unit(u["index"], x=-500, y=-400)  # out of the box at the minute
    world.set_unit(stacker, x=-700, y=-400)
    world.step(int(4 * 7.5))
    assert sum(u["camp"] == camp for u in world.units("neutral")) > len(camps[camp])  # a second set spawned
    world.set_unit(stacker, x=-7000, y=-6500)
    world.clear_signals()
    world.kill(one["index"], mate)
    got = [world.hero(i)["signals"]["gold"] for i in (0, 1)]
    share = data["rules"]["rules"]["gold"]["stack_bonus_pct"] / 100
    assert got[1] > 10 and got[0] == pytest.approx(share * got[1], abs=1e-3)


def test_killing_ones_own_stack_pays_its_bounty_once(new_world: Any) -> None:
    world = new_world(("sven",), neutrals=True, start_s=30.0)
    world.step(int(31 * 7.5))
    one = world.units("neutral")[0]
    hero = world.hero(0)["unit"]
    world.set_unit(hero, x=one["x"] + 100, y=one["y"], extra_hp=5000)
    world.clear_signals()
    world.kill(one["index"], hero)
    unit = world.hero(0)["signals"]["gold"]
    low, high = (read_data("7.21d")["units"]["units"][one["type"]][k] for k in ("gold_min", "gold_max"))
    assert low <= unit <= high


@pytest.mark.parametrize(("hp", "struck", "may"), [(0.2, True, True), (0.3, True, False), (0.2, False, False)])
def test_a_hero_under_shadow_strike_can_be_denied(new_world: Any, data: dict[str, Any], hp: float, struck: bool,
                                                  may: bool) -> None:
    """Below a quarter of his health, and only while the poison runs; nobody is paid for it."""
    arena = duel(new_world, data, "queenofpain", enemies=("sven", "axe"))
    victim, mate = arena.unit(5), arena.unit(6)
    arena.place(mate, 400, 0, math.pi)
    if struck:
        cast(arena, "queenofpain_shadow_strike", 4, victim, wait=1.2)
        assert arena.world.unit(victim)["status"] & DENIABLE
    arena.world.set_unit(victim, hp=hp * arena.world.unit(victim)["max_hp"])
    assert arena.world.can_attack(mate, victim) == may
    if not may:
        return
    arena.world.set_unit(victim, hp=20)
    arena.world.clear_signals()
    arena.world.set_unit(mate, attack_ready=0)
    arena.world.order(mate, "attack", target=victim)
    arena.seconds(1.5)
    assert not arena.world.unit(victim)["alive"]
    assert arena.world.hero(0)["signals"]["killed_hero"] == 0
    assert arena.world.hero(0)["signals"]["gold"] < 5


def test_a_tower_can_be_denied_below_a_tenth(new_world: Any) -> None:
    """It pays nobody."""
    world = new_world()
    tower = next(u for u in world.units("tower") if u["team"] == 0 and u["tier"] == 1)
    hero = world.hero(0)["unit"]
    world.set_unit(tower["index"], hp=0.11 * tower["max_hp"])
    assert not world.can_attack(hero, tower["index"])
    world.set_unit(tower["index"], hp=0.09 * tower["max_hp"])
    assert world.can_attack(hero, tower["index"])
    world.clear_signals()
    world.kill(tower["index"], hero)
    assert world.hero(5)["signals"]["gold"] == 0 and world.hero(0)["signals"]["gold"] == 0


def channel(arena: Arena, hero: int, at: tuple[float, float]) -> float:
    """Teleport a hero with a scroll; return the channel time."""
    unit = arena.unit(hero)
    give(arena, "tpscroll", hero, 1)
    slot = arena.world.ability(hero, "item_tpscroll")["slot"]
    arena.world.set_unit(unit, mana=300)
    arena.world.order(unit, "cast_point", x=at[0], y=at[1], slot=slot)
    start = None
    for _ in range(90):
        arena.world.step(1)
        act = arena.world.unit(unit)["act"]
        if act == "channel" and start is None:
            start = arena.world.time
        if start is not None and act != "channel":
            return arena.world.time - start
    raise AssertionError("no teleport")


def test_teleports_to_one_place_take_longer_each_time(new_world: Any, data: dict[str, Any]) -> None:
    """3, 5, 5.5 s within 25 s of each other; elsewhere, or later, 3 s again."""
    rules = data["rules"]["rules"]["teleport"]
    arena = Arena(new_world(("lion", "sven", "axe", "viper", "sniper"), ("lich",)), data)
    towers = [u for u in arena.world.units("tower") if u["team"] == 0 and u["tier"] == 1]
    here, there = ((t["x"] + 200, t["y"]) for t in towers[:2])
    took = [channel(arena, i, here) for i in range(3)]
    assert took == [pytest.approx(s, abs=2 * STEP) for s in rules["repeat_channel_s"][:3]]
    assert channel(arena, 3, there) == pytest.approx(3, abs=2 * STEP)
    arena.seconds(rules["repeat_window_s"] + 1)
    assert channel(arena, 4, here) == pytest.approx(3, abs=2 * STEP)


def test_boots_of_travel(core: Any, patch: str) -> None:
    """They teleport to creeps as well as to buildings, and delay the scroll: 10 s more in 7.21d, one cooldown for both
    in 7.19."""
    arena = line_up(core, patch, ("lion",), ("sven",), {})
    creep = arena.world.spawn("npc_dota_creep_goodguys_melee", 0, -3500, -3000)
    arena.still(creep)
    give(arena, "tpscroll", charges=1)
    slot = give(arena, "travel_boots")
    hero = arena.unit(0)
    boots = arena.data["items"]["items"]["item_travel_boots"]
    base = arena.base_speed("lion")
    assert arena.world.unit(hero)["move_speed"] > base * 1.2
    arena.world.set_unit(hero, mana=300)
    arena.world.order(hero, "cast_unit", target=creep, slot=slot)
    arena.seconds(0.4)
    begun = arena.world.time
    scroll, own = arena.world.ability(0, "item_tpscroll"), arena.world.ability(0, "item_travel_boots")
    assert own["ready"] - begun == pytest.approx(boots["cooldown"][0], abs=0.6)
    waits = scroll["ready"] - begun
    assert waits == pytest.approx(10 if patch == "7.21d" else boots["cooldown"][0], abs=0.6)
    arena.seconds(3.2)
    at = arena.world.unit(hero)
    assert math.hypot(at["x"] + 3500, at["y"] + 3000) < 700


def test_a_great_cleave_of_the_older_patch_goes_through_armor(core: Any) -> None:
    """7.20 made cleaves ordinary physical damage."""
    shares = []
    for patch in PATCHES:
        arena = line_up(core, patch, ("sven",), ("axe",), {0: 0})
        target, behind = arena.dummy(140, 0), arena.dummy(280, 0)
        arena.world.set_unit(behind, extra_armor=20)
        arena.teach(0, "sven_great_cleave", 4)
        arena.world.set_unit(arena.unit(0), attack_ready=0)
        arena.world.order(arena.unit(0), "attack", target=target)
        arena.seconds(0.9)
        u = arena.world.unit(arena.unit(0))
        pct = arena.special("sven_great_cleave", "great_cleave_damage")[3] / 100
        shares.append((5000 - arena.hp(behind)) / (pct * (u["dmg_min"] + u["dmg_max"]) / 2))
    assert shares[0] < 0.6
    assert shares[1] == pytest.approx(1, abs=0.12)


def test_roshan_resists_status(new_world: Any, data: dict[str, Any]) -> None:
    """Stuns last a quarter less on him."""
    arena = scepter_duels(new_world, data, "sven", allies=("lion",))[0]
    roshan = arena.world.spawn("npc_dota_roshan", 2, CENTRE[0] + 300, CENTRE[1])
    arena.place(arena.unit(1), 0, 200)
    for index, ability in ((1, "lion_voodoo"), (0, "sven_storm_bolt")):  # his spell block takes the first
        slot = arena.teach(index, ability, 1)
        arena.world.order(arena.unit(index), "cast_unit", target=roshan, slot=slot)
        if index:
            arena.seconds(0.9)
    stuns: list[Any] = []
    while not stuns and arena.world.time < 60:
        arena.world.step(1)
        stuns = [m for m in arena.modifiers(roshan, "sven_storm_bolt") if m["status"] & 1]
    resisted = data["rules"]["rules"]["roshan"]["status_resist_pct"] / 100
    whole = arena.special("sven_storm_bolt", "bolt_stun_duration")[0]
    assert resisted * whole > 2 / STEPS_A_SECOND  # a timestep's width of the answer tells the two apart
    assert whole * (1 - resisted) - 1 / STEPS_A_SECOND <= stuns[0]["left"] <= whole * (1 - resisted) + 1e-3


def test_roshan_bashes(new_world: Any, data: dict[str, Any]) -> None:
    """15 % of his attacks, for 1.65 s and 50 damage."""
    arena = duel(new_world, data, "sven")
    arena.place(arena.unit(5), -900, 0)
    roshan = arena.world.spawn("npc_dota_roshan", 2, CENTRE[0] + 150, CENTRE[1])
    arena.world.set_unit(arena.unit(0), extra_hp=90000)
    arena.world.set_unit(arena.unit(0), hp=90000)
    arena.world.order(roshan, "attack", target=arena.unit(0))
    stuns = attacks = 0
    last, was = -99.0, False
    for _ in range(int(150 / STEP)):
        arena.world.order(roshan, "attack", target=arena.unit(0))
        arena.world.step(1)
        attack = arena.world.unit(roshan)["last_attack"]
        attacks += attack != last
        last = attack
        now = bool(arena.world.unit(arena.unit(0))["status"] & 1)
        stuns += now and not was
        was = now
    assert attacks > 60
    chance = data["abilities"]["abilities"]["roshan_bash"]["specials"]["bash_chance"]["v"][0] / 100
    assert 0.5 * chance < stuns / attacks < 1.8 * chance
