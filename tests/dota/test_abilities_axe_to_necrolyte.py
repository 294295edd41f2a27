"""Abilities of Axe, Death Prophet, Earthshaker, Gyrocopter, Lich and Necrophos in patch 7.21d, computed by hand from
abilities.json."""

import math
from typing import Any

import pytest

from tests.dota.scenes.actions import cast, give, order, order_slot, use
from tests.dota.scenes.arena import CENTRE, STEP
from tests.dota.scenes.duels import duel
from tests.dota.scenes.readings import physical_share
from tests.dota.scenes.statuses import STUNNED

# ---- Axe -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [1, 4])
def test_berserkers_call_taunts_and_adds_armor(core: Any, rank: int) -> None:
    """For its duration enemies within 300 attack only him, and he has 30 more armor."""
    arena = duel(core, "axe", away=400)
    a, near, far = arena.unit(0), arena.unit(5), arena.unit(6)
    radius = arena.special("axe_berserkers_call", "radius")[0]
    arena.place(near, radius - 20, 0, math.pi)
    arena.place(far, 0, radius + 20)
    arena.place(arena.unit(1), radius - 20, 150)
    for unit in (near, far):
        arena.world.set_unit(unit, attack_ready=0)
        arena.world.order(unit, "attack", arena.unit(1))
    armor = arena.world.unit(a)["armor"]
    cast(arena, "axe_berserkers_call", rank, wait=0.0)
    while arena.world.unit(near)["attack_target"] != a:
        arena.world.run_frames(1)
    begun = arena.world.time
    assert arena.world.unit(a)["armor"] - armor == pytest.approx(arena.special("axe_berserkers_call", "bonus_armor")[0])
    held = arena.world.unit(near)
    arena.world.order(near, "move", x=CENTRE[0] + 2000, y=CENTRE[1])
    lasts = arena.special("axe_berserkers_call", "duration")[rank - 1]
    arena.seconds(lasts - 0.4)
    there = arena.world.unit(near)
    assert (there["attack_target"], there["x"], there["y"]) == (a, held["x"], held["y"])
    assert arena.world.unit(far)["attack_target"] == arena.unit(1)
    while arena.world.unit(a)["armor"] > armor + 1:
        arena.world.run_frames(1)
    assert arena.world.time - begun == pytest.approx(lasts, abs=0.08)
    arena.world.order(near, "move", x=CENTRE[0] + 2000, y=CENTRE[1])
    arena.seconds(0.8)
    assert arena.world.unit(near)["x"] > held["x"] + 50


def test_counter_helix_turns_on_attackers(core: Any) -> None:
    """A fifth of the attacks on him, pure damage to all within 275, at most once in its cooldown."""
    a = duel(core, "axe", enemy="sven", hp=4000)
    a.teach(0, "axe_counter_helix", 4)
    axe, attacker = a.unit(0), a.dummy(150, 0, hp=90000)
    beside, far = a.dummy(0, 200, hp=90000), a.dummy(0, 330, hp=90000)
    a.place(a.unit(5), 2000, 0)
    a.world.set_unit(axe, extra_hp=90000)
    a.world.set_unit(axe, hp=90000)
    attacks, last = 0, -99.0
    a.world.set_unit(attacker, attack_ready=0)
    for _ in range(int(240 / STEP)):
        a.world.order(attacker, "attack", target=axe)
        a.world.step(1)
        now = a.world.unit(attacker)["last_attack"]
        attacks += now != last
        last = now
    each = a.field("axe_counter_helix", "damage")[3] * a.amp(axe)
    turns = (a.world.unit(beside)["max_hp"] - a.hp(beside)) / each
    assert attacks > 60
    assert turns == pytest.approx(round(turns), abs=0.01)
    assert a.world.unit(attacker)["max_hp"] - a.hp(attacker) == pytest.approx(turns * each, rel=1e-3)
    assert a.hp(far) == a.world.unit(far)["max_hp"]
    chance = a.special("axe_counter_helix", "trigger_chance")[0] / 100
    assert 0.55 * chance < turns / attacks < 1.6 * chance


# ---- Death Prophet ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [1, 4])
def test_silence_blocks_abilities_and_not_items(core: Any, rank: int) -> None:
    """Within 425 of where it is aimed, for its time; items can still be used, and beyond it nobody is silenced."""
    arena = duel(core, "death_prophet", away=400)
    near, far = arena.unit(5), arena.unit(6)
    radius = arena.special("death_prophet_silence", "radius")[0]
    arena.place(far, 400, radius + 20)
    arena.teach(5, "nevermore_shadowraze1", 1)
    arena.teach(6, "viper_poison_attack", 1)
    assert arena.world.give_item(5, "item_faerie_fire", 1)
    order(arena, "death_prophet_silence", rank, at=(400, 0))
    while not arena.modifiers(near, "death_prophet_silence"):
        arena.world.run_frames(1)
    begun = arena.world.time
    assert not arena.world.ability(5, "nevermore_shadowraze1")["castable"]
    assert arena.world.ability(5, "item_faerie_fire")["castable"]
    assert arena.world.ability(6, "viper_poison_attack")["castable"]
    while not arena.world.ability(5, "nevermore_shadowraze1")["castable"]:
        arena.world.run_frames(1)
    lasts = arena.special("death_prophet_silence", "duration")[rank - 1]
    assert arena.world.time - begun == pytest.approx(lasts, abs=0.05)


def test_exorcism_damages_and_heals(core: Any) -> None:
    """8 spirits deal 59 to 64 physical damage each pass; a quarter of it heals her after 35 s."""
    a = duel(core, "death_prophet", enemy="sven", away=400, hp=5000)
    slot = a.teach(0, "death_prophet_exorcism", 1)
    hero, enemy = a.unit(0), a.unit(5)
    a.world.set_unit(hero, hp=100)
    hp = a.hp(enemy)
    order_slot(a, slot)
    a.seconds(0.3)
    lost = [hp]
    for _ in range(int(6 / STEP)):
        a.world.step(1)
        if a.hp(enemy) < lost[-1]:
            lost.append(a.hp(enemy))
    through = physical_share(a.world.unit(enemy)["armor"])
    first = lost[0] - lost[1]
    assert 59 * through - 0.01 <= first <= 3 * 64 * through
    total = hp - lost[-1]
    # There and back at 500 a second over 400 units: a spirit strikes every 1.6 s at the most.
    assert 8 * 2 * 59 * through < total < 8 * 5 * 64 * through
    before = a.hp(hero)
    a.place(enemy, 6000, 6000)
    a.seconds(35)
    assert a.hp(hero) - before == pytest.approx(total * 0.25, rel=0.15)
    assert a.world.dropped() == dict.fromkeys(a.world.dropped(), 0)


def test_spirit_siphon_draws_life(core: Any) -> None:
    """14 and a share of the target's greatest health a second, magical, for 6 s; all of it heals her; it slows."""
    a = duel(core, "death_prophet", enemy="sven", hp=4000)
    me, enemy = a.unit(0), a.unit(5)
    a.world.teach(0, "death_prophet_spirit_siphon", 2)
    a.seconds(61)
    a.still(me)
    a.world.set_unit(me, hp=1000, mana=900)
    hp, most, speed = a.hp(enemy), a.world.unit(enemy)["max_hp"], a.world.unit(enemy)["move_speed"]
    slot = a.world.ability(0, "death_prophet_spirit_siphon")["slot"]
    a.world.order(me, "cast_unit", target=enemy, slot=slot)
    a.seconds(3)
    assert a.world.unit(enemy)["move_speed"] < speed
    a.seconds(5)
    lost = hp - a.hp(enemy)
    pct = a.special("death_prophet_spirit_siphon", "damage_pct")[1] / 100
    assert lost == pytest.approx(6 * (14 + pct * most) * a.magic(enemy) * a.amp(me), rel=0.03)
    assert a.hp(me) - 1000 == pytest.approx(lost, rel=1e-3)
    assert a.world.unit(enemy)["move_speed"] == pytest.approx(speed)


# ---- Earthshaker -----------------------------------------------------------------------------------------------------


def test_fissure_is_a_wall(core: Any) -> None:
    """For 8 s it blocks the way; then the way is free."""
    a = duel(core, "earthshaker", enemy="sven", away=400, hp=5000)
    slot = a.teach(0, "earthshaker_fissure", 1)
    enemy = a.unit(5)
    a.place(enemy, 500, 300)
    a.place(a.unit(0), 0, 0, 0)
    order_slot(a, slot, at=(1000, 0))
    a.seconds(1.2)

    def walked(seconds: float) -> float:
        """Return how far south of the wall the enemy gets from north of its middle."""
        a.world.order(enemy, "move", x=CENTRE[0] + 700, y=CENTRE[1] - 300)
        a.seconds(seconds)
        return float(CENTRE[1] - a.world.unit(enemy)["y"])

    a.place(enemy, 700, 300)
    a.seconds(1.6)
    assert walked(1.6) < 60
    a.seconds(7)
    a.place(enemy, 700, 300)
    assert walked(2.6) > 200


def test_fissure_damages_and_stuns(core: Any) -> None:
    a = duel(core, "earthshaker", enemy="sven", away=400, hp=5000)
    slot = a.teach(0, "earthshaker_fissure", 2)
    enemy = a.unit(5)
    hp = a.hp(enemy)
    order_slot(a, slot, at=(1000, 0))
    a.seconds(1.0)
    assert hp - a.hp(enemy) == pytest.approx(
        a.field("earthshaker_fissure", "damage")[1] * a.magic(enemy) * a.amp(a.unit(0)), rel=1e-3)
    assert a.world.unit(enemy)["status"] & STUNNED


def test_aftershock_follows_his_spells(core: Any) -> None:
    a = duel(core, "earthshaker", enemy="sven", hp=4000)
    near, far = a.dummy(0, 250), a.dummy(0, 350)
    a.place(a.unit(5), 1500, 0)
    a.teach(0, "earthshaker_aftershock", 3)
    order(a, "earthshaker_enchant_totem", 1)
    a.seconds(1)
    amount = a.data["abilities"]["abilities"]["earthshaker_aftershock"]
    damage = next(n for n in amount["effects"][0]["then"] if n["p"] == "damage")["amount"]
    worth = amount[damage[1:]][2] if damage[0] == "@" else amount["specials"][damage[1:]]["v"][2]
    assert 5000 - a.hp(near) == pytest.approx(worth * a.magic(near) * a.amp(a.unit(0)), rel=1e-3)
    assert a.hp(far) == 5000
    assert a.modifiers(near, "earthshaker_aftershock")


def test_echo_slam_echoes_from_every_enemy(core: Any) -> None:
    """100 to each, and 70 from each other unit around, two from a hero."""
    a = duel(core, "earthshaker", enemy="sven", hp=4000)
    enemy, creep = a.unit(5), a.dummy(300, 150)
    hp = a.hp(enemy)
    order(a, "earthshaker_echo_slam", 1)
    a.seconds(1)
    amp = a.amp(a.unit(0))
    assert hp - a.hp(enemy) == pytest.approx((100 + 70) * a.magic(enemy) * amp, rel=1e-3)
    assert 5000 - a.hp(creep) == pytest.approx((100 + 2 * 70) * a.magic(creep) * amp, rel=1e-3)


# ---- Gyrocopter ------------------------------------------------------------------------------------------------------


def test_homing_missile(core: Any) -> None:
    """It waits 3 s, then damages by the distance flown, up to its maximum at 1500, and stuns."""
    a = duel(core, "gyrocopter", enemy="sven", away=400, hp=5000)
    slot = a.teach(0, "gyrocopter_homing_missile", 1)
    enemy = a.unit(5)
    a.place(enemy, 900, 0, math.pi)
    hp = a.hp(enemy)
    a.seconds(0.2)
    order_slot(a, slot, enemy)
    a.seconds(3)
    assert a.hp(enemy) == hp
    (missile,) = a.world.units("summon")
    a.seconds(2.2)
    low = a.special("gyrocopter_homing_missile", "min_damage")[0]
    high = a.field("gyrocopter_homing_missile", "damage")[0]
    share = (900 - a.world.unit(enemy)["radius"]) / 1500
    expected = (low + (high - low) * share) * a.magic(enemy) * a.amp(a.unit(0))
    assert hp - a.hp(enemy) == pytest.approx(expected, rel=0.05)
    assert a.world.unit(enemy)["status"] & STUNNED
    assert not a.world.units("summon")
    assert missile["type"] == "npc_dota_gyrocopter_homing_missile"


def test_flak_cannon_hits_all_around(core: Any) -> None:
    """The next 3 attacks strike everyone within 1250, at 800 units a second, as hard as the attack itself."""
    a = duel(core, "gyrocopter", enemy="sven", away=400, hp=5000)
    slot = a.teach(0, "gyrocopter_flak_cannon", 1)
    enemy = a.unit(5)
    other = a.dummy(-500, 0)
    a.world.set_unit(a.unit(0), attack_ready=0)
    a.place(enemy, 300, 0, math.pi)
    order_slot(a, slot)
    a.seconds(0.1)
    hp = a.hp(other)
    a.world.order(a.unit(0), "attack", target=enemy)
    a.seconds(12)
    unit = a.world.unit(a.unit(0))
    armor = a.world.unit(other)["armor"]
    through = physical_share(armor)
    lost = hp - a.hp(other)
    assert 3 * unit["dmg_min"] * through * 0.99 <= lost <= 3 * unit["dmg_max"] * through * 1.01
    assert not a.modifiers(a.unit(0), "gyrocopter_flak_cannon")


# ---- Necrophos -------------------------------------------------------------------------------------------------------


def test_sadist_reaper_and_heartstopper(core: Any) -> None:
    arena = duel(core, "necrolyte", away=400)
    a, b = arena.unit(0), arena.unit(5)
    arena.world.set_unit(b, hp=0.5 * arena.world.unit(b)["max_hp"])
    most = arena.world.unit(b)["max_hp"]
    cast(arena, "necrolyte_reapers_scythe", 1, b, wait=1.2)
    assert arena.world.unit(b)["status"] & STUNNED
    factor = arena.special("necrolyte_reapers_scythe", "damage_per_health")[0]
    arena.seconds(1.5)
    expected = 0.5 * most - factor * 0.5 * most * arena.amp(a) * arena.magic(b)
    assert arena.hp(b) == pytest.approx(expected, rel=0.01)
    arena.world.set_unit(b, hp=most)
    arena.teach(0, "necrolyte_heartstopper_aura", 1)
    arena.place(b, 300, 0)
    hp, start = arena.hp(b), arena.world.time
    arena.seconds(5)
    pct = arena.special("necrolyte_heartstopper_aura", "aura_damage")[0]
    assert (hp - arena.hp(b)) / (arena.world.time - start) == pytest.approx(pct / 100 * most, rel=0.08)


@pytest.mark.parametrize("rank", [1, 4])
def test_ghost_shroud_evades_attacks_and_slows_around(core: Any, rank: int) -> None:
    """For its duration attacks cannot hit him, magic hurts more, heals are larger, and enemies within 750 are slower.
    """
    arena = duel(core, "necrolyte", away=400)
    a, near, far = arena.unit(0), arena.unit(5), arena.unit(6)

    def number(name: str) -> float:
        values = arena.special("necrolyte_sadist", name)
        return values[min(rank, len(values)) - 1]

    arena.place(near, number("slow_aoe") - 20, 0, math.pi)
    arena.place(far, 0, -number("slow_aoe") - 20)
    arena.world.set_unit(a, extra_hp=3000)
    arena.world.set_unit(a, hp=1000)
    arena.still(a)
    speed = {u: arena.world.unit(u)["move_speed"] for u in (near, far)}
    magic, begun = arena.magic(a), arena.world.time
    cast(arena, "necrolyte_sadist", rank, wait=0.3)
    assert not arena.world.can_attack(near, a)
    assert arena.world.damage(near, a, 100, "physical", attack=True) == 0
    assert arena.magic(a) == pytest.approx(magic * (1 - number("bonus_damage") / 100), rel=1e-4)
    assert arena.world.damage(near, a, 100, "magical") == pytest.approx(100 * arena.magic(a), rel=1e-3)
    slowed = speed[near] - number("movement_speed") / 100 * arena.base_speed("nevermore")
    assert arena.world.unit(near)["move_speed"] == pytest.approx(slowed, rel=1e-4)
    assert arena.world.unit(far)["move_speed"] == speed[far]
    hp, (heal,) = arena.hp(a), arena.data["items"]["items"]["item_faerie_fire"]["specials"]["hp_restore"]["v"]
    use(arena, give(arena, "faerie_fire", charges=1))
    assert arena.hp(a) - hp == pytest.approx(heal * (1 + number("heal_bonus") / 100), rel=1e-3)
    arena.seconds(begun + number("duration") - arena.world.time - 0.2)
    assert not arena.world.can_attack(near, a)
    arena.seconds(0.6)
    assert arena.world.can_attack(near, a)
    assert arena.magic(a) == pytest.approx(magic)
    assert arena.world.unit(near)["move_speed"] == pytest.approx(speed[near])
