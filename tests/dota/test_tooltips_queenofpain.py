"""Queen of Pain by the tooltips, notes and patch notes of 7.21d and 7.19 (tests/dota/tooltips/queenofpain.md)."""

import math
from typing import Any

import pytest

from tests.dota.scenes.actions import make_immune, order, until_cast
from tests.dota.scenes.arena import CENTRE
from tests.dota.scenes.duels import duel
from tests.dota.scenes.units import set_health

INVISIBILITY = 3


@pytest.mark.parametrize(("patch", "tick"), [("7.21d", 90), ("7.19", 75)])
def test_shadow_strike_slows_less_each_second(core: Any, patch: str, tick: int) -> None:
    """Note: the target regains its speed every second, of 50 % at rank 4 a fifteenth each time. 125 damage at once, and
    90 (7.19: 75) every 3 s."""
    arena = duel(core, "queenofpain", patch=patch)
    target = arena.unit(5)
    set_health(arena, target, hp=5000)
    speed = arena.world.unit(target)["move_speed"]
    order(arena, "queenofpain_shadow_strike", 4, target)
    while not arena.modifiers(target, "queenofpain_shadow_strike"):
        arena.world.run_frames(1)
    slows = []
    for _ in range(4):
        arena.world.run_frames(8)
        slows.append(speed - arena.world.unit(target)["move_speed"])
        arena.world.run_frames(14)
        assert speed - arena.world.unit(target)["move_speed"] == pytest.approx(slows[-1])
        arena.world.run_frames(8)
    whole = 0.5 * arena.base_speed("nevermore")
    assert slows == pytest.approx([whole * (15 - k) / 15 for k in range(4)], rel=1e-4)
    through = arena.amp(arena.unit(0)) * arena.magic(target)
    assert 5000 - arena.hp(target) == pytest.approx((125 + tick) * through, rel=1e-3)


def test_the_dagger_is_disjointed(core: Any) -> None:
    """Unlike the scream: a projectile of 900."""
    arena = duel(core, "queenofpain", enemy="queenofpain", away=440)
    target = arena.unit(5)
    hp = arena.hp(target)
    arena.place(arena.unit(0), 0, 0)
    order(arena, "queenofpain_blink", 1, at=(1000, 300), hero=5)
    order(arena, "queenofpain_shadow_strike", 1, target)
    arena.seconds(2.5)
    assert math.dist((arena.world.unit(target)["x"], arena.world.unit(target)["y"]), CENTRE) > 800
    assert arena.hp(target) == hp


def test_scream_cannot_be_disjointed(core: Any, patch: str) -> None:
    """Note. She blinks away while it flies: 75 at rank 1."""
    arena = duel(core, "queenofpain", enemy="queenofpain", away=460, patch=patch)
    target = arena.unit(5)
    hp = arena.hp(target)
    order(arena, "queenofpain_blink", 4, at=(1000, 300), hero=5)
    arena.world.run_frames(8)
    order(arena, "queenofpain_scream_of_pain", 1)
    arena.world.run_frames(10)
    assert arena.hp(target) == hp and arena.world.unit(target)["x"] > CENTRE[0] + 800
    arena.seconds(2)
    assert hp - arena.hp(target) == pytest.approx(75 * arena.amp(arena.unit(0)) * arena.magic(target), rel=1e-3)


def test_scream_hits_the_invisible(core: Any) -> None:
    """Note."""
    arena = duel(core, "queenofpain")
    target = arena.unit(5)
    arena.world.rune(target, INVISIBILITY)
    arena.seconds(2.5)
    assert not arena.world.visible(0, target)
    hp = arena.hp(target)
    order(arena, "queenofpain_scream_of_pain", 1)
    arena.seconds(0.8)
    assert hp - arena.hp(target) > 50


def test_scream_frightens_only_whom_it_damages(core: Any) -> None:
    """Tooltip of the talent: enemies damaged by it. The spell-immune are not."""
    arena = duel(core, "queenofpain")
    arena.world.teach(0, "special_bonus_unique_queen_of_pain_2", 1)
    arena.place(arena.unit(6), 300, 150)
    make_immune(arena, 6)
    order(arena, "queenofpain_scream_of_pain", 1)
    arena.seconds(0.6)
    afraid = [bool(arena.modifiers(arena.unit(h), "queenofpain_scream")) for h in (5, 6)]
    assert afraid == [True, False]


@pytest.mark.parametrize(("patch", "damage", "far"), [("7.21d", 340, 350), ("7.19", 320, 0)])
def test_sonic_wave_knocks_back_since_7_20(core: Any, patch: str, damage: int, far: int) -> None:
    """Patch 7.20: 350 over 1.4 s, away from her, of the spell-immune too; pure damage of 340 (7.19: 320)."""
    arena = duel(core, "queenofpain", away=150, patch=patch)
    target = arena.unit(5)
    set_health(arena, target, hp=5000)
    make_immune(arena, 5)
    before, hp = arena.world.unit(target)["x"], arena.hp(target)
    order(arena, "queenofpain_sonic_wave", 1, at=(600, 0))
    until_cast(arena, "queenofpain_sonic_wave")
    while arena.hp(target) == hp:
        arena.world.run_frames(1)
    assert hp - arena.hp(target) == pytest.approx(damage * arena.amp(arena.unit(0)), rel=1e-3)
    arena.world.run_frames(21)
    assert arena.world.unit(target)["x"] - before == pytest.approx(far / 2, abs=20)
    arena.seconds(1.2)
    assert arena.world.unit(target)["x"] - before == pytest.approx(far, abs=5)


def test_sonic_wave_reaches_its_length_and_its_radius(core: Any) -> None:
    """Files: 900 long, 100 wide at first and 450 at the end."""
    arena = duel(core, "queenofpain", away=3000)
    places = {(1330, 0): True, (1370, 0): False, (850, 400): True, (60, 150): False}
    creeps = {place: arena.dummy(*place) for place in places}
    order(arena, "queenofpain_sonic_wave", 1, at=(700, 0))
    arena.seconds(2)
    assert {place: arena.hp(u) < 5000 for place, u in creeps.items()} == places


def test_the_talents_spell_block(core: Any) -> None:
    """It blocks one spell every 15 s."""
    arena = duel(core, "queenofpain", enemy="lion")
    arena.world.teach(0, "special_bonus_spell_block_15", 1)
    hexed = []
    for wait in (0.0, 12.5, 12.5):
        arena.seconds(wait)
        order(arena, "lion_voodoo", 4, arena.unit(0), hero=5)
        arena.seconds(0.3)
        hexed.append(bool(arena.modifiers(arena.unit(0), "lion_voodoo")))
    assert hexed == [False, True, False]


def test_the_talents_spell_lifesteal(core: Any) -> None:
    """30 % of what her spells do."""
    arena = duel(core, "queenofpain")
    a, target = arena.unit(0), arena.unit(5)
    set_health(arena, target, hp=5000)
    arena.world.teach(0, "special_bonus_spell_lifesteal_30", 1)
    arena.world.set_unit(a, hp=100)
    order(arena, "queenofpain_scream_of_pain", 4)
    arena.seconds(0.8)
    assert arena.hp(a) - 100 == pytest.approx(0.3 * (5000 - arena.hp(target)), rel=1e-3)


def test_no_blink_while_rooted(core: Any) -> None:
    """Files: roots disable it."""
    arena = duel(core, "queenofpain", enemy="crystal_maiden")
    arena.teach(0, "queenofpain_blink", 1)
    assert arena.world.ability(0, "queenofpain_blink")["castable"]
    order(arena, "crystal_maiden_frostbite", 1, arena.unit(0), hero=5)
    arena.seconds(0.8)
    assert arena.modifiers(arena.unit(0), "crystal_maiden_frostbite")
    assert not arena.world.ability(0, "queenofpain_blink")["castable"]
