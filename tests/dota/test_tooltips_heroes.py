"""Abilities by the notes of their tooltips in patch 7.21d, and by the patch notes named in each test."""

import math
from typing import Any

import pytest

from tests.dota.scenes.actions import attack_for, cast, give
from tests.dota.scenes.arena import CENTRE, Arena
from tests.dota.scenes.duels import duel
from tests.dota.scenes.statuses import LEASHED, STUNNED


def respawn_seconds(arena: Arena, hero: int) -> float:
    seconds: float = arena.world.hero(hero)["respawn_at"] - arena.world.time
    return seconds


@pytest.mark.parametrize("killer", ["scythe", "ally", "nobody"])
def test_scythe_claims_every_kill_and_delays_the_return(core: Any, killer: str) -> None:
    """Tooltip: 45 s longer at rank 3, and any kill under the effect is Necrophos's."""
    arena = duel(core, "necrolyte")
    target = arena.unit(5)
    plain = duel(core, "necrolyte")
    plain.world.kill(plain.unit(5), plain.unit(0))
    arena.world.set_unit(target, hp=50 if killer == "scythe" else 400)
    cast(arena, "necrolyte_reapers_scythe", 3, target, wait=0.8)
    assert arena.world.unit(target)["status"] & STUNNED
    if killer != "scythe":
        arena.world.kill(target, arena.unit(1) if killer == "ally" else -1)
    else:
        arena.seconds(1.5)
    assert not arena.world.unit(target)["alive"]
    assert arena.world.hero(0)["kills"] == 1 and arena.world.hero(1)["kills"] == 0
    assert respawn_seconds(arena, 5) == pytest.approx(respawn_seconds(plain, 5) + 45, abs=2)


def test_scythe_adds_nothing_to_a_later_death(core: Any) -> None:
    arena = duel(core, "necrolyte")
    target = arena.unit(5)
    cast(arena, "necrolyte_reapers_scythe", 3, target)
    arena.seconds(2)
    assert arena.world.unit(target)["alive"]
    arena.world.kill(target, arena.unit(1))
    assert arena.world.hero(1)["kills"] == 1 and respawn_seconds(arena, 5) < 30


def test_stolen_essence_ends_stack_by_stack(core: Any) -> None:
    """Each attack's stack lasts its own 15 s at rank 1."""
    arena = duel(core, "slark", away=120)
    a, target = arena.unit(0), arena.unit(5)
    arena.world.set_unit(target, extra_hp=5000)
    arena.teach(0, "slark_essence_shift", 1)
    own, theirs = arena.world.unit(a)["agi"], arena.world.unit(target)["str"]
    for _ in range(2):
        attack_for(arena, a, target, 1)
        arena.seconds(4)
    assert (arena.world.unit(a)["agi"] - own, arena.world.unit(target)["str"] - theirs) == pytest.approx((6, -2))
    arena.seconds(7)
    assert (arena.world.unit(a)["agi"] - own, arena.world.unit(target)["str"] - theirs) == pytest.approx((3, -1))
    arena.seconds(5)
    assert (arena.world.unit(a)["agi"] - own, arena.world.unit(target)["str"] - theirs) == pytest.approx((0, 0))


def test_kills_of_necrophos_regenerate_each_for_its_own_time(core: Any) -> None:
    """Tooltip of Heartstopper Aura: 7 s for each unit."""
    arena = duel(core, "necrolyte")
    a = arena.unit(0)
    arena.teach(0, "necrolyte_heartstopper_aura", 1)
    arena.place(arena.unit(5), 2000, 0)
    regen = arena.world.unit(a)["hp_regen"]
    for wait in (4, 1):
        arena.world.kill(arena.dummy(900, 300), a)
        arena.seconds(wait)
    assert arena.world.unit(a)["hp_regen"] - regen == pytest.approx(4, rel=0.05)
    arena.seconds(2.5)
    assert arena.world.unit(a)["hp_regen"] - regen == pytest.approx(2, rel=0.05)


def test_heartstopper_spares_ancients(core: Any) -> None:
    arena = duel(core, "necrolyte")
    arena.teach(0, "necrolyte_heartstopper_aura", 4)
    ancient = arena.dummy(300, 200, kind="npc_dota_neutral_black_dragon")
    creep = arena.dummy(300, -200)
    full = arena.hp(ancient), arena.hp(creep)
    arena.seconds(2)
    assert arena.hp(ancient) == full[0] and arena.hp(creep) < full[1]


def test_a_second_siphon_on_the_same_target_is_refused(core: Any) -> None:
    """Tooltip: cannot cast multiple on same target."""
    arena = duel(core, "death_prophet")
    target = arena.unit(5)
    arena.teach(0, "death_prophet_spirit_siphon", 4)
    arena.seconds(75)  # two charges come
    for _ in range(2):
        cast(arena, "death_prophet_spirit_siphon", 4, target, wait=0.6)
    assert arena.world.ability(0, "death_prophet_spirit_siphon")["charges"] == 1
    cast(arena, "death_prophet_spirit_siphon", 4, arena.dummy(200, 200), wait=0.6)
    assert arena.world.ability(0, "death_prophet_spirit_siphon")["charges"] == 0


def test_both_ways_of_a_plasma_field_slow(core: Any) -> None:
    """Patch 7.20: the slows out and back add up."""
    arena = duel(core, "razor", away=600)
    target = arena.unit(5)
    speed = arena.world.unit(target)["move_speed"]
    cast(arena, "razor_plasma_field", 1, wait=1.05)
    once = speed - arena.world.unit(target)["move_speed"]
    arena.seconds(0.5)
    assert once > 20 and speed - arena.world.unit(target)["move_speed"] == pytest.approx(2 * once, rel=0.05)


def test_unstable_current_hits_every_enemy_around(core: Any) -> None:
    arena = duel(core, "razor")
    near = [arena.unit(5), arena.dummy(0, 300), arena.dummy(-200, -200)]
    far = arena.dummy(0, 800)
    arena.teach(0, "razor_unstable_current", 4)
    before = [arena.hp(u) for u in (*near, far)]
    arena.seconds(3.2)
    assert [arena.hp(u) < hp for u, hp in zip((*near, far), before, strict=True)] == [True, True, True, False]


def test_eye_of_the_storm_strikes_the_linked_hero_first(core: Any) -> None:
    """Tooltip: linked heroes before those with less health."""
    arena = duel(core, "razor")
    target, weak = arena.unit(5), arena.dummy(200, 200, hp=200)
    cast(arena, "razor_static_link", 4, target)
    cast(arena, "razor_eye_of_the_storm", 1, wait=0.2)
    before = arena.hp(target), arena.hp(weak)
    arena.seconds(1.5)
    assert arena.hp(target) < before[0] and arena.hp(weak) == before[1]


def test_enchanted_totem_cannot_miss(core: Any) -> None:
    arena = duel(core, "earthshaker", away=120)
    a, target = arena.unit(0), arena.unit(5)
    arena.world.set_unit(target, extra_hp=9000)
    give(arena, "butterfly", hero=5)
    arena.world.set_unit(target, hp=9000)
    hits = 0
    for _ in range(12):
        cast(arena, "earthshaker_enchant_totem", 1, wait=1)
        hp = arena.hp(target)
        attack_for(arena, a, target, 1)
        arena.seconds(4)
        hits += arena.hp(target) < hp
    assert hits == 12


@pytest.mark.parametrize(("kind", "seconds"), [("npc_dota_neutral_centaur_khan", 10), ("npc_dota_roshan", 2.25)])
def test_frostbite_holds_strong_creeps_as_it_holds_heroes(core: Any, kind: str, seconds: float) -> None:
    """Tooltip: 10 s on creeps of level 6 or lower. Roshan, level 30, resists a quarter of 3 s."""
    arena = duel(core, "crystal_maiden")
    target = arena.dummy(200, 100, kind=kind)
    if kind == "npc_dota_roshan":
        cast(arena, "crystal_maiden_frostbite", 4, target, wait=7)  # which he blocks
    cast(arena, "crystal_maiden_frostbite", 4, target, wait=0.6)
    arena.seconds(seconds - 1)
    assert arena.modifiers(target, "crystal_maiden_frostbite")
    arena.seconds(1.2)
    assert not arena.modifiers(target, "crystal_maiden_frostbite")


def test_gaze_holds_for_its_duration(core: Any) -> None:
    """1.3 s at rank 1, in a channel of 1.6 s."""
    arena = duel(core, "lich")
    target = arena.unit(5)
    cast(arena, "lich_sinister_gaze", 1, target, wait=1.2)
    assert arena.modifiers(target, "lich_sinister_gaze")
    arena.seconds(0.3)
    assert not arena.modifiers(target, "lich_sinister_gaze")


def test_frost_shield_weakens_attacks_only(core: Any) -> None:
    """Tooltip: 60 % less damage from attacks at rank 4."""
    arena = duel(core, "lich", away=900)
    ally, enemy = arena.unit(1), arena.unit(5)
    arena.world.set_unit(ally, extra_armor=-arena.world.unit(ally)["armor"])
    cast(arena, "lich_frost_shield", 4, ally)
    assert arena.world.damage(enemy, ally, 100, "physical", True) == pytest.approx(40)
    assert arena.world.damage(enemy, ally, 100, "physical", False) == pytest.approx(100)


def test_pounce_ends_a_teleport(core: Any) -> None:
    """Patch 7.20: leashes stop teleports."""
    arena = duel(core, "slark")
    target = arena.unit(5)
    slot = give(arena, "tpscroll", hero=5, charges=1)
    home = arena.data["map"]["hero_spawn"]["dire"]
    arena.world.order(target, "cast_point", x=home[0], y=home[1], slot=slot)
    arena.seconds(1)
    assert arena.world.unit(target)["act"] == "channel"
    cast(arena, "slark_pounce", 4, wait=0.8)
    assert arena.world.unit(target)["status"] & LEASHED and arena.world.unit(target)["act"] != "channel"
    arena.seconds(3.5)
    assert math.dist((arena.world.unit(target)["x"], arena.world.unit(target)["y"]), CENTRE) < 1000


def test_force_staff_breaks_a_leash(core: Any) -> None:
    """Patch 7.20."""
    arena = duel(core, "slark")
    target = arena.unit(5)
    slot = give(arena, "force_staff", hero=5)
    cast(arena, "slark_pounce", 4, wait=0.8)
    assert arena.world.unit(target)["status"] & LEASHED
    arena.world.order(target, "cast_unit", target=target, slot=slot)
    arena.seconds(0.7)
    assert not arena.world.unit(target)["status"] & LEASHED
    assert math.dist((arena.world.unit(target)["x"], arena.world.unit(target)["y"]),
                     (arena.world.unit(arena.unit(0))["x"], arena.world.unit(arena.unit(0))["y"])) > 450
