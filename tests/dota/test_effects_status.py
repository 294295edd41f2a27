"""Primitives that leave modifiers on units, one by one: Lion's Hex gets a program with the test's numbers."""

import math
from typing import Any

import pytest

from tests.dota.scenes.arena import CENTRE
from tests.dota.scenes.program import HEX, cast_hex, circle, programmed
from tests.dota.scenes.statuses import (
    DISARMED,
    ETHEREAL,
    INVISIBLE,
    INVULNERABLE,
    MUTED,
    PHASED,
    ROOTED,
    SILENCED,
    SPELL_IMMUNE,
    STUNNED,
    TAUNTED,
    TRUE_SIGHTED,
)


def test_timed_stacks_run_out_together(core: Any) -> None:
    arena = programmed(
        core,
        {
            "p": "stack_gain",
            "to": "target",
            "stack": "mark",
            "amount": 2,
            "max": 5,
            "dur": 3,
            "per_stack": {"armor": -1},
        }
    )
    creep = arena.dummy(300, 0)
    armor = arena.world.unit(creep)["armor"]
    for expected in (2, 4, 5):
        cast_hex(arena, creep)
        assert arena.modifiers(creep, "stack_mark")[0]["stacks"] == expected
        assert arena.world.unit(creep)["armor"] == pytest.approx(armor - expected)
    arena.seconds(3.2)
    assert arena.world.unit(creep)["armor"] == pytest.approx(armor)


def test_shield_against_magic_only(core: Any) -> None:
    """A barrier of 100 takes magical damage before the resistance (public wikis, Pipe of Insight)."""
    arena = programmed(
        core,
        {"p": "reduction_shield", "to": "self", "type": "magical", "amount": 100, "dur": 4}, behavior=("no_target",)
    )
    a, b = arena.unit(0), arena.unit(5)
    cast_hex(arena)
    hp = arena.hp(a)
    assert arena.world.damage(b, a, 50, "physical", attack=True) > 0
    hp = arena.hp(a)
    left = 20 * arena.magic(a)
    assert arena.world.damage(b, a, 60, "magical") == 0
    assert arena.world.damage(b, a, 60, "magical") == pytest.approx(left, rel=1e-3)
    assert arena.hp(a) == pytest.approx(hp - left, rel=1e-3)
    assert not arena.modifiers(a, HEX)


@pytest.mark.parametrize(("kind", "left"), [("basic", STUNNED), ("strong", 0)])
def test_dispel(core: Any, kind: str, left: int) -> None:
    """A basic dispel takes the root (`dispellable`: yes) of Frostbite's kind and leaves the stun (yes_strong)."""
    arena = programmed(core, {"p": "dispel", "to": "target", "kind": kind}, enemy="sven")
    mate, enemy = arena.unit(1), arena.unit(5)
    bolt = arena.teach(5, "sven_storm_bolt", 4)
    toxin = arena.teach(6, "viper_corrosive_skin", 4)
    assert toxin == 2
    arena.place(mate, 600, 0)
    arena.world.order(enemy, "cast_unit", target=mate, slot=bolt)
    arena.world.damage(mate, arena.unit(6), 5, "pure")
    arena.place(arena.unit(6), 900, 0)
    arena.world.damage(mate, arena.unit(6), 5, "pure")
    arena.seconds(0.8)
    assert arena.modifiers(mate, "viper_corrosive_skin")
    assert arena.world.unit(mate)["status"] & STUNNED
    cast_hex(arena, mate)
    assert not arena.modifiers(mate, "viper_corrosive_skin")
    assert arena.world.unit(mate)["status"] & STUNNED == left


@pytest.mark.parametrize(
    ("primitive", "bit"),
    [
        ("stun", STUNNED),
        ("silence", SILENCED),
        ("root", ROOTED),
        ("disarm", DISARMED),
        ("mute", MUTED),
        ("phase", PHASED),
        ("break", 1 << 12),
        ("cyclone", INVULNERABLE),
        ("ethereal", ETHEREAL),
        ("spell_immune", SPELL_IMMUNE),
    ],
)
def test_status_for_its_time(core: Any, primitive: str, bit: int) -> None:
    arena = programmed(core, {"p": primitive, "to": "target", "dur": 2})
    b = arena.unit(5)
    cast_hex(arena, b)
    assert arena.world.unit(b)["status"] & bit
    arena.seconds(1.6)
    assert arena.world.unit(b)["status"] & bit
    arena.seconds(0.5)
    assert not arena.world.unit(b)["status"] & bit


def test_silence_ends_with_a_share_of_the_damage_taken(core: Any) -> None:
    arena = programmed(core, {"p": "silence", "to": "target", "dur": 2, "end_damage_pct_of_taken": 50, "type": "pure"})
    creep = arena.dummy(300, 0, hp=2000)
    cast_hex(arena, creep)
    arena.world.damage(arena.unit(1), creep, 300, "pure")
    arena.seconds(2.2)
    assert arena.hp(creep) == pytest.approx(2000 - 300 - 150 * arena.amp(arena.unit(0)), rel=1e-3)


def test_banish_takes_out_of_the_world(core: Any) -> None:
    arena = programmed(core, {"p": "banish", "to": "target", "dur": 2})
    b = arena.unit(5)
    cast_hex(arena, b)
    assert arena.world.damage(arena.unit(1), b, 100, "pure") == 0
    assert not arena.world.can_attack(arena.unit(1), b)
    arena.seconds(2.1)
    assert arena.world.damage(arena.unit(1), b, 100, "pure") > 0


def test_ethereal_takes_no_attacks_and_more_magic(core: Any) -> None:
    arena = programmed(core, {"p": "ethereal", "to": "target", "dur": 3, "mr_pct": -40})
    b = arena.unit(5)
    before = arena.magic(b)
    cast_hex(arena, b)
    assert arena.magic(b) == pytest.approx(before * 1.4, rel=1e-4)
    assert arena.world.damage(arena.unit(1), b, 100, "physical", attack=True) == 0


def test_cyclone_lands_with_damage_on_enemies(core: Any) -> None:
    arena = programmed(core, {"p": "cyclone", "to": "self_or_enemy", "dur": 1.5, "dispel": "basic", "land_damage": 50})
    a, b = arena.unit(0), arena.unit(5)
    hp = arena.hp(b)
    cast_hex(arena, b, wait=1.0)
    assert arena.hp(b) == hp
    arena.seconds(0.8)
    assert hp - arena.hp(b) == pytest.approx(50 * arena.amp(a) * arena.magic(b), rel=1e-3)


def test_taunt_makes_them_attack_the_caster(core: Any) -> None:
    arena = programmed(
        core,
        {"p": "taunt", "to": "enemies", "shape": circle(600), "dur": 2, "pierces_immunity": 1}, behavior=("no_target",)
    )
    a, b = arena.unit(0), arena.unit(5)
    arena.world.set_unit(b, attack_ready=0)
    cast_hex(arena)
    assert arena.world.unit(b)["status"] & TAUNTED
    assert arena.world.unit(b)["attack_target"] == a
    arena.world.order(b, "move", x=CENTRE[0] + 2000, y=CENTRE[1])
    arena.seconds(0.5)
    assert arena.world.unit(b)["attack_target"] == a


def test_knockback_moves_away_exactly(core: Any) -> None:
    arena = programmed(core, {"p": "knockback", "to": "target", "dist": 200, "dur": 0.4})
    a = arena.unit(0)
    creep = arena.dummy(-220, -127)
    start = arena.world.unit(creep)
    cast_hex(arena, creep, wait=0.8)
    end = arena.world.unit(creep)
    assert math.dist((start["x"], start["y"]), (end["x"], end["y"])) == pytest.approx(200, abs=1)
    centre = arena.world.unit(a)
    assert math.dist((centre["x"], centre["y"]), (end["x"], end["y"])) == pytest.approx(
        math.hypot(220, 127) + 200, abs=2
    )


def test_true_sight_on_the_invisible(core: Any) -> None:
    arena = programmed(
        core,
        {"p": "true_sight", "to": "enemies_invisible", "shape": circle(900), "dur": 3}, behavior=("no_target",)
    )
    b = arena.unit(5)
    arena.world.rune(b, 3)
    arena.seconds(2.5)
    assert arena.world.unit(b)["status"] & INVISIBLE
    assert not arena.world.visible(0, b)
    cast_hex(arena)
    assert arena.world.unit(b)["status"] & TRUE_SIGHTED
    assert arena.world.visible(0, b)
    arena.seconds(3.2)
    assert not arena.world.visible(0, b)


def test_ground_area_with_status_and_decay(core: Any) -> None:
    arena = programmed(
        core,
        {
            "p": "ground_area",
            "at": "point",
            "shape": circle(300),
            "dur": 2,
            "to": "enemies",
            "status": ["silence"],
            "stats": {"miss_pct": 40, "ms_pct_minus": 20},
        },
        {
            "p": "mod",
            "at": "point",
            "to": "enemies",
            "shape": circle(300),
            "dur": 4,
            "stats": {"armor": -8},
            "decay": "linear_to_zero",
        },
        behavior=("point",),
    )
    b = arena.unit(5)
    armor = arena.world.unit(b)["armor"]
    cast_hex(arena, at=(400, 0))
    assert arena.world.unit(b)["status"] & SILENCED
    first = armor - arena.world.unit(b)["armor"]
    assert 7 < first <= 8
    arena.seconds(1.9)
    assert armor - arena.world.unit(b)["armor"] == pytest.approx(first - 8 * 1.9 / 4, abs=0.3)
    arena.seconds(0.4)
    assert not arena.world.unit(b)["status"] & SILENCED
