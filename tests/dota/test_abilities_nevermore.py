"""Shadow Fiend's abilities in patch 7.21d, computed by hand from abilities.json."""

import math
from typing import Any

import pytest

from tests.dota.scenes.arena import Arena

RAZES = [f"nevermore_shadowraze{i}" for i in (1, 2, 3)]


@pytest.fixture
def arena(new_world: Any, data: dict[str, Any]) -> Arena:
    return Arena(new_world(), data)


def ready(arena: Arena, level: int = 1) -> tuple[int, int]:
    a, b = arena.unit(0), arena.unit(5)
    for raze in RAZES:
        arena.teach(0, raze, level)
    arena.place(a, 0, 0, 0.0)
    return a, b


def cast(arena: Arena, unit: int, slot: int, windup: float) -> None:
    arena.world.order(unit, "cast", slot=slot)
    arena.seconds(windup + 0.1)


@pytest.mark.parametrize(("raze", "level"), [(0, 1), (1, 2), (2, 4)])
def test_raze_damage_cost_and_cooldown(arena: Arena, raze: int, level: int) -> None:
    a, b = ready(arena, level)
    name = RAZES[raze]
    dist = arena.special(name, "shadowraze_range")[0]
    arena.place(b, dist, 0, math.pi)
    arena.world.set_unit(a, facing=0.0)
    mana, hp = arena.world.unit(a)["mana"], arena.hp(b)
    start = arena.world.time
    cast(arena, a, raze, 0.55)
    base = arena.special(name, "shadowraze_damage")[level - 1]
    assert hp - arena.hp(b) == pytest.approx(base * arena.amp(a) * arena.magic(b), rel=1e-4)
    assert mana - arena.world.unit(a)["mana"] == pytest.approx(90, abs=1e-2)
    state = arena.world.ability(0, name)
    assert state["ready"] == pytest.approx(start + 0.55 + 10, abs=0.1)
    assert not state["castable"]


def test_raze_stacks_add_damage_and_run_out(arena: Arena) -> None:
    a, b = ready(arena, 4)
    arena.place(b, 450, 0, math.pi)
    bonus, base = 80.0, 300.0
    losses = []
    for slot in (0, 1, 2):
        arena.place(a, 450 - arena.special(RAZES[slot], "shadowraze_range")[0], 0, 0.0)
        before = arena.hp(b)
        cast(arena, a, slot, 0.55)
        losses.append(before - arena.hp(b))
        arena.world.set_unit(b, hp=arena.world.unit(b)["max_hp"])
    share = arena.amp(a) * arena.magic(b)
    assert losses == pytest.approx([(base + k * bonus) * share for k in range(3)], rel=1e-4)
    assert [m["stacks"] for m in arena.modifiers(b, "stack_raze")] == [3]
    arena.seconds(8.1)
    assert not arena.modifiers(b, "stack_raze")


def test_raze_misses_outside_its_circle(arena: Arena) -> None:
    a, b = ready(arena)
    arena.place(b, 200 + 250 + 10, 0, math.pi)
    cast(arena, a, 0, 0.55)
    assert arena.hp(b) == pytest.approx(arena.world.unit(b)["max_hp"])


def test_raze_talent(arena: Arena) -> None:
    a, b = ready(arena)
    arena.world.teach(0, "special_bonus_unique_nevermore_2", 1)
    arena.place(b, 200, 0, math.pi)
    hp = arena.hp(b)
    cast(arena, a, 0, 0.55)
    assert hp - arena.hp(b) == pytest.approx((90 + 150) * arena.amp(a) * arena.magic(b), rel=1e-4)


def test_necromastery_gains_and_loses_souls(arena: Arena) -> None:
    a, b = arena.unit(0), arena.unit(5)
    arena.teach(0, "nevermore_necromastery", 1)
    plain = arena.world.unit(a)["dmg_bonus"]
    for _ in range(3):
        arena.world.kill(arena.dummy(300, 0), a)
    arena.seconds(0.2)
    assert arena.world.ability(0, "nevermore_necromastery")["stacks"] == 3
    assert arena.world.unit(a)["dmg_bonus"] - plain == pytest.approx(3 * 2)
    arena.world.kill(b, a)  # a hero is worth twelve, and twelve is the first rank's most
    assert arena.world.ability(0, "nevermore_necromastery")["stacks"] == 12
    arena.world.kill(a, b)
    assert arena.world.ability(0, "nevermore_necromastery")["stacks"] == 6
    arena.seconds(20)
    assert arena.world.unit(a)["alive"]
    assert arena.world.unit(a)["dmg_bonus"] - plain == pytest.approx(6 * 2)


def test_soul_talent_doubles_damage_a_soul(arena: Arena) -> None:
    a = arena.unit(0)
    arena.teach(0, "nevermore_necromastery", 4)
    arena.world.kill(arena.dummy(300, 0), a)
    arena.seconds(0.2)
    before = arena.world.unit(a)["dmg_bonus"]
    arena.world.teach(0, "special_bonus_unique_nevermore_1", 1)
    assert arena.world.unit(a)["dmg_bonus"] - before == pytest.approx(2)


@pytest.mark.parametrize("level", [1, 4])
def test_presence_takes_armor_near_and_lingers(arena: Arena, level: int) -> None:
    a, b = arena.unit(0), arena.unit(5)
    arena.place(a, 0, 0)
    arena.place(b, 3000, 0)
    arena.seconds(0.2)
    armor = arena.world.unit(b)["armor"]
    arena.teach(0, "nevermore_dark_lord", level)
    arena.place(b, 1100, 0)
    arena.seconds(0.3)
    taken = arena.special("nevermore_dark_lord", "presence_armor_reduction")[level - 1]
    assert arena.world.unit(b)["armor"] - armor == pytest.approx(taken, abs=1e-4)
    arena.place(b, 3000, 0)
    arena.seconds(0.3)
    assert arena.world.unit(b)["armor"] < armor  # half a second of linger
    arena.seconds(0.6)
    assert arena.world.unit(b)["armor"] == pytest.approx(armor, abs=1e-4)
    assert arena.world.unit(a)["armor"] > 0


def requiem(arena: Arena, souls: int, level: int = 1) -> tuple[int, int]:
    a, b = arena.unit(0), arena.unit(5)
    arena.teach(0, "nevermore_necromastery", 4)
    for _ in range(souls):
        arena.world.kill(arena.dummy(1500, 900), a)
    slot = arena.teach(0, "nevermore_requiem", level)
    arena.place(a, 0, 0, 0.0)
    arena.place(b, 400, 0, math.pi)
    arena.world.order(a, "cast", slot=slot)
    arena.seconds(1.8)
    return a, b


def test_requiem_line_ahead_hits_once_and_slows(arena: Arena) -> None:
    """Eight souls are four lines, a quarter turn apart: one meets a target straight ahead."""
    a, b = requiem(arena, 8)
    hp, speed = arena.hp(b), arena.world.unit(b)["move_speed"]
    assert arena.world.projectiles() == 4
    arena.seconds(1.6)
    share = arena.amp(a) * arena.magic(b)
    assert hp - arena.hp(b) == pytest.approx(80 * share, rel=1e-4)
    assert arena.world.unit(b)["move_speed"] < speed
    assert arena.world.projectiles() == 0
