"""Ursa's abilities in both patches: one scene for each clause of their tooltips, with numbers computed by hand."""

from typing import Any

import pytest

from tests.dota.scenes.actions import attack_once, cast, cooldown_of_cast, give
from tests.dota.scenes.arena import CENTRE, FRAME, STEP, Arena
from tests.dota.scenes.duels import duel
from tests.dota.scenes.readings import damage_range
from tests.dota.scenes.statuses import HEXED, SILENCED, STUNNED, TAUNTED
from tests.dota.scenes.units import without_armor

SWIPES, ENRAGE, OVERPOWER = "ursa_fury_swipes", "ursa_enrage", "ursa_overpower"


# ---- Earthshock -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_earthshock_hurts_and_slows(core: Any, patch: str, rank: int) -> None:
    """50 to 200 magical damage within 385, and 25 to 55 % of the base speed for 4 s. He does not move."""
    arena = duel(core, "ursa", patch, away=370, hp=20000)
    a, b, far = arena.unit(0), arena.unit(5), arena.dummy(0, -440)
    before, hp = arena.world.unit(b), (arena.hp(b), arena.hp(far))
    cast(arena, "ursa_earthshock", rank, wait=0.4)
    damage = 50 * rank * arena.amp(a)
    assert hp[0] - arena.hp(b) == pytest.approx(damage * arena.magic(b), rel=1e-4)
    assert arena.hp(far) == hp[1]
    slowed = before["move_speed"] - arena.base_speed("nevermore") * (0.15 + 0.1 * rank)
    assert arena.world.unit(b)["move_speed"] == pytest.approx(max(slowed, 100), rel=1e-4)
    assert (arena.world.unit(a)["x"], arena.world.unit(a)["y"]) == CENTRE
    arena.seconds(3.7)
    assert arena.world.unit(b)["move_speed"] < before["move_speed"]
    arena.seconds(0.4)
    assert arena.world.unit(b)["move_speed"] == pytest.approx(before["move_speed"])


@pytest.mark.parametrize("taken", [False, True])
def test_a_talent_widens_earthshock(core: Any, patch: str, taken: bool) -> None:
    """385 + 600."""
    arena = duel(core, "ursa", patch, away=950, hp=20000)
    if taken:
        arena.world.teach(0, "special_bonus_unique_ursa_5", 1)
    hp = arena.hp(arena.unit(5))
    cast(arena, "ursa_earthshock", 1)
    assert (arena.hp(arena.unit(5)) < hp) == taken


# ---- Overpower ------------------------------------------------------------------------------------------------------


def speed(arena: Arena) -> float:
    arena.world.run_frames(1)
    number: float = arena.world.unit(arena.unit(0))["attack_speed"]
    return number


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_overpower_lasts_for_its_attacks(core: Any, patch: str, rank: int) -> None:
    """400 more attack speed for 4 to 7 attacks."""
    arena = duel(core, "ursa", patch, away=120, hp=20000)
    a, b = arena.unit(0), arena.unit(5)
    plain = speed(arena)
    cast(arena, OVERPOWER, rank)
    for _ in range(3 + rank):
        assert speed(arena) == pytest.approx(plain + 400)
        attack_once(arena, a, b)
    assert speed(arena) == pytest.approx(plain)


def test_overpower_ends_after_20_seconds(core: Any, patch: str) -> None:
    arena = duel(core, "ursa", patch, away=120, hp=20000)
    plain = speed(arena)
    cast(arena, OVERPOWER, 1)
    arena.seconds(19)
    assert speed(arena) == pytest.approx(plain + 400)
    arena.seconds(1)
    assert speed(arena) == pytest.approx(plain)


@pytest.mark.parametrize(("patch", "counted"), [("7.21d", True), ("7.19", False)])
def test_evaded_attacks_count_since_7_20(core: Any, patch: str, counted: bool) -> None:
    """Patch notes of 7.20: an evaded attack is one of Overpower's; before, it was not."""
    arena = duel(core, "ursa", patch, away=120, hp=20000)
    a, b = arena.unit(0), arena.unit(5)
    for _ in range(6):
        give(arena, "butterfly", 5)
    plain = speed(arena)
    cast(arena, OVERPOWER, 1)
    landed = made = 0
    while arena.modifiers(a, OVERPOWER):
        landed += attack_once(arena, a, b) > 0
        made += 1
    assert (made if counted else landed) == 4 and made > landed
    assert speed(arena) == pytest.approx(plain)


def test_overpower_counts_attacks_on_buildings(core: Any) -> None:
    arena = duel(core, "ursa", "7.19", away=120, hp=20000)
    a = arena.unit(0)
    tower = next(u for u in arena.world.units("tower") if u["team"] == 1 and u["tier"] == 1 and u["lane"] == 1)
    arena.world.set_unit(a, x=tower["x"] - 150, y=tower["y"] - 100)
    cast(arena, OVERPOWER, 1)
    for _ in range(4):
        assert arena.modifiers(a, OVERPOWER)
        attack_once(arena, a, tower["index"])
    assert not arena.modifiers(a, OVERPOWER)


def test_black_king_bar_leaves_overpower(core: Any, patch: str) -> None:
    """Note of the tooltip."""
    arena = duel(core, "ursa", patch, away=120, hp=20000)
    cast(arena, OVERPOWER, 1)
    bar = give(arena, "black_king_bar")
    arena.world.order(arena.unit(0), "cast", slot=bar)
    arena.seconds(0.2)
    assert arena.modifiers(arena.unit(0), OVERPOWER)


# ---- Fury Swipes ----------------------------------------------------------------------------------------------------

EACH = {"7.21d": (7, 14, 21, 28), "7.19": (12, 18, 24, 30)}


def swipes_duel(core: Any, patch: str, rank: int, enemy: str = "nevermore", talent: str = "") -> tuple[Arena, int, int]:
    arena = duel(core, "ursa", patch, enemy=enemy, away=120, hp=20000)
    arena.teach(0, SWIPES, rank)
    if talent:
        arena.world.teach(0, talent, 1)
    arena.seconds(0.2)
    return arena, arena.unit(0), without_armor(arena, arena.unit(5))


def assert_adds(arena: Arena, target: int, extra: float) -> None:
    """Attack once; the damage is the attack's plus `extra`."""
    low, high = damage_range(arena, arena.unit(0))
    lost = attack_once(arena, arena.unit(0), target)
    assert low + extra - 0.02 <= lost <= high + extra + 0.02, (lost, low, high, extra)


@pytest.mark.parametrize("rank", [1, 4])
def test_each_attack_adds_a_swipe(core: Any, patch: str, rank: int) -> None:
    """The n-th attack on a target deals n times 7 to 28 more (7.19: 12 to 30), the first too."""
    arena, _, b = swipes_duel(core, patch, rank)
    for n in range(1, 13):
        assert_adds(arena, b, n * EACH[patch][rank - 1])
    (modifier,) = arena.modifiers(b, SWIPES)
    assert modifier["stacks"] == 12


@pytest.mark.parametrize(("rank", "talent", "reset"), [(1, False, 8), (2, False, 12), (3, False, 16), (4, False, 20),
                                                       (1, True, 33), (4, True, 45)])
def test_swipes_are_lost_after_their_time(core: Any, patch: str, rank: int, talent: bool, reset: float) -> None:
    """Stacks end together, 8 to 20 s after the last attack, and 25 s later with the talent."""
    arena, a, b = swipes_duel(core, patch, rank, talent="special_bonus_unique_ursa_4" if talent else "")
    for n in (1, 2):
        attack_once(arena, a, b)
        (modifier,) = arena.modifiers(b, SWIPES)
        assert modifier["left"] == pytest.approx(reset, abs=FRAME) and modifier["stacks"] == n
        arena.seconds(reset - 0.5)
    assert arena.modifiers(b, SWIPES)
    arena.seconds(0.7)
    assert not arena.modifiers(b, SWIPES)
    assert_adds(arena, b, EACH[patch][rank - 1])


def test_swipes_belong_to_a_target(core: Any, patch: str) -> None:
    arena, a, b = swipes_duel(core, patch, 4)
    creep = without_armor(arena, arena.dummy(0, 120, hp=20000))
    for _ in range(3):
        attack_once(arena, a, b)
    assert_adds(arena, creep, EACH[patch][3])
    assert_adds(arena, b, 4 * EACH[patch][3])


def test_swipes_belong_to_their_ursa(core: Any) -> None:
    """Two Ursas count separately; an ally's attacks get no bonus."""
    arena = duel(core, "ursa", "7.21d", enemy="ursa", ally="sven", behind=300, away=120, hp=20000)
    a, b, mate = arena.unit(0), without_armor(arena, arena.unit(5)), arena.unit(1)
    arena.teach(0, SWIPES, 4)
    arena.teach(5, SWIPES, 4)
    arena.place(mate, 120, 100)
    for _ in range(3):
        attack_once(arena, a, b)
    without_armor(arena, a)
    low, high = damage_range(arena, b)
    assert low + 27.9 <= attack_once(arena, b, a) <= high + 28.1
    low, high = damage_range(arena, mate)
    assert low - 0.1 <= attack_once(arena, mate, b) <= high + 0.1


@pytest.mark.parametrize(("rank", "talent"), [(1, False), (4, False), (4, True)])
def test_swipes_on_roshan_last_ten_seconds(core: Any, patch: str, rank: int, talent: bool) -> None:
    """At every rank, with the talent too, and despite his status resistance."""
    arena, a, _ = swipes_duel(core, patch, rank, talent="special_bonus_unique_ursa_4" if talent else "")
    roshan = arena.world.spawn("npc_dota_roshan", 2, CENTRE[0], CENTRE[1] + 150)
    arena.seconds(0.2)
    attack_once(arena, a, roshan)
    (modifier,) = arena.modifiers(roshan, SWIPES)
    assert modifier["left"] == pytest.approx(10, abs=FRAME)


def test_a_talent_adds_to_each_swipe(core: Any, patch: str) -> None:
    """16 more."""
    arena, _, b = swipes_duel(core, patch, 1, talent="special_bonus_unique_ursa")
    for n in (1, 2, 3):
        assert_adds(arena, b, n * (EACH[patch][0] + 16))


def test_swipes_leave_buildings_alone(core: Any) -> None:
    arena, a, _ = swipes_duel(core, "7.21d", 4)
    tower = next(u for u in arena.world.units("tower") if u["team"] == 1 and u["tier"] == 1 and u["lane"] == 1)
    arena.world.set_unit(a, x=tower["x"] - 150, y=tower["y"] - 100)
    lost = [attack_once(arena, a, tower["index"]) for _ in range(4)]
    assert max(lost) - min(lost) < 5 and not arena.modifiers(tower["index"], SWIPES)


def test_swipes_reach_the_spell_immune(core: Any) -> None:
    arena, _, b = swipes_duel(core, "7.21d", 4)
    bar = give(arena, "black_king_bar", 5)
    without_armor(arena, b)
    arena.world.order(b, "cast", slot=bar)
    arena.seconds(0.2)
    for n in (1, 2):
        assert_adds(arena, b, 28 * n)


def test_a_critical_hit_does_not_multiply_swipes(core: Any) -> None:
    """The swipes are added as the attack lands (public modding scripts): Daedalus' 235 % is of the attack alone."""
    arena, a, b = swipes_duel(core, "7.21d", 4)
    give(arena, "greater_crit")
    arena.seconds(0.2)
    low, high = damage_range(arena, a)
    crits = 0
    for n in range(1, 41):
        lost = attack_once(arena, a, b) - 28 * n
        crits += lost > high + 1
        assert low - 0.1 <= lost <= high + 0.1 or 2.35 * low - 0.1 <= lost <= 2.35 * high + 0.1
        arena.world.set_unit(b, hp=20000)
    assert crits > 0


# ---- Enrage ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["physical", "magical", "pure"])
def test_enrage_prevents_80_percent_of_damage(core: Any, patch: str, kind: str) -> None:
    arena = duel(core, "ursa", patch, away=120, hp=20000)
    a, b = arena.unit(0), arena.unit(5)
    plain = arena.world.damage(b, a, 500, kind)
    cast(arena, ENRAGE, 1, wait=0.2)
    assert arena.world.damage(b, a, 500, kind) == pytest.approx(0.2 * plain, rel=1e-4)
    arena.seconds(4)
    assert arena.world.damage(b, a, 500, kind) == pytest.approx(plain, rel=1e-4)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_enrage_multiplies_swipes(core: Any, patch: str, rank: int) -> None:
    """1.4, 1.7 and 2 times for 4 s; the attack itself is as before."""
    arena, a, b = swipes_duel(core, patch, 4)
    attack_once(arena, a, b)
    cast(arena, ENRAGE, rank, wait=0.2)
    for n in (2, 3):
        assert_adds(arena, b, n * EACH[patch][3] * (1.4, 1.7, 2.0)[rank - 1])
    arena.seconds(4.2)
    assert_adds(arena, b, 4 * EACH[patch][3])


@pytest.mark.parametrize("taken", [False, True])
def test_enrage_lasts(core: Any, patch: str, taken: bool) -> None:
    """4 s, with the talent 5.5."""
    arena = duel(core, "ursa", patch, away=120, hp=20000)
    if taken:
        arena.world.teach(0, "special_bonus_unique_ursa_3", 1)
    cast(arena, ENRAGE, 1, wait=STEP)
    arena.seconds(3.6)
    for there in (True, taken):
        assert bool(arena.modifiers(arena.unit(0), ENRAGE)) == there
        arena.seconds(0.6)
    arena.seconds(1.3)
    assert not arena.modifiers(arena.unit(0), ENRAGE)


def test_enrage_is_a_strong_dispel(core: Any, patch: str) -> None:
    """Slithereen Crush's slow, which only a strong dispel takes, goes; Overpower stays."""
    arena = duel(core, "ursa", patch, enemy="slardar", away=120, hp=20000)
    a = arena.unit(0)
    cast(arena, OVERPOWER, 1)
    cast(arena, "slardar_slithereen_crush", 1, hero=5)
    arena.seconds(1.4)
    assert arena.modifiers(a, "slardar_slithereen_crush")
    cast(arena, ENRAGE, 1, wait=0.2)
    assert not arena.modifiers(a, "slardar_slithereen_crush") and arena.modifiers(a, OVERPOWER)


@pytest.mark.parametrize("taken", [False, True])
def test_talent_adds_status_resistance_to_enrage(core: Any, patch: str, taken: bool) -> None:
    """A stun of 1.7 s (Storm Bolt) lasts a fifth: 0.34 s."""
    arena = duel(core, "ursa", patch, enemy="sven", hp=20000)
    a = arena.unit(0)
    if taken:
        arena.world.teach(0, "special_bonus_unique_ursa_6", 1)
    slot = arena.teach(5, "sven_storm_bolt", 1)
    cast(arena, ENRAGE, 1, wait=0.2)
    arena.world.order(arena.unit(5), "cast_unit", target=a, slot=slot)
    frames = 0
    for _ in range(90):
        arena.world.run_frames(1)
        frames += arena.world.unit(a)["status"] & STUNNED
    stun = arena.special("sven_storm_bolt", "bolt_stun_duration")[0]
    assert frames * FRAME == pytest.approx(stun * (0.2 if taken else 1), abs=2 * FRAME)


# ---- Enrage with Aghanim's Scepter ----------------------------------------------------------------------------------


def duel_of_disabled_ursa(core: Any, patch: str, enemy: str, ability: str, scepter: bool, status: int) -> Arena:
    """Return a duel in which the enemy disables Ursa, who then tries to cast Enrage."""
    arena = duel(core, "ursa", patch, enemy=enemy, away=200, hp=20000)
    a = arena.unit(0)
    if scepter:
        give(arena, "ultimate_scepter")
    slot = arena.teach(0, ENRAGE, 1)
    cooldown_of_cast(arena, ability, arena.teach(5, ability, 4), a, hero=5)
    arena.seconds(0.6)  # projectiles arrive
    assert arena.world.unit(a)["status"] & status
    arena.world.order(a, "cast", slot=slot)
    arena.seconds(0.2)
    return arena


@pytest.mark.parametrize("scepter", [False, True])
@pytest.mark.parametrize(("enemy", "ability", "status"), [("sven", "sven_storm_bolt", STUNNED),
                                                          ("axe", "axe_berserkers_call", TAUNTED)])
def test_the_scepter_casts_enrage_while_disabled(core: Any, patch: str, enemy: str, ability: str, status: int,
                                                 scepter: bool) -> None:
    """It is cast in a stun, which it removes, and under a taunt; without the scepter it is not."""
    arena = duel_of_disabled_ursa(core, patch, enemy, ability, scepter, status)
    a = arena.unit(0)
    assert bool(arena.modifiers(a, ENRAGE)) == scepter
    if status == STUNNED:
        assert bool(arena.world.unit(a)["status"] & STUNNED) == (not scepter)


@pytest.mark.parametrize(("enemy", "ability", "status"), [("death_prophet", "death_prophet_silence", SILENCED),
                                                          ("lion", "lion_voodoo", HEXED)])
def test_silences_and_hexes_keep_him_from_enrage(core: Any, enemy: str, ability: str, status: int) -> None:
    """A hex silences too. Public wikis: silences stop an ability that can be cast while stunned."""
    arena = duel_of_disabled_ursa(core, "7.21d", enemy, ability, True, status)
    assert not arena.modifiers(arena.unit(0), ENRAGE)


@pytest.mark.parametrize(("rank", "plain", "less"), [(1, 50, 30), (2, 40, 24), (3, 30, 18)])
def test_the_scepter_shortens_enrages_cooldown(core: Any, patch: str, rank: int, plain: float, less: float) -> None:
    for scepter in (False, True):
        arena = duel(core, "ursa", patch, away=120, hp=20000)
        if scepter:
            give(arena, "ultimate_scepter")
        before = arena.world.time
        cast(arena, ENRAGE, rank, wait=STEP)
        assert arena.world.ability(0, ENRAGE)["ready"] - before == pytest.approx(less if scepter else plain, abs=STEP)
