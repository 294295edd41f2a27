"""Primitives of damage, resources and projectiles, one by one: Lion's Hex gets a program with the test's numbers."""

from typing import Any

import pytest

from tests.dota.scenes.arena import CENTRE
from tests.dota.scenes.program import HEX, cast_hex, circle, programmed


def test_damage_missing_hp(core: Any) -> None:
    arena = programmed(core, {"p": "damage_missing_hp", "to": "target", "factor": 0.5, "type": "pure"})
    creep = arena.dummy(300, 0, hp=1000)
    arena.world.set_unit(creep, hp=600)
    cast_hex(arena, creep)
    assert arena.hp(creep) == pytest.approx(600 - 0.5 * 400 * arena.amp(arena.unit(0)), rel=1e-3)


def test_execute_kills_below_and_hurts_above(core: Any) -> None:
    arena = programmed(
        core,
        {"p": "execute", "to": "target", "hp_below": 300, "else_damage": 100, "type": "magical"},
        {"p": "mod", "if": "killed_hero", "to": "self", "dur": 5, "stats": {"armor": 7}},
        {"p": "refresh_cooldown", "if": "killed_hero", "what": "self_ability"},
        cooldown=[50],
    )
    a, b = arena.unit(0), arena.unit(5)
    armor, hp = arena.world.unit(a)["armor"], arena.hp(b)
    cast_hex(arena, b)
    assert hp - arena.hp(b) == pytest.approx(100 * arena.amp(a) * arena.magic(b), rel=1e-3)
    assert arena.world.unit(a)["armor"] == pytest.approx(armor)
    arena.seconds(50)
    arena.place(b, 400, 0)
    arena.world.set_unit(b, hp=299)
    cast_hex(arena, b)
    assert not arena.world.unit(b)["alive"]
    assert arena.world.unit(a)["armor"] - armor == pytest.approx(7)
    assert arena.world.ability(0, HEX)["castable"]


def test_delayed_area_hits_units_present_at_impact(core: Any) -> None:
    arena = programmed(
        core,
        {
            "p": "delayed_aoe",
            "at": "point",
            "delay": 1.5,
            "shape": circle(200),
            "to": "enemies",
            "then": [{"p": "damage", "amount": 100, "type": "pure"}],
        },
        behavior=("point",),
    )
    stays, leaves = arena.dummy(400, 100), arena.dummy(400, -100)
    hp = arena.hp(stays)
    cast_hex(arena, at=(400, 0), wait=1.3)
    assert arena.hp(stays) == hp
    arena.place(leaves, 400, -800)
    arena.seconds(0.4)
    assert hp - arena.hp(stays) == pytest.approx(100 * arena.amp(arena.unit(0)), rel=1e-3)
    assert arena.hp(leaves) == pytest.approx(hp)


def test_delayed_pulses_share_a_total(core: Any) -> None:
    arena = programmed(
        core,
        {
            "p": "delayed_aoe",
            "at": "self",
            "delay": 0.5,
            "pulses": 4,
            "pulse_interval": 0.2,
            "shape": circle(500),
            "to": "enemies",
            "then": [{"p": "damage", "total": 200, "type": "pure"}],
        },
        behavior=("no_target",),
    )
    creep = arena.dummy(300, 0)
    hp = arena.hp(creep)
    cast_hex(arena, wait=0.75)
    each = 50 * arena.amp(arena.unit(0))
    assert (hp - arena.hp(creep)) / each == pytest.approx(2, abs=0.01)
    arena.seconds(1)
    assert (hp - arena.hp(creep)) / each == pytest.approx(4, abs=0.01)


def test_random_target_hits(core: Any) -> None:
    arena = programmed(
        core,
        {
            "p": "random_target_hits",
            "dur": 3,
            "rate": 10,
            "shape": circle(500),
            "to": "enemies",
            "amount": 10,
            "type": "pure",
        },
        behavior=("no_target",),
    )
    near, far = [arena.dummy(250, y) for y in (-200, 200)], arena.dummy(900, 0)
    hp = arena.hp(near[0])
    arena.place(arena.unit(5), 3000, 0)
    cast_hex(arena, wait=3.3)
    lost = [hp - arena.hp(u) for u in near]
    assert sum(lost) == pytest.approx(30 * 10 * arena.amp(arena.unit(0)), rel=1e-3)
    assert min(lost) > 0
    assert arena.hp(far) == hp


def test_mana_burn(core: Any) -> None:
    arena = programmed(core, {"p": "mana_burn", "to": "target", "amount": 100, "damage_factor": 2, "type": "pure"})
    b = arena.unit(5)
    arena.world.set_unit(b, mana=60)
    hp = arena.hp(b)
    cast_hex(arena, b)
    assert arena.world.unit(b)["mana"] == pytest.approx(0, abs=1e-3)
    assert hp - arena.hp(b) == pytest.approx(120 * arena.amp(arena.unit(0)), rel=1e-3)


def test_hp_lost_bursts(core: Any) -> None:
    """Two bursts, each half of the health lost since the curse; the first burst increases the second."""
    arena = programmed(core, {"p": "hp_lost_burst", "to": "target", "dur": 4, "interval": 2, "pct": 50, "type": "pure"})
    creep = arena.dummy(300, 0, hp=2000)
    cast_hex(arena, creep)
    arena.world.damage(arena.unit(1), creep, 400, "pure")
    arena.seconds(2)
    amp = arena.amp(arena.unit(0))
    assert arena.hp(creep) == pytest.approx(1600 - 200 * amp, rel=1e-3)
    arena.seconds(2)
    assert arena.hp(creep) == pytest.approx(1600 - 200 * amp - 0.5 * (400 + 200 * amp) * amp, rel=1e-3)
    arena.seconds(3)
    assert not arena.modifiers(creep, HEX)


def test_drain_heals_and_snaps(core: Any) -> None:
    arena = programmed(
        core,
        {
            "p": "drain",
            "to": "target",
            "dps": 40,
            "interval": 0.25,
            "dur": 5,
            "heal_pct": 100,
            "break_dist": 900,
            "type": "pure",
        }
    )
    a, creep = arena.unit(0), arena.dummy(400, 0)
    arena.world.set_unit(a, hp=100)
    hp = arena.hp(creep)
    cast_hex(arena, creep, wait=2.0)
    lost = hp - arena.hp(creep)
    assert lost == pytest.approx(40 * 2 * arena.amp(a), rel=0.15)
    assert arena.hp(a) == pytest.approx(100 + lost, rel=1e-3)
    arena.place(creep, 1000, 0)
    arena.seconds(0.3)
    snapped = arena.hp(creep)
    arena.place(creep, 400, 0)
    arena.seconds(1)
    assert arena.hp(creep) == snapped


def test_heal_hp_cost_and_mana(core: Any) -> None:
    arena = programmed(
        core,
        {"p": "hp_cost", "amount": 150},
        {"p": "heal", "to": "target", "amount": 120},
        {"p": "mana_gain", "to": "target", "amount": 50},
    )
    a, mate = arena.unit(0), arena.unit(1)
    arena.world.set_unit(mate, hp=100, mana=10)
    hp = arena.hp(a)
    cast_hex(arena, mate)
    assert arena.hp(mate) == pytest.approx(220)
    assert arena.world.unit(mate)["mana"] == pytest.approx(60)
    assert arena.hp(a) == pytest.approx(hp - 150)


def test_sacrifice_of_an_own_creep(core: Any) -> None:
    arena = programmed(core, {"p": "sacrifice_ally_creep", "to": "target", "mana_pct_of_hp": 50})
    a = arena.unit(0)
    creep = arena.world.spawn("npc_dota_creep_goodguys_melee", 0, CENTRE[0] - 100, CENTRE[1])
    hp = arena.hp(creep)
    arena.world.set_unit(a, mana=10)
    cast_hex(arena, creep)
    assert arena.world.unit(a)["mana"] == pytest.approx(10 + hp / 2, abs=1)
    assert creep not in [u["index"] for u in arena.world.units("lane_creep")]


def test_line_strike(core: Any) -> None:
    arena = programmed(
        core,
        {
            "p": "line_strike",
            "len": 800,
            "w": 100,
            "to": "enemies",
            "then": [{"p": "damage", "amount": 50, "type": "pure"}],
        },
        behavior=("point",),
    )
    inside, beside, beyond = arena.dummy(600, 80), arena.dummy(300, 150), arena.dummy(960, 0)
    hp = arena.hp(inside)
    cast_hex(arena, at=(400, 0))
    assert arena.hp(inside) < hp
    assert arena.hp(beside) == hp
    assert arena.hp(beyond) == hp


def test_ring_of_projectiles_for_both_sides(core: Any) -> None:
    arena = programmed(
        core,
        {
            "p": "ring_projectiles",
            "shape": circle(600),
            "speed": 800,
            "enemies": [{"p": "damage", "amount": 60, "type": "pure"}],
            "allies": [{"p": "heal", "amount": 70}],
        },
        behavior=("no_target",),
    )
    mate, creep = arena.unit(1), arena.dummy(500, 100)
    arena.world.set_unit(mate, hp=100)
    hp = arena.hp(creep)
    cast_hex(arena, wait=0.2)
    assert arena.hp(creep) == hp
    arena.seconds(0.7)
    assert hp - arena.hp(creep) == pytest.approx(60 * arena.amp(arena.unit(0)), rel=1e-3)
    assert arena.hp(mate) == pytest.approx(170)


def test_expanding_ring_hits_the_near_before_the_far_and_once(core: Any) -> None:
    arena = programmed(
        core,
        {
            "p": "expanding_ring",
            "r": 1000,
            "speed": 500,
            "to": "enemies",
            "then": [{"p": "damage", "amount": 60, "type": "pure"}],
        },
        behavior=("no_target",),
    )
    near, far = arena.dummy(250, 150), arena.dummy(900, 0)
    hp = arena.hp(near)
    cast_hex(arena, wait=1.0)
    each = 60 * arena.amp(arena.unit(0))
    assert hp - arena.hp(near) == pytest.approx(each, rel=1e-3)
    assert arena.hp(far) == hp
    arena.seconds(1.4)
    assert [hp - arena.hp(u) for u in (near, far)] == pytest.approx([each, each], rel=1e-3)


def test_bounce_goes_on_between_two(core: Any) -> None:
    arena = programmed(
        core,
        {
            "p": "bounce",
            "to": "target",
            "count": 3,
            "range": 500,
            "speed": 1000,
            "delay": 0.1,
            "can_repeat": 1,
            "then": [{"p": "damage", "amount": 50, "type": "pure"}],
        }
    )
    arena.place(arena.unit(5), 3000, 0)
    one, two = arena.dummy(300, 0), arena.dummy(300, 300)
    hp = arena.hp(one)
    cast_hex(arena, one, wait=4)
    each = 50 * arena.amp(arena.unit(0))
    # The first hit and three bounces: two hits each.
    assert [(hp - arena.hp(u)) / each for u in (one, two)] == pytest.approx([2, 2], abs=0.01)


def test_echo_counts_heroes_double(core: Any) -> None:
    arena = programmed(
        core,
        {"p": "echo", "search_r": 700, "r": 600, "per_unit": 1, "per_hero": 2, "amount": 20, "type": "pure"},
        behavior=("no_target",),
    )
    creep, b = arena.dummy(300, 100), arena.unit(5)
    hp, hp_b = arena.hp(creep), arena.hp(b)
    cast_hex(arena)
    each = 20 * arena.amp(arena.unit(0))
    assert (hp - arena.hp(creep)) / each == pytest.approx(2, abs=0.01)  # from the hero
    assert (hp_b - arena.hp(b)) / each == pytest.approx(1, abs=0.01)  # from the creep


def test_chain_loses_strength(core: Any) -> None:
    arena = programmed(
        core,
        {
            "p": "chain",
            "to": "target",
            "count": 3,
            "range": 400,
            "delay": 0.2,
            "amount": 100,
            "loss_pct": 25,
            "type": "pure",
        }
    )
    arena.place(arena.unit(5), 3000, 0)
    creeps = [arena.dummy(300, 0), arena.dummy(300, 300), arena.dummy(300, 600), arena.dummy(300, 900)]
    hp = arena.hp(creeps[0])
    cast_hex(arena, creeps[0], wait=1.0)
    amp = arena.amp(arena.unit(0))
    assert [hp - arena.hp(u) for u in creeps] == pytest.approx([100 * amp, 75 * amp, 56.25 * amp, 0], rel=1e-3)


def test_respawn_add(core: Any) -> None:
    arena = programmed(
        core,
        {"p": "respawn_add", "to": "target", "dur": 1, "amount": 30},
        {"p": "execute", "to": "target", "hp_below": 9999, "else_damage": 1, "type": "pure"},
    )
    b = arena.unit(5)
    now = arena.world.time
    cast_hex(arena, b)
    assert arena.world.hero(5)["respawn_at"] - now == pytest.approx(6 + 30, abs=0.3)
