"""Lion by the tooltips, notes and patch notes of 7.21d and 7.19 (tests/dota/tooltips/lion.md)."""

from typing import Any

import pytest

from tests.dota.scenes.actions import give, make_immune, order, until_cast
from tests.dota.scenes.arena import CENTRE, Arena
from tests.dota.scenes.duels import duel
from tests.dota.scenes.readings import speed_factor
from tests.dota.scenes.statuses import HEXED, STUNNED
from tests.dota.scenes.units import set_health

HASTE = 2


def test_impale_reaches_as_much_farther_as_it_is_cast(core: Any) -> None:
    """500 + 325 long, 125 to each side; Aether Lens adds its 250 to the cast range."""
    for lens, reach in ((False, 950), (True, 1200)):
        arena = duel(core, "lion", away=2000)
        if lens:
            give(arena, "aether_lens")
        near, far = arena.dummy(reach - 30, 0), arena.dummy(reach + 40, 60)
        order(arena, "lion_impale", 1, at=(400, 0))
        arena.seconds(1.4)
        assert [bool(arena.world.unit(u)["status"] & STUNNED) for u in (near, far)] == [True, False], lens


def test_impale_is_aimed_at_a_unit_or_a_point(core: Any) -> None:
    """It flies to where a unit is when it is cast, and does not follow it."""
    for stays in (True, False):
        arena = duel(core, "lion", away=450)
        target = arena.unit(5)
        order(arena, "lion_impale", 1, target)
        until_cast(arena, "lion_impale")
        if not stays:
            arena.place(target, 450, 300)
        arena.seconds(0.6)
        assert bool(arena.world.unit(target)["status"] & STUNNED) == stays


@pytest.mark.parametrize(("patch", "flat", "percent"), [("7.21d", 0, 15), ("7.19", 50, 0)])
def test_hex_replaces_the_base_speed_only(core: Any, patch: str, flat: int, percent: int) -> None:
    """Note: a base speed of 140. Boots of Speed, 15 % (7.19: 50), and what agility adds still count."""
    arena = duel(core, "lion", patch=patch)
    target = arena.unit(5)
    factor = speed_factor(arena, target)
    give(arena, "boots", hero=5)
    order(arena, "lion_voodoo", 4, target)
    arena.seconds(0.3)
    assert arena.world.unit(target)["status"] & HEXED
    assert arena.world.unit(target)["move_speed"] == pytest.approx((140 + flat) * (factor + percent / 100), rel=1e-4)


def test_hex_leaves_haste(core: Any) -> None:
    """Note: what grants the greatest speed is not disabled."""
    arena = duel(core, "lion")
    target = arena.unit(5)
    arena.world.rune(target, HASTE)
    arena.seconds(0.2)
    order(arena, "lion_voodoo", 4, target)
    arena.seconds(0.3)
    assert arena.world.unit(target)["status"] & HEXED
    assert arena.world.unit(target)["move_speed"] == arena.data["rules"]["rules"]["runes"]["effects"]["haste"]["ms"]


def test_a_hexed_hero_does_nothing_but_walk(core: Any) -> None:
    """It ends a channel; neither abilities nor items nor attacks until it is over."""
    arena = duel(core, "lion", enemy="lion")
    target, other = arena.unit(5), arena.unit(0)
    give(arena, "faerie_fire", hero=5, charges=1)
    order(arena, "lion_mana_drain", 4, other, hero=5)
    arena.seconds(0.8)
    assert arena.world.unit(target)["act"] == "channel"
    order(arena, "lion_voodoo", 1, target)
    arena.seconds(0.2)
    assert arena.world.unit(target)["act"] != "channel"
    assert not arena.world.ability(5, "lion_mana_drain")["castable"]
    assert not arena.world.ability(5, "item_faerie_fire")["castable"]
    hp = arena.hp(other)
    arena.world.set_unit(target, attack_ready=0)
    arena.world.order(target, "attack", other)
    arena.seconds(2)
    assert arena.hp(other) == hp
    arena.world.order(target, "move", x=CENTRE[0] + 2000, y=CENTRE[1])
    before = arena.world.unit(target)["x"]
    arena.seconds(0.3)
    assert arena.world.unit(target)["x"] > before


@pytest.mark.parametrize(("patch", "flag"), [("7.21d", 2), ("7.19", 0)])
def test_what_dispels_a_hex(core: Any, patch: str, flag: int) -> None:
    """7.21d: a strong dispel; 7.19: nothing (both files)."""
    arena = duel(core, "lion", patch=patch)
    order(arena, "lion_voodoo", 1, arena.unit(5))
    arena.seconds(0.3)
    assert [m["flags"] & 3 for m in arena.modifiers(arena.unit(5), "lion_voodoo")] == [flag]


@pytest.mark.parametrize(("patch", "slow"), [("7.21d", 32), ("7.19", 25)])
def test_more_links_drain_and_slow_any_unit_with_mana(core: Any, patch: str, slow: int) -> None:
    """Tooltip of the talent: two more enemy units with a mana pool within 400 of the first. They are slowed like it, as
    long as their link lasts. 120 mana a second at rank 4."""
    arena = duel(core, "lion", patch=patch)
    arena.world.teach(0, "special_bonus_unique_lion", 1)
    target = arena.unit(5)
    casters = [arena.dummy(350, 250, kind="npc_dota_neutral_satyr_hellcaller"), arena.dummy(350, -250)]
    plain = arena.dummy(300, 100, kind="npc_dota_neutral_kobold")
    assert arena.world.unit(plain)["max_mana"] == 0
    drained = [target, *casters]
    mana = [arena.world.unit(u)["mana"] for u in drained]
    speed = [arena.world.unit(u)["move_speed"] for u in casters]
    order(arena, "lion_mana_drain", 4, target)
    until_cast(arena, "lion_mana_drain")
    arena.world.run_frames(32)
    lost = [m - arena.world.unit(u)["mana"] for m, u in zip(mana, drained, strict=True)]
    assert lost == pytest.approx([120, 120, 120], abs=1)
    for unit, before in zip(casters, speed, strict=True):
        assert arena.world.unit(unit)["move_speed"] == pytest.approx(before * (1 - slow / 100), rel=1e-3)
    assert not arena.modifiers(plain, "lion_mana_drain")
    arena.place(casters[0], 1300, 0)
    arena.seconds(0.3)
    assert arena.world.unit(casters[0])["move_speed"] == pytest.approx(speed[0])
    assert arena.world.unit(arena.unit(0))["act"] == "channel"
    assert arena.modifiers(casters[1], "lion_mana_drain") and arena.modifiers(target, "lion_mana_drain")
    arena.world.order(arena.unit(0), "stop")
    arena.seconds(0.2)
    assert not any(arena.modifiers(u, "lion_mana_drain") for u in drained)


def test_mana_drain_ends_when_its_target_is_immune(core: Any) -> None:
    """The files: it does not reach the spell-immune."""
    arena = duel(core, "lion")
    order(arena, "lion_mana_drain", 4, arena.unit(5))
    arena.seconds(1)
    assert arena.world.unit(arena.unit(0))["act"] == "channel"
    make_immune(arena, 5)
    mana = arena.world.unit(arena.unit(5))["mana"]
    arena.seconds(0.5)
    assert arena.world.unit(arena.unit(0))["act"] != "channel"
    assert arena.world.unit(arena.unit(5))["mana"] == pytest.approx(mana, abs=0.1)


def finger_damage(arena: Arena, dodge: bool) -> float:
    """Return the health lost by a target that escapes into a cyclone before the damage comes, or does not."""
    target = arena.unit(5)
    set_health(arena, target, hp=5000)
    slot = give(arena, "cyclone", hero=5)
    order(arena, "lion_finger_of_death", 1, target)
    until_cast(arena, "lion_finger_of_death")
    arena.world.run_frames(2)
    if dodge:
        arena.world.order(target, "cast_unit", target=target, slot=slot)
    arena.seconds(0.6)
    return 5000 - arena.hp(target)


def test_finger_is_avoided_within_a_quarter_of_a_second(core: Any) -> None:
    """Note: 0.25 s pass between the cast and the damage."""
    assert finger_damage(duel(core, "lion"), dodge=False) > 400
    assert finger_damage(duel(core, "lion"), dodge=True) == 0


@pytest.mark.parametrize(("patch", "more"), [("7.21d", 50), ("7.19", 0)])
def test_finger_grows_by_kills_since_7_20(core: Any, patch: str, more: int) -> None:
    """Patch 7.20: 50 more damage for each hero killed."""
    arena = duel(core, "lion", patch=patch)
    arena.world.set_unit(arena.unit(5), hp=100)
    order(arena, "lion_finger_of_death", 1, arena.unit(5))
    arena.seconds(1)
    assert not arena.world.unit(arena.unit(5))["alive"]
    arena.seconds(160)
    arena.place(arena.unit(0), 0, 0)
    target = arena.dummy(300, 0)
    order(arena, "lion_finger_of_death", 1, target)
    arena.seconds(1.2)
    assert 5000 - arena.hp(target) == pytest.approx((600 + more) * arena.amp(arena.unit(0)) * arena.magic(target),
                                                    rel=1e-3)


def test_the_scepters_finger_grows_by_all_whom_it_kills(core: Any) -> None:
    """Scepter: 725 to all units within 325 of the target; each hero that dies of it counts."""
    arena = duel(core, "lion")
    give(arena, "ultimate_scepter")
    arena.place(arena.unit(6), 300, 250)
    for hero in (5, 6):
        arena.world.set_unit(arena.unit(hero), hp=100)
    order(arena, "lion_finger_of_death", 1, arena.unit(5))
    arena.seconds(1)
    assert not arena.world.unit(arena.unit(6))["alive"]
    assert arena.world.ability(0, "lion_finger_of_death")["stacks"] == 2


@pytest.mark.parametrize(("patch", "talent", "more"), [("7.21d", "cast_range_100", 100), ("7.19", "cast_range_75", 75)])
def test_the_cast_range_talent(core: Any, patch: str, talent: str, more: int) -> None:
    """Hex from 500 and so much more, between edges of 24 each."""
    arena = duel(core, "lion", patch=patch)
    arena.world.teach(0, "special_bonus_" + talent, 1)
    walked = []
    for away in (548 + more - 15, 548 + more + 15):
        arena.place(arena.unit(0), 0, 0)
        arena.place(arena.unit(5), away, 0)
        arena.seconds(13 if walked else 0.2)
        order(arena, "lion_voodoo", 4, arena.unit(5))
        arena.world.run_frames(2)
        walked.append(arena.world.unit(arena.unit(0))["x"] > CENTRE[0] + 1)
        arena.seconds(0.3)
    assert walked == [False, True]


def test_no_dispel_takes_the_slow_of_a_drain(core: Any) -> None:
    """Files."""
    arena = duel(core, "lion")
    order(arena, "lion_mana_drain", 1, arena.unit(5))
    arena.seconds(0.8)
    assert [m["flags"] & 3 for m in arena.modifiers(arena.unit(5), "lion_mana_drain")] == [0]
