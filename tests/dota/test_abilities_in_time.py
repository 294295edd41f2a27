"""Abilities with damage over time, by chance or through others: Counter Helix, Spirit Siphon, Aftershock, Rocket
Barrage, Maledict, Frost Shield, Culling Blade's kill, Death Pulse's healing, Call Down's second strike."""

import math
from typing import Any

import pytest

from tests.dota.arena import CENTRE, STEP, Arena
from tests.dota.test_talents import duel


def cast(a: Arena, ability: str, rank: int, target: int | None = None) -> None:
    slot = a.teach(0, ability, rank)
    if target is None:
        a.world.order(a.unit(0), "cast", slot=slot)
    else:
        a.world.order(a.unit(0), "cast_unit", target=target, slot=slot)


def test_counter_helix_turns_on_attackers(new_world: Any, data: dict[str, Any]) -> None:
    """A fifth of the attacks on him, pure damage to all within 275, at most once in its cooldown."""
    a = duel(new_world, data, "axe")
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


def test_spirit_siphon_draws_life(new_world: Any, data: dict[str, Any]) -> None:
    """14 and a share of the target's greatest health a second, magical, for 6 s; all of it heals her; it slows."""
    a = duel(new_world, data, "death_prophet")
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


def test_aftershock_follows_his_spells(new_world: Any, data: dict[str, Any]) -> None:
    a = duel(new_world, data, "earthshaker")
    near, far = a.dummy(0, 250), a.dummy(0, 350)
    a.place(a.unit(5), 1500, 0)
    a.teach(0, "earthshaker_aftershock", 3)
    cast(a, "earthshaker_enchant_totem", 1)
    a.seconds(1)
    amount = data["abilities"]["abilities"]["earthshaker_aftershock"]
    damage = next(n for n in amount["effects"][0]["then"] if n["p"] == "damage")["amount"]
    worth = amount[damage[1:]][2] if damage[0] == "@" else amount["specials"][damage[1:]]["v"][2]
    assert 5000 - a.hp(near) == pytest.approx(worth * a.magic(near) * a.amp(a.unit(0)), rel=1e-3)
    assert a.hp(far) == 5000
    assert a.modifiers(near, "earthshaker_aftershock")


def test_rocket_barrage(new_world: Any, data: dict[str, Any]) -> None:
    """Ten rockets a second for 3 s, each at one enemy within 400."""
    a = duel(new_world, data, "gyrocopter")
    enemy = a.unit(5)
    hp = a.hp(enemy)
    cast(a, "gyrocopter_rocket_barrage", 2)
    a.seconds(3.5)
    each = a.special("gyrocopter_rocket_barrage", "rocket_damage")[1] * a.magic(enemy) * a.amp(a.unit(0))
    assert (hp - a.hp(enemy)) / each == pytest.approx(30, abs=1.01)


def test_maledict(new_world: Any, data: dict[str, Any]) -> None:
    """7 a second for 12 s, and three times 16 % of the health lost since it began."""
    a = duel(new_world, data, "witch_doctor")
    enemy = a.unit(5)
    slot = a.teach(0, "witch_doctor_maledict", 1)
    a.world.order(a.unit(0), "cast_point", x=CENTRE[0] + 300, y=CENTRE[1], slot=slot)
    while not a.modifiers(enemy, "witch_doctor_maledict"):
        a.world.step(1)
    start = a.hp(enemy)
    a.world.damage(a.unit(0), enemy, 500, "pure")
    a.seconds(13)
    through = a.magic(enemy) * a.amp(a.unit(0))
    lost = 500.0
    for burst in range(3):
        del burst
        lost += 4 * 7 * through
        lost += 0.16 * lost * through
    assert start - a.hp(enemy) == pytest.approx(lost, rel=0.06)


def test_frost_shield_chills_around(new_world: Any, data: dict[str, Any]) -> None:
    """Once a second 20 damage to enemies within 600, who are slowed; attacks on the bearer lose 30 %."""
    a = duel(new_world, data, "lich")
    enemy, far = a.unit(5), a.dummy(700, 0)
    hp = a.hp(enemy)
    bare = a.world.damage(enemy, a.unit(0), 100, "physical", True)
    cast(a, "lich_frost_shield", 1, a.unit(0))
    a.seconds(0.5)
    assert a.world.damage(enemy, a.unit(0), 100, "physical", True) == pytest.approx(0.7 * bare, rel=1e-3)
    a.seconds(6.5)
    each = a.special("lich_frost_shield", "damage")[0] * a.magic(enemy) * a.amp(a.unit(0))
    assert (hp - a.hp(enemy)) / each == pytest.approx(6, abs=1.01)
    assert a.hp(far) == 5000


@pytest.mark.parametrize("immune", [False, True])
def test_culling_blade_kills_and_comes_again(new_world: Any, data: dict[str, Any], immune: bool) -> None:
    """Below 250 health, whatever immunity; then it is ready, and allies around are faster."""
    a = duel(new_world, data, "axe", allies=("lion",))
    enemy = a.unit(5)
    a.place(a.unit(0), 160, 0)
    a.place(a.unit(1), 400, 300)
    if immune:
        assert a.world.give_item(5, "black_king_bar")
        a.seconds(0.2)
        a.world.set_unit(enemy, mana=300)
        a.world.order(enemy, "cast", slot=a.world.ability(5, "item_black_king_bar")["slot"])
        a.seconds(0.2)
        assert a.world.unit(enemy)["status"] & (1 << 7)
    a.world.set_unit(enemy, hp=249)
    speed = a.world.unit(a.unit(1))["move_speed"]
    cast(a, "axe_culling_blade", 1, enemy)
    a.seconds(0.7)
    assert not a.world.unit(enemy)["alive"]
    assert a.world.ability(0, "axe_culling_blade")["castable"]
    assert a.world.unit(a.unit(1))["move_speed"] > speed * 1.2
    assert a.world.hero(0)["kills"] == 1


def test_death_pulse_heals_allies(new_world: Any, data: dict[str, Any]) -> None:
    a = duel(new_world, data, "necrolyte", allies=("lion",))
    mate = a.unit(1)
    a.place(mate, 200, 150)
    a.world.set_unit(mate, extra_hp=2000)
    a.world.set_unit(mate, hp=500)
    a.still(mate)
    cast(a, "necrolyte_death_pulse", 1)
    a.seconds(1.5)
    assert a.hp(mate) - 500 == pytest.approx(a.special("necrolyte_death_pulse", "heal")[0], abs=0.5)


def test_echo_slam_echoes_from_every_enemy(new_world: Any, data: dict[str, Any]) -> None:
    """100 to each, and 70 from each other unit around, two from a hero."""
    a = duel(new_world, data, "earthshaker")
    enemy, creep = a.unit(5), a.dummy(300, 150)
    hp = a.hp(enemy)
    cast(a, "earthshaker_echo_slam", 1)
    a.seconds(1)
    amp = a.amp(a.unit(0))
    assert hp - a.hp(enemy) == pytest.approx((100 + 70) * a.magic(enemy) * amp, rel=1e-3)
    assert 5000 - a.hp(creep) == pytest.approx((100 + 2 * 70) * a.magic(creep) * amp, rel=1e-3)


def test_gaze_of_the_lich_is_a_channel(new_world: Any, data: dict[str, Any]) -> None:
    """A channel of 1.6 s at the first rank, in which the enemy does nothing for 1.3 s."""
    a = duel(new_world, data, "lich")
    enemy = a.unit(5)
    cast(a, "lich_sinister_gaze", 1, enemy)
    start, held = None, 0.0
    for _ in range(30):
        a.world.step(1)
        if a.world.unit(enemy)["status"] & 1:
            start = start or a.world.time
            held = a.world.time - start
    assert held == pytest.approx(1.3 - STEP, abs=1.5 * STEP)
    assert math.isfinite(held)
