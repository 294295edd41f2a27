"""Sniper's abilities in patch 7.21d, computed by hand from abilities.json."""

import math
from typing import Any

import pytest

from tests.dota.scenes.arena import CENTRE, Arena


@pytest.fixture
def arena(new_world: Any, data: dict[str, Any]) -> Arena:
    arena = Arena(new_world(("sniper",), ("nevermore",)), data)
    arena.world.give_xp(0, 230)  # level 2: Headshot, then Shrapnel with its three charges
    return arena


def shrapnel(arena: Arena, x: float, y: float, level: int = 4) -> int:
    slot = arena.teach(0, "sniper_shrapnel", level)
    arena.world.order(arena.unit(0), "cast_point", x=CENTRE[0] + x, y=CENTRE[1] + y, slot=slot)
    return slot


def test_shrapnel_total_damage_and_linger(arena: Arena) -> None:
    """Eleven ticks of 75, a second apart, the first 1.2 s after the cast; the slow stays 2 s after the last."""
    a = arena.unit(0)
    arena.place(a, 0, 0)
    target = arena.dummy(900, 0)
    speed, hp = arena.world.unit(target)["move_speed"], arena.hp(target)
    shrapnel(arena, 900, 0)
    arena.seconds(0.3 + 0.9)
    assert arena.hp(target) == hp
    arena.seconds(0.6)
    tick = 75 * arena.amp(a) * arena.magic(target)
    assert hp - arena.hp(target) == pytest.approx(tick, rel=1e-3)
    assert arena.world.unit(target)["move_speed"] == pytest.approx(speed * 0.70, rel=1e-3)
    arena.seconds(11)
    assert hp - arena.hp(target) == pytest.approx(11 * tick, rel=1e-3)
    assert arena.world.unit(target)["move_speed"] < speed
    arena.seconds(2.2)
    assert arena.world.unit(target)["move_speed"] == pytest.approx(speed)


def test_shrapnel_charges(arena: Arena) -> None:
    arena.place(arena.unit(0), 0, 0)
    state = arena.world.ability(0, "sniper_shrapnel")
    before = state["charges"]
    assert before == 3
    for used in range(before):
        assert arena.world.ability(0, "sniper_shrapnel")["castable"]
        shrapnel(arena, 500, 400, 1)
        arena.seconds(0.6)
        assert arena.world.ability(0, "sniper_shrapnel")["charges"] == before - used - 1
    assert not arena.world.ability(0, "sniper_shrapnel")["castable"]


def test_headshot_chance_damage_and_knockback(arena: Arena) -> None:
    """Over many attacks 40 % carry 120 more damage before armor (none here), and push by 10."""
    a = arena.unit(0)
    slot_free = arena.teach(0, "sniper_headshot", 4)
    assert slot_free == 1
    arena.place(a, 0, 0)
    place = (-350.0, -200.0)
    target = arena.dummy(*place, hp=100000)
    arena.world.set_unit(target, extra_armor=-arena.world.unit(target)["armor"])
    arena.world.set_unit(a, attack_ready=0)
    arena.world.order(a, "attack", target)
    procs = attacks = 0
    hp = arena.hp(target)
    high = arena.world.unit(a)["dmg_max"] + arena.world.unit(a)["dmg_bonus"]
    for _ in range(2500):
        arena.world.step()
        now = arena.hp(target)
        if now > hp - 1:
            continue
        attacks += 1
        if hp - now > high + 1:
            procs += 1
            assert hp - now <= high + 120 * arena.amp(a) + 1
            assert arena.modifiers(target, "sniper_headshot")
            arena.world.step()
            u = arena.world.unit(target)
            pushed = math.dist((u["x"], u["y"]), (CENTRE[0] + place[0], CENTRE[1] + place[1]))
            assert pushed == pytest.approx(10, abs=0.1)
            arena.world.set_unit(target, x=CENTRE[0] + place[0], y=CENTRE[1] + place[1])
        hp = arena.hp(target)
    assert attacks > 150
    assert procs / attacks == pytest.approx(0.40, abs=0.08)


def test_take_aim_passive_and_active(arena: Arena) -> None:
    a = arena.unit(0)
    plain = arena.world.unit(a)["attack_range"]
    slot = arena.teach(0, "sniper_take_aim", 4)
    assert arena.world.unit(a)["attack_range"] - plain == pytest.approx(400)
    arena.place(a, 0, 0)
    arena.world.order(a, "cast", slot=slot)
    arena.seconds(0.3)
    assert arena.world.unit(a)["attack_range"] - plain == pytest.approx(800)
    target = arena.dummy(300, 0)
    arena.world.set_unit(a, attack_ready=0)
    arena.world.order(a, "attack", target)
    arena.seconds(1.5)
    assert arena.world.unit(a)["attack_range"] - plain == pytest.approx(400)  # used up by the attack


@pytest.mark.parametrize("start", [-90.0, 0.0])
def test_a_charge_of_shrapnel_comes_back(new_world: Any, data: dict[str, Any], start: float) -> None:
    """Before the horn as well as after it."""
    arena = Arena(new_world(("sniper",), start_s=start), data)
    arena.teach(0, "sniper_shrapnel", 1)
    (restored,) = arena.special("sniper_shrapnel", "charge_restore_time")
    for seconds, charges in ((0.2, 0), (restored - 1, 0), (1.5, 1)):
        arena.seconds(seconds)
        assert arena.world.ability(0, "sniper_shrapnel")["charges"] == charges


@pytest.mark.parametrize("level", [1, 2, 3])
def test_assassinate(arena: Arena, level: int) -> None:
    a, b = arena.unit(0), arena.unit(5)
    slot = arena.teach(0, "sniper_assassinate", level)
    arena.world.set_unit(b, extra_hp=2000)
    arena.place(a, 0, 0, 0.0)
    arena.place(b, -750, 1300, math.pi)
    arena.seconds(0.2)
    hp, mana = arena.hp(b), arena.world.unit(a)["mana"]
    start = arena.world.time
    arena.world.order(a, "cast_unit", target=b, slot=slot)
    arena.seconds(1.9)
    assert arena.hp(b) == hp
    assert arena.world.visible(0, b)
    arena.seconds(1.2)
    expected = arena.field("sniper_assassinate", "damage")[level - 1] * arena.amp(a) * arena.magic(b)
    assert hp - arena.hp(b) == pytest.approx(expected, rel=1e-4)
    assert mana - arena.world.unit(a)["mana"] == pytest.approx([175, 225, 275][level - 1], abs=1e-2)
    assert arena.world.ability(0, "sniper_assassinate")["ready"] == pytest.approx(start + 2 + [20, 15, 10][level - 1],
                                                                                  abs=0.2)
