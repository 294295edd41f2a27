"""Abilities of Death Prophet, Earthshaker, Gyrocopter, Riki and Slark, with the numbers of the data."""

import math
from typing import Any

import pytest

from tests.dota.arena import CENTRE, FRAME, STEP, Arena

INVISIBLE, BANISHED, STUNNED, LEASHED, UNSEEN = 1 << 6, 1 << 9, 1 << 0, 1 << 14, 1 << 23


def arena(new_world: Any, data: dict[str, Any], hero: str, **settings: Any) -> Arena:
    made = Arena(new_world((hero,), ("sven",), **settings), data)
    made.place(made.unit(0), 0, 0)
    made.place(made.unit(5), 400, 0, math.pi)
    made.world.set_unit(made.unit(5), extra_hp=5000)
    made.world.set_unit(made.unit(5), hp=5000)
    return made


def cast(a: Arena, slot: int, target: int | None = None, x: float | None = None, y: float = 0) -> None:
    unit = a.unit(0)
    if target is not None:
        a.world.order(unit, "cast_unit", target=target, slot=slot)
    elif x is not None:
        a.world.order(unit, "cast_point", x=CENTRE[0] + x, y=CENTRE[1] + y, slot=slot)
    else:
        a.world.order(unit, "cast", slot=slot)


def test_every_hero_of_the_finals_can_be_played(tables: Any) -> None:
    for hero in tables.heroes:
        assert tables.missing_primitives(hero) == [], hero


def test_exorcism_strikes_and_gives_back(new_world: Any, data: dict[str, Any]) -> None:
    """8 spirits, 59 to 64 physical damage each time one comes by; a quarter of it heals at the end of 35 s."""
    a = arena(new_world, data, "death_prophet")
    slot = a.teach(0, "death_prophet_exorcism", 1)
    hero, enemy = a.unit(0), a.unit(5)
    a.world.set_unit(hero, hp=100)
    hp = a.hp(enemy)
    cast(a, slot)
    a.seconds(0.3)
    lost = [hp]
    for _ in range(int(6 / STEP)):
        a.world.step(1)
        if a.hp(enemy) < lost[-1]:
            lost.append(a.hp(enemy))
    through = 1 - 0.052 * a.world.unit(enemy)["armor"] / (0.9 + 0.048 * a.world.unit(enemy)["armor"])
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


def test_fissure_is_a_wall(new_world: Any, data: dict[str, Any]) -> None:
    """For 8 s nobody walks through it; then the way is free."""
    a = arena(new_world, data, "earthshaker")
    slot = a.teach(0, "earthshaker_fissure", 1)
    enemy = a.unit(5)
    a.place(enemy, 500, 300)
    a.place(a.unit(0), 0, 0, 0)
    cast(a, slot, x=1000)
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


def test_fissure_damages_and_stuns(new_world: Any, data: dict[str, Any]) -> None:
    a = arena(new_world, data, "earthshaker")
    slot = a.teach(0, "earthshaker_fissure", 2)
    enemy = a.unit(5)
    hp = a.hp(enemy)
    cast(a, slot, x=1000)
    a.seconds(1.0)
    assert hp - a.hp(enemy) == pytest.approx(
        a.field("earthshaker_fissure", "damage")[1] * a.magic(enemy) * a.amp(a.unit(0)), rel=1e-3)
    assert a.world.unit(enemy)["status"] & STUNNED


def test_homing_missile(new_world: Any, data: dict[str, Any]) -> None:
    """Waits 3 s, then strikes: the farther it flew, the harder, up to its damage over 1500; and stuns."""
    a = arena(new_world, data, "gyrocopter")
    slot = a.teach(0, "gyrocopter_homing_missile", 1)
    enemy = a.unit(5)
    a.place(enemy, 900, 0, math.pi)
    hp = a.hp(enemy)
    a.seconds(0.2)
    cast(a, slot, enemy)
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


def test_three_blows_bring_a_missile_down(new_world: Any, data: dict[str, Any]) -> None:
    a = arena(new_world, data, "gyrocopter")
    slot = a.teach(0, "gyrocopter_homing_missile", 1)
    enemy = a.unit(5)
    cast(a, slot, enemy)
    a.seconds(1.0)
    (missile,) = a.world.units("summon")
    for blow in range(3):
        assert len(a.world.units("summon")) == 1, blow
        a.world.damage(enemy, missile["index"], 10, attack=True)
    assert not a.world.units("summon")


def test_flak_cannon_hits_all_around(new_world: Any, data: dict[str, Any]) -> None:
    """The next 3 attacks strike everyone within 1250, at 800 units a second, as hard as the attack itself."""
    a = arena(new_world, data, "gyrocopter")
    slot = a.teach(0, "gyrocopter_flak_cannon", 1)
    enemy = a.unit(5)
    other = a.dummy(-500, 0)
    a.world.set_unit(a.unit(0), attack_ready=0)
    a.place(enemy, 300, 0, math.pi)
    cast(a, slot)
    a.seconds(0.1)
    hp = a.hp(other)
    a.world.order(a.unit(0), "attack", target=enemy)
    a.seconds(12)
    unit = a.world.unit(a.unit(0))
    armor = a.world.unit(other)["armor"]
    through = 1 - 0.052 * armor / (0.9 + 0.048 * abs(armor))
    lost = hp - a.hp(other)
    assert 3 * unit["dmg_min"] * through * 0.99 <= lost <= 3 * unit["dmg_max"] * through * 1.01
    assert not a.modifiers(a.unit(0), "gyrocopter_flak_cannon")


def test_riki_fades_and_comes_back(new_world: Any, data: dict[str, Any]) -> None:
    """Invisible 7.5 s after he was last seen to attack."""
    a = arena(new_world, data, "riki")
    a.teach(0, "riki_permanent_invisibility", 1)
    riki, enemy = a.unit(0), a.unit(5)
    a.place(riki, 300, 0)
    a.seconds(7.8)
    assert a.world.unit(riki)["status"] & INVISIBLE
    a.world.set_unit(riki, attack_ready=0)
    a.world.order(riki, "attack", target=enemy)
    a.seconds(1.0)
    assert not a.world.unit(riki)["status"] & INVISIBLE
    a.world.order(riki, "hold")
    a.world.set_unit(riki, attack_ready=1e9)
    a.seconds(6)
    assert not a.world.unit(riki)["status"] & INVISIBLE
    a.seconds(2.5)
    assert a.world.unit(riki)["status"] & INVISIBLE


@pytest.mark.parametrize("behind", [True, False])
def test_backstab(new_world: Any, data: dict[str, Any], behind: bool) -> None:
    """An attack from behind does 0.4 of his agility as additional damage."""
    a = arena(new_world, data, "riki")
    a.teach(0, "riki_permanent_invisibility", 1)
    riki, enemy = a.unit(0), a.dummy(400, 0)  # it does not turn to him
    a.place(riki, 300, 0)
    a.place(enemy, 400, 0, 0.0 if behind else math.pi)
    a.place(a.unit(5), 2500, 0)
    a.world.set_unit(enemy, extra_armor=-a.world.unit(enemy)["armor"])
    a.world.set_unit(riki, attack_ready=0)
    hp = a.hp(enemy)
    a.world.order(riki, "attack", target=enemy)
    for _ in range(20):
        a.world.step(1)
        if a.hp(enemy) < hp:
            break
    a.world.order(riki, "stop")
    unit = a.world.unit(riki)
    extra = 0.4 * unit["agi"] if behind else 0
    lost = hp - a.hp(enemy)
    assert unit["dmg_min"] + extra - 1 <= lost <= unit["dmg_max"] + unit["dmg_bonus"] + extra + 1


def test_blink_strike_damages_where_he_appears(new_world: Any, data: dict[str, Any]) -> None:
    a = arena(new_world, data, "riki")
    slot = a.teach(0, "riki_blink_strike", 1)
    riki, enemy = a.unit(0), a.unit(5)
    hp = a.hp(enemy)
    cast(a, slot, enemy)
    a.seconds(0.8)
    bonus = a.special("riki_blink_strike", "bonus_damage")[0] * a.magic(enemy) * a.amp(riki)
    assert hp - a.hp(enemy) == pytest.approx(bonus, abs=0.01)
    assert math.hypot(a.world.unit(riki)["x"] - a.world.unit(enemy)["x"],
                      a.world.unit(riki)["y"] - a.world.unit(enemy)["y"]) < 120


def test_tricks_of_the_trade(new_world: Any, data: dict[str, Any]) -> None:
    """Out of the world, he strikes an enemy within 450 every 0.6 s, heroes first."""
    a = arena(new_world, data, "riki")
    slot = a.teach(0, "riki_tricks_of_the_trade", 1)
    riki, enemy = a.unit(0), a.unit(5)
    other = a.dummy(200, 0)
    a.place(enemy, 300, 0)
    hp, spared = a.hp(enemy), a.hp(other)
    cast(a, slot)
    a.seconds(0.6 * 3 + 0.7)
    assert a.world.unit(riki)["status"] & BANISHED
    armor = a.world.unit(enemy)["armor"]
    through = 1 - 0.052 * armor / (0.9 + 0.048 * armor)
    unit = a.world.unit(riki)
    assert 3 * unit["dmg_min"] * through * 0.95 <= hp - a.hp(enemy) <= 4 * (unit["dmg_max"] + 5) * through
    assert a.hp(other) == spared


def test_dark_pact_strikes_both(new_world: Any, data: dict[str, Any]) -> None:
    """After 1.5 s ten pulses: 75 in all to enemies within 325, half of it to himself: magical damage to both."""
    a = arena(new_world, data, "slark")
    slot = a.teach(0, "slark_dark_pact", 1)
    slark, enemy = a.unit(0), a.unit(5)
    a.place(enemy, 250, 0)
    hp, own = a.hp(enemy), a.hp(slark)
    cast(a, slot)
    a.seconds(1.3)
    assert a.hp(slark) == own
    a.seconds(1.6)
    total = a.special("slark_dark_pact", "total_damage")[0]
    assert hp - a.hp(enemy) == pytest.approx(total * a.magic(enemy) * a.amp(slark), rel=0.01)
    assert own - a.hp(slark) == pytest.approx(total / 2 * a.magic(slark) * a.amp(slark), rel=0.01)


def test_pounce_leashes_the_first_hero(new_world: Any, data: dict[str, Any]) -> None:
    """A leap of 700 at 933 a second; the hero it meets stays within 400 of that place for 2.5 s."""
    a = arena(new_world, data, "slark")
    slot = a.teach(0, "slark_pounce", 1)
    slark, enemy = a.unit(0), a.unit(5)
    a.place(slark, 500, 0, math.pi)
    a.place(enemy, 100, 0)
    cast(a, slot)
    a.seconds(0.6)
    met = a.world.unit(slark)
    assert 80 < met["x"] - CENTRE[0] < 250
    assert a.world.unit(enemy)["status"] & LEASHED
    a.world.order(enemy, "move", x=CENTRE[0] - 600, y=CENTRE[1])
    a.seconds(1.9)
    away = met["x"] - a.world.unit(enemy)["x"]
    assert 350 < away <= 402
    a.world.order(enemy, "move", x=CENTRE[0] - 600, y=CENTRE[1])
    a.seconds(1.5)
    assert met["x"] - a.world.unit(enemy)["x"] > 403


def test_essence_shift_steals_attributes(new_world: Any, data: dict[str, Any]) -> None:
    """Each hit on a hero: 3 agility for him, 1 of each attribute less for the other; heroes only, for 15 s."""
    a = arena(new_world, data, "slark")
    a.teach(0, "slark_essence_shift", 1)
    slark, enemy = a.unit(0), a.unit(5)
    a.place(enemy, 150, 0, math.pi)
    agi, theirs = a.world.unit(slark)["agi"], a.world.unit(enemy)["str"]
    a.world.set_unit(slark, attack_ready=0)
    a.world.order(slark, "attack", target=enemy)
    hits, hp = 0, a.hp(enemy)
    for _ in range(40):
        a.world.step(1)
        if a.hp(enemy) < hp - 1:
            hits, hp = hits + 1, a.hp(enemy)
        if hits == 2:
            break
    a.world.order(slark, "hold")
    a.world.set_unit(slark, attack_ready=1e9)
    a.seconds(0.2)
    assert a.world.unit(slark)["agi"] == pytest.approx(agi + 3 * hits)
    assert a.world.unit(enemy)["str"] == pytest.approx(theirs - hits)
    a.seconds(15.5)
    assert a.world.unit(slark)["agi"] == pytest.approx(agi)
    assert a.world.unit(enemy)["str"] == pytest.approx(theirs)


def test_shadow_dance_hides_from_true_sight(new_world: Any, data: dict[str, Any]) -> None:
    """4 s unseen even beside a gem, whatever he does; fast while no enemy sees him."""
    a = arena(new_world, data, "slark")
    slot = a.teach(0, "slark_shadow_dance", 1)
    slark, enemy = a.unit(0), a.unit(5)
    a.world.give_item(5, "item_gem")
    a.seconds(0.5)
    assert a.world.visible(1, slark)
    slow = a.world.unit(slark)["move_speed"]
    cast(a, slot)
    a.seconds(1.2)
    assert a.world.unit(slark)["status"] & UNSEEN
    assert not a.world.visible(1, slark)
    assert a.world.unit(slark)["move_speed"] > slow * 1.15
    a.place(slark, 200, 0)
    a.world.set_unit(slark, attack_ready=0)
    a.world.order(slark, "attack", target=enemy)
    a.seconds(1.0)
    assert not a.world.visible(1, slark)
    a.seconds(4 - 2.2 + 4 * FRAME)
    assert a.world.visible(1, slark)
