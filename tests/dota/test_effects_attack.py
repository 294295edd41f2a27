"""Primitives of attack effects, procs and auras, one by one: Lion's Hex gets a program with the test's numbers."""

import math
from typing import Any

import pytest

from tests.dota.scenes.actions import attack_for
from tests.dota.scenes.patches import PATCHES, read_data
from tests.dota.scenes.program import cast_hex, circle, programmed
from tests.dota.scenes.statuses import STUNNED


def test_next_attack_bonus_is_spent_by_one_attack(core: Any) -> None:
    arena = programmed(
        core,
        {"p": "next_attack_mod", "to": "self", "expires": 10, "stats": {"base_dmg_pct": 200}}, behavior=("no_target",)
    )
    a = arena.unit(0)
    creep = arena.dummy(300, 0)
    plain = arena.world.unit(a)["dmg_min"]
    cast_hex(arena)
    assert arena.world.unit(a)["dmg_min"] == pytest.approx(3 * plain, rel=1e-4)
    arena.world.set_unit(a, attack_ready=0)
    arena.world.order(a, "attack", creep)
    arena.seconds(1.2)
    assert arena.world.unit(a)["dmg_min"] == pytest.approx(plain, rel=1e-4)


def test_splash(core: Any) -> None:
    arena = programmed(core, {"p": "splash", "r": 250, "pct": 50}, behavior=("passive",))
    target, near, far = arena.dummy(400, 0), arena.dummy(400, 200), arena.dummy(400, 400)
    for u in (target, near, far):
        arena.world.set_unit(u, extra_armor=-arena.world.unit(u)["armor"])
    hp = arena.hp(target)
    attack_for(arena, arena.unit(0), target, 1.6)
    lost = hp - arena.hp(target)
    assert lost > 0
    assert hp - arena.hp(near) == pytest.approx(lost / 2, rel=1e-3)
    assert arena.hp(far) == hp


def test_bash_stuns_and_rests(core: Any) -> None:
    arena = programmed(
        core,
        {"p": "bash", "chance_pct": 100, "dur": 0.5, "icd": 5, "damage": 80, "type": "physical"}, behavior=("passive",)
    )
    target = arena.dummy(400, 0, hp=10000)
    arena.world.set_unit(target, extra_armor=-arena.world.unit(target)["armor"])
    stuns = 0
    was = False
    a = arena.unit(0)
    arena.world.set_unit(a, attack_ready=0)
    arena.world.order(a, "attack", target)
    for _ in range(90):  # twelve seconds
        arena.world.step()
        now = bool(arena.world.unit(target)["status"] & STUNNED)
        stuns += now and not was
        was = now
    assert stuns in (2, 3)


def test_bashed_units_cannot_bash(core: Any) -> None:
    """A projectile in flight loses its attack effects when its shooter is stunned by a bash."""
    bash = {"p": "bash", "chance_pct": 100, "dur": 0.5, "damage": 80, "type": "physical"}
    arena = programmed(core, bash, behavior=("passive",))
    a, b = arena.unit(0), arena.unit(5)
    arena.teach(5, "nevermore_necromastery", 0)
    for unit in (a, b):
        arena.world.set_unit(unit, extra_hp=9000, extra_armor=-arena.world.unit(unit)["armor"])
        arena.world.set_unit(unit, hp=9000)
    arena.place(b, 480, 0, math.pi)
    landed = 0
    for wait in range(1, 20):  # whenever the one is struck, once the other's shot is on its way
        for unit, other, later in ((a, b, wait), (b, a, 0)):
            arena.world.set_unit(unit, attack_ready=0)
            arena.world.order(unit, "attack", other)
            arena.world.run_frames(later)
        u, hp = arena.world.unit(b), arena.hp(a)
        for _ in range(75):
            arena.world.run_frames(1)
            assert not arena.world.unit(a)["status"] & STUNNED
            lost, hp = hp - arena.hp(a), arena.hp(a)
            assert lost <= u["dmg_max"] + u["dmg_bonus"] + 0.1
            landed += lost > 1
        for unit in (a, b):
            arena.world.set_unit(unit, attack_ready=1e9)
            arena.world.order(unit, "hold")
        arena.seconds(1.5)
    assert landed > 10


def test_orb_corruption(core: Any) -> None:
    arena = programmed(core, {"p": "orb_corruption", "armor": -6, "dur": 3}, behavior=("passive",))
    target, a = arena.dummy(400, 0), arena.unit(0)
    armor, own = arena.world.unit(target)["armor"], arena.world.unit(a)["armor"]
    attack_for(arena, arena.unit(0), target, 1.6)
    assert arena.world.unit(target)["armor"] == pytest.approx(armor - 6)
    assert arena.world.unit(a)["armor"] == pytest.approx(own)
    arena.seconds(4)
    assert arena.world.unit(target)["armor"] == pytest.approx(armor)


def test_true_strike_proc_adds_its_damage(core: Any) -> None:
    proc = {"p": "true_strike_proc", "chance_pct": 100, "damage": 90, "type": "pure"}
    arena = programmed(core, proc, behavior=("passive",))
    target, a = arena.dummy(400, 0), arena.unit(0)
    arena.world.set_unit(target, extra_armor=-arena.world.unit(target)["armor"])
    u, hp = arena.world.unit(a), arena.hp(target)
    attack_for(arena, arena.unit(0), target, 1.5)
    lost = hp - arena.hp(target)
    low, high = u["dmg_min"] + u["dmg_bonus"], u["dmg_max"] + u["dmg_bonus"]
    extra = 90 * arena.amp(a)
    assert low + extra - 1 <= lost <= high + extra + 1


def test_proc_on_own_cast_and_when_attacked(core: Any) -> None:
    boom = {"p": "damage", "to": "enemies", "shape": circle(500), "amount": 30, "type": "pure"}
    arena = programmed(
        core,
        {"p": "proc", "on": "own_ability_cast", "then": [boom]},
        {"p": "proc", "on": "attacked", "chance_pct": 100, "icd": 0.3, "then": [boom]},
        behavior=("passive",),
    )
    a, b, creep = arena.unit(0), arena.unit(5), arena.dummy(0, 300)
    hp = arena.hp(creep)
    finger = arena.teach(0, "lion_finger_of_death", 1)
    arena.world.order(a, "cast_unit", target=b, slot=finger)
    arena.seconds(0.6)
    each = 30 * arena.amp(a)
    assert hp - arena.hp(creep) == pytest.approx(each, rel=1e-3)
    arena.world.set_unit(b, hp=500, attack_ready=0)
    arena.world.order(b, "attack", a)
    arena.seconds(1.6)
    assert hp - arena.hp(creep) >= 2 * each - 0.1


def test_spell_block_takes_one_spell(core: Any) -> None:
    arena = programmed(core, {"p": "spell_block", "icd": 8}, behavior=("passive",), enemy="sven")
    a, enemy = arena.unit(0), arena.unit(5)
    bolt = arena.teach(5, "sven_storm_bolt", 1)
    hp = arena.hp(a)
    arena.world.order(enemy, "cast_unit", target=a, slot=bolt)
    arena.seconds(1.2)
    assert arena.hp(a) == hp
    arena.seconds(16)
    arena.place(enemy, 400, 0, math.pi)
    arena.world.set_unit(enemy, mana=500)
    arena.world.order(enemy, "cast_unit", target=a, slot=bolt)
    arena.seconds(1.2)
    assert arena.hp(a) == hp  # it is back after eight seconds
    arena.seconds(1)


def test_aura_with_effects_ticks(core: Any) -> None:
    arena = programmed(
        core,
        {
            "p": "aura",
            "r": 500,
            "to": "enemies",
            "then": [{"p": "damage_pct_max_hp", "pct_per_sec": 2, "interval": 0.2, "type": "hp_loss"}],
        },
        behavior=("passive",),
    )
    creep = arena.dummy(300, 0, hp=1000)
    start = arena.world.time
    hp = arena.hp(creep)
    arena.seconds(5)
    per_second = (hp - arena.hp(creep)) / (arena.world.time - start)
    assert per_second == pytest.approx(20, rel=0.06)


def test_every_built_primitive_is_in_the_data_or_here(core: Any) -> None:
    """Nothing is built that the data of either patch does not use."""
    used: set[str] = set()

    def walk(nodes: Any) -> None:
        for node in nodes:
            used.add(node["p"])
            for key in ("then", "enemies", "allies"):
                if isinstance(node.get(key), list):
                    walk(node[key])

    for patch in PATCHES:
        for file in ("abilities", "items"):
            for node in read_data(patch)[file][file].values():
                walk(node.get("effects") or [])
    assert set(core.built_primitives()) <= used
