"""Slardar's abilities in both patches: one scene for each clause of their tooltips, with numbers computed by hand."""

from typing import Any

import pytest

from tests.dota.scenes.actions import attack_once, cast, give
from tests.dota.scenes.arena import FRAME, Arena
from tests.dota.scenes.duels import duel
from tests.dota.scenes.readings import damage_range
from tests.dota.scenes.statuses import INVISIBLE, PHASED, STUNNED, UNSEEN
from tests.dota.scenes.units import without_armor

INVISIBILITY = 3  # the rune
LAND = (-1500.0, -1300.0)  # next to the middle lane
HAZE = "slardar_amplify_damage"


def speed(arena: Arena, unit: int) -> float:
    arena.world.run_frames(1)
    number: float = arena.world.unit(unit)["move_speed"]
    return number


# ---- Guardian Sprint ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_sprint_hastens_on_land(core: Any, patch: str, rank: int) -> None:
    """20, 28, 36, 44 % of the base speed (290; 7.19: 285) for 10 s."""
    arena = duel(core, "slardar", patch, away=120, hp=20000)
    a = arena.unit(0)
    arena.world.set_unit(a, x=LAND[0], y=LAND[1])
    before = speed(arena, a)
    cast(arena, "slardar_sprint", rank, wait=0.2)
    base = {"7.21d": 290, "7.19": 285}[patch]
    assert speed(arena, a) == pytest.approx(before + base * (0.12 + 0.08 * rank), rel=1e-4)
    arena.seconds(9.4)
    assert speed(arena, a) > before + 50
    arena.seconds(0.6)
    assert speed(arena, a) == pytest.approx(before)


@pytest.mark.parametrize(("rank", "fast"), [(3, False), (4, True)])
def test_sprint_in_the_river_at_rank_four(core: Any, patch: str, rank: int, fast: bool) -> None:
    """At rank 4 his speed in the river is 700, above the limit of 550. Elsewhere and afterwards it is normal."""
    arena = duel(core, "slardar", patch, away=120, hp=20000)
    a = arena.unit(0)
    plain = speed(arena, a)
    cast(arena, "slardar_sprint", rank, wait=0.2)
    assert (speed(arena, a) == 700) == fast and speed(arena, a) > plain
    wet = arena.world.unit(a)
    arena.world.set_unit(a, x=LAND[0], y=LAND[1])
    arena.seconds(0.2)
    assert speed(arena, a) < 550
    arena.world.set_unit(a, x=wet["x"], y=wet["y"])
    arena.seconds(0.2)
    assert (speed(arena, a) == 700) == fast
    arena.seconds(10)
    assert speed(arena, a) == pytest.approx(plain)


def test_sprint_walks_700_units_a_second(core: Any) -> None:
    arena = duel(core, "slardar", "7.21d", away=2000, hp=20000)
    a = arena.unit(0)
    cast(arena, "slardar_sprint", 4, wait=0.2)
    u = arena.world.unit(a)
    arena.world.order(a, "move", x=u["x"] + 500, y=u["y"] - 500)  # down the river
    arena.seconds(0.4)
    here = arena.world.unit(a)
    arena.world.run_frames(6)
    there = arena.world.unit(a)
    way = ((there["x"] - here["x"]) ** 2 + (there["y"] - here["y"]) ** 2) ** 0.5
    assert way == pytest.approx(700 * 6 * FRAME, rel=0.02)


def test_sprint_passes_through_units(core: Any, patch: str) -> None:
    arena = duel(core, "slardar", patch, away=120, hp=20000)
    a = arena.unit(0)
    cast(arena, "slardar_sprint", 1, wait=0.2)
    assert arena.world.unit(a)["status"] & PHASED
    arena.seconds(9.5)
    assert arena.world.unit(a)["status"] & PHASED
    arena.seconds(0.6)
    assert not arena.world.unit(a)["status"] & PHASED


def test_sprint_leaves_damage_alone(core: Any, patch: str) -> None:
    """Patch notes of 7.12: no longer 15 % more damage."""
    arena = duel(core, "slardar", patch, away=120, hp=20000)
    a, b = arena.unit(0), arena.unit(5)
    plain = arena.world.damage(b, a, 100, "magical")
    cast(arena, "slardar_sprint", 4, wait=0.2)
    assert arena.world.damage(b, a, 100, "magical") == pytest.approx(plain)


def test_sprint_does_not_interrupt_a_channel(core: Any, patch: str) -> None:
    """Note of the tooltip: a teleport goes on."""
    arena = duel(core, "slardar", patch, away=2000, hp=20000)
    a = arena.unit(0)
    scroll = give(arena, "tpscroll", charges=1)
    tower = next(u for u in arena.world.units("tower") if u["team"] == 0 and u["tier"] == 1)
    arena.world.order(a, "cast_point", target=tower["index"], x=tower["x"], y=tower["y"], slot=scroll)
    arena.seconds(0.4)
    assert arena.world.unit(a)["act"] == "channel"
    cast(arena, "slardar_sprint", 1, wait=0.2)
    assert arena.modifiers(a, "slardar_sprint") and arena.world.unit(a)["act"] == "channel"


# ---- Slithereen Crush -----------------------------------------------------------------------------------------------

DAMAGE = {"7.21d": (80, 140, 200, 260), "7.19": (75, 125, 175, 225)}
STUN = {"7.21d": (1, 1, 1, 1), "7.19": (1.25, 1.5, 1.75, 2)}
SLOW = {"7.21d": (20, 25, 30, 35), "7.19": (20, 20, 20, 20)}
SLOWED = {"7.21d": (3, 4, 5, 6), "7.19": (2, 2, 2, 2)}


@pytest.mark.parametrize("rank", [1, 4])
def test_crush_hurts_and_stuns_around(core: Any, patch: str, rank: int) -> None:
    """80 to 260 physical damage (7.19: 75 to 225) and a stun of 1 s (7.19: 1.25 to 2 s) within 350."""
    arena = duel(core, "slardar", patch, hp=20000)
    a, b = arena.unit(0), arena.unit(5)
    beside, far = arena.dummy(0, 330), arena.dummy(0, -400)
    for unit in (b, beside, far):
        without_armor(arena, unit)
    hp = [arena.hp(unit) for unit in (b, beside, far)]
    cast(arena, "slardar_slithereen_crush", rank, wait=0.4)
    damage = DAMAGE[patch][rank - 1] * arena.amp(a)
    lost = [before - arena.hp(unit) for before, unit in zip(hp, (b, beside, far), strict=True)]
    assert lost == pytest.approx([damage, damage, 0], rel=1e-4)
    assert [arena.world.unit(u)["status"] & STUNNED for u in (b, beside, far)] == [1, 1, 0]
    arena.seconds(STUN[patch][rank - 1] - 0.3)
    assert arena.world.unit(b)["status"] & STUNNED
    arena.seconds(0.4)
    assert not arena.world.unit(b)["status"] & STUNNED


def test_a_haze_adds_to_the_crush(core: Any) -> None:
    """At -10 armor physical damage is greater by 0.052 * 10 / (0.9 + 0.048 * 10) = 0.3768."""
    arena = duel(core, "slardar", "7.21d", hp=20000)
    a, b = arena.unit(0), without_armor(arena, arena.unit(5))
    cast(arena, HAZE, 1, b)
    hp = arena.hp(b)
    cast(arena, "slardar_slithereen_crush", 4)
    assert hp - arena.hp(b) == pytest.approx(260 * arena.amp(a) * (1 + 0.52 / 1.38), rel=1e-3)


@pytest.mark.parametrize("rank", [1, 4])
def test_crush_slows_after_the_stun(core: Any, patch: str, rank: int) -> None:
    """20 to 35 % and 20 to 35 attack speed for 3 to 6 s after the stun (7.19: 20 % and 20 for 2 s)."""
    arena = duel(core, "slardar", patch, hp=20000)
    b = arena.unit(5)
    before = arena.world.unit(b)
    cast(arena, "slardar_slithereen_crush", rank, wait=0.4)
    stun, slow, lasts = STUN[patch][rank - 1], SLOW[patch][rank - 1], SLOWED[patch][rank - 1]
    for wait, there in ((stun + 0.1, True), (lasts - 0.4, True), (0.5, False)):
        arena.seconds(wait)
        now = arena.world.unit(b)
        assert not now["status"] & STUNNED
        lost = arena.base_speed("nevermore") * slow / 100 if there else 0
        assert now["move_speed"] == pytest.approx(before["move_speed"] - lost, rel=1e-4)
        assert now["attack_speed"] == pytest.approx(before["attack_speed"] - (slow if there else 0), rel=1e-4)


def test_a_talent_lengthens_the_stun(core: Any) -> None:
    """1.25 s more, and the slow follows it."""
    arena = duel(core, "slardar", "7.21d", hp=20000)
    b = arena.unit(5)
    arena.world.teach(0, "special_bonus_unique_slardar", 1)
    plain = speed(arena, b)
    cast(arena, "slardar_slithereen_crush", 1, wait=0.4)
    arena.seconds(2)
    assert arena.world.unit(b)["status"] & STUNNED
    arena.seconds(0.4)
    assert not arena.world.unit(b)["status"] & STUNNED
    arena.seconds(2.4)
    assert speed(arena, b) < plain
    arena.seconds(0.6)
    assert speed(arena, b) == pytest.approx(plain)


# ---- Corrosive Haze -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_haze_takes_armor(core: Any, patch: str, rank: int) -> None:
    arena = duel(core, "slardar", patch, hp=20000)
    b = arena.unit(5)
    armor = arena.world.unit(b)["armor"]
    cast(arena, HAZE, rank, b)
    assert arena.world.unit(b)["armor"] == pytest.approx(armor - 5 - 5 * rank, abs=1e-3)
    arena.seconds(17.2)
    assert arena.world.unit(b)["armor"] == pytest.approx(armor - 5 - 5 * rank, abs=1e-3)
    arena.seconds(1)
    assert arena.world.unit(b)["armor"] == pytest.approx(armor, abs=1e-3)


@pytest.mark.parametrize("how", ["fog", "invisible"])
def test_haze_shows_its_target(core: Any, patch: str, how: str) -> None:
    """Note of the tooltip: true sight and vision of the target, wherever it is."""
    arena = duel(core, "slardar", patch, hp=20000)
    b = arena.unit(5)
    cast(arena, HAZE, 1, b)
    if how == "fog":
        arena.world.set_unit(b, x=5000, y=4500)
    else:
        arena.world.rune(b, INVISIBILITY)
        arena.seconds(3)
        assert arena.world.unit(b)["status"] & INVISIBLE
    arena.seconds(0.3)
    assert arena.world.visible(0, b)
    arena.seconds(18)
    assert not arena.world.visible(0, b)


def test_haze_does_not_show_a_shadow_dance(core: Any) -> None:
    """Shadow Dance hides from true sight too."""
    arena = duel(core, "slardar", "7.21d", enemy="slark", hp=20000)
    b = arena.unit(5)
    cast(arena, HAZE, 1, b)
    assert arena.world.visible(0, b)
    cast(arena, "slark_shadow_dance", 1, hero=5)
    assert arena.world.unit(b)["status"] & UNSEEN and not arena.world.visible(0, b)


def test_haze_reaches_the_spell_immune(core: Any) -> None:
    arena = duel(core, "slardar", "7.21d", hp=20000)
    b = arena.unit(5)
    bar = give(arena, "black_king_bar", 5)
    arena.world.order(b, "cast", slot=bar)
    arena.seconds(0.2)
    armor = arena.world.unit(b)["armor"]
    cast(arena, HAZE, 3, b)
    assert arena.world.unit(b)["armor"] == pytest.approx(armor - 20, abs=1e-3)


@pytest.mark.parametrize("taken", [False, True])
def test_a_talent_keeps_the_haze_from_dispels(core: Any, patch: str, taken: bool) -> None:
    """Black King Bar's basic dispel removes the armor loss and the vision; with the talent it removes neither."""
    arena = duel(core, "slardar", patch, hp=20000)
    b = arena.unit(5)
    if taken:
        arena.world.teach(0, "special_bonus_unique_slardar_3", 1)
    cast(arena, HAZE, 1, b)
    assert len(arena.modifiers(b, HAZE)) == 2
    bar = give(arena, "black_king_bar", 5)
    arena.world.order(b, "cast", slot=bar)
    arena.seconds(0.2)
    assert len(arena.modifiers(b, HAZE)) == (2 if taken else 0)


def test_talent_applies_to_an_existing_haze(core: Any) -> None:
    """The cast renews the debuff: armor is lost once, and the talent applies."""
    arena = duel(core, "slardar", "7.21d", hp=20000)
    b = arena.unit(5)
    armor = arena.world.unit(b)["armor"]
    cast(arena, HAZE, 3, b)
    arena.world.teach(0, "special_bonus_unique_slardar_3", 1)
    arena.seconds(5)
    cast(arena, HAZE, 3, b)
    assert arena.world.unit(b)["armor"] == pytest.approx(armor - 20, abs=1e-3)
    assert [m["flags"] & 3 for m in arena.modifiers(b, HAZE)] == [0, 0]


# ---- Bash of the Deep -----------------------------------------------------------------------------------------------


def bash_duel(core: Any, patch: str, rank: int, *items: str, enemy: str = "nevermore") -> tuple[Arena, int, int]:
    arena = duel(core, "slardar", patch, enemy=enemy, away=120, hp=20000)
    for item in items:
        give(arena, item)
    arena.teach(0, "slardar_bash", rank)
    arena.seconds(0.2)
    return arena, arena.unit(0), without_armor(arena, arena.unit(5))


@pytest.mark.parametrize("rank", [1, 4])
def test_every_fourth_attack_bashes(core: Any, rank: int) -> None:
    """After three attacks the next deals 75 to 225 more, unarmored, and stuns for 1 to 1.3 s."""
    arena, a, b = bash_duel(core, "7.21d", rank)
    low, high = damage_range(arena, a)
    bonus, stun = (75, 125, 175, 225)[rank - 1], (1, 1.1, 1.2, 1.3)[rank - 1]
    for attack in range(1, 9):
        lost = attack_once(arena, a, b)
        extra = bonus if attack % 4 == 0 else 0
        assert low + extra - 0.01 <= lost <= high + extra + 0.01, attack
        (modifier,) = arena.modifiers(b, "slardar_bash") or (None,)
        assert bool(modifier) == (attack % 4 == 0) == bool(arena.world.unit(b)["status"] & STUNNED)
        if modifier:
            assert modifier["left"] == pytest.approx(stun, abs=FRAME)
            arena.seconds(1.5)


def test_attacks_on_buildings_do_not_count(core: Any) -> None:
    arena, a, b = bash_duel(core, "7.21d", 4)
    tower = next(u for u in arena.world.units("tower") if u["team"] == 1 and u["tier"] == 1 and u["lane"] == 1)
    for _ in range(3):
        attack_once(arena, a, b)
    for _ in range(2):
        arena.world.set_unit(a, x=tower["x"] - 150, y=tower["y"] - 100)
        attack_once(arena, a, tower["index"])
    arena.place(a, 0, 0)
    attack_once(arena, a, b)
    assert arena.world.unit(b)["status"] & STUNNED


def test_spell_amplification_does_not_raise_bash_damage(core: Any) -> None:
    """Kaya's 10 % of spell damage would add 22 to 225, and does not. Armor reduces the bonus like the attack."""
    arena, a, b = bash_duel(core, "7.21d", 4, "kaya")
    arena.world.set_unit(b, extra_armor=arena.world.unit(b)["armor"])
    without_armor(arena, b)
    low, high = damage_range(arena, a)
    for _ in range(3):
        attack_once(arena, a, b)
    assert low + 225 - 0.01 <= attack_once(arena, a, b) <= high + 225 + 0.01


@pytest.mark.parametrize(("patch", "more"), [("7.21d", 75), ("7.19", 100)])
def test_a_talent_adds_bash_damage(core: Any, patch: str, more: float) -> None:
    """75 more (7.19: 100)."""
    arena, a, b = bash_duel(core, patch, 1)
    arena.world.teach(0, "special_bonus_unique_slardar_2", 1)
    base = {"7.21d": 75, "7.19": 80}[patch]
    low, high = damage_range(arena, a)
    bashed = [lost for lost in (attack_once(arena, a, b) for _ in range(60)) if lost > high + 1]
    assert bashed and all(low + base + more - 0.01 <= lost <= high + base + more + 0.01 for lost in bashed)


@pytest.mark.parametrize(("rank", "talent", "chance"), [(1, False, 10), (4, False, 25), (4, True, 40)])
def test_bash_has_a_chance_in_7_19(core: Any, rank: int, talent: bool, chance: float) -> None:
    """10 to 25 %, with the talent 15 more, for 80 to 140 damage: 240 attacks, within three standard deviations."""
    arena, a, b = bash_duel(core, "7.19", rank)
    if talent:
        arena.world.teach(0, "special_bonus_unique_slardar", 1)
    low, high = damage_range(arena, a)
    bonus, bashes = (80, 100, 120, 140)[rank - 1], 0
    for _ in range(240):
        lost = attack_once(arena, a, b)
        if lost > high + 1:
            bashes += 1
            assert low + bonus - 0.01 <= lost <= high + bonus + 0.01
        arena.world.set_unit(b, hp=20000)
    assert abs(bashes - 2.4 * chance) < 3 * (2.4 * chance * (1 - chance / 100)) ** 0.5


@pytest.mark.parametrize(("creep", "stun"), [(False, 1), (True, 2)])
def test_bash_lasts_twice_as_long_on_creeps_in_7_19(core: Any, creep: bool, stun: float) -> None:
    arena, a, b = bash_duel(core, "7.19", 4)
    target = arena.dummy(0, 120, hp=20000) if creep else b
    for _ in range(60):
        attack_once(arena, a, target)
        if arena.modifiers(target, "slardar_bash"):
            break
    (modifier,) = arena.modifiers(target, "slardar_bash")
    assert modifier["left"] == pytest.approx(stun, abs=FRAME)


def test_bash_does_not_stack_with_skull_basher(core: Any, patch: str) -> None:
    """Note of the tooltip: Skull Basher never bashes for Slardar, Bash of the Deep learned or not; for Sven it does."""
    for hero, works in (("slardar", False), ("sven", True)):
        arena = duel(core, hero, patch, away=120, hp=20000)
        give(arena, "basher")
        a, b = arena.unit(0), arena.unit(5)
        bashes = 0
        for _ in range(30):
            attack_once(arena, a, b)
            bashes += bool(arena.modifiers(b, "item_basher"))
            arena.seconds(0.8)
        assert (bashes > 0) == works
