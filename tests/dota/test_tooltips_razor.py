"""Razor by the tooltips, notes and patch notes of 7.21d and 7.19 (tests/dota/tooltips/razor.md)."""

import math
from typing import Any

import pytest

from tests.dota.scenes.actions import give, make_immune, order, until_cast
from tests.dota.scenes.arena import FRAME, Arena
from tests.dota.scenes.duels import duel
from tests.dota.scenes.units import set_health

HASTE = 2


@pytest.mark.parametrize(("patch", "slowed"), [("7.21d", True), ("7.19", False)])
def test_plasma_slows_since_7_20(core: Any, patch: str, slowed: bool) -> None:
    """Damage at rank 4 out and back: 45 to 185 by distance out of 700, in 7.19 90 to 370; 7.20 added the slow."""
    arena = duel(core, "razor", away=350, patch=patch)
    target = arena.unit(5)
    set_health(arena, target, hp=5000)
    low, high = (45, 185) if slowed else (90, 370)
    order(arena, "razor_plasma_field", 4)
    arena.seconds(1)
    assert bool(arena.modifiers(target, "razor_plasma_field")) == slowed
    arena.seconds(1.5)
    each = (low + (high - low) * 350 / 700) * arena.amp(arena.unit(0)) * arena.magic(target)
    assert 5000 - arena.hp(target) == pytest.approx(2 * each, rel=0.03)


@pytest.mark.parametrize(("lens", "holds", "breaks"), [(False, 780, 830), (True, 1030, 1080)])
def test_link_breaks_at_its_length(core: Any, lens: bool, holds: int, breaks: int) -> None:
    """Note: beyond 800, or as much more as Aether Lens adds to the cast range: 250 (220 when the note was written)."""
    arena = duel(core, "razor")
    razor, target = arena.unit(0), arena.unit(5)
    if lens:
        give(arena, "aether_lens")
    order(arena, "razor_static_link", 4, target)
    until_cast(arena, "razor_static_link")
    drained = []
    for away in (holds, breaks):
        arena.place(target, away, 0)
        arena.seconds(0.3)
        before = arena.world.unit(razor)["dmg_bonus"]
        arena.seconds(1)
        drained.append(arena.world.unit(razor)["dmg_bonus"] - before)
    assert drained == [pytest.approx(28, abs=4), 0]


@pytest.mark.parametrize("dies", ["target", "razor"])
def test_link_breaks_when_one_dies(core: Any, dies: str) -> None:
    """Note. The one who dies is rid of it, the other keeps what was drawn: 18 s from the last of it."""
    arena = duel(core, "razor", enemy="sven")
    razor, target = arena.unit(0), arena.unit(5)
    before = {u: arena.world.unit(u)["dmg_bonus"] for u in (razor, target)}
    order(arena, "razor_static_link", 4, target)
    arena.seconds(1.5)
    dead, other = (target, razor) if dies == "target" else (razor, target)
    arena.world.kill(dead, -1)
    arena.seconds(0.3)
    kept = arena.world.unit(other)["dmg_bonus"] - before[other]
    assert abs(kept) > 15
    arena.seconds(3)
    assert arena.world.unit(other)["dmg_bonus"] - before[other] == pytest.approx(kept)
    assert not arena.modifiers(dead, "razor_static_link")


def test_link_drains_for_eight_seconds_from_the_immune_too(core: Any) -> None:
    """28 a second at rank 4 for 8 s; note: it can target the spell-immune."""
    arena = duel(core, "razor")
    razor = arena.unit(0)
    make_immune(arena, 5)
    before = arena.world.unit(razor)["dmg_bonus"]
    order(arena, "razor_static_link", 4, arena.unit(5))
    arena.seconds(12)
    assert arena.world.unit(razor)["dmg_bonus"] - before == pytest.approx(28 * 8, abs=5)


def test_link_shows_what_is_around_its_target(core: Any) -> None:
    """800 around it for 3.34 s. At night Razor sees no farther than 800 himself."""
    arena = duel(core, "razor", away=500)
    arena.world.set_time(305.0)
    for hero, x in ((0, 0), (1, -3000), (5, 500), (6, 1150)):
        arena.place(arena.unit(hero), x, 0, math.pi)
    arena.seconds(0.3)
    assert not arena.world.visible(0, arena.unit(6))
    order(arena, "razor_static_link", 1, arena.unit(5))
    arena.seconds(1)
    assert arena.world.visible(0, arena.unit(6))
    arena.seconds(3)
    assert not arena.world.visible(0, arena.unit(6))


@pytest.mark.parametrize("rank", [1, 4])
def test_current_of_7_19_jolts_one_unit(core: Any, rank: int) -> None:
    """7.19: every 5 s a random enemy within 350 takes 60 to 180, is slowed by 40 % for 0.5 to 2 s, and loses what a
    basic dispel takes."""
    arena = duel(core, "razor", patch="7.19")
    target, far = arena.unit(5), arena.unit(6)
    set_health(arena, target, far, hp=5000)
    arena.place(far, 380, 0)
    arena.place(target, 300, 0)
    arena.seconds(0.2)
    speed = arena.world.unit(target)["move_speed"]
    arena.world.rune(target, HASTE)
    arena.teach(0, "razor_unstable_current", rank)
    jolts = []
    for _ in range(round(11 / FRAME)):
        hp = arena.hp(target)
        arena.world.run_frames(1)
        if arena.hp(target) < hp - 1:
            jolts.append((arena.world.time, hp - arena.hp(target)))
            (slow,) = arena.modifiers(target, "razor_unstable_current")
            assert slow["left"] == pytest.approx(0.5 * rank, abs=0.05)
            arena.world.run_frames(1)
            slowed = arena.world.unit(target)["move_speed"]
            assert slowed == pytest.approx(speed - 0.4 * arena.base_speed("nevermore"), rel=1e-3)
    damage = (60, 100, 140, 180)[rank - 1] * arena.amp(arena.unit(0)) * arena.magic(target)
    assert [x for _, x in jolts] == [pytest.approx(damage, rel=1e-3)] * len(jolts) and len(jolts) >= 2
    assert jolts[1][0] - jolts[0][0] == pytest.approx(5, abs=0.2)
    assert arena.hp(far) == 5000


@pytest.mark.parametrize("scepter", [False, True])
def test_the_scepters_storm_strikes_towers(core: Any, patch: str, scepter: bool) -> None:
    """Scepter: 40 physical damage every 0.6 s to towers too, which lose 1 armor each time. The weakest in reach, here
    a tower of 1,800 and a creep of 5,000, is struck."""
    arena = duel(core, "razor", patch=patch)
    tower = near_tower(arena, tier=1)
    if scepter:
        give(arena, "ultimate_scepter")
    creep = arena.dummy(0, 0)
    stand_at(arena, tower, creep)
    arena.seconds(1.5)  # in 7.19 a tower has more armor with an enemy hero near
    hp, armor = arena.hp(tower), arena.world.unit(tower)["armor"]
    order(arena, "razor_eye_of_the_storm", 1)
    arena.world.run_frames(round((0.6 if scepter else 0.7) * 30) + 5)
    base, each = (0.9, 0.048) if patch == "7.21d" else (1, 0.05)  # patch 7.20 changed what armor does
    factor = 1 - (0.052 if patch == "7.21d" else 0.05) * armor / (base + each * armor)
    lost = 40 * arena.amp(arena.unit(0)) * factor if scepter else 0
    assert hp - arena.hp(tower) == pytest.approx(lost, rel=0.02)
    assert armor - arena.world.unit(tower)["armor"] == pytest.approx(1 if scepter else 0, abs=1e-3)
    assert (arena.hp(creep) == 5000) == scepter


def test_the_scepters_storm_chooses_its_buildings(core: Any) -> None:
    """Scepter: towers, barracks and the Ancient. Not what is protected, as a tower of the second tier is."""
    arena = duel(core, "razor")
    tower = near_tower(arena, tier=2)
    rax = next(u["index"] for u in arena.world.units("barracks") if u["type"] == "npc_dota_badguys_range_rax_mid")
    shrine = next(u["index"] for u in arena.world.units("shrine") if u["team"] == 1)
    give(arena, "ultimate_scepter")
    order(arena, "razor_eye_of_the_storm", 3)
    struck = []
    for building, protected in ((tower, True), (rax, True), (rax, False), (shrine, False)):
        if not protected and arena.world.protected(rax):
            for tier in (1, 2, 3):
                arena.world.kill(near_tower(arena, tier), arena.unit(0))
            arena.seconds(0.2)
        assert arena.world.protected(building) == protected
        stand_at(arena, building)
        arena.seconds(1)
        struck.append(bool(arena.modifiers(building, "razor_eye_of_the_storm")))
    assert struck == [False, False, True, False]


def near_tower(arena: Arena, tier: int) -> int:
    """Return Dire's middle tower of a tier."""
    towers = [u for u in arena.world.units("tower") if u["team"] == 1 and f"tower{tier}_mid" in u["type"]]
    return int(towers[0]["index"])


def stand_at(arena: Arena, building: int, *others: int) -> None:
    """Place Razor and other units 300 from the building, safe from its attacks, and everyone else far away."""
    b = arena.world.unit(building)
    set_health(arena, arena.unit(0), hp=20000)
    for hero in (1, 5, 6):
        arena.place(arena.unit(hero), -3000, 3000 + 200 * hero)
    for i, unit in enumerate((arena.unit(0), *others)):
        arena.world.set_unit(unit, x=b["x"] - 300, y=b["y"] - 100 * i)
    arena.seconds(0.2)


@pytest.mark.parametrize(("rank", "percent"), [(1, 4), (4, 16)])
def test_current_makes_him_faster(core: Any, patch: str, rank: int, percent: int) -> None:
    arena = duel(core, "razor", away=2000, patch=patch)
    arena.world.teach(0, "razor_unstable_current", 0)
    speed = arena.world.unit(arena.unit(0))["move_speed"]
    arena.teach(0, "razor_unstable_current", rank)
    arena.seconds(0.2)
    faster = arena.world.unit(arena.unit(0))["move_speed"] - speed
    assert faster == pytest.approx(percent / 100 * arena.base_speed("razor"), rel=1e-3)
