"""Slark by the tooltips and notes of patches 7.21d and 7.19, and by the patch notes named in each test."""

import itertools
import math
from typing import Any

import pytest

from tests.dota.scenes.actions import attack_for, attack_once, cast, give, use
from tests.dota.scenes.arena import CENTRE, Arena
from tests.dota.scenes.duels import duel, line_up
from tests.dota.scenes.program import cast_hex, programmed
from tests.dota.scenes.statuses import LEASHED, STUNNED, UNSEEN


def steal(arena: Arena, target: int, times: int = 1) -> None:
    """Let Slark land attacks on the target."""
    for _ in range(times):
        assert attack_once(arena, arena.unit(0), target) > 25  # more than goes with stolen strength
    arena.seconds(0.2)


# ---- Dark Pact ------------------------------------------------------------------------------------------------------


def test_dark_pact_leaves_slark_one_point_of_health(core: Any) -> None:
    arena = duel(core, "slark", away=120, hp=5000)
    arena.world.set_unit(arena.unit(0), hp=20)
    cast(arena, "slark_dark_pact", 4, wait=3)
    assert arena.hp(arena.unit(0)) == pytest.approx(1, abs=0.05)


def test_dark_pact_does_nothing_to_a_spell_immune_slark(core: Any) -> None:
    """Its damage is magical, to Slark too (files: AbilityUnitDamageType)."""
    arena = duel(core, "slark", away=120, hp=5000)
    hp, enemy = arena.hp(arena.unit(0)), arena.hp(arena.unit(5))
    use(arena, give(arena, "black_king_bar"))
    hp = arena.hp(arena.unit(0))
    cast(arena, "slark_dark_pact", 4, wait=3)
    assert arena.hp(arena.unit(0)) == hp
    assert arena.hp(arena.unit(5)) < enemy - 200


def test_each_pulse_of_dark_pact_dispels(core: Any) -> None:
    """Pulses 1.5 s to 2.4 s after the cast: a stun of 2 s between two of them is gone at the next."""
    arena = duel(core, "slark", enemy="sven", away=120, hp=5000)
    bolt = arena.teach(5, "sven_storm_bolt", 4)
    cast(arena, "slark_dark_pact", 1, wait=1.2)
    arena.world.run_frames(1)  # otherwise it arrives together with a pulse
    arena.world.order(arena.unit(5), "cast_unit", target=arena.unit(0), slot=bolt)  # 0.3 s, then a flight of 0.1 s
    stunned = 0
    for _ in range(int(1.1 * 30)):
        arena.world.run_frames(1)
        stunned += bool(arena.world.unit(arena.unit(0))["status"] & STUNNED)
    assert 1 <= stunned <= 4


def test_dark_pact_ends_with_slark(core: Any) -> None:
    arena = duel(core, "slark", away=120, hp=5000)
    enemy = arena.unit(5)
    cast(arena, "slark_dark_pact", 1, wait=1.75)
    hp = arena.hp(enemy)
    assert hp < 5000
    arena.world.kill(arena.unit(0), enemy)
    arena.seconds(1)
    assert arena.hp(enemy) == hp


# ---- Pounce ---------------------------------------------------------------------------------------------------------


def test_pounce_flies_700_at_933_a_second(core: Any) -> None:
    arena = duel(core, "slark", away=2000, hp=5000)
    a = arena.unit(0)
    arena.place(a, 300, 0, math.pi)
    arena.world.order(a, "cast", slot=arena.teach(0, "slark_pounce", 1))
    places = []
    for _ in range(40):
        arena.world.run_frames(1)
        places.append(CENTRE[0] + 300 - arena.world.unit(a)["x"])
    flight = [y - x for x, y in itertools.pairwise(places) if y - x > 20]
    assert flight == pytest.approx([933.33 / 30] * 22, rel=1e-3)
    assert places[-1] == pytest.approx(700, abs=1)


def test_a_rooted_slark_cannot_pounce(core: Any) -> None:
    arena = programmed(core, {"p": "root", "to": "target", "dur": 9}, enemy="slark")
    arena.teach(5, "slark_pounce", 1)
    assert arena.world.ability(5, "slark_pounce")["castable"]
    cast_hex(arena, arena.unit(5))
    assert not arena.world.ability(5, "slark_pounce")["castable"]


@pytest.mark.parametrize("met", [False, True])
def test_pounce_destroys_trees_where_it_lands(core: Any, met: bool) -> None:
    """Trees within 100 (public wikis); a felled tree cannot be eaten."""
    arena = duel(core, "slark", away=2000, hp=5000)
    trees = arena.data["map"]["trees"]

    def near(t: int) -> list[float]:
        return sorted(math.dist(trees[t][:2], other[:2]) for other in trees)

    tree = next(t for t in range(len(trees)) if 140 < near(t)[1] < 400)
    other = min((t for t in range(len(trees)) if t != tree), key=lambda t: math.dist(trees[t][:2], trees[tree][:2]))
    x, y = trees[tree][:2]
    a = arena.unit(0)
    arena.world.set_unit(a, x=x - (300 if met else 700), y=y, facing=0)
    if met:
        arena.world.set_unit(arena.unit(5), x=x + 100, y=y)
    cast(arena, "slark_pounce", 1, wait=1)
    assert bool(arena.world.unit(arena.unit(5))["status"] & LEASHED) == met
    slot = give(arena, "tango", charges=4)
    for wood, eaten in ((tree, 0), (other, 1)):
        arena.world.order(a, "cast_point", slot=slot, tree=wood, x=trees[wood][0], y=trees[wood][1])
        arena.seconds(3)
        assert 4 - arena.world.ability(0, "item_tango")["charges"] == eaten


@pytest.mark.parametrize(("patch", "damage"), [("7.21d", 0), ("7.19", 60)])
def test_pounce_hurts_in_7_19_only(core: Any, patch: str, damage: float) -> None:
    """Patch 7.21; 60 at rank 2."""
    arena = line_up(core, patch, ("slark",), ("queenofpain",), {0: 0, 5: 300})
    enemy, hp = arena.unit(5), arena.hp(arena.unit(5))
    cast(arena, "slark_pounce", 2, wait=0.8)
    assert arena.modifiers(enemy, "slark_pounce")
    assert hp - arena.hp(enemy) == pytest.approx(damage * arena.magic(enemy) * arena.amp(arena.unit(0)), abs=1)


@pytest.mark.parametrize(("patch", "free"), [("7.21d", False), ("7.19", True)])
def test_a_leash_forbids_blinks_since_7_20(core: Any, patch: str, free: bool) -> None:
    """Before, a blink breaks it (note of 7.19)."""
    arena = line_up(core, patch, ("slark",), ("queenofpain",), {0: 0, 5: 300})
    world, enemy = arena.world, arena.unit(5)
    slot = arena.teach(5, "queenofpain_blink", 4)
    cast(arena, "slark_pounce", 4, wait=0.8)
    assert arena.modifiers(enemy, "slark_pounce")
    arena.world.order(enemy, "cast_point", x=CENTRE[0] + 1200, y=CENTRE[1], slot=slot)
    arena.seconds(1)
    far = math.dist((world.unit(enemy)["x"], world.unit(enemy)["y"]), CENTRE)
    assert far > 1000 if free else far < 650
    assert bool(arena.modifiers(enemy, "slark_pounce")) != free


# ---- Essence Shift --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("killer", "away", "kept"), [(0, 900, 1), (1, 280, 1), (1, 320, 0)])
def test_slark_keeps_agility_of_those_he_kills_or_who_die_near(core: Any, killer: int, away: float,
                                                               kept: int) -> None:
    """Patch 7.20c: his own kill anywhere, any death within 300."""
    arena = duel(core, "slark", away=120, hp=5000)
    a, enemy = arena.unit(0), arena.unit(5)
    own = arena.world.unit(a)["agi"]
    arena.teach(0, "slark_essence_shift", 1)
    steal(arena, enemy)
    at = arena.world.unit(a)["x"]
    arena.world.set_unit(enemy, x=at + away, y=arena.world.unit(a)["y"])
    arena.world.kill(enemy, arena.unit(killer))
    arena.seconds(16)
    assert arena.world.unit(a)["agi"] == pytest.approx(own + kept)


def test_essence_shift_leaves_one_point_of_an_attribute(core: Any) -> None:
    """Shadow Fiend has 19 strength, of which 20 attacks leave 1."""
    arena = duel(core, "slark", away=120, hp=5000)
    enemy = arena.unit(5)
    arena.teach(0, "slark_essence_shift", 4)
    strength = arena.world.unit(enemy)["str"]
    steal(arena, enemy, 3)
    assert arena.world.unit(enemy)["str"] == pytest.approx(strength - 3)
    steal(arena, enemy, 17)
    assert arena.world.unit(enemy)["str"] == 1


@pytest.mark.parametrize("dead", [0, 5])
def test_death_returns_attributes_of_the_dead_hero_only(core: Any, dead: int) -> None:
    """Note: the return for Slark and for his victim are separate."""
    arena = duel(core, "slark", away=120, hp=5000)
    a, enemy = arena.unit(0), arena.unit(5)
    own, theirs = arena.world.unit(a)["agi"], arena.world.unit(enemy)["int"]
    arena.teach(0, "slark_essence_shift", 4)
    steal(arena, enemy, 2)
    arena.place(enemy, 1500, 0)
    arena.world.kill(arena.unit(dead), arena.unit(1 if dead else 6))
    arena.seconds(12)
    assert arena.world.unit(arena.unit(dead))["alive"]
    assert arena.world.unit(arena.unit(0))["agi"] == pytest.approx(own if dead == 0 else own + 6)
    assert arena.world.unit(arena.unit(5))["int"] == pytest.approx(theirs if dead else theirs - 2)


def test_break_stops_new_stacks_and_keeps_old_ones(core: Any) -> None:
    """Public wikis: a broken Slark gains no stacks and keeps those he has."""
    arena = programmed(core, {"p": "break", "to": "target", "dur": 9}, enemy="slark")
    slark, sniper = arena.unit(5), arena.unit(1)
    arena.world.set_unit(sniper, extra_hp=5000)
    arena.teach(5, "slark_essence_shift", 4)
    agility, gained = arena.world.unit(slark)["agi"], []
    for broken in (False, True):
        if broken:
            cast_hex(arena, slark)
        arena.place(sniper, 300, 0)
        attack_for(arena, slark, sniper, 1)
        gained.append(arena.world.unit(slark)["agi"] - agility)
    assert gained[0] >= 3 and gained[1] == gained[0]


# ---- Shadow Dance ---------------------------------------------------------------------------------------------------


def test_shadow_dance_bonuses_change_after_half_a_second(core: Any) -> None:
    """Note: activation and deactivation delay of 0.5 s."""
    arena = duel(core, "slark", away=400, hp=5000)
    a = arena.unit(0)
    arena.teach(0, "slark_shadow_dance", 3)
    arena.seconds(1)
    seen = arena.world.unit(a)["move_speed"]
    arena.place(a, -4000, -3000)
    for wait, fast in ((0.3, False), (0.5, True)):
        arena.seconds(wait)
        assert (arena.world.unit(a)["move_speed"] > seen) == fast
    arena.place(a, 0, 0)
    for wait, fast in ((0.3, True), (0.5, False)):
        arena.seconds(wait)
        assert arena.world.visible(1, a)
        assert (arena.world.unit(a)["move_speed"] > seen) == fast


def test_neutral_damage_stops_the_bonuses_for_two_seconds(core: Any) -> None:
    arena = duel(core, "slark", away=400, hp=5000)
    a, creep = arena.unit(0), arena.dummy(-3900, -3000)
    arena.teach(0, "slark_shadow_dance", 3)
    arena.place(a, -4000, -3000)
    arena.seconds(1)
    fast = arena.world.unit(a)["move_speed"]
    arena.world.damage(creep, a, 10, "physical")
    for wait, back in ((0.2, False), (1.6, False), (0.5, True)):
        arena.seconds(wait)
        assert (arena.world.unit(a)["move_speed"] == pytest.approx(fast)) == back


def test_casts_and_items_do_not_end_the_dance(core: Any) -> None:
    arena = duel(core, "slark", away=400, hp=5000)
    a = arena.unit(0)
    slots = give(arena, "phase_boots"), arena.teach(0, "slark_dark_pact", 1), arena.teach(0, "slark_pounce", 1)
    cast(arena, "slark_shadow_dance", 3, wait=0.3)
    for slot in slots:
        arena.world.order(a, "cast", slot=slot)
        arena.seconds(0.4)
        assert arena.world.unit(a)["status"] & UNSEEN and not arena.world.visible(1, a)


def test_shadow_dance_ends_assassinates_aim(core: Any) -> None:
    """Tooltip: true sight does not reveal him, nor does Assassinate's aim, which ends."""
    arena = line_up(core, "7.21d", ("slark",), ("sniper",), {0: 0, 5: 900})
    a, sniper = arena.unit(0), arena.unit(5)
    slot = arena.teach(5, "sniper_assassinate", 1)
    arena.world.order(sniper, "cast_unit", target=a, slot=slot)
    arena.seconds(0.8)
    assert arena.world.unit(sniper)["act"] == "cast_windup"
    cast(arena, "slark_shadow_dance", 3, wait=0.3)
    assert not arena.world.visible(1, a)
    arena.seconds(1.5)
    assert not arena.world.projectiles() and arena.world.unit(sniper)["act"] != "cast_windup"


def test_the_scepters_cloud_goes_with_slark(core: Any) -> None:
    """325 around him: units under it are hidden, and seen half a second (an aura's) after they leave it."""
    arena = duel(core, "slark", away=400, hp=5000)
    give(arena, "ultimate_scepter")
    a, ally = arena.unit(0), arena.unit(1)
    cast(arena, "slark_shadow_dance", 3, wait=0.3)
    assert not arena.world.unit(ally)["status"] & UNSEEN
    arena.place(ally, -300, 0)
    arena.seconds(0.3)
    assert arena.world.unit(ally)["status"] & UNSEEN
    arena.place(a, 100, 0)
    arena.seconds(0.8)
    assert not arena.world.unit(ally)["status"] & UNSEEN
    assert arena.world.unit(a)["status"] & UNSEEN
    arena.place(ally, -200, 0)
    arena.seconds(4.5 - 1.4 - 0.2)
    assert arena.world.unit(ally)["status"] & UNSEEN
    arena.seconds(0.4)
    assert not arena.world.unit(a)["status"] & UNSEEN
    arena.seconds(0.6)
    assert not arena.world.unit(ally)["status"] & UNSEEN


def test_the_scepter_shortens_the_cooldown_of_the_dance(core: Any) -> None:
    left = []
    for upgraded in (False, True):
        arena = duel(core, "slark", away=400, hp=5000)
        if upgraded:
            give(arena, "ultimate_scepter")
        cast(arena, "slark_shadow_dance", 1, wait=0)
        left.append(arena.world.ability(0, "slark_shadow_dance")["ready"] - arena.world.time)
    assert left == pytest.approx([80, 30], abs=0.3)
