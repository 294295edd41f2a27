"""Effects of talents in games: results change by the value in heroes.json. A talent could be compiled and never be
used; test_talents_numbers.py tests the compiled numbers."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.dota.scenes.actions import order, order_by_type
from tests.dota.scenes.arena import CENTRE, STEP, Arena
from tests.dota.scenes.talents import duel, take, value, without_and_with

Measure = Callable[[Arena], float]


def enemy(arena: Arena) -> int:
    return arena.unit(5)


def both(new_world: Any, data: dict[str, Any], hero: str, talent: str, measure: Measure, **sides: Any) -> float:
    """Return the increase with the talent."""
    without, taken = (measure(arena) for arena in without_and_with(new_world, data, hero, talent, **sides))
    return taken - without


def send(arena: Arena, ability: str, slot: int, target: int) -> None:
    """Order a cast by the ability's own target type as soon as it is ready."""
    for _ in range(70):
        if arena.world.ability(0, ability)["castable"]:
            break
        arena.seconds(1)
    arena.world.set_unit(arena.unit(0), mana=5000)
    order_by_type(arena, ability, slot, target)


# Damage to the enemy hero: talent, ability, seconds after the cast, how often the added damage applies.
DAMAGE = [
    ("crystal_maiden", "crystal_maiden_2", "crystal_maiden_crystal_nova", 1, 1),
    ("lion", "lion_3", "lion_finger_of_death", 1, 1),
    ("tidehunter", "tidehunter_2", "tidehunter_gush", 1, 1),
    ("slark", "slark_2", "slark_dark_pact", 3, 1),
    ("viper", "viper_2", "viper_viper_strike", 7, 5),
    ("earthshaker", "earthshaker_2", "earthshaker_echo_slam", 1, 1),
]


@pytest.mark.parametrize(("hero", "talent", "ability", "seconds", "times"), DAMAGE, ids=[d[1] for d in DAMAGE])
def test_talent_adds_damage_of_a_cast(new_world: Any, data: dict[str, Any], hero: str, talent: str, ability: str,
                                      seconds: float, times: int) -> None:
    share = 1.0

    def lost(arena: Arena) -> float:
        nonlocal share
        if hero == "earthshaker":
            arena.dummy(330, 150)  # one creep, whose echo strikes the hero
        slot = arena.teach(0, ability, 1)
        share = arena.magic(enemy(arena)) * arena.amp(arena.unit(0))
        hp = arena.hp(enemy(arena))
        send(arena, ability, slot, enemy(arena))
        arena.seconds(seconds + 0.6)
        return hp - arena.hp(enemy(arena))

    more = both(new_world, data, hero, talent, lost)
    assert more == pytest.approx(value(data, hero, talent) * times * share, rel=0.01)


# Durations of modifiers that a cast applies: talent, ability, on the caster or the enemy.
LASTING = [
    ("lich", "lich_4", "lich_frost_shield", 0), ("slark", "slark_3", "slark_shadow_dance", 0),
    ("sven", "sven_4", "sven_storm_bolt", 5), ("witch_doctor", "witch_doctor_4", "witch_doctor_maledict", 5),
    ("gyrocopter", "gyrocopter_6", "gyrocopter_homing_missile", 5),
]


@pytest.mark.parametrize(("hero", "talent", "ability", "bearer"), LASTING, ids=[d[1] for d in LASTING])
def test_talent_lengthens_a_modifier(new_world: Any, data: dict[str, Any], hero: str, talent: str, ability: str,
                                     bearer: int) -> None:
    def left(arena: Arena) -> float:
        slot = arena.teach(0, ability, 1)
        send(arena, ability, slot, arena.unit(bearer))
        for _ in range(90):
            marks = [m for m in arena.modifiers(arena.unit(bearer), ability + "#") if m["left"] < 1e6]
            if marks:
                return float(marks[0]["left"])
            arena.world.step(1)
        raise AssertionError("it was never seen")

    assert both(new_world, data, hero, talent, left) == pytest.approx(value(data, hero, talent), abs=0.01)


# Fields of the hero himself, or of an enemy near him, by a passive or a cast: talent, ability, whose, field, change.
FIELD = [
    ("razor", "razor_3", "razor_unstable_current", 0, "move_speed", lambda v, base: base * v / 100),
    ("nevermore", "nevermore_5", "nevermore_dark_lord", 5, "armor", lambda v, base: v),
    ("necrolyte", "necrophos_3", "necrolyte_sadist", 5, "move_speed", lambda v, base: -base * v / 100),
    ("sven", "sven_2", "sven_gods_strength", 0, "str", lambda v, base: v),
    ("sniper", "sniper_5", "sniper_shrapnel", 5, "move_speed", lambda v, base: base * v / 100),
]


@pytest.mark.parametrize(("hero", "talent", "ability", "whose", "field", "change"), FIELD, ids=[d[1] for d in FIELD])
def test_talent_changes_a_field(new_world: Any, data: dict[str, Any], hero: str, talent: str, ability: str, whose: int,
                                field: str, change: Callable[[float, float], float]) -> None:
    def now(arena: Arena) -> float:
        slot = arena.teach(0, ability, 1)
        if "passive" not in arena.field(ability, "behavior"):
            send(arena, ability, slot, arena.unit(whose))
        arena.seconds(2)
        return float(arena.world.unit(arena.unit(whose))[field])

    base = data["heroes"]["heroes"][f"npc_dota_hero_{hero if whose == 0 else 'sven'}"]["move_speed"]
    more = both(new_world, data, hero, talent, now)
    assert more == pytest.approx(change(value(data, hero, talent), base), rel=1e-3)


def test_talent_applies_to_a_running_aura(new_world: Any, data: dict[str, Any]) -> None:
    arena = duel(new_world, data, "nevermore")
    arena.teach(0, "nevermore_dark_lord", 4)
    arena.seconds(1)
    armor = arena.world.unit(enemy(arena))["armor"]
    take(arena, "nevermore_5")
    arena.seconds(0.3)
    assert arena.world.unit(enemy(arena))["armor"] - armor == pytest.approx(value(data, "nevermore", "nevermore_5"))


def test_heartstopper_takes_more(new_world: Any, data: dict[str, Any]) -> None:
    def lost(arena: Arena) -> float:
        arena.teach(0, "necrolyte_heartstopper_aura", 1)
        arena.seconds(1)
        hp = arena.hp(enemy(arena))
        arena.seconds(5)
        return (hp - arena.hp(enemy(arena))) / arena.world.unit(enemy(arena))["max_hp"]

    more = both(new_world, data, "necrolyte", "necrophos_2", lost)
    assert 100 * more / 5.067 == pytest.approx(value(data, "necrolyte", "necrophos_2"), rel=0.06)


def test_death_pulse_heals_more(new_world: Any, data: dict[str, Any]) -> None:
    def healed(arena: Arena) -> float:
        slot = arena.teach(0, "necrolyte_death_pulse", 1)
        arena.place(arena.unit(1), -200, 0)
        arena.world.set_unit(arena.unit(1), hp=100)
        arena.world.order(arena.unit(0), "cast", slot=slot)
        arena.seconds(1.5)
        return arena.hp(arena.unit(1)) - 100

    more = both(new_world, data, "necrolyte", "necrophos_4", healed, allies=("lion",))
    assert more == pytest.approx(value(data, "necrolyte", "necrophos_4"), rel=0.01)


def blows(arena: Arena, unit: int, seconds: float) -> list[float]:
    """Return the health lost in each frame with a loss."""
    out, hp = [], arena.hp(unit)
    for frame in range(round(seconds * 30)):
        arena.world.run_frames(1)
        now = arena.hp(unit)
        if now < hp - 1e-3:
            out.append(hp - now)
        hp = now
        if frame % 30 == 29:
            arena.world.step(1)
            hp = arena.hp(unit)
    return out


def test_unstable_current_strikes_harder(new_world: Any, data: dict[str, Any]) -> None:
    def struck(arena: Arena) -> float:
        arena.teach(0, "razor_unstable_current", 1)
        hp = arena.hp(enemy(arena))
        arena.seconds(5.5)
        return (hp - arena.hp(enemy(arena))) / (arena.magic(enemy(arena)) * arena.amp(arena.unit(0)))

    assert both(new_world, data, "razor", "razor_4", struck) == pytest.approx(value(data, "razor", "razor_4"), rel=1e-3)


def test_eye_of_the_storm_strikes_sooner(new_world: Any, data: dict[str, Any]) -> None:
    """Ten seconds: one strike every 0.6 s in place of every 0.7 s."""
    counts = []
    for arena in without_and_with(new_world, data, "razor", "razor_2"):
        order(arena, "razor_eye_of_the_storm", 1)
        hp, armor = arena.hp(enemy(arena)), arena.world.unit(enemy(arena))["armor"]
        arena.seconds(10)
        assert arena.hp(enemy(arena)) < hp
        counts.append(armor - arena.world.unit(enemy(arena))["armor"])
    every = arena.special("razor_eye_of_the_storm", "strike_interval")[0]
    assert counts == pytest.approx([10 / every, 10 / (every + value(data, "razor", "razor_2"))], abs=1)
    assert counts[1] > counts[0] + 1


def test_rockets_strike_harder(new_world: Any, data: dict[str, Any]) -> None:
    def each(arena: Arena) -> float:
        order(arena, "gyrocopter_rocket_barrage", 1)
        return min(blows(arena, enemy(arena), 2)) / (arena.magic(enemy(arena)) * arena.amp(arena.unit(0)))

    assert both(new_world, data, "gyrocopter", "gyrocopter_3", each) == pytest.approx(
        value(data, "gyrocopter", "gyrocopter_3"), rel=1e-2)


def test_a_cask_bounces_more_often(new_world: Any, data: dict[str, Any]) -> None:
    def count(arena: Arena) -> float:
        other = arena.dummy(400, 150)
        slot = arena.teach(0, "witch_doctor_paralyzing_cask", 1)
        creep = arena.hp(other)
        hp = arena.hp(enemy(arena))
        arena.world.order(arena.unit(0), "cast_unit", target=enemy(arena), slot=slot)
        arena.seconds(8)
        amp = arena.amp(arena.unit(0))
        heroes = (hp - arena.hp(enemy(arena))) / (arena.special("witch_doctor_paralyzing_cask", "hero_damage")[0]
                                                  * arena.magic(enemy(arena)) * amp)
        creeps = (creep - arena.hp(other)) / (arena.field("witch_doctor_paralyzing_cask", "damage")[0]
                                              * arena.magic(other) * amp)
        return heroes + creeps

    assert both(new_world, data, "witch_doctor", "witch_doctor_3", count) == pytest.approx(
        value(data, "witch_doctor", "witch_doctor_3"), abs=0.01)


def test_the_death_ward_strikes_harder(new_world: Any, data: dict[str, Any]) -> None:
    def each(arena: Arena) -> float:
        slot = arena.teach(0, "witch_doctor_death_ward", 1)
        r = data["rules"]["rules"]["armor"]
        armor = arena.world.unit(enemy(arena))["armor"]
        arena.world.order(arena.unit(0), "cast_point", x=CENTRE[0] + 200, y=CENTRE[1], slot=slot)
        return blows(arena, enemy(arena), 2)[0] / (1 - r["a"] * armor / (r["b"] + r["c"] * abs(armor)))

    assert both(new_world, data, "witch_doctor", "witch_doctor_5", each) == pytest.approx(
        value(data, "witch_doctor", "witch_doctor_5"), rel=1e-3)


def test_essence_shift_lasts(new_world: Any, data: dict[str, Any]) -> None:
    def left(arena: Arena) -> float:
        arena.teach(0, "slark_essence_shift", 1)
        arena.place(arena.unit(0), 180, 0)
        arena.world.set_unit(arena.unit(0), attack_ready=0)
        arena.world.order(arena.unit(0), "attack", target=enemy(arena))
        for _ in range(40):
            arena.world.step(1)
            marks = arena.modifiers(enemy(arena), "slark_essence_shift")
            if marks:
                return float(marks[0]["left"])
        raise AssertionError("he stole nothing")

    assert both(new_world, data, "slark", "slark_4", left) == pytest.approx(value(data, "slark", "slark_4"), abs=STEP)


def test_kraken_shell_blocks_more(new_world: Any, data: dict[str, Any]) -> None:
    def taken(arena: Arena) -> float:
        arena.teach(0, "tidehunter_kraken_shell", 1)
        arena.seconds(0.2)
        r, armor = data["rules"]["rules"]["armor"], arena.world.unit(arena.unit(0))["armor"]
        lost = arena.world.damage(enemy(arena), arena.unit(0), 200, "physical", attack=True)
        return float(-lost / (1 - r["a"] * armor / (r["b"] + r["c"] * abs(armor))))

    assert both(new_world, data, "tidehunter", "tidehunter_4", taken) == pytest.approx(
        value(data, "tidehunter", "tidehunter_4"), rel=1e-3)


def test_anchor_smash_weakens_more(new_world: Any, data: dict[str, Any]) -> None:
    shares = []
    for arena in without_and_with(new_world, data, "tidehunter", "tidehunter_3"):
        slot = arena.teach(0, "tidehunter_anchor_smash", 1)
        before = arena.world.unit(enemy(arena))["dmg_min"]
        arena.world.order(arena.unit(0), "cast", slot=slot)
        arena.seconds(1)
        shares.append(arena.world.unit(enemy(arena))["dmg_min"] / before)
    assert 100 * (shares[1] - shares[0]) == pytest.approx(value(data, "tidehunter", "tidehunter_3"), abs=0.01)


def test_talent_raises_backstab_damage(new_world: Any, data: dict[str, Any]) -> None:
    """The same attack in the same game, from behind."""
    def blow(arena: Arena) -> float:
        arena.teach(0, "riki_permanent_invisibility", 1)
        target = arena.dummy(120, 0)  # it faces away
        arena.world.set_unit(arena.unit(0), attack_ready=0)
        r, armor = data["rules"]["rules"]["armor"], arena.world.unit(target)["armor"]
        agility = arena.world.unit(arena.unit(0))["agi"]
        arena.world.order(arena.unit(0), "attack", target=target)
        return blows(arena, target, 2)[0] / (1 - r["a"] * armor / (r["b"] + r["c"] * abs(armor))) / agility

    assert both(new_world, data, "riki", "riki_1", blow) == pytest.approx(value(data, "riki", "riki_1"), abs=0.01)


# Range of an ability: talent, ability, range without the talent.
REACH = [("axe", "axe_2", "axe_berserkers_call", "radius"), ("riki", "riki_4", "riki_tricks_of_the_trade", "range"),
         ("earthshaker", "earthshaker_3", "earthshaker_fissure", "fissure_range")]


@pytest.mark.parametrize(("hero", "talent", "ability", "special"), REACH, ids=[d[1] for d in REACH])
def test_talent_extends_reach(new_world: Any, data: dict[str, Any], hero: str, talent: str, ability: str,
                              special: str) -> None:
    struck = []
    for beyond in (False, True):
        for arena in without_and_with(new_world, data, hero, talent):
            reach = arena.special(ability, special)[0] + (value(data, hero, talent) if beyond else 0)
            # Slightly beyond the range: the end of a line is round.
            away = reach + (arena.special(ability, "fissure_radius")[0] if hero == "earthshaker" else 0) + 30
            target = arena.dummy(away * math.sqrt(0.5), -away * math.sqrt(0.5))
            arena.place(enemy(arena), 0, 1500)
            slot = arena.teach(0, ability, 1)
            at = arena.world.unit(target)
            order, near = "cast_point" if "point" in arena.field(ability, "behavior") else "cast", 400 / away
            arena.world.order(arena.unit(0), order, x=CENTRE[0] + (at["x"] - CENTRE[0]) * near,
                              y=CENTRE[1] + (at["y"] - CENTRE[1]) * near, slot=slot)
            hp = arena.hp(target)
            arena.seconds(2)
            struck.append(arena.hp(target) < hp or bool(arena.modifiers(target, ability)))
    assert struck == [False, True, False, False]


def test_shrapnel_has_more_charges(new_world: Any, data: dict[str, Any]) -> None:
    """They recharge one after another, like the first three."""
    counts = []
    for arena in without_and_with(new_world, data, "sniper", "sniper_2"):
        arena.teach(0, "sniper_shrapnel", 1)
        every = arena.special("sniper_shrapnel", "charge_restore_time")[0]
        arena.seconds(every * 10)
        counts.append(arena.world.ability(0, "sniper_shrapnel")["charges"])
    most = arena.special("sniper_shrapnel", "max_charges")[0]
    assert counts == [most, most + value(data, "sniper", "sniper_2")]


def test_freezing_field_and_siphon_hurt_more(new_world: Any, data: dict[str, Any]) -> None:
    """An explosion's damage; a share of the greatest health a second."""
    def explosion(arena: Arena) -> float:
        slot = arena.teach(0, "crystal_maiden_freezing_field", 1)
        arena.world.order(arena.unit(0), "cast", slot=slot)
        return min(blows(arena, enemy(arena), 8)) / (arena.magic(enemy(arena)) * arena.amp(arena.unit(0)))

    assert both(new_world, data, "crystal_maiden", "crystal_maiden_3", explosion) == pytest.approx(
        value(data, "crystal_maiden", "crystal_maiden_3"), rel=0.01)

    def drained(arena: Arena) -> float:
        slot = arena.teach(0, "death_prophet_spirit_siphon", 1)
        hp = arena.hp(enemy(arena))
        send(arena, "death_prophet_spirit_siphon", slot, enemy(arena))
        arena.seconds(8)
        share = arena.magic(enemy(arena)) * arena.amp(arena.unit(0))
        return 100 * (hp - arena.hp(enemy(arena))) / share / arena.world.unit(enemy(arena))["max_hp"]

    lasts = data["abilities"]["abilities"]["death_prophet_spirit_siphon"]["specials"]["haunt_duration"]["v"][0]
    assert both(new_world, data, "death_prophet", "death_prophet_3", drained) == pytest.approx(
        value(data, "death_prophet", "death_prophet_3") * lasts, rel=0.05)


def test_talent_raises_all_of_corrosive_skin(new_world: Any, data: dict[str, Any]) -> None:
    """Resistance, damage a second, and the attack speed of attackers."""
    resists, speeds, hurts = [], [], []
    for arena in without_and_with(new_world, data, "viper", "viper_1"):
        bare = arena.world.unit(arena.unit(0))["magic_resist"]
        arena.teach(0, "viper_corrosive_skin", 1)
        arena.seconds(0.2)
        resists.append(100 * (1 - (1 - arena.world.unit(arena.unit(0))["magic_resist"]) / (1 - bare)))
        speed = arena.world.unit(enemy(arena))["attack_speed"]
        arena.world.damage(enemy(arena), arena.unit(0), 50, "physical", attack=True)
        arena.world.run_frames(2)
        speeds.append(speed - arena.world.unit(enemy(arena))["attack_speed"])
        hp = arena.hp(enemy(arena))
        arena.seconds(1.2)
        hurts.append((hp - arena.hp(enemy(arena))) / (arena.magic(enemy(arena)) * arena.amp(arena.unit(0))))
    for pair in (resists, speeds, hurts):
        assert pair[1] - pair[0] == pytest.approx(value(data, "viper", "viper_1"), rel=0.01)
