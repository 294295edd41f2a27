"""Witch Doctor by the tooltips and notes of patches 7.21d and 7.19, and by the patch notes named in each test."""

import math
from typing import Any

import pytest

from tests.dota.scenes.actions import cast, give, order, use
from tests.dota.scenes.arena import Arena
from tests.dota.scenes.duels import duel
from tests.dota.scenes.statuses import STUNNED
from tests.dota.scenes.talents import take
from tests.dota.scenes.units import set_health

CASK, HEALING, CURSE, WARD = (f"witch_doctor_{name}" for name in (
    "paralyzing_cask", "voodoo_restoration", "maledict", "death_ward"))


# ---- Paralyzing Cask ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_a_cask_bounces_as_often_as_it_says(core: Any, level: int) -> None:
    """Two bounces at rank 1, to eight at rank 4 (tooltip), after the first unit: 3, 5, 7 and 9 hits (files)."""
    arena = duel(core, "witch_doctor", away=400, hp=6000)
    units = [arena.unit(5), arena.dummy(450, -150)]
    order(arena, CASK, level, units[0])
    hits, before = [], [arena.hp(u) for u in units]
    for _ in range(300):
        arena.world.run_frames(1)
        now = [arena.hp(u) for u in units]
        hits += [i for i in (0, 1) if now[i] < before[i] - 5]
        before = now
    assert hits == [k % 2 for k in range(2 * level + 1)]


def test_a_cask_stuns_creeps_longer_and_needs_a_second_unit(core: Any) -> None:
    """Tooltip: 1 s on heroes, 5 s on others. Note: it hits nobody twice in a row."""
    arena = duel(core, "witch_doctor", away=400, hp=6000)
    enemy, creep = arena.unit(5), arena.dummy(100, -500)
    slot, hp = arena.teach(0, CASK, 4), arena.hp(enemy)
    arena.world.order(arena.unit(0), "cast_unit", target=enemy, slot=slot)
    arena.seconds(4)
    assert hp - arena.hp(enemy) == pytest.approx(50 * arena.magic(enemy) * arena.amp(arena.unit(0)), rel=0.01)
    arena.seconds(11)
    arena.place(enemy, 2000, 0)
    arena.world.order(arena.unit(0), "cast_unit", target=creep, slot=slot)
    arena.seconds(1)
    for wait, stunned in ((4.2, True), (1, False)):
        arena.seconds(wait)
        assert bool(arena.world.unit(creep)["status"] & STUNNED) == stunned


def test_a_cask_reaches_575_and_waits_before_each_bounce(core: Any) -> None:
    """Files: bounce range 575, a delay of 0.3 s, a flight of 1000 a second."""
    arena = duel(core, "witch_doctor", away=400, hp=6000)
    near, far = arena.dummy(400 - 500, -250), arena.dummy(400, -640)
    order(arena, CASK, 1, arena.unit(5))
    times: dict[int, float] = {}
    for frame in range(120):
        arena.world.run_frames(1)
        for unit in (arena.unit(5), near, far):
            if arena.modifiers(unit, CASK):
                times.setdefault(unit, frame / 30)
    assert set(times) == {arena.unit(5), near}
    gap = math.dist((arena.world.unit(arena.unit(5))["x"], arena.world.unit(arena.unit(5))["y"]),
                    (arena.world.unit(near)["x"], arena.world.unit(near)["y"]))
    assert times[near] - times[arena.unit(5)] == pytest.approx(0.3 + gap / 1000, abs=0.12)


# ---- Voodoo Restoration ---------------------------------------------------------------------------------------------


def test_restoration_heals_the_spell_immune_every_third_of_a_second(core: Any) -> None:
    """Notes; 40 a second at rank 4 for 20 mana a second."""
    arena = duel(core, "witch_doctor", away=2500, behind=250, hp=6000)
    a, ally = arena.unit(0), arena.unit(1)
    set_health(arena, ally, hp=6000, max_hp=7000)
    use(arena, give(arena, "black_king_bar", hero=1), hero=1)
    arena.world.set_unit(ally, hp=1000)
    arena.world.order(a, "cast", slot=arena.teach(0, HEALING, 4))
    arena.seconds(0.3)
    arena.still(ally)
    arena.still(a)
    hp, mana, ticks, last = arena.hp(ally), arena.world.unit(a)["mana"], 0, arena.hp(ally)
    for _ in range(30 * 4):
        arena.world.run_frames(1)
        ticks += arena.hp(ally) > last + 1
        last = arena.hp(ally)
    assert ticks == pytest.approx(12, abs=1)
    assert (arena.hp(ally) - hp) / ticks == pytest.approx(40 * 0.33, rel=0.01)
    assert mana - arena.world.unit(a)["mana"] == pytest.approx(80, rel=0.03)


def test_restoration_reaches_500(core: Any) -> None:
    arena = duel(core, "witch_doctor", away=2500, behind=250, hp=6000)
    ally = arena.unit(1)
    set_health(arena, ally, hp=6000, max_hp=7000)
    arena.world.order(arena.unit(0), "cast", slot=arena.teach(0, HEALING, 1))
    arena.seconds(0.5)
    for x, heals in ((485, True), (515, False)):
        arena.world.set_unit(ally, hp=1000)
        arena.place(ally, x, 0)
        arena.seconds(1)
        assert (arena.hp(ally) > 1000) == heals


def test_restoration_is_switched_while_the_ward_is_channelled(core: Any) -> None:
    """Files: IGNORE_CHANNEL."""
    arena = duel(core, "witch_doctor", away=400, hp=6000)
    slot = arena.teach(0, HEALING, 1)
    cast(arena, WARD, 1, at=(100, 0), wait=1)
    arena.world.order(arena.unit(0), "cast", slot=slot)
    arena.seconds(0.4)
    assert arena.world.units("summon") and arena.world.unit(arena.unit(0))["act"] == "channel"
    assert arena.world.ability(0, HEALING)["toggled"] and arena.modifiers(arena.unit(0), HEALING)


def test_death_switches_restoration_off(core: Any) -> None:
    arena = duel(core, "witch_doctor", away=2500, hp=6000)
    a, slot = arena.unit(0), arena.teach(0, HEALING, 1)
    arena.world.order(a, "cast", slot=slot)
    arena.seconds(0.4)
    arena.world.kill(a, arena.unit(5))
    assert not arena.world.ability(0, HEALING)["toggled"]
    arena.seconds(arena.world.hero(0)["respawn_at"] - arena.world.time + 0.5)
    a = arena.unit(0)
    arena.world.set_unit(a, mana=300)
    arena.world.order(a, "cast", slot=slot)
    arena.seconds(0.4)
    assert arena.modifiers(a, HEALING)


# ---- Maledict -------------------------------------------------------------------------------------------------------


def curse(arena: Arena, enemy: int) -> list[int]:
    """Cast Maledict of rank 1 on the enemy, 500 below full health soon; return the frames of its bursts."""
    cast(arena, CURSE, 1, at=(400, 0), wait=0)
    while not arena.modifiers(enemy, CURSE):
        arena.world.run_frames(1)
    arena.world.damage(arena.unit(0), enemy, 500, "pure")
    bursts, hp = [], arena.hp(enemy)
    for frame in range(18 * 30):
        arena.world.run_frames(1)
        if hp - arena.hp(enemy) > 30:
            bursts.append(frame)
        hp = arena.hp(enemy)
    return bursts


@pytest.mark.parametrize(("taken", "bursts"), [(False, 3), (True, 4)])
def test_maledict_bursts_every_four_seconds(core: Any, taken: bool, bursts: int) -> None:
    """Tooltip: 12 s, a burst each 4 s; the talent's text: one more tick."""
    arena = duel(core, "witch_doctor", away=400, hp=6000)
    if taken:
        take(arena, "witch_doctor_4")
    frames = curse(arena, arena.unit(5))
    assert frames == pytest.approx([120 * (k + 1) for k in range(bursts)], abs=4)


def test_maledict_bursts_nothing_from_who_was_healed(core: Any) -> None:
    """Note: above the health at the cast there is no burst."""
    arena = duel(core, "witch_doctor", away=400, hp=6000)
    enemy = arena.unit(5)
    arena.world.set_unit(enemy, hp=3000)
    cast(arena, CURSE, 4, at=(400, 0), wait=0.6)
    arena.world.set_unit(enemy, hp=5000)
    hp = arena.hp(enemy)
    arena.seconds(5)
    ticks = 5 * 28 * arena.magic(enemy) * arena.amp(arena.unit(0))
    assert hp - arena.hp(enemy) == pytest.approx(ticks, rel=0.25)


def test_maledict_spares_creeps(core: Any) -> None:
    arena = duel(core, "witch_doctor", away=400, hp=6000)
    creep = arena.dummy(450, 0)
    cast(arena, CURSE, 4, at=(400, 0), wait=3)
    assert arena.modifiers(arena.unit(5), CURSE)
    assert arena.hp(creep) == 5000


# ---- Death Ward -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("upgraded", [False, True])
def test_the_ward_misses_the_evasive_without_the_scepter(core: Any, upgraded: bool) -> None:
    """Scepter text: True Strike. Two Butterflies evade 1 - 0.65 * 0.65 = 58 % of attacks."""
    arena = duel(core, "witch_doctor", away=400, hp=6000)
    enemy = arena.unit(5)
    for _ in range(2):
        give(arena, "butterfly", hero=5)
    if upgraded:
        give(arena, "ultimate_scepter")
    cast(arena, WARD, 1, at=(100, 0), wait=0)
    hits, hp = 0, arena.hp(enemy)
    for _ in range(7 * 30):
        arena.world.run_frames(1)
        hits += arena.hp(enemy) < hp - 5
        hp = arena.hp(enemy)
    assert hits >= 28 if upgraded else 4 <= hits <= 20


def test_the_ward_needs_sight_and_no_immunity_helps(core: Any) -> None:
    """Files: target flags FOW_VISIBLE, NO_INVIS, NOT_ATTACK_IMMUNE, MAGIC_IMMUNE_ENEMIES."""
    arena = duel(core, "witch_doctor", away=400, hp=6000)
    enemy = arena.unit(5)
    bar, ghost, blade = (give(arena, item, hero=5) for item in ("black_king_bar", "ghost", "invis_sword"))
    use(arena, bar, hero=5)
    cast(arena, WARD, 1, at=(100, 0), wait=1.2)
    for slot, hurt in ((-1, True), (ghost, False), (blade, False)):
        if slot >= 0:
            use(arena, slot, hero=5)
            arena.seconds(0.5)
        hp = arena.hp(enemy)
        arena.seconds(0.6)
        assert (arena.hp(enemy) < hp) == hurt
        arena.seconds(2.6 if slot == ghost else 0)


@pytest.mark.parametrize(("patch", "damage"), [("7.21d", 75), ("7.19", 60)])
def test_the_ward_strikes_every_0_22_seconds(core: Any, patch: str, damage: float) -> None:
    """Note; patch 7.20: 75/125/175 instead of 60/105/150. Physical damage, of a hero's class."""
    arena = duel(core, "witch_doctor", patch, away=400, hp=6000)
    enemy = arena.unit(5)
    arena.world.set_unit(enemy, extra_armor=0)
    arena.world.set_unit(enemy, extra_armor=-arena.world.unit(enemy)["armor"])
    cast(arena, WARD, 1, at=(100, 0), wait=1)
    hp, blows, before = arena.hp(enemy), 0, arena.hp(enemy)
    for _ in range(4 * 30):
        arena.world.run_frames(1)
        blows += arena.hp(enemy) < before - 5
        before = arena.hp(enemy)
    assert blows == pytest.approx(4 / 0.22, abs=1)
    assert (hp - arena.hp(enemy)) / blows == pytest.approx(damage, rel=0.02)
